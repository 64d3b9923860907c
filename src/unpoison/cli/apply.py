"""``unpoison apply``: a person's decisions into the results of a run."""

from __future__ import annotations

from pathlib import Path

import click

from unpoison.cli.progress import progress_bars
from unpoison.cli.text import shown


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--overrides",
    required=True,
    type=click.Path(path_type=Path),
    help="The decisions, as the report saves them.",
)
@click.option("--by", metavar="NAME", help="Who decided, for the manifest and run.json.")
@click.option("--source", help="Where the data is, if it was moved since the run.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--no-progress", is_flag=True, help="Draw no progress bars.")
def apply(
    directory: Path, overrides: Path, by: str | None, source: str | None, quiet: bool, no_progress: bool
) -> None:
    """Keep and remove what a person decided, in DIRECTORY, the --out of an earlier clean.

    The cleaned set, the manifest and the report are written anew, or, if anything is wrong with the
    overrides, not at all. Samples that the overrides do not name stay as they are.
    """
    from unpoison.reviewing import apply as run_apply

    with progress_bars(enabled=not (quiet or no_progress)) as listener:
        record = run_apply(directory, overrides, source=source, by=by, listener=listener)
    if quiet:
        return
    kept = record["data"]["n"] - record["result"]["n_removed"]
    click.echo(record["review"]["summary"])
    click.echo(f"  kept      {kept:,} of {record['data']['n']:,} samples in {shown(directory / 'clean')}")
    click.echo(f"  manifest  {shown(directory / 'manifest.csv')}")
    click.echo(f"  report    {shown(directory / 'report.html')}")
