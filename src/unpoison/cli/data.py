"""``unpoison data``: the datasets that are known by name, and the cache that keeps them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unpoison.cli.progress import progress_bars
from unpoison.cli.text import shown

if TYPE_CHECKING:
    from unpoison.data.named.fetch import Fetched

INTERRUPTED = 130
_ALWAYS = "digits: comes with scikit-learn, nothing to fetch"


@click.group()
def data() -> None:
    """List, fetch and check the datasets that SOURCE can name."""


@data.command(name="list")
def list_names() -> None:
    """List the datasets that are known by name, and which of them are in the cache."""
    from unpoison.data.named.cache import cache_folder
    from unpoison.data.named.catalog import CATALOG

    rows = [("name", "in cache", "train", "test", "classes", "pixels", "what", "from")]
    rows.append(("digits", "always", "1,797", "-", "10", "8x8x1", "handwritten digits", "scikit-learn"))
    for spec in CATALOG.values():
        rows.append(
            (
                spec.name,
                _state(spec.name),
                f"{spec.n_train:,}",
                f"{spec.n_test:,}",
                str(len(spec.class_names)),
                "x".join(map(str, spec.shape)),
                spec.title,
                ", else ".join(origin.description for origin in spec.origins),
            )
        )
    for line in _table(rows, right=(2, 3, 4)):
        click.echo(line)
    click.echo(f"cache: {shown(cache_folder())} (UNPOISON_CACHE names another)")


@data.command()
@click.argument("name")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    help="The original files, if you have them: a file, or the folder they are in.",
)
@click.option("--force", is_flag=True, help="Fetch it again even if it is in the cache.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--no-progress", is_flag=True, help="Draw no progress bars.")
def fetch(name: str, source: Path | None, force: bool, quiet: bool, no_progress: bool) -> None:
    """Bring the dataset NAME into the cache, checked against the hashes its publisher gives."""
    from unpoison.data.named.catalog import DIGITS
    from unpoison.data.named.fetch import fetch as run_fetch

    if name == DIGITS:
        if not quiet:
            click.echo(_ALWAYS)
        return
    try:
        with progress_bars(enabled=not (quiet or no_progress), in_bytes=True) as listener:
            fetched = run_fetch(name, source=source, force=force, listener=listener)
    except KeyboardInterrupt:
        click.echo("interrupted; fetch again to go on with the download", err=True)
        sys.exit(INTERRUPTED)
    if not quiet:
        _tell(name, fetched)


@data.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
def check(names: tuple[str, ...]) -> None:
    """Recheck the hashes of what is in the cache, or of each NAME. Exit 1 where anything differs."""
    from unpoison.data.named.cache import check as find_problems
    from unpoison.data.named.catalog import CATALOG, DIGITS, find

    chosen = [find(name).name for name in names if name != DIGITS]
    if DIGITS in names:
        click.echo(_ALWAYS)
    elif not names:
        chosen = [name for name in CATALOG if _state(name) != "no"]
        if not chosen:
            click.echo("the cache holds no dataset; run: unpoison data fetch NAME")
    problems = {name: find_problems(name) for name in chosen}
    for name, lines in problems.items():
        for line in lines or [f"{name}: every file is as it was fetched"]:
            click.echo(shown(line))
    if any(problems.values()):
        sys.exit(1)


def _tell(name: str, fetched: Fetched) -> None:
    if fetched.already:
        click.echo(f"{name} is in the cache already: {shown(fetched.folder)} (--force fetches it again)")
        return
    click.echo(f"{name} is in the cache: {shown(fetched.folder)}")
    click.echo(f"  from      {shown(fetched.record.origin)}")
    for source in fetched.record.sources:
        note = "" if source.official else "  (not the official file)"
        click.echo(f"  sha256    {source.sha256}  {shown(source.name)}{note}")


def _state(name: str) -> str:
    """``yes``, ``no`` or ``damaged``; files that the publisher did not make are told."""
    from unpoison.data.named.cache import read_record
    from unpoison.errors import InputError

    try:
        record = read_record(name)
    except InputError:
        return "damaged"
    if record is None:
        return "no"
    return "yes" if record.official else "unofficial"


def _table(rows: Sequence[tuple[str, ...]], *, right: tuple[int, ...]) -> list[str]:
    """Lines with the columns under each other; those in ``right`` are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
