"""The average image of a suspicious group beside those of the classes it could belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.report.groups import Suspects
from unpoison.report.pattern import find_pattern
from unpoison.report.thumbnails import Picture, picture
from unpoison.types import FloatArray, IndexArray

MEAN_SIDE = 96
_CHUNK_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Moments:
    """Average and standard deviation of every pixel over many images, ``(height, width, channels)``."""

    mean: FloatArray
    spread: FloatArray


@dataclass(frozen=True)
class Comparison:
    """The average of kept images, and how the group's average differs from it."""

    kept: Picture
    difference: Picture
    factor: float


@dataclass(frozen=True)
class MeanPanel:
    """The averages of one group; a comparison is None where nothing was kept to compare with."""

    suspects: Suspects
    removed: Picture
    as_called: Comparison | None
    same_label: Comparison | None
    mark: Picture | None
    """What differs from both in the same direction: a trigger belongs to neither class."""
    mark_factor: float
    place: str | None
    """Where a pattern sits, in words; None where the difference shows none."""


def mean_panels(dataset: Dataset, result: Sanitization, groups: list[Suspects]) -> list[MeanPanel]:
    """A panel for each group; none where the data are not images."""
    if dataset.kind != "image":
        return []
    kept = _KeptMoments(dataset, result)
    return [_panel(dataset, result, kept, group) for group in groups]


def moments(features: Any, indices: IndexArray) -> Moments:
    """Of ``features[indices]``, read a few megabytes at a time."""
    shape = features.shape[1:]
    step = max(1, _CHUNK_BYTES // max(1, 8 * int(np.prod(shape))))
    total, squares = np.zeros(shape), np.zeros(shape)
    for start in range(0, len(indices), step):
        part = features[indices[start : start + step]].astype(np.float64)
        total += part.sum(axis=0)
        squares += np.square(part).sum(axis=0)
    mean: FloatArray = total / len(indices)
    return Moments(mean, np.sqrt(np.maximum(squares / len(indices) - mean**2, 0.0)))


def difference(gap: FloatArray) -> tuple[NDArray[np.uint8], float]:
    """``gap`` around middle grey, stretched to the full range, and the factor of the stretch."""
    peak = float(np.abs(gap).max())
    factor = max(1.0, 127.0 / peak) if peak > 1e-6 else 1.0
    return _to_pixels(128.0 + factor * gap), factor


def differs_from_both(first: FloatArray, second: FloatArray) -> FloatArray:
    """The smaller of two differences in every pixel where both have the same sign, else nothing."""
    smaller = np.sign(first) * np.minimum(np.abs(first), np.abs(second))
    common: FloatArray = np.where(first * second > 0, smaller, 0.0)
    return common


class _KeptMoments:
    """Moments of the kept samples of a class, each computed once."""

    def __init__(self, dataset: Dataset, result: Sanitization) -> None:
        self._dataset = dataset
        self._keep = result.keep
        self._cache: dict[int, Moments | None] = {}

    def of(self, label: int) -> Moments | None:
        """Of the kept samples labelled ``label``; None when none was kept."""
        if label not in self._cache:
            kept = np.flatnonzero(self._keep & (self._dataset.labels == label))
            self._cache[label] = moments(self._dataset.features, kept) if len(kept) else None
        return self._cache[label]

    def mixed(self, labels: IndexArray) -> Moments | None:
        """Of an ordinary sample of each of ``labels``, averaged over them."""
        classes, times = np.unique(labels[labels >= 0], return_counts=True)
        parts = [(n, found) for c, n in zip(classes, times, strict=True) if (found := self.of(int(c)))]
        if not parts:
            return None
        total = sum(n for n, _ in parts)
        mean = sum((n / total * part.mean for n, part in parts), start=np.zeros(()))
        spread = sum((n / total * part.spread for n, part in parts), start=np.zeros(()))
        return Moments(mean, spread)


def _panel(dataset: Dataset, result: Sanitization, kept: _KeptMoments, group: Suspects) -> MeanPanel:
    mean = moments(dataset.features, group.members).mean
    references = [
        kept.mixed(result.predicted[group.members]) if group.disputed else None,
        kept.of(group.label),
    ]
    known = [reference for reference in references if reference is not None]
    mark, factor, place = None, 1.0, None
    if known:
        gap = differs_from_both(mean - known[0].mean, mean - known[-1].mean)
        spread = np.sqrt(sum(reference.spread**2 for reference in known) / len(known))
        pixels, factor = difference(gap)
        mark = picture(pixels, side=MEAN_SIDE)
        place = find_pattern(gap, spread, size=len(group.members))
    as_called, same_label = (_compared(mean, reference) for reference in references)
    removed = picture(_to_pixels(mean), side=MEAN_SIDE)
    return MeanPanel(group, removed, as_called, same_label, mark, factor, place)


def _compared(mean: FloatArray, reference: Moments | None) -> Comparison | None:
    if reference is None:
        return None
    pixels, factor = difference(mean - reference.mean)
    kept = picture(_to_pixels(reference.mean), side=MEAN_SIDE)
    return Comparison(kept, picture(pixels, side=MEAN_SIDE), factor)


def _to_pixels(values: FloatArray) -> NDArray[np.uint8]:
    pixels: NDArray[np.uint8] = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return pixels
