"""What removed rows or texts have in common and kept ones do not: values and ranges of columns, words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.data.container import Preview
from unpoison.report.ranges import common_range
from unpoison.report.text import printable
from unpoison.types import FloatArray

MAX_TRAITS = 8
MIN_SAMPLES = 3
"""With fewer removed samples, everything is common to most of them."""

_MIN_SHARE = 0.5
_MIN_LEAD = 0.3
_TEXT_LIMIT = 5000
_LARGEST = 1e100
"""Numbers beyond this, infinities and not-a-number are not compared."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Trait:
    """``value`` occurs in the share ``removed`` of removed samples, and ``kept`` of the kept ones."""

    column: str | None
    """The column that holds the value; None for a word of a text."""
    value: str
    removed: float
    kept: float
    is_range: bool = False
    """Whether ``value`` is a range of numbers, such as ``396 to 412``, and not one value."""

    @property
    def lead(self) -> float:
        """How much more of the removed have it."""
        return self.removed - self.kept

    def __str__(self) -> str:
        """In the words of a sentence, with invisible characters written out."""
        value = printable(self.value, 40)
        if self.column is None:
            return f"the word '{value}'"
        column = printable(self.column, 40)
        return f"{column} {value}" if self.is_range else f"{column} = '{value}'"


def common_traits(
    removed: Sequence[Preview], *references: Sequence[Preview], without: Collection[str] = ()
) -> list[Trait]:
    """What most of ``removed`` share and clearly fewer of each set of ``references`` do, strongest first.

    Give the kept samples of the same label and those of the classes the removed are called: what belongs
    to either class is then not mistaken for a mark. ``without`` names columns that mean nothing, such as ids.
    """
    if len(removed) < MIN_SAMPLES:
        return []
    traits = _equal(removed, references)
    known = {trait.column for trait in traits}
    traits += [trait for trait in _ranges(removed, references) if trait.column not in known]
    traits = [trait for trait in traits if trait.column not in without]
    traits.sort(key=lambda trait: (-trait.lead, trait.column or "", trait.value))
    return traits[:MAX_TRAITS]


def _equal(removed: Sequence[Preview], references: Sequence[Sequence[Preview]]) -> list[Trait]:
    """Values and words that are the same, letter by letter."""
    counts = _counts(removed)
    others = [(_counts(reference), len(reference)) for reference in references if reference]
    traits = []
    for (column, value), n in counts.items():
        share = n / len(removed)
        kept = max((found[(column, value)] / size for found, size in others), default=0.0)
        if share >= _MIN_SHARE and share - kept >= _MIN_LEAD:
            traits.append(Trait(column, value, share, kept))
    return traits


def _ranges(removed: Sequence[Preview], references: Sequence[Sequence[Preview]]) -> list[Trait]:
    """Ranges of the columns that hold a number in every removed sample."""
    numbers = _numbers(removed)
    columns = [column for column, values in numbers.items() if len(values) == len(removed)]
    others = [_numbers(reference) for reference in references]
    traits = []
    for column in columns:
        known = [found[column] for found in others if column in found]
        found = common_range(numbers[column], known, n_columns=len(columns))
        if found is not None:
            traits.append(Trait(column, str(found), found.removed, found.kept, is_range=True))
    return traits


def _numbers(previews: Iterable[Preview]) -> dict[str, FloatArray]:
    """The numbers in each column that has any."""
    found: dict[str, list[float]] = {}
    for preview in previews:
        for column, cell in preview.columns or ():
            try:
                number = float(cell)
            except ValueError:
                continue
            if abs(number) < _LARGEST:
                found.setdefault(column, []).append(number)
    return {column: np.array(values) for column, values in found.items()}


def _counts(previews: Iterable[Preview]) -> Counter[tuple[str | None, str]]:
    """In how many samples each value or word occurs."""
    counts: Counter[tuple[str | None, str]] = Counter()
    for preview in previews:
        if preview.columns is not None:
            counts.update(set(preview.columns))
        elif preview.text is not None:
            counts.update({(None, word) for word in _WORD.findall(preview.text[:_TEXT_LIMIT].lower())})
    return counts
