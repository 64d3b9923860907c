"""Small groups: a few samples of a class that lie far out along one direction, all on the same side.

Among thousands of samples a few dozen hardly change any mean or variance. They change the fourth moment along
their own direction, which independent component analysis climbs.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from unpoison.core.groups.large_groups import SMALLEST_GROUP
from unpoison.types import BoolArray, FloatArray

AXES = 60
"""Most of the leading axes that are looked along,"""
SAMPLES_PER_AXIS = 10
"""at most one for so many samples."""
STARTS = 60
"""Climbs, each from a sample that lies far from the mean; these are spread over ``AMONG``."""
AMONG = 300
STEPS = 80
CLOSE = 1e-5
"""A climb is over when a step turns its direction by less than this (one less the cosine)."""
SAME = 0.9
"""Two climbs with this cosine, or more, ended at the same place."""
DIRECTIONS = 4
"""Most directions of a class in which a group is looked for, the highest fourth moment first."""
BEYOND = 3.5
"""A group is started from what is so many standard deviations out, and"""
NARROW = 0.3
"""is at least so wide, lest it shrinks to one sample."""
PASSES = 60
LARGEST_SHARE = 0.5


def far_out(view: FloatArray) -> list[BoolArray]:
    """Groups of a class, each far out along its own direction; ``view`` has a row a sample."""
    sphere = _whitened(view)
    if sphere.shape[1] == 0:
        return []
    directions = _climbed(sphere)
    along = sphere @ directions
    along *= np.sign((along * along * along).mean(axis=0))
    squares = along * along
    order = np.argsort(-(squares * squares).mean(axis=0), kind="stable")
    chosen: list[int] = []
    for number in order.tolist():
        if all(abs(float(directions[:, number] @ directions[:, other])) < SAME for other in chosen):
            chosen.append(number)
        if len(chosen) == DIRECTIONS:
            break
    groups = (_upper_part(along[:, number]) for number in chosen)
    return [group for group in groups if group is not None]


def _whitened(view: FloatArray) -> FloatArray:
    """Coordinates on the leading axes, each of variance 1."""
    n = len(view)
    axes = min(AXES, n // SAMPLES_PER_AXIS, view.shape[1])
    if axes == 0:
        return np.zeros((n, 0))
    centred = view - view.mean(axis=0)
    centred = centred / (centred.std(axis=0) + 1e-6)
    variances, vectors = np.linalg.eigh(centred.T @ centred / n)
    variances, vectors = variances[::-1][:axes], vectors[:, ::-1][:, :axes]
    real = variances > 1e-9 * max(float(variances[0]), 1e-300)
    sphere: FloatArray = (centred @ vectors[:, real]) / np.sqrt(variances[real])
    return sphere


def _climbed(sphere: FloatArray) -> FloatArray:
    """Directions of high fourth moment, a column each: the cubic fixed point, from far samples."""
    farthest = np.argsort(-(sphere * sphere).sum(axis=1), kind="stable")[:AMONG]
    starts = farthest[:: max(1, len(farthest) // STARTS)][:STARTS]
    directions = _unit(sphere[starts].T)
    for _ in range(STEPS):
        along = sphere @ directions
        following = _unit(sphere.T @ (along * along * along) / len(sphere) - 3.0 * directions)
        turned = 1.0 - np.abs((directions * following).sum(axis=0))
        directions = following
        if float(turned.max()) < CLOSE:
            break
    return directions


def _unit(columns: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(columns, axis=0)
    return np.asarray(columns / np.maximum(lengths, np.finfo(np.float64).tiny))


def _upper_part(position: FloatArray) -> BoolArray | None:
    """The upper of two normal distributions, by expectation and maximisation; None if it is no group."""
    upper = position > BEYOND
    if np.count_nonzero(upper) < SMALLEST_GROUP:
        return None
    weight = upper.astype(np.float64)
    for _ in range(PASSES):
        share, mean, spread = _moments(position, weight)
        rest_share, rest_mean, rest_spread = _moments(position, 1.0 - weight)
        spread = max(spread, NARROW)
        ours = share * np.exp(-0.5 * ((position - mean) / spread) ** 2) / spread
        theirs = rest_share * np.exp(-0.5 * ((position - rest_mean) / rest_spread) ** 2) / rest_spread
        weight = np.where(position < rest_mean, 0.0, ours / np.maximum(ours + theirs, 1e-300))
        if not SMALLEST_GROUP <= weight.sum() <= LARGEST_SHARE * len(position):
            return None
    members: BoolArray = weight > 0.5
    is_group = SMALLEST_GROUP <= np.count_nonzero(members) <= LARGEST_SHARE * len(position)
    return members if is_group else None


def _moments(position: FloatArray, weight: FloatArray) -> tuple[float, float, float]:
    """Share, mean and spread of what is weighted."""
    total = max(float(weight.sum()), 1e-300)
    mean = float((weight * position).sum()) / total
    return total / len(position), mean, sqrt(float((weight * (position - mean) ** 2).sum()) / total)
