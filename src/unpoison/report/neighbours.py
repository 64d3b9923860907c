"""The kept samples most like a suspicious one: of the class it is labelled, and of the one it is called.

Like means in pixels, columns or words as they are, not in what a model makes of them: it is the models that
are in question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.types import IndexArray, LabelArray

MAX_CANDIDATES = 4000
"""Kept samples of a class among which the nearest is sought, spread evenly over the class."""

IMAGE_SIDE = 8
"""Images are compared at this size: whole numbers whose sums are exact, in whatever order they are added."""

_BLOCK_CELLS = 4_000_000
_CHUNK_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Neighbours:
    """For each of ``samples`` the nearest kept sample of its label's and its called class; -1 for none."""

    samples: IndexArray
    of_label: IndexArray
    of_called: IndexArray


def nearest_kept(dataset: Dataset, result: Sanitization, samples: IndexArray) -> Neighbours:
    """Look for the neighbours of ``samples``, one class at a time, in blocks of bounded size."""
    space = _Space(dataset.features)
    labels = dataset.labels[samples]
    # where the vote agrees with the label there is no second class to look in
    called = np.where(result.predicted[samples] == labels, -1, result.predicted[samples])
    return Neighbours(
        samples=samples,
        of_label=_nearest(space, dataset, result, samples, labels),
        of_called=_nearest(space, dataset, result, samples, called),
    )


class _Space:
    """Samples as rows of numbers that can be compared."""

    def __init__(self, features: Any) -> None:
        self._features = features
        self._scale: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None
        if getattr(features, "ndim", 2) == 2 and not hasattr(features, "tocsr"):
            # of columns, each counts alike: by how many of its own spreads two samples lie apart
            self._scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-6)

    def vectors(self, indices: IndexArray) -> Any:
        """One row a sample: shrunken pixels, scaled columns, or the weights of words."""
        if hasattr(self._features, "tocsr"):
            return self._features[indices].tocsr()
        if self._scale is not None:
            middle, spread = self._scale
            return (self._features[indices].astype(np.float64) - middle) / spread
        step = max(1, _CHUNK_BYTES // max(1, 4 * int(np.prod(self._features.shape[1:]))))
        parts = [
            _shrunken(self._features[indices[start : start + step]]) for start in range(0, len(indices), step)
        ]
        return np.concatenate(parts)


def _nearest(
    space: _Space, dataset: Dataset, result: Sanitization, samples: IndexArray, classes: LabelArray
) -> IndexArray:
    found = np.full(len(samples), -1, dtype=np.int64)
    for label in np.unique(classes[classes >= 0]).tolist():
        kept = np.flatnonzero(result.keep & (dataset.labels == label))
        candidates = kept[:: max(1, -(-len(kept) // MAX_CANDIDATES))]
        asking = np.flatnonzero(classes == label)
        if len(candidates):
            found[asking] = _nearest_of(space, samples[asking], candidates)
    return found


def _nearest_of(space: _Space, samples: IndexArray, candidates: IndexArray) -> IndexArray:
    """The nearest of ``candidates`` to each sample that is not the sample itself; -1 where there is none."""
    others = space.vectors(candidates)
    lengths = _squares(others)
    step = max(1, _BLOCK_CELLS // len(candidates))
    nearest = []
    for start in range(0, len(samples), step):
        part = samples[start : start + step]
        distances = lengths[None, :] - 2 * _products(space.vectors(part), others)
        distances[part[:, None] == candidates[None, :]] = np.inf
        best = distances.argmin(axis=1)
        alone = np.isinf(distances[np.arange(len(part)), best])
        nearest.append(np.where(alone, -1, candidates[best]))
    return np.concatenate(nearest)


def _shrunken(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Averages over equal parts of each picture, rounded, one row a picture."""
    small: NDArray[Any] = images.astype(np.float32)
    for axis in (1, 2):
        n_parts = min(IMAGE_SIDE, small.shape[axis])
        edges = np.arange(n_parts) * small.shape[axis] // n_parts
        sizes = np.diff(np.append(edges, small.shape[axis])).astype(np.float32)
        sums = np.add.reduceat(small, edges, axis=axis)
        small = sums / sizes.reshape((1, n_parts, 1, 1) if axis == 1 else (1, 1, n_parts, 1))
    rows: NDArray[np.float32] = np.rint(small).reshape(len(images), -1)
    return rows


def _squares(rows: Any) -> NDArray[np.floating]:
    if hasattr(rows, "multiply"):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    squares: NDArray[np.floating] = np.einsum("ij,ij->i", rows, rows)
    return squares


def _products(rows: Any, others: Any) -> NDArray[np.floating]:
    products = rows @ others.T
    return np.asarray(products.toarray() if hasattr(products, "toarray") else products)
