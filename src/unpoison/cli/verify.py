"""``unpoison verify``: is an output folder still what the run, and a review after it, wrote?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from unpoison.cli.text import shown


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
def verify(directory: Path) -> None:
    """Recheck the hashes of DIRECTORY, the --out of an earlier clean. Exit 1 where anything differs."""
    from unpoison.outputs import place
    from unpoison.outputs.verify import verify as find_problems

    problems = find_problems(directory)
    for problem in problems:
        click.echo(shown(problem))
    if problems:
        click.echo(f"{shown(directory)}: {len(problems)} problem{'s' if len(problems) > 1 else ''} found")
        sys.exit(1)
    click.echo(f"{shown(directory)}: every file and every kept sample is as {place.RUN} records it")
