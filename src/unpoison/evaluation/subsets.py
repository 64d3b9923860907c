"""Random parts of a set with the classes in the proportions they have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray

FEWEST = 2
"""Samples that every class keeps: with fewer, nothing can be trained and judged."""


def stratified(labels: LabelArray, counts: NDArray[np.int64], seeds: Seeds) -> IndexArray:
    """``counts[c]`` samples of each class ``c`` at random, in the order they have."""
    parts = [
        seeds.stream(c).choice(np.flatnonzero(labels == c), size=int(count), replace=False)
        for c, count in enumerate(counts.tolist())
        if count
    ]
    return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *parts]))


def shares_of_limit(labels: LabelArray, limit: int, n_classes: int) -> NDArray[np.int64]:
    """How many samples of each class make up ``limit``: as many as its share, at least two if it has them.

    >>> shares_of_limit(np.repeat([0, 1, 2], [100, 50, 3]), 30, 3).tolist()
    [19, 9, 2]
    """
    sizes = np.bincount(labels, minlength=n_classes)
    least = np.minimum(sizes, FEWEST)
    if limit >= len(labels):
        return sizes
    if limit < least.sum():
        raise InputError(
            f"a limit of {limit:,} is too small for {n_classes} classes of at least {FEWEST} samples each; "
            f"raise --limit to {least.sum():,} or more"
        )
    exact = limit * sizes / len(labels)
    counts = np.maximum(np.floor(exact).astype(np.int64), least)
    while (missing := limit - int(counts.sum())) != 0:
        # one sample at a time, from or to the class that is furthest from its exact share
        distance = (exact - counts) if missing > 0 else (counts - exact)
        able = counts < sizes if missing > 0 else counts > least
        counts[np.where(able, distance, -np.inf).argmax()] += 1 if missing > 0 else -1
    return counts


def counts_to_hold_out(labels: LabelArray, share: float, n_classes: int) -> NDArray[np.int64]:
    """A share of each class, but never its last two samples.

    >>> counts_to_hold_out(np.repeat([0, 1], [100, 3]), 0.5, 2).tolist()
    [50, 1]
    """
    sizes = np.bincount(labels, minlength=n_classes)
    counts: NDArray[np.int64] = np.clip(np.round(share * sizes), 0, np.maximum(sizes - FEWEST, 0)).astype(
        np.int64
    )
    return counts
