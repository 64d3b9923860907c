"""``unpoison clean``: a source in, a cleaned set with its evidence out."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import click

from unpoison.cli.given import command, load_options
from unpoison.cli.progress import progress_bars
from unpoison.cli.text import shown
from unpoison.core.presets import METHODS, PRESETS
from unpoison.learners.defaults import LEARNERS, NETWORK_NAMES
from unpoison.learners.recipes import AUGMENTATIONS, PRECISIONS, RECIPES


def _refuse_nan(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """Nothing is above not-a-number: as a limit it would let everything pass, and no range refuses it."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not in the range 0.0<=x<=1.0.", context, parameter)
    return value


@click.command()
@click.argument("source")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Folder for the results; new or empty."
)
@click.option("--label", metavar="COLUMN", help="Column of a table that holds the labels.")
@click.option("--text", metavar="COLUMN", help="Column of a table that is text (found by itself otherwise).")
@click.option("--id", "id_column", metavar="COLUMN", help="Column of a table that names each sample.")
@click.option("--split", metavar="NAME", help="Split of an hf: dataset (train if not given).")
@click.option(
    "--image", metavar="COLUMN", help="Column of an hf: dataset with the images, if there are several."
)
@click.option(
    "--image-size", type=click.IntRange(min=1), help="Side in pixels that folder images are scaled to."
)
@click.option("--copy", is_flag=True, help="Copy images into clean/ instead of making hard links.")
@click.option(
    "--learner",
    metavar="NAME",
    default="auto",
    show_default=True,
    help=f"One of {', '.join((*LEARNERS, *NETWORK_NAMES))}, or your own network as module:callable. auto: a "
    "network for images of 16 pixels or more where torch is installed, logistic for the rest.",
)
@click.option("--recipe", type=click.Choice(RECIPES), help="How networks are trained (docs/training.md).")
@click.option(
    "--augment", type=click.Choice(AUGMENTATIONS), help="How images are varied in training; by dataset."
)
@click.option("--device", default="auto", show_default=True, help="For networks: auto, cpu, cuda or mps.")
@click.option("--precision", type=click.Choice(PRECISIONS), default="auto", show_default=True)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Threads of one network on a CPU. Unlike --workers it can change the last bits of a result.",
)
@click.option("--compile", is_flag=True, help="Pass networks through torch.compile.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="How to look: ispl is the paper's (default for networks and with its settings), out-of-subset ours.",
)
@click.option("--settings", "preset", type=click.Choice(PRESETS), default="auto", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes; by size of the data if not given. Same result."
)
@click.option("--resume", is_flag=True, help="Go on with an interrupted run in --out.")
@click.option("--json", "as_json", is_flag=True, help="Print the run's record as JSON.")
@click.option(
    "--fail-above",
    type=click.FloatRange(0.0, 1.0),
    callback=_refuse_nan,
    metavar="FRACTION",
    help="Exit with 1 when more than this share of the samples is judged poisoned.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors (and the JSON if asked for).")
@click.option("--no-progress", is_flag=True, help="Draw no progress bars.")
def clean(source: str, out: Path, **given: Any) -> None:
    """Find what was planted in SOURCE and write a cleaned copy with the evidence to --out.

    SOURCE is a folder of images with one subfolder a class, an .npz file with x and y, a .csv, .tsv or
    .parquet file with a --label column, a Hugging Face dataset as hf:user/name or hf:FOLDER, or a dataset by
    name: digits, or cifar10, gtsrb, imagenette or fashion-mnist once fetched (unpoison data fetch).
    """
    from unpoison.cleaning import clean as run_clean

    with progress_bars(enabled=not (given["quiet"] or given["no_progress"])) as listener:
        record = run_clean(source, out, options=_options(given), listener=listener, command=command())
    if given["as_json"]:
        click.echo(json.dumps({**record, "out": str(out)}, indent=2))
    elif not given["quiet"]:
        _summary(record, out)
    limit = given["fail_above"]
    if limit is not None and record["result"]["removed_fraction"] > limit:
        sys.exit(1)


def _options(given: dict[str, Any]) -> Any:
    from unpoison.cleaning import CleanOptions
    from unpoison.learners.choose import LearnerChoice
    from unpoison.learners.recipes import TrainingOptions

    training = TrainingOptions(
        device=given["device"],
        precision=given["precision"],
        threads=given["threads"],
        compile=given["compile"],
    )
    return CleanOptions(
        method=given["method"],
        preset=given["preset"],
        learner=LearnerChoice(given["learner"], given["recipe"], training),
        augment=given["augment"],
        seed=given["seed"],
        workers=given["workers"],
        resume=given["resume"],
        load=load_options(given),
    )


def _summary(record: dict[str, Any], out: Path) -> None:
    result, data = record["result"], record["data"]
    kept = data["n"] - result["n_removed"]
    click.echo(result["verdict"])
    if result.get("caution"):
        click.echo(f"Caution: {result['caution']}")
    click.echo(f"  kept      {kept:,} of {data['n']:,} samples in {shown(out / 'clean')}")
    click.echo(f"  manifest  {shown(out / 'manifest.csv')}")
    click.echo(f"  report    {shown(out / 'report.html')}")
