"""Groups that stand apart: along some direction of what models see, a class falls into two.

Planted samples share something that the rest of their class does not have: the trigger, once a model has
learned it, or the looks of another class as long as it has not. Either way they lie together and away from
the others. Natural variety rather is a matter of degree: cut in two, its sides touch.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from unpoison.core.comovement import LARGEST_SHARE, Split, best_cut
from unpoison.core.trimming import class_members
from unpoison.types import BoolArray, FloatArray, LabelArray

STARTS = (0.95, 0.85, 0.7)
"""A search starts from the samples beyond these quantiles of an axis, on either side of it."""
STEPS = 10
"""Most refinements of one start; few take more than five."""
SMALLEST_GROUP = 5
"""A few odd samples are not a group."""
ERROR = 1.2
"""What a group's sharpness may owe to chance, over the root of its size: few samples lie together easily."""
FAINT = 1e-9
"""Axes with less than this part of the variance of the first are rounding errors."""

_NORMAL = NormalDist()


def axes_by_class(view: NDArray[np.floating], labels: LabelArray, *, axes: int) -> NDArray[np.float32]:
    """What a model sees of each sample (a row each), on the leading axes of the sample's class."""
    spread = view.std(axis=0)
    scaled = view / (spread + 1e-3 * max(float(spread.mean()), 1e-12))
    found = np.zeros((len(view), axes), dtype=np.float32)
    for members in class_members(labels):
        part = _leading(scaled[members].astype(np.float64), axes)[0]
        found[members, : part.shape[1]] = part
    return found


def sharpest_split(view: FloatArray, *, axes: int) -> Split:
    """The group of at most a third that stands apart most surely; ``separation``: its sharpness, less ERROR.

    ``view`` has a row a sample. On its leading ``axes``, made equally wide, a search from both ends of each
    goes back and forth between a group and the direction from the others' mean to its own.
    """
    coordinates, variances = _leading(view, axes)
    sphere = coordinates / np.sqrt(variances)
    best = Split.nobody(len(view))
    tried: set[bytes] = set()
    for axis in sphere.T:
        for end in (axis, -axis):
            for quantile in STARTS:
                group, position, separation = _refined(sphere, end > np.quantile(end, quantile), tried)
                if not SMALLEST_GROUP <= group.sum() <= LARGEST_SHARE * len(group):
                    continue
                value = sharpness(separation, float(group.mean())) - ERROR / float(np.sqrt(group.sum()))
                if value > best.separation:
                    best = Split.along(position, group, value)
    return best


def sharpness(separation: float, share: float) -> float:
    """How much less varies within the two sides than within those of a normal distribution cut there.

    ``separation`` is the part of the variance that lies between the sides. A normal distribution cut in half
    has 0.64 of it between, cut at a twentieth 0.22: compared with that, 0 is a mere cut and 1 two points.

    >>> round(sharpness(0.5, 0.05), 2), sharpness(1.0, 0.05)
    (0.36, 1.0)
    """
    height = _NORMAL.pdf(_NORMAL.inv_cdf(share))
    of_a_cut = height**2 / (share * (1.0 - share))
    return 1.0 - (1.0 - separation) / (1.0 - of_a_cut)


def _refined(sphere: FloatArray, group: BoolArray, tried: set[bytes]) -> tuple[BoolArray, FloatArray, float]:
    """From a first group to one that is cut along its own direction; nobody, if another start led there."""
    n, nobody = len(sphere), np.zeros(len(sphere), dtype=np.bool_)
    position, separation = np.zeros(n), 0.0
    for _ in range(STEPS):
        key = np.packbits(group).tobytes()
        size = int(group.sum())
        if key in tried or size < 2 or n - size < 2:
            return nobody, position, 0.0
        tried.add(key)
        # the mean of all is 0, so the others' mean points the other way
        position = sphere @ (sphere[group].sum(axis=0) * (n / (size * (n - size))))
        border, separation = best_cut(position)
        after = position > border
        if (after == group).all():
            break
        group = after
    return group, position, separation


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
