"""The paper's figures, drawn from results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from unpoison.evaluation.outcomes import Result

Figure: TypeAlias = Callable[[Iterable[Result], Path], None]
"""Draws results of one scale into a file, whose ending says in which form."""

FIGURES: dict[str, Figure] = {}
"""By name."""
