"""A narrow range of numbers that a group shares and that few others have.

The numbers below were chosen on breast cancer, wine and iris: rows drawn at random, nearest to one of them,
farthest from their class or most like another class must not be given a range, as half of such rows often
have one. Rows with planted values that vary by 2% must.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.types import FloatArray

_SHARES = (1.0, 0.95, 0.9, 0.8, 0.7)
"""How much of the group the range is to hold; the share that sets it apart most counts."""
_WIDEST = 0.1
"""A range is narrow if it is at most this part of all that the samples span."""
_FEW = 0.1
"""No more than this share of either class may have it."""
_CHANCE = 0.001


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``: the share ``removed`` of a group has them, and ``kept`` of others."""

    low: float
    high: float
    removed: float
    kept: float

    def __str__(self) -> str:
        """With as many digits as the width of the range makes sense of: ``396 to 412``."""
        width = self.high - self.low
        digits = 1 - math.floor(math.log10(width)) if width > 0 else 4
        form = f".{max(digits, 0)}f" if digits <= 8 and abs(self.high) + abs(self.low) < 1e9 else ".6g"
        return " to ".join(dict.fromkeys((format(self.low, form), format(self.high, form))))


def common_range(values: FloatArray, references: Sequence[FloatArray], *, n_columns: int) -> Range | None:
    """The narrow range that most of ``values`` lie in and few of each of ``references``; None without one.

    ``n_columns`` is in how many columns such a range is sought: the more there are, the more likely one has
    it by chance.
    """
    known = [np.sort(reference) for reference in references if len(reference)]
    if not known or len(values) < 2:  # one sample shares nothing
        return None
    low, high = np.quantile(np.concatenate(known), [0.05, 0.95])
    found = []
    for share in _SHARES:
        inner = _shortest(np.sort(values), math.ceil(share * len(values)), known)
        span = max(high, inner.high) - min(low, inner.low)
        is_narrow = inner.high - inner.low <= _WIDEST * span
        if is_narrow and inner.kept <= _FEW and _by_chance(inner, len(values), known, n_columns) <= _CHANCE:
            found.append(inner)
    return max(found, key=lambda inner: inner.removed - inner.kept, default=None)


def _shortest(values: FloatArray, n_inside: int, references: Sequence[FloatArray]) -> Range:
    """The shortest range with ``n_inside`` of the sorted values."""
    widths = values[n_inside - 1 :] - values[: len(values) - n_inside + 1]
    start = int(widths.argmin())
    low, high = float(values[start]), float(values[start + n_inside - 1])
    kept = max(_hits(reference, low, high) / len(reference) for reference in references)
    return Range(low, high, n_inside / len(values), kept)


def _hits(values: FloatArray, low: float, high: float) -> int:
    """How many of the sorted values lie from ``low`` to ``high``."""
    return int(np.searchsorted(values, high, side="right") - np.searchsorted(values, low, side="left"))


def _by_chance(found: Range, n: int, references: Sequence[FloatArray], n_columns: int) -> float:
    """A bound on the probability that ``n`` samples drawn like the others have such a range in any column.

    Any two of them may be its ends; as many of the rest then lie between. How likely each does is
    estimated from the others, and never as impossible.
    """
    hits = max((_hits(r, found.low, found.high) + 1) / (len(r) + 2) for r in references)
    n_inside = round(found.removed * n) - 2
    tail = sum(_likely(k, n - 2, hits) for k in range(max(n_inside, 0), n - 1))
    return math.comb(n, 2) * n_columns * tail


def _likely(k: int, n: int, share: float) -> float:
    """The binomial probability of ``k`` in ``n``; by logarithms, since its factors may be beyond floats."""
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(share) + (n - k) * math.log1p(-share))
