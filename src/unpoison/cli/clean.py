"""``unpoison clean``: a source in, a cleaned set with its evidence out."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import click

from unpoison.cli.given import command, learner_choice, learner_options, load_options, source_options
from unpoison.cli.progress import progress_bars
from unpoison.cli.text import shown
from unpoison.core.presets import EFFORTS, METHODS, PRESETS, check_method
from unpoison.errors import InputError


def _refuse_nan(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """Nothing is above not-a-number: as a limit it would let everything pass, and no range refuses it."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not in the range 0.0<=x<=1.0.", context, parameter)
    return value


def _known_method(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """A method; of one that was replaced the error says by what."""
    try:
        if value is not None:
            check_method(value)
    except InputError as error:
        raise click.BadParameter(str(error), context, parameter) from error
    return value


@click.command()
@click.argument("source")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Folder for the results; new or empty."
)
@source_options
@click.option("--copy", is_flag=True, help="Copy images into clean/ instead of making hard links.")
@learner_options
@click.option(
    "--method",
    callback=_known_method,
    metavar=f"[{'|'.join(METHODS)}]",
    help="How to look: groups is ours, ispl the paper's. [default: groups; ispl with its settings]",
)
@click.option(
    "--effort",
    type=click.Choice(tuple(EFFORTS)),
    help="How long groups trains networks, which decides what it can find; nothing for other learners. "
    "[default: standard]",
)
@click.option(
    "--settings",
    "preset",
    type=click.Choice(PRESETS),
    default="auto",
    show_default=True,
    help="Of ispl: the paper's text or its authors' code; auto is the text's, by the size of the classes.",
)
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
@click.option(
    "--summary",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write a summary in Markdown, for a pull request (docs/pipelines.md).",
)
@click.option(
    "--sarif",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write the removed samples as SARIF 2.1.0, for code hosts.",
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
    from unpoison.outputs.pipeline_files import PipelineFiles

    files = PipelineFiles(source, out, summary=given["summary"], sarif=given["sarif"])
    files.check()
    with progress_bars(enabled=not (given["quiet"] or given["no_progress"])) as listener:
        record = run_clean(source, out, options=_options(given), listener=listener, command=command())
    files.write(record)
    if given["as_json"]:
        click.echo(json.dumps({**record, "out": str(out)}, indent=2))
    elif not given["quiet"]:
        _summary(record, out)
    limit = given["fail_above"]
    if limit is not None and record["result"]["removed_fraction"] > limit:
        sys.exit(1)


def _options(given: dict[str, Any]) -> Any:
    from unpoison.cleaning import CleanOptions

    return CleanOptions(
        method=given["method"],
        preset=given["preset"],
        effort=given["effort"],
        learner=learner_choice(given),
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
    measured = (result.get("certainty") or {}).get("measured")
    if measured:
        click.echo(measured)
    if result.get("caution"):
        click.echo(f"Caution: {result['caution']}")
    click.echo(f"  kept      {kept:,} of {data['n']:,} samples in {shown(out / 'clean')}")
    click.echo(f"  manifest  {shown(out / 'manifest.csv')}")
    click.echo(f"  report    {shown(out / 'report.html')}")
