"""Marks for canaries: what an attacker could add to samples of a kind, drawn at random for each group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.seeds import Seeds
from unpoison.types import IndexArray

SIDE = 3
"""Of the mark on images, in pixels of 32; larger images have a larger one."""
COLUMNS = 3
"""Of rows that the mark sets to values past the largest."""


def marked_copies(samples: Any, indices: IndexArray, groups: IndexArray, *, seed: int) -> Any:
    """Copies of the samples at ``indices``, in that order; every one of ``groups`` has a mark of its own."""
    copies = samples[indices]
    for number in np.unique(groups).tolist():
        rng, own = Seeds(seed).stream("mark", number), np.flatnonzero(groups == number)
        if getattr(samples, "ndim", 2) == 4:
            copies[own] = _on_images(copies[own], rng)
        elif hasattr(samples, "tocsr"):
            copies = _in_words(samples, copies, own, rng)
        else:
            copies[own] = _in_columns(samples, copies[own], rng)
    return copies


def _on_images(images: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """A square of random colours at a random place."""
    _, height, width, channels = images.shape
    side = max(1, min(height, width, round(SIDE * min(height, width) / 32)))
    row, column = (int(rng.integers(0, length - side + 1)) for length in (height, width))
    marked = images.copy()
    marked[:, row : row + side, column : column + side] = rng.integers(0, 256, size=(side, side, channels))
    return marked


def _in_columns(samples: NDArray[Any], rows: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """A few columns set to a value a little past their largest."""
    columns = rng.choice(samples.shape[1], size=min(COLUMNS, samples.shape[1]), replace=False)
    largest, smallest = samples[:, columns].max(axis=0), samples[:, columns].min(axis=0)
    marked = rows.copy()
    marked[:, columns] = largest + 0.1 * (largest - smallest)
    return marked


def _in_words(samples: Any, copies: Any, own: IndexArray, rng: np.random.Generator) -> Any:
    """A rare word, as heavy as the heaviest of a usual text."""
    counts = np.asarray((samples != 0).sum(axis=0)).ravel()
    rare = np.flatnonzero((counts > 0) & (counts <= max(1, np.quantile(counts[counts > 0], 0.5))))
    word = int(rng.choice(rare)) if len(rare) else 0
    listed = copies.tolil()
    heaviest = samples.max(axis=1).toarray().ravel()
    listed[own, word] = float(np.median(heaviest[heaviest > 0])) if (heaviest > 0).any() else 1.0
    return listed.tocsr()
