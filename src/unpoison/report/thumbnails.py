"""Samples and averages of samples as small pictures inside the page."""

from __future__ import annotations

import base64
import io
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.types import FloatArray, IndexArray

THUMBNAIL_SIDE = 64
MEAN_SIDE = 96
PIXELATED_BELOW = 48
"""Pictures with no longer side than this are shown pixel by pixel."""

MEAN_CLASSES = 4
"""Classes whose removed samples are averaged; with the sides above this bounds the page's size."""

_CHUNK_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Picture:
    """A PNG as a ``data:`` address, with what the page needs to lay it out."""

    uri: str
    tiny: bool


@dataclass(frozen=True)
class MeanPanel:
    """The average removed sample of one class beside the average kept ones, and the differences."""

    label: int
    n_removed: int
    removed: Picture
    same_label: Picture | None
    same_label_difference: Picture | None
    same_label_factor: float
    as_called: Picture | None
    as_called_difference: Picture | None
    as_called_factor: float


def picture(image: NDArray[np.uint8], *, side: int = THUMBNAIL_SIDE) -> Picture:
    """``image``, ``(height, width)`` or ``(height, width, channels)``, at most ``side`` pixels a side."""
    pixels = Image.fromarray(np.ascontiguousarray(_displayable(image)))
    if max(pixels.size) > side:
        pixels.thumbnail((side, side), Image.Resampling.BOX)
    buffer = io.BytesIO()
    pixels.save(buffer, format="PNG", compress_level=9)
    uri = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    return Picture(uri=uri, tiny=max(image.shape[:2]) <= PIXELATED_BELOW)


def _displayable(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey or RGB: one channel loses its axis, channels beyond three are not shown."""
    if image.ndim == 2:
        return image
    return image[:, :, :3] if image.shape[2] >= 3 else image[:, :, 0]


def mean_panels(dataset: Dataset, result: Sanitization) -> list[MeanPanel]:
    """One panel for each class with two or more removed images, most removed first."""
    if dataset.kind != "image":
        return []
    counts = np.bincount(dataset.labels[~result.keep], minlength=len(dataset.class_names))
    order = np.argsort(-counts, kind="stable")[:MEAN_CLASSES]
    means = _KeptMeans(dataset, result)
    return [_panel(dataset, result, means, int(label)) for label in order if counts[label] >= 2]


def mean_image(features: Any, indices: IndexArray) -> FloatArray:
    """The average of ``features[indices]``, read a few megabytes at a time."""
    shape = features.shape[1:]
    step = max(1, _CHUNK_BYTES // max(1, 8 * int(np.prod(shape))))
    total = np.zeros(shape, dtype=np.float64)
    for start in range(0, len(indices), step):
        total += features[indices[start : start + step]].sum(axis=0, dtype=np.float64)
    average: FloatArray = total / len(indices)
    return average


def difference(first: FloatArray, second: FloatArray) -> tuple[NDArray[np.uint8], float]:
    """``first - second`` around middle grey, stretched to the full range, and the factor of the stretch."""
    gap = first - second
    peak = float(np.abs(gap).max())
    factor = max(1.0, 127.0 / peak) if peak > 1e-6 else 1.0
    return _to_pixels(128.0 + factor * gap), factor


class _KeptMeans:
    """Averages of the kept samples of a class, each computed once."""

    def __init__(self, dataset: Dataset, result: Sanitization) -> None:
        self._dataset = dataset
        self._keep = result.keep
        self._cache: dict[int, FloatArray | None] = {}

    def of(self, label: int) -> FloatArray | None:
        """The average of the kept samples labelled ``label``; None when none was kept."""
        if label not in self._cache:
            kept = np.flatnonzero(self._keep & (self._dataset.labels == label))
            self._cache[label] = mean_image(self._dataset.features, kept) if len(kept) else None
        return self._cache[label]

    def mixed(self, labels: list[int]) -> FloatArray | None:
        """What an ordinary sample of each of ``labels`` looks like, averaged over them."""
        weights = Counter(label for label in labels if label >= 0 and self.of(label) is not None)
        if not weights:
            return None
        parts = [weight * mean for label, weight in weights.items() if (mean := self.of(label)) is not None]
        mixture: FloatArray = np.sum(parts, axis=0) / weights.total()
        return mixture


def _panel(dataset: Dataset, result: Sanitization, means: _KeptMeans, label: int) -> MeanPanel:
    members = np.flatnonzero(~result.keep & (dataset.labels == label))
    called = [int(c) for c in result.predicted[members]]
    removed = mean_image(dataset.features, members)
    same, same_gap, same_factor = _compared(removed, means.of(label))
    disputed = any(c != label for c in called)
    other, other_gap, other_factor = _compared(removed, means.mixed(called) if disputed else None)
    return MeanPanel(
        label=label,
        n_removed=len(members),
        removed=picture(_to_pixels(removed), side=MEAN_SIDE),
        same_label=same,
        same_label_difference=same_gap,
        same_label_factor=same_factor,
        as_called=other,
        as_called_difference=other_gap,
        as_called_factor=other_factor,
    )


def _compared(mean: FloatArray, other: FloatArray | None) -> tuple[Picture | None, Picture | None, float]:
    if other is None:
        return None, None, 1.0
    gap, factor = difference(mean, other)
    return picture(_to_pixels(other), side=MEAN_SIDE), picture(gap, side=MEAN_SIDE), factor


def _to_pixels(values: FloatArray) -> NDArray[np.uint8]:
    pixels: NDArray[np.uint8] = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return pixels
