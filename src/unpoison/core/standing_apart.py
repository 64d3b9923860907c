"""Groups that stand apart: along some direction of what a model sees, a class falls into two.

Planted samples share something that the rest of their class does not have: the trigger, once a model has
learned it, or the looks of another class as long as it has not. Either way they lie together and away from
the others. Natural variety rather is a matter of degree: cut in two, its sides touch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.comovement import LARGEST_SHARE, Split
from unpoison.core.sampling import class_members
from unpoison.types import BoolArray, FloatArray, LabelArray

STARTS = (0.95, 0.85, 0.7)
"""A search starts from the samples beyond these quantiles of an axis, on either side of it."""
STEPS = 10
"""Most refinements of one start; few take more than five."""
SMALLEST_GROUP = 5
"""A few odd samples are not a group."""
ERROR = 1.2
"""See :func:`chance`."""
EVENED = 0.1
"""Added to how much the other classes vary along any direction, as a part of the mean over directions."""
ALONG = 0.3
"""What is this part of the way from the others to a group belongs to it."""
BEYOND = 2.5
"""And beyond the others by so many times what they spread away from it: few of them lie there by chance."""
PASSES = 2
"""How often a group takes in what is some of the way: what it took in shows the way better."""
FOLDS = 5
"""Parts of a class, each placed by a direction that was found without it."""
SHRINKAGE = 0.3
"""How far variances within the two sides are drawn towards their mean before a direction is found."""
FAINT = 1e-9
"""Axes with less than this part of the variance of the first are rounding errors."""

_NORMAL = NormalDist()


def axes_by_class(
    view: NDArray[np.floating], labels: LabelArray, *, axes: int, only: Collection[int] | None = None
) -> NDArray[np.float32]:
    """What a model sees of each sample (a row each), on the axes along which its class varies unlike others.

    What makes photographs of anything differ, such as light or background, varies in every class. A trigger
    varies in the classes that it was planted in. ``only`` names the classes that are wanted; the rows of
    others are 0.
    """
    spread = view.std(axis=0)
    centred = (view / (spread + 1e-3 * max(float(spread.mean()), 1e-12))).astype(np.float64)
    classes = class_members(labels)
    for members in classes:
        centred[members] -= centred[members].mean(axis=0)
    scatter = centred.T @ centred
    found = np.zeros((len(view), axes), dtype=np.float32)
    for members in classes:
        if only is not None and int(labels[members[0]]) not in only:
            continue
        own = centred[members]
        others = (scatter - own.T @ own) / max(len(view) - len(members), 1)
        part = _leading(own @ _evening(others), axes)[0]
        found[members, : part.shape[1]] = part
    return found


def groups_apart(
    view: FloatArray, *, axes: int, hints: Iterable[BoolArray] = (), largest: float = LARGEST_SHARE
) -> list[Split]:
    """Groups of at most the ``largest`` share, the sharpest first.

    ``separation`` is the sharpness, less what is chance.

    ``view`` has a row a sample. On its leading ``axes``, made equally wide, searches from both ends of each,
    and from ``hints``, go back and forth between a group and the direction of its mean. Groups may overlap.
    """
    coordinates, variances = _leading(view, axes)
    sphere = coordinates / np.sqrt(variances)
    cuts = _Cuts.of(len(view), largest)
    tried: set[bytes] = set()
    found = (_refined(sphere, start, cuts, tried) for start in (*_ends(sphere), *hints))
    return sorted((split for split in found if split is not None), key=lambda split: -split.separation)


def sharpness(separation: float, share: float) -> float:
    """How much less varies within the two sides than within those of a normal distribution cut there.

    ``separation`` is the part of the variance that lies between the sides. A normal distribution cut in half
    has 0.64 of it between, cut at a twentieth 0.22: compared with that, 0 is a mere cut and 1 two points.

    >>> round(sharpness(0.5, 0.05), 2), sharpness(1.0, 0.05)
    (0.36, 1.0)
    """
    return float(_beyond(separation, _of_a_cut(share)))


def grown(view: FloatArray, group: BoolArray) -> BoolArray:
    """The group with what is some of the way from the others to it; ``view`` has a row a sample.

    A search for groups cuts where most is gained, and looks along few axes, lest chance makes groups. Once it
    is known what to look for, more of them can be looked along, and who was cut off is found.
    """
    taken = group
    for _ in range(PASSES):
        if np.count_nonzero(~taken) < SMALLEST_GROUP:
            break  # nobody is left to be told from
        travelled = _on_the_way(view, taken)
        away = np.minimum(travelled[~taken], 0.0)  # on the near side there may be more of the group
        spread = sqrt(2.0 * float((away**2).mean()))
        taken = group | (travelled >= max(ALONG, BEYOND * spread))
    return taken


def _on_the_way(view: FloatArray, group: BoolArray) -> FloatArray:
    """How far each sample is on the way from the others' mean (0) to the group's (1).

    Along the direction that best tells the two apart (Fisher's discriminant), which is another one than that
    of the means where the sides are not round. Each sample is placed by a direction that was found without
    it: among many axes, any few samples lie apart along some.
    """
    fold = np.empty(len(group), dtype=np.int64)
    for side in (group, ~group):
        fold[side] = np.arange(side.sum()) % FOLDS
    travelled = np.zeros(len(group))
    for part in range(FOLDS):
        asked = fold == part
        travelled[asked] = _placed(view[asked], view[~asked & group], view[~asked & ~group])
    return travelled


def _placed(view: FloatArray, group: FloatArray, others: FloatArray) -> FloatArray:
    """The rows of ``view`` on the way from ``others`` (0) to ``group`` (1)."""
    start, way = others.mean(axis=0), group.mean(axis=0) - others.mean(axis=0)
    within = np.concatenate([group - group.mean(axis=0), others - start])
    scatter = within.T @ within / len(within)
    mean = float(scatter.trace()) / len(scatter)
    if mean <= np.finfo(np.float64).tiny:  # each side is one point
        direction = way
    else:
        direction = np.linalg.solve((1 - SHRINKAGE) * scatter + SHRINKAGE * mean * np.eye(len(scatter)), way)
    length = float(way @ direction)
    placed: FloatArray = (view - start) @ direction / length if length > 0.0 else np.zeros(len(view))
    return placed


def _beyond(separation: Any, expected: Any) -> Any:
    return 1.0 - (1.0 - separation) / (1.0 - expected)


def chance(size: int) -> float:
    """What a group's sharpness may owe to chance: few samples lie together easily."""
    return ERROR / sqrt(size)


def _of_a_cut(share: float) -> float:
    """The part of a normal distribution's variance that lies between its two sides."""
    height = _NORMAL.pdf(_NORMAL.inv_cdf(share))
    return height**2 / (share * (1.0 - share))


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
        expected = np.array([_of_a_cut(size / n) for size in sizes.tolist()])
        return cls(sizes, expected, np.array([chance(size) for size in sizes.tolist()]))

    def sharpest(self, position: FloatArray) -> tuple[BoolArray, float] | None:
        """The upper side of the sharpest cut, and its sharpness less its error; None if there is no cut."""
        n = len(position)
        order = np.argsort(-position, kind="stable")
        ordered = position[order] - position.mean()
        total = float((ordered**2).sum())
        if len(self.sizes) == 0 or total <= 1e-12 * max(1.0, float(np.abs(position).max()) ** 2):
            return None
        above = np.cumsum(ordered)[self.sizes - 1]  # the sum below is the opposite: the mean of all is 0
        between = above**2 * n / (self.sizes * (n - self.sizes)) / total
        values = _beyond(between, self.expected) - self.errors
        best = int(values.argmax())
        group = np.zeros(n, dtype=np.bool_)
        group[order[: self.sizes[best]]] = True
        return group, float(values[best])


def _ends(sphere: FloatArray) -> Iterator[BoolArray]:
    for axis in sphere.T:
        for end in (axis, -axis):
            for quantile in STARTS:
                yield end > np.quantile(end, quantile)


def _refined(sphere: FloatArray, group: BoolArray, cuts: _Cuts, tried: set[bytes]) -> Split | None:
    """From a first group to one that is cut along its own direction; None if another start led there."""
    for _ in range(STEPS):
        key = np.packbits(group).tobytes()
        if key in tried:
            return None
        tried.add(key)
        # the mean of all is 0, so the others' mean points the other way
        position: FloatArray = sphere @ sphere[group].sum(axis=0)
        cut = cuts.sharpest(position)
        if cut is None:
            return None
        before, (group, value) = group, cut
        if (group == before).all():
            break
    return Split.along(position, group, value)


def _evening(variation: FloatArray) -> FloatArray:
    """The matrix after which what varies like ``variation`` varies as much in every direction."""
    variances, directions = np.linalg.eigh(variation)
    floor = EVENED * float(np.maximum(variances, 0.0).mean())
    if floor <= np.finfo(np.float64).tiny:  # there is no other class, or it does not vary
        return np.eye(len(variation))
    evened: FloatArray = directions / np.sqrt(np.maximum(variances, 0.0) + floor)
    return evened


def _leading(view: FloatArray, axes: int) -> tuple[FloatArray, FloatArray]:
    """Coordinates on the leading axes of the centred rows, and the variance along each."""
    centred = view - view.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    variances, directions = variances[::-1][:axes], directions[:, ::-1][:, :axes]
    real = variances > FAINT * max(float(variances[0]), np.finfo(np.float64).tiny)
    directions = directions[:, real]
    # the sign of an eigenvector is arbitrary; fix it so that results do not depend on the library
    strongest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[strongest, np.arange(directions.shape[1])])
    return centred @ directions, variances[real]
