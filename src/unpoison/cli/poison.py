"""``unpoison poison``: a source in, a poisoned set with the truth about it out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from unpoison.cli.given import command, load_options, source_options
from unpoison.cli.progress import progress_bars
from unpoison.cli.text import shown
from unpoison.evaluation.attack_list import FLAGS

CLEANED = "cleaned"


def _attack_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Every option that some attack takes, as plain text: the attack knows what it means."""
    for name, flag in reversed(FLAGS.items()):
        command = click.option(f"--{name}", _place(name), metavar=flag.metavar, help=flag.help)(command)
    return command


def _place(name: str) -> str:
    """Where click keeps the option: apart from the argument SOURCE and the command's own options."""
    return f"attack_{name.replace('-', '_')}"


@click.command()
@click.argument("source")
@click.option("--attack", required=True, metavar="NAME", help="Which attack: unpoison attacks lists them.")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Folder for the poisoned set; new or empty."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Take N training samples, the same share of each class.",
)
@click.option(
    "--test-share",
    type=float,
    metavar="SHARE",
    help="Share of each class to hold out for testing where the source has no test split (0.2; 0: none).",
)
@click.option(
    "--preview",
    type=click.Path(path_type=Path),
    metavar="PNG",
    help="Draw clean and poisoned images side by side.",
)
@source_options
@click.option("--copy", is_flag=True, help="Copy untouched images instead of making hard links.")
@click.option("--json", "as_json", is_flag=True, help="Print attack.json.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors (and the JSON if asked for).")
@click.option("--no-progress", is_flag=True, help="Draw no progress bars.")
@_attack_options
def poison(source: str, out: Path, **given: Any) -> None:
    """Attack SOURCE in the open: write a poisoned training set, and apart from it the truth, to --out.

    SOURCE is as in unpoison clean. What --out holds is read by unpoison clean: train.npz for images in
    arrays, train/ for a folder of images, train.csv and the like for tables. truth.csv says what was planted.

    The options from --mode on are the attacks' own; each takes some of them.
    """
    from unpoison.evaluation.poisoning import poison as run_poison

    with progress_bars(enabled=not (given["quiet"] or given["no_progress"])) as listener:
        record = run_poison(source, out, options=_options(given), listener=listener, command=command())
    if given["as_json"]:
        click.echo(json.dumps({**record, "out": str(out)}, indent=2))
    elif not given["quiet"]:
        _summary(record, out, given["preview"])


def _options(given: dict[str, Any]) -> Any:
    from unpoison.evaluation.poisoning import PoisonOptions

    settings = {name: given[_place(name)] for name in FLAGS}
    return PoisonOptions(
        attack=given["attack"],
        settings={name: value for name, value in settings.items() if value is not None},
        seed=given["seed"],
        limit=given["limit"],
        test_share=given["test_share"],
        preview=given["preview"],
        load=load_options(given),
    )


def _summary(record: dict[str, Any], out: Path, preview: Path | None) -> None:
    counts = record["counts"]
    share = counts["planted"] / counts["train"]
    covers = f", and {counts['covers']:,} covers" if counts["covers"] else ""
    click.echo(f"Planted {counts['planted']:,} of {counts['train']:,} samples ({share:.2%}){covers}:")
    moves = sorted(record["planted_by_class"].items(), key=lambda item: -item[1])
    for move, count in moves[:5]:
        click.echo(f"  {count:>9,}  {shown(move)}")
    if len(moves) > 5:
        click.echo(f"  {sum(count for _, count in moves[5:]):>9,}  others")
    train, *others = record["files"]
    click.echo(f"  train      {shown(out / train)}")
    for name in others:
        kind = name.partition(".")[0].removeprefix("test_")
        note = f" ({counts['attacked_test']:,} attacked)" if kind == "triggered" else ""
        click.echo(f"  {kind:<9}  {shown(out / name)}{note}")
    if preview is not None:
        click.echo(f"  preview    {shown(preview)}")
    next_step = ["unpoison", "clean", str(out / train), "--out", str(out / CLEANED), *record["clean_options"]]
    click.echo(f"Next: {shown(shlex.join(next_step))}")
