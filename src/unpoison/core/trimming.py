"""Trim and what steers it: loss smoothing, beta schedule, per-class floor (Algorithm 1, lines 6-7)."""

from __future__ import annotations

from math import floor
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from unpoison.core.sampling import ceil_share, class_members
from unpoison.types import BoolArray, FloatArray, LabelArray

Floating = TypeVar("Floating", bound=np.floating)


def worst_unless_finite(losses: NDArray[Floating]) -> NDArray[Floating]:
    """``losses`` with infinity, the worst, for all that is not a finite number."""
    result: NDArray[Floating] = np.where(np.isfinite(losses), losses, np.inf)
    return result


def smooth_losses(previous: FloatArray, current: FloatArray, *, momentum: float) -> FloatArray:
    """L <- eta L + (1 - eta) R, where a loss that is not finite counts as infinite: the worst."""
    usable = worst_unless_finite(current)
    if momentum == 0.0:
        return usable
    smoothed: FloatArray = momentum * previous + (1.0 - momentum) * usable
    return smoothed


def target_fraction(n_total: int, n_active: int, *, rounds: int, coverage: float) -> float:
    """p: the share of the active samples that makes a component of ``coverage / rounds`` of all samples."""
    return min(1.0, coverage / rounds * n_total / n_active)


def n_iterations(p: float) -> int:
    """N = 2 + min(3, 1 / p), rounded down."""
    return 2 + _largest_multiple(p)


def beta_schedule(p: float, *, start: Literal["3p", "fits"] = "3p") -> list[float]:
    """beta_t for t = 0 .. N-1: from ``start`` down by p to p, where it stays; never above 1.

    ``3p`` is the paper's text. ``fits`` is the authors' code: the largest of 3p, 2p and p that is at most 1.

    >>> beta_schedule(0.125)
    [0.375, 0.25, 0.125, 0.125, 0.125]
    >>> beta_schedule(0.4), beta_schedule(0.4, start="fits")
    ([1.0, 0.8, 0.4, 0.4], [0.8, 0.4, 0.4, 0.4])
    """
    first = 3 if start == "3p" else _largest_multiple(p)
    return [min(1.0, max(1, first - t) * p) for t in range(n_iterations(p))]


def _largest_multiple(p: float) -> int:
    """The largest of 1, 2 and 3 that, times p, is at most 1."""
    return max(1, min(3, floor(1.0 / p + 1e-9)))


def trim(
    losses: FloatArray,
    labels: LabelArray,
    *,
    beta: float,
    class_share: float,
    rng: np.random.Generator,
) -> BoolArray:
    """The ``beta`` share with the lowest losses overall, and the ``class_share`` lowest of each class.

    Both are rounded up, and ties at the border are drawn at random. A sample whose loss is not finite is
    never chosen, even where that leaves the result smaller than asked.

    >>> losses, labels = np.array([0.1, 0.2, 0.3, 9.0]), np.array([0, 0, 0, 1])
    >>> trim(losses, labels, beta=0.5, class_share=0.1, rng=np.random.default_rng(0)).tolist()
    [True, True, False, True]
    """
    chosen = lowest(losses, ceil_share(beta, len(losses)), rng=rng)
    if class_share > 0.0:
        for members in class_members(labels):
            floor_size = ceil_share(class_share, len(members))
            chosen[members[lowest(losses[members], floor_size, rng=rng)]] = True
    return chosen


def lowest(values: FloatArray, count: int, *, rng: np.random.Generator) -> BoolArray:
    """Mask of the ``count`` smallest finite values; ties at the border are drawn at random. Linear time."""
    if count <= 0 or len(values) == 0:
        return np.zeros(len(values), dtype=np.bool_)
    count = min(count, len(values))
    ranked = worst_unless_finite(values)
    border = np.partition(ranked, count - 1)[count - 1]
    if border == np.inf:
        return np.isfinite(values)
    chosen: BoolArray = ranked < border
    tied = np.flatnonzero(ranked == border)
    missing = count - int(chosen.sum())
    chosen[tied if missing == len(tied) else rng.choice(tied, size=missing, replace=False)] = True
    return chosen
