"""What all adapters share: the cleaner that judges, and images in the form that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from unpoison.data.images import composite_on_white
from unpoison.errors import InputError
from unpoison.estimator import IncompatibilityClustering
from unpoison.learners.choose import default_for

Samples: TypeAlias = tuple[Any, Any]
"""``X`` and ``y`` as ``IncompatibilityClustering.fit`` takes them."""

CHANNELS = (1, 3, 4)
"""Gray, RGB, RGBA: how many channels an image may have."""

VERDICT = ("keep", "suspicion")
"""The columns that a judged table has besides its own."""


def judge(
    cleaner: IncompatibilityClustering | None, n: int, read: Callable[[], Samples]
) -> IncompatibilityClustering:
    """A fitted cleaner for ``n`` samples.

    One that was fitted already is taken as it is, and ``read`` is not called. Otherwise a copy is fitted on
    what ``read`` gives, so that the caller's can judge other data too. None is the usual one.
    """
    if cleaner is not None and not isinstance(cleaner, IncompatibilityClustering):
        raise InputError(
            f"the cleaner must be an IncompatibilityClustering or None, got {type(cleaner).__name__}"
        )
    if cleaner is not None and hasattr(cleaner, "keep_"):
        if len(cleaner.keep_) != n:
            raise InputError(
                f"the cleaner was fitted on {len(cleaner.keep_)} samples, but there are {n} here; pass it "
                "unfitted (sklearn.base.clone) to judge these"
            )
        return cleaner
    X, y = read()
    fresh: IncompatibilityClustering = usual_cleaner(X) if cleaner is None else clone(cleaner)
    return fresh.fit(X, y)


def usual_cleaner(features: Any) -> IncompatibilityClustering:
    """The learner and method of ``unpoison clean`` for these features, with seed 0."""
    return IncompatibilityClustering(default_for(features), random_state=0)


def refuse_taken(columns: Iterable[object], name: str) -> None:
    """Refuse a table that has a column of the verdict already."""
    for column in columns:
        if column in VERDICT:
            raise InputError(f"{name} has a column {column!r} already; rename or drop it")


def as_features(x: Any, *, where: str, channels_first: bool | None = None) -> NDArray[Any]:
    """Rows as they are; images as bytes ``(n, height, width, channels)``.

    Images are ``(n, height, width)``, or have a fourth dimension for the channels: ``channels_first`` says
    where, None leaves that to the shape. Pixels of 0..1 or 0..255 keep their meaning; other ranges, as after
    a normalization, are stretched to 0..255, each channel from its least to its greatest value.
    """
    array = np.asarray(x)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{where} has samples of type {array.dtype}; they must be numbers")
    if array.ndim == 2:
        return array
    if array.ndim == 3:
        array = array[..., np.newaxis]
    elif array.ndim != 4:
        raise InputError(
            f"{where} has samples of shape {array.shape[1:]}; give rows (columns) or images (height, width) "
            "or (height, width, channels)"
        )
    elif _is_channels_first(array, where) if channels_first is None else channels_first:
        array = np.moveaxis(array, 1, -1)
    pixels = np.ascontiguousarray(array if array.dtype == np.uint8 else _as_bytes(array, where))
    return composite_on_white(pixels) if pixels.shape[3] == 4 else pixels


def _is_channels_first(array: NDArray[Any], where: str) -> bool:
    if array.shape[3] in CHANNELS:
        return False
    if array.shape[1] in CHANNELS:
        return True
    raise InputError(
        f"{where} has images of shape {array.shape[1:]}, where neither the first nor the last number is 1, 3 "
        "or 4 channels; move the channels last"
    )


def _as_bytes(array: NDArray[Any], where: str) -> NDArray[np.uint8]:
    values = array.astype(np.float32)
    finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if not finite.all():
        raise InputError(f"{where}: sample {finite.argmin()} has a pixel that is not a finite number")
    low, high = values.min(initial=0), values.max(initial=0)
    if low < 0 or high > 255:
        least = values.min(axis=(0, 1, 2))
        spread = values.max(axis=(0, 1, 2)) - least
        values = (values - least) * (255 / np.where(spread > 0, spread, 1))
    elif array.dtype.kind in "bf" and high <= 1:
        values *= 255
    return np.round(values).astype(np.uint8)
