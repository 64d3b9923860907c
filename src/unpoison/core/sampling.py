"""Sample: draw the alpha-subset that a model is trained on (Algorithm 1, line 4)."""

from __future__ import annotations

from math import ceil

import numpy as np

from unpoison.types import IndexArray, LabelArray


def sample_per_class(
    indices: IndexArray, labels: LabelArray, *, alpha: float, rng: np.random.Generator
) -> IndexArray:
    """A uniformly random ``alpha`` share of each class among ``indices``, rounded up, in ascending order.

    >>> labels = np.array([0, 0, 0, 0, 1])
    >>> drawn = sample_per_class(np.arange(5), labels, alpha=0.5, rng=np.random.default_rng(0))
    >>> np.bincount(labels[drawn]).tolist()
    [2, 1]
    """
    if alpha >= 1.0 or len(indices) == 0:
        return np.sort(indices)
    return first_per_class(rng.permutation(indices), labels, alpha=alpha)


def first_per_class(shuffled: IndexArray, labels: LabelArray, *, alpha: float) -> IndexArray:
    """The first ``alpha`` share of each class in a random order, rounded up; given back in ascending order.

    >>> first_per_class(np.array([3, 1, 2, 0]), np.array([0, 0, 0, 1]), alpha=0.5).tolist()
    [1, 2, 3]
    """
    classes = labels[shuffled]
    # a stable sort by class keeps the random order inside each class; its first ceil(alpha * n_c) are drawn
    by_class = shuffled[np.argsort(classes, kind="stable")]
    counts = np.bincount(classes)
    quotas = np.array([ceil_share(alpha, int(count)) for count in counts])
    rank = np.arange(len(by_class)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(by_class[rank < np.repeat(quotas, counts)])


def dealt(labels: LabelArray, parts: int, *, rng: np.random.Generator) -> IndexArray:
    """The part that each sample is in, 0 .. parts - 1: every class in equal parts, as far as it goes.

    >>> sorted(dealt(np.zeros(5, dtype=int), 2, rng=np.random.default_rng(0)).tolist())
    [0, 0, 0, 1, 1]
    """
    part = np.zeros(len(labels), dtype=np.int64)
    for members in class_members(labels):
        part[rng.permutation(members)] = np.arange(len(members)) % parts
    return part


def sample_binomial(indices: IndexArray, *, alpha: float, rng: np.random.Generator) -> IndexArray:
    """Each of ``indices`` independently with probability ``alpha`` (the authors' code); never empty."""
    chosen = indices[rng.random(len(indices)) < alpha]
    if len(chosen) == 0 and len(indices) > 0:
        chosen = rng.choice(indices, size=1)
    return np.sort(chosen)


def ceil_share(share: float, count: int) -> int:
    """``share`` of ``count`` rounded up, immune to 0.1 * 30 being 3.0000000000000004."""
    return min(count, ceil(share * count - 1e-9))


def class_members(labels: LabelArray) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Positions of each class that occurs, ascending."""
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)
    return [part for part in np.split(order, np.cumsum(counts)[:-1]) if len(part)]
