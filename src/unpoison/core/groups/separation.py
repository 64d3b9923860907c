"""How far a group stands apart from other samples in what a model sees: one statistic, with its error."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from unpoison.types import BoolArray, FloatArray, IndexArray

FOLDS = 5
"""Parts of the samples, each placed along a direction that was found without it."""
SHRINKAGE = 0.3
"""How far the scatter within the two sides is drawn towards that of a sphere."""
PER_AXIS = 15
"""Samples compared for each axis of the view that is looked along."""

FEWEST = 2 * FOLDS
"""Samples to compare with, or of a class to have trained on, without which nothing can be said."""
TINY = float(np.finfo(np.float64).tiny)
"""In place of the spread of what does not vary."""


NOT_MEASURED = 99.0
"""Standard error of what could not be compared with anything: whatever follows is undecided."""


@dataclass(frozen=True)
class Separation:
    """How far unseen members of a group lie beyond the comparison samples, in their standard deviations."""

    z: float
    error: float
    """Standard error of ``z``."""

    @classmethod
    def mean(cls, several: list[Separation]) -> Separation:
        """Of what several models see; their errors are taken for those of the same samples."""
        if not several:
            return cls(0.0, NOT_MEASURED)
        return cls(
            float(np.mean([each.z for each in several])), float(np.mean([each.error for each in several]))
        )


def separation(group: FloatArray, comparison: FloatArray, *, rng: np.random.Generator) -> Separation:
    """Measure it between two sets of rows of a view.

    In each of five folds, Fisher's discriminant of the other folds places the members and the comparison
    samples that it was not fitted to; the comparison samples of the fold itself are the yardstick, so that
    many axes and few samples do not make a group of anything. 0: the two are alike.
    """
    if len(group) < FOLDS or len(comparison) < FEWEST:
        return Separation.mean([])
    rows = _leading(np.concatenate([group, comparison]).astype(np.float64))
    is_group = np.arange(len(rows)) < len(group)
    fold = np.empty(len(rows), dtype=np.int64)
    for side in (is_group, ~is_group):
        fold[side] = rng.permutation(int(side.sum())) % FOLDS
    place = np.zeros(len(rows))
    for number in range(FOLDS):
        asked = fold == number
        place[asked] = _placed(rows, is_group, asked)
    members, others = place[is_group], place[~is_group]
    spread = sqrt(float((others**2).mean()))
    if spread == 0.0:  # nothing varies: there is no measure
        return Separation(0.0, 0.0)
    z = float(members.mean()) / spread
    error = sqrt(float(members.var()) / spread**2 / len(members) + (1.0 + z**2 / 2.0) / len(others))
    return Separation(z, error)


def _placed(rows: FloatArray, is_group: BoolArray, asked: BoolArray) -> FloatArray:
    """The rows that are asked about along the discriminant of the others; 0: their comparison samples' mean.

    In units of how far the comparison samples that it was fitted to spread.
    """
    inside, outside = rows[~asked & is_group], rows[~asked & ~is_group]
    direction = discriminant(inside, outside)
    along: FloatArray = rows[asked] @ direction
    along = along - along[~is_group[asked]].mean()
    placed: FloatArray = along / max(float((outside @ direction).std()), TINY)
    return placed


def discriminant(inside: FloatArray, outside: FloatArray) -> FloatArray:
    """The direction that best tells two sets of rows apart, by their shrunken scatter."""
    start, end = outside.mean(axis=0), inside.mean(axis=0)
    within = np.concatenate([inside - end, outside - start])
    scatter = within.T @ within / len(within)
    level = max(float(scatter.trace()) / len(scatter), TINY)
    evened = (1.0 - SHRINKAGE) * scatter + SHRINKAGE * level * np.eye(len(scatter))
    direction: FloatArray = np.linalg.solve(evened, end - start)
    return direction


def _leading(rows: FloatArray) -> FloatArray:
    """Coordinates on the leading axes: as many as so few samples allow."""
    axes = max(1, len(rows) // PER_AXIS)
    if axes >= rows.shape[1]:
        return rows
    centred = rows - rows.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    coordinates: FloatArray = centred @ directions[:, ::-1][:, :axes]
    return coordinates


def alike(
    called: IndexArray, members: IndexArray, unmet: BoolArray, wanted: int, *, rng: np.random.Generator
) -> IndexArray:
    """Samples among ``unmet`` that a judge calls the same classes in the same proportions as the members."""
    shares = np.bincount(called[members], minlength=int(called.max()) + 1) / len(members)
    parts = [
        rng.permutation(np.flatnonzero(unmet & (called == label)))[: int(np.ceil(wanted * share))]
        for label, share in enumerate(shares.tolist())
        if share > 0.0
    ]
    return np.sort(np.concatenate(parts))
