"""``unpoison demo``: the whole story on data that ships with scikit-learn."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unpoison.cli.progress import progress_bars
from unpoison.cli.text import shown

if TYPE_CHECKING:
    from unpoison.evaluation.demo import DemoResult


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the results [default: ./unpoison-demo]."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@click.option("--no-progress", is_flag=True, help="Draw no progress bars.")
def demo(out: Path | None, seed: int, as_json: bool, no_progress: bool) -> None:
    """Poison the digits data in the open, clean it, and train a model before and after."""
    from unpoison.evaluation.demo import run_demo

    out = out or _free_folder(Path("unpoison-demo"))
    with progress_bars(enabled=not no_progress) as listener:
        result = run_demo(out, seed=seed, listener=listener)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(result), default=str, indent=2))
    else:
        _show(result)


def _free_folder(wanted: Path) -> Path:
    """``wanted``, or the first of wanted-2, wanted-3, ... that is not taken."""
    candidate, number = wanted, 1
    while candidate.exists() and (not candidate.is_dir() or any(candidate.iterdir())):
        number += 1
        candidate = wanted.with_name(f"{wanted.name}-{number}")
    return candidate


def _show(result: DemoResult) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(width=100, highlight=False)
    console.print(
        f"scikit-learn's digits, {result.n_train:,} training images. "
        f"Planted: {result.n_poisoned} images of a 1 with a bright patch in the corner, labelled 7."
    )
    console.print(f"Verdict: {escape(result.verdict)}")
    console.print(
        f"[bold]Found {result.n_found} of {result.n_poisoned} planted images[/bold]; "
        f"{result.n_clean_removed} of {result.n_train - result.n_poisoned:,} clean images removed "
        f"({result.lost:.1%})."
    )
    table = Table(title="A small neural network trained on ...", title_justify="left")
    table.add_column("training set")
    table.add_column("accuracy", justify="right")
    table.add_column("trigger turns 1 into 7", justify="right")
    rows = (
        ("as it came (no defense)", result.undefended),
        ("cleaned by unpoison", result.cleaned),
        ("with every planted image taken out", result.perfect),
    )
    for name, effect in rows:
        table.add_row(name, f"{effect.accuracy:.1%}", f"{effect.targeted:.1%}")
    console.print(table)
    console.print("report: ", end="")
    click.echo(shown(result.report))
