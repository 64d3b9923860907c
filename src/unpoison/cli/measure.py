"""``unpoison measure``: what sets of samples in a source do for each other."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import click

from unpoison.cli.given import command, learner_choice, learner_options, load_options, source_options
from unpoison.cli.progress import progress_bars
from unpoison.cli.text import shown

NAME_WIDTH = 24


@click.command()
@click.argument("source")
@click.option(
    "--sets",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="CSV with the columns id and set: which sample is in which set. Ids are those of manifest.csv.",
)
@source_options
@learner_options
@click.option(
    "--alpha",
    type=float,
    default=0.5,
    show_default=True,
    help="Share of each class that a model is trained on.",
)
@click.option("--repeats", type=int, default=8, show_default=True, help="Models trained for each error.")
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Of intervals and of each decision."
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    help="Passes over the training samples, for learners that train in passes. [default: 10, and more for "
    "small sets, up to 300 steps]",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes; by size of the data if not given. Same result."
)
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the matrix of all pairs into a .png, .svg or .pdf file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything that was measured as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors (and the JSON if asked for).")
@click.option("--no-progress", is_flag=True, help="Draw no progress bars.")
def measure(source: str, sets: Path, **given: Any) -> None:
    """Measure whether sets of samples in SOURCE help or hurt each other in training.

    SOURCE is as in unpoison clean. For every two of the --sets: how much of the first is wrong when models
    train on a random share of it, and how much when they train on a share of both. Where that rises, the
    second is incompatible with the first: what models learn from it is wrong there.
    """
    from unpoison.measuring import measure as run_measure

    picture = given["picture"]
    if picture is not None:
        from unpoison.report.plots import check_target

        check_target(picture)
    with progress_bars(enabled=not (given["quiet"] or given["no_progress"])) as listener:
        record = run_measure(source, sets, options=_options(given), listener=listener, command=command())
    if picture is not None:
        from unpoison.report.compatibility import draw_matrix

        draw_matrix(record, picture)
    if given["as_json"]:
        click.echo(json.dumps(record, indent=2))
    elif not given["quiet"]:
        _tell(record, picture)


def _options(given: dict[str, Any]) -> Any:
    from unpoison.measuring import MeasureOptions, measuring_for

    how = measuring_for(
        alpha=given["alpha"],
        repeats=given["repeats"],
        confidence=given["confidence"],
        epochs=given["epochs"],
    )
    return MeasureOptions(
        how=how,
        learner=learner_choice(given),
        augment=given["augment"],
        seed=given["seed"],
        workers=given["workers"],
        load=load_options(given),
    )


def _tell(record: dict[str, Any], picture: Path | None) -> None:
    settings = record["settings"]
    click.echo(
        f"Error on a set alone, and when models train on another set with it ({settings['repeats']} models "
        f"each, {settings['confidence']:.0%} intervals):"
    )
    for line in _table(record):
        click.echo(line)
    for pair in record["pairs"]:
        if pair["decision"] == "incompatible":
            click.echo(_sentence(pair, record["sets"]))
    click.echo(_rest(record["pairs"]))
    for note in record["notes"]:
        click.echo(f"Note: {shown(note)}")
    cost = record["cost"]
    click.echo(
        f"Cost: {cost['models']:,} models trained in {cost['trained']:,} sample passes, "
        f"{cost['scored']:,} more to judge them; {cost['seconds']:,.1f} s."
    )
    if picture is not None:
        click.echo(f"Picture: {shown(picture)}")


def _table(record: dict[str, Any]) -> list[str]:
    rows = [("set", "with", "alone", "with it", "change in points", "")]
    for pair in record["pairs"]:
        low, high = (100 * bound for bound in pair["change"]["interval"])
        needed = pair["repeats_needed"]
        waits = pair["decision"] == "undecided" and needed is not None
        rows.append(
            (
                _name(pair["of"]),
                _name(pair["given"]),
                f"{record['sets'][pair['of']]['error']['mean']:.1%}",
                f"{pair['error']['mean']:.1%}",
                f"{100 * pair['change']['mean']:+.2f} [{low:+.2f}, {high:+.2f}]",
                pair["decision"] + (f", about {needed:,} repeats would decide" if waits else ""),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(row[2:5], widths[2:5], strict=True)]
        lines.append("  " + "  ".join([*left, *right, row[5]]).rstrip())
    return lines


def _sentence(pair: dict[str, Any], sets: dict[str, Any]) -> str:
    alone, together = sets[pair["of"]]["error"]["mean"], pair["error"]["mean"]
    return (
        f"'{_name(pair['given'])}' is incompatible with '{_name(pair['of'])}': with it in training, models "
        f"get {together:.1%} of '{_name(pair['of'])}' wrong instead of {alone:.1%}."
    )


def _rest(pairs: list[dict[str, Any]]) -> str:
    """How many pairs are not incompatible, and what that means."""
    count = Counter(pair["decision"] for pair in pairs)
    meaning = {
        "compatible": "the second set helps with the first",
        "undecided": "no change that is larger than chance",
    }
    parts = [
        f"{count[decision]} of {len(pairs)} pairs {decision} ({words})"
        for decision, words in meaning.items()
        if count[decision]
    ]
    return "; ".join(parts) + "." if parts else "No set helps another."


def _name(name: str) -> str:
    from unpoison.report.text import printable

    return printable(name, NAME_WIDTH)
