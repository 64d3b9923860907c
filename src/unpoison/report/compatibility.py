"""A picture of what sets do for each other, from the record of ``unpoison measure``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.report.plots import pyplot, save
from unpoison.report.text import printable

COLORS = "PuOr_r"
"""Purple where errors fall, orange where they rise: told apart with any eyes."""
WORDS = {"compatible": "compatible", "incompatible": "INCOMPATIBLE", "undecided": "undecided"}


def draw_matrix(record: Mapping[str, Any], target: Path) -> None:
    """A row for the set that is judged, a column for the one that is added: change, interval and decision.

    On the diagonal is the error of each set alone.
    """
    names = list(record["sets"])
    changes = np.zeros((len(names), len(names)))
    for pair in record["pairs"]:
        changes[names.index(pair["of"]), names.index(pair["given"])] = 100 * pair["change"]["mean"]
    side = max(4.5, 1.9 * len(names))
    figure, axes = pyplot().subplots(figsize=(side + 1.8, side), layout="constrained")
    largest = float(np.abs(changes).max()) or 1.0
    image = axes.imshow(changes, cmap=COLORS, vmin=-largest, vmax=largest)
    figure.colorbar(image, ax=axes, shrink=0.8, label="change in error (points)")
    _label(axes, names, record["settings"]["confidence"])
    for i, name in enumerate(names):
        error = record["sets"][name]["error"]
        _write(axes, i, i, f"alone\n{error['mean']:.1%} wrong", dark=False)
    for pair in record["pairs"]:
        row, column = names.index(pair["of"]), names.index(pair["given"])
        low, high = (100 * bound for bound in pair["change"]["interval"])
        text = f"{changes[row, column]:+.2f}\n[{low:+.2f}, {high:+.2f}]\n{WORDS[pair['decision']]}"
        _write(axes, row, column, text, dark=abs(changes[row, column]) > 0.7 * largest)
    save(figure, target)


def _label(axes: Any, names: list[str], confidence: float) -> None:
    # a dollar sign in a name would start a formula
    shown = [printable(name, limit=18) for name in names]
    axes.set_xticks(range(len(names)), shown, parse_math=False)
    axes.set_yticks(range(len(names)), shown, parse_math=False)
    axes.set_xlabel("trained on together with ...")
    axes.set_ylabel("error on ...")
    axes.set_title(f"Change in error, in points, with its {confidence:.0%} interval", fontsize=10)


def _write(axes: Any, row: int, column: int, text: str, *, dark: bool) -> None:
    axes.text(column, row, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")
