"""Large groups: a class falls into two along some direction of what a model sees.

Planted samples share something that the rest of their class does not have, so they lie together and away from
the others. Natural variety rather is a matter of degree: cut in two, its sides touch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from unpoison.core.groups.axes import leading_axes
from unpoison.types import BoolArray, FloatArray

STARTS = (0.95, 0.85, 0.7)
"""A search starts from the samples beyond these quantiles of an axis, on either side of it."""
STEPS = 10
"""Most refinements of one start; few take more than five."""
SMALLEST_GROUP = 5
"""A few odd samples are not a group."""
ERROR = 1.2
"""Over the root of its size: what a group's sharpness may owe to chance. A few lie together easily."""

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Cut:
    """A class in two."""

    group: BoolArray
    """The smaller side."""
    sharpness: float
    """How much less varies within the two sides than within those of a normal distribution cut there.

    0 is a mere cut, 1 two points. What may be chance is taken off.
    """


def groups_apart(view: FloatArray, *, axes: int, largest: float) -> list[Cut]:
    """Groups of at most the ``largest`` share, the sharpest first; ``view`` has a row a sample.

    On its leading ``axes``, made equally wide, searches from both ends of each go back and forth between a
    group and the direction of its mean. Groups may overlap.
    """
    coordinates, variances = leading_axes(view, axes)
    sphere = coordinates / np.sqrt(variances)
    cuts = _Cuts.of(len(view), largest)
    tried: set[bytes] = set()
    found = (_refined(sphere, start, cuts, tried) for start in _ends(sphere))
    return sorted((cut for cut in found if cut is not None), key=lambda cut: -cut.sharpness)


@dataclass(frozen=True)
class _Cuts:
    """Every way to cut ``n`` ordered samples in two: for each size of the upper side, what is expected."""

    sizes: NDArray[np.int64]
    expected: FloatArray
    """The part of the variance that would lie between the sides by nature."""
    errors: FloatArray

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, n: int, largest: float) -> _Cuts:
        sizes = np.arange(SMALLEST_GROUP, int(largest * n) + 1)
        expected = np.array([_of_a_normal(size / n) for size in sizes.tolist()])
        return cls(sizes, expected, np.array([ERROR / sqrt(size) for size in sizes.tolist()]))

    def sharpest(self, position: FloatArray) -> Cut | None:
        """The upper side of the sharpest cut; None if there is no cut."""
        n = len(position)
        order = np.argsort(-position, kind="stable")
        ordered = position[order] - position.mean()
        total = float((ordered**2).sum())
        if len(self.sizes) == 0 or total <= 1e-12 * max(1.0, float(np.abs(position).max()) ** 2):
            return None
        above = np.cumsum(ordered)[self.sizes - 1]  # the sum below is the opposite: the mean of all is 0
        between = above**2 * n / (self.sizes * (n - self.sizes)) / total
        values = 1.0 - (1.0 - between) / (1.0 - self.expected) - self.errors
        best = int(values.argmax())
        group = np.zeros(n, dtype=np.bool_)
        group[order[: self.sizes[best]]] = True
        return Cut(group, float(values[best]))


def _of_a_normal(share: float) -> float:
    """The part of a normal distribution's variance that lies between its two sides, cut at that share."""
    height = _NORMAL.pdf(_NORMAL.inv_cdf(share))
    return height**2 / (share * (1.0 - share))


def _ends(sphere: FloatArray) -> Iterator[BoolArray]:
    for axis in sphere.T:
        for end in (axis, -axis):
            for quantile in STARTS:
                yield end > np.quantile(end, quantile)


def _refined(sphere: FloatArray, group: BoolArray, cuts: _Cuts, tried: set[bytes]) -> Cut | None:
    """From a first group to one that is cut along its own direction; None if another start led there."""
    cut: Cut | None = None
    for _ in range(STEPS):
        key = np.packbits(group).tobytes()
        if key in tried:
            return None
        tried.add(key)
        # the mean of all is 0, so the others' mean points the other way
        position: FloatArray = sphere @ sphere[group].sum(axis=0)
        cut = cuts.sharpest(position)
        if cut is None or (cut.group == group).all():
            break
        group = cut.group
    return cut
