"""What removed rows or texts have in common and kept ones do not: values of columns, words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unpoison.data.container import Preview

MAX_TRAITS = 8
MIN_SAMPLES = 3
"""With fewer removed samples, everything is common to most of them."""

_MIN_SHARE = 0.5
_MIN_LEAD = 0.3
_TEXT_LIMIT = 5000
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Trait:
    """``value`` occurs in the share ``removed`` of removed samples, and ``kept`` of the kept ones."""

    column: str | None
    """The column that holds the value; None for a word of a text."""
    value: str
    removed: float
    kept: float


def common_traits(removed: Sequence[Preview], *references: Sequence[Preview]) -> list[Trait]:
    """What most of ``removed`` share and clearly fewer of each set of ``references`` do, strongest first.

    Give the kept samples of the same label and those of the classes the removed are called: what belongs
    to either class is then not mistaken for a mark.
    """
    if len(removed) < MIN_SAMPLES:
        return []
    counts = _counts(removed)
    others = [(_counts(reference), len(reference)) for reference in references if reference]
    traits = []
    for (column, value), n in counts.items():
        share = n / len(removed)
        kept = max((found[(column, value)] / size for found, size in others), default=0.0)
        if share >= _MIN_SHARE and share - kept >= _MIN_LEAD:
            traits.append(Trait(column, value, share, kept))
    traits.sort(key=lambda trait: (trait.kept - trait.removed, trait.column or "", trait.value))
    return traits[:MAX_TRAITS]


def _counts(previews: Iterable[Preview]) -> Counter[tuple[str | None, str]]:
    """In how many samples each value or word occurs."""
    counts: Counter[tuple[str | None, str]] = Counter()
    for preview in previews:
        if preview.columns is not None:
            counts.update(set(preview.columns))
        elif preview.text is not None:
            counts.update({(None, word) for word in _WORD.findall(preview.text[:_TEXT_LIMIT].lower())})
    return counts
