"""Groups from co-movement: samples that models which did not train on them explain, or not, *together*.

A clean sample is explained by almost any model of its class. A planted one is explained exactly by the
models whose subset happened to hold enough of its own kind, so across models the planted samples rise and
fall as one. Within a class that common movement is the leading singular vector of the models-by-samples
matrix of log-likelihoods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpoison.core.trimming import worst_unless_finite
from unpoison.types import BoolArray, FloatArray

LOSS_CEILING = 12.0
"""Losses above this are all hopeless: how hopeless says more about the model's scale than the sample."""

HALO = 0.25
"""A sample this part of the way from the bulk's mean movement to the group's may belong to the group."""

LARGEST_SHARE = 1 / 3
"""A larger part of its class than this is not a group: who is planted and who is not would be a guess."""


@dataclass(frozen=True)
class Split:
    """A class in two.

    ``group`` marks the smaller side; ``halo`` those of the other side that move some of the way with it;
    ``separation`` says how far apart the two sides are; ``travelled`` how far each sample is on the way from
    the others' mean (0) to the group's (1).
    """

    group: BoolArray
    halo: BoolArray
    separation: float
    travelled: FloatArray

    @classmethod
    def nobody(cls, n: int) -> Split:
        """All on one side."""
        return cls(np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_), 0.0, np.zeros(n))

    @classmethod
    def along(cls, position: FloatArray, group: BoolArray, separation: float) -> Split:
        """The split of samples that lie at ``position``."""
        near, far = position[~group].mean(), position[group].mean()
        travelled = (position - near) / (far - near)
        return cls(group, (travelled >= HALO) & ~group, separation, np.clip(travelled, 0.0, 1.0))


def movements(losses: NDArray[np.floating], seen: BoolArray) -> FloatArray:
    """Centred log-likelihoods, models by samples; 0 where a model trained on the sample (``seen``).

    Each sample is centred over the models that did not train on it, then each model on its median sample, so
    that neither a hard sample nor a weak model counts as movement.
    """
    values = -np.minimum(worst_unless_finite(losses), LOSS_CEILING).astype(np.float64)
    unseen = ~seen
    counts = np.maximum(unseen.sum(axis=0), 1)
    values -= np.where(unseen, values, 0.0).sum(axis=0) / counts
    values[seen] = np.nan
    has_any = unseen.any(axis=1)
    values[has_any] -= np.nanmedian(values[has_any], axis=1, keepdims=True)
    return np.where(seen, 0.0, values)


def split_in_two(movement: FloatArray) -> Split:
    """Cut a class at the best point along the common movement of its samples.

    The leading singular vector gives a first cut. The difference between the mean movements of its two sides
    then is a cleaner direction than the vector itself, which also follows the noise of single samples.
    """
    first, _ = _smaller_side(_leading_loading(movement))
    if not first.any():
        return Split.nobody(len(first))
    direction = movement[:, first].mean(axis=1) - movement[:, ~first].mean(axis=1)
    position = direction @ movement
    group, separation = _smaller_side(position)
    if not group.any():
        return Split.nobody(len(group))
    return Split.along(position, group, separation)


def _smaller_side(values: FloatArray) -> tuple[BoolArray, float]:
    """The smaller side of the best cut, and the share of variance between the two."""
    border, separation = best_cut(values)
    upper = values > border
    return upper if 2 * upper.sum() <= len(upper) else ~upper, separation


def _leading_loading(movement: FloatArray) -> FloatArray:
    """Each sample's part in the leading singular vector. Models are few: the small Gram matrix suffices."""
    _, vectors = np.linalg.eigh(movement @ movement.T)
    loading: FloatArray = vectors[:, -1] @ movement
    # the sign of an eigenvector is arbitrary; fix it so that results do not depend on the library
    return loading if loading[np.abs(loading).argmax()] >= 0 else -loading


def best_cut(values: FloatArray) -> tuple[float, float]:
    """The border that puts most of the variance between the two sides (Otsu), and that share of variance.

    >>> best_cut(np.array([0.0, 0.0, 1.0, 1.0]))
    (0.0, 1.0)
    """
    ordered = np.sort(values)
    n = len(ordered)
    total = ((ordered - ordered.mean()) ** 2).sum()
    if n < 2 or total <= 1e-12 * max(1.0, float(np.abs(ordered).max()) ** 2):
        return float(ordered[-1]), 0.0
    left = np.cumsum(ordered)[:-1]
    size = np.arange(1, n)
    gap = left / size - (ordered.sum() - left) / (n - size)
    between = gap**2 * size * (n - size) / n
    cut = int(between.argmax())
    return float(ordered[cut]), float(between[cut] / total)
