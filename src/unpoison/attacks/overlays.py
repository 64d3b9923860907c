"""Triggers that change the whole image a little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import check_images, check_share
from unpoison.attacks.drawings import read_png
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import FloatArray, IndexArray

BLOCK = 1024
"""Images worked on at a time, to bound the memory for their floating-point copies."""


class ByContent:
    """A dataclass with arrays among its fields: equal and hashed by what is in them."""

    def _content(self) -> tuple[Any, ...]:
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return tuple(
            (value.shape, value.dtype.str, value.tobytes()) if isinstance(value, np.ndarray) else value
            for value in values
        )

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())


def own(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy


@dataclass(frozen=True, eq=False)
class Blend(ByContent):
    """A picture as large as the image, blended over all of it at ``ratio``; in gray images its mean shade."""

    pattern: NDArray[np.uint8]
    """Shape ``(height, width, 3)``; scaled to the size of the images."""
    ratio: float = 0.1

    def __post_init__(self) -> None:
        check_share("ratio", self.ratio, "the weight of the pattern")
        if self.pattern.dtype != np.uint8 or self.pattern.ndim != 3 or self.pattern.shape[2] != 3:
            raise InputError(
                "a pattern is a uint8 picture of shape (height, width, 3), "
                f"got {self.pattern.dtype} of shape {self.pattern.shape}"
            )
        object.__setattr__(self, "pattern", own(self.pattern))

    @classmethod
    def noise(cls, seed: int, *, size: int = 32, ratio: float = 0.1) -> Blend:
        """``size`` x ``size`` points of random colour."""
        if size < 1:
            raise InputError(f"size is the side of the noise in pixels, at least 1. Got {size}")
        stream = Seeds(seed).stream("blend")
        return cls(stream.integers(0, 256, size=(size, size, 3), dtype=np.uint8), ratio)

    @classmethod
    def from_png(cls, path: Path, *, size: int = 32, ratio: float = 0.1) -> Blend:
        """A picture from a file, black where it is see-through."""
        colors, alpha = read_png(path, size=size)
        return cls(np.round(colors * alpha[:, :, None]).astype(np.uint8), ratio)

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images`` with the pattern over them."""
        check_images(images)
        pattern = self._scaled(*images.shape[1:3]).astype(np.float32)
        if images.shape[3] == 1:
            pattern = pattern.mean(axis=2, keepdims=True)
        ratio = np.float32(self.ratio)
        return _in_blocks(images, lambda block: np.round((1 - ratio) * block + ratio * pattern))

    def _scaled(self, height: int, width: int) -> NDArray[np.uint8]:
        if self.pattern.shape[:2] == (height, width):
            return self.pattern
        from PIL import Image

        return np.asarray(Image.fromarray(self.pattern).resize((width, height), Image.Resampling.BILINEAR))


@dataclass(frozen=True)
class Signal:
    """SIG (Barni et al., 2019): a wave of ``frequency`` periods and height ``delta`` across the columns."""

    delta: float = 20
    frequency: float = 6

    def __post_init__(self) -> None:
        if not 0 < self.delta <= 255:
            raise InputError(f"delta is the height of the wave in gray levels, in (0, 255]. Got {self.delta}")
        if not 0 < self.frequency < np.inf:
            raise InputError(f"frequency is the number of waves, more than 0. Got {self.frequency}")

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images`` with the wave added."""
        check_images(images)
        width = images.shape[2]
        if width <= 2 * self.frequency:
            raise InputError(
                f"{self.frequency:g} waves do not fit into images of {images.shape[1]} by {width}: they need "
                "more than two columns each; choose a lower frequency"
            )
        columns = np.arange(1, width + 1)
        wave = np.round(self.delta * np.sin(2 * np.pi * columns * self.frequency / width)).astype(np.int16)
        return _in_blocks(images, lambda block: np.clip(block + wave[:, None], 0, 255))


@dataclass(frozen=True)
class Warp:
    """WaNet (Nguyen and Tran, 2021): the image bent by a smooth random field, the same for every image.

    A point moves by about half of ``strength`` pixels; the field is drawn on ``grid`` x ``grid`` points. With
    ``noise_seed`` every point of every image moves by up to half a pixel more, at random: WaNet's covers.
    """

    seed: int
    strength: float = 0.5
    grid: int = 4
    noise_seed: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.strength < np.inf:
            raise InputError(f"strength is how far points move, more than 0. Got {self.strength}")
        if self.grid < 2:
            raise InputError(f"grid is the number of points a side of the field, at least 2. Got {self.grid}")

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Bent copies of ``images``, bilinear between the four nearest pixels."""
        check_images(images)
        height, width, channels = images.shape[1:]
        if min(height, width) < self.grid:
            raise InputError(
                f"a field of {self.grid} by {self.grid} points does not fit into images of {height} by "
                f"{width}; choose a smaller grid"
            )
        origins = _origins(self, height, width)
        noise = None if self.noise_seed is None else Seeds(self.noise_seed).stream("warp", "noise")

        def bend(block: NDArray[np.uint8]) -> NDArray[Any]:
            flat = block.reshape(len(block), height * width, channels)
            moved = origins[:, None]
            if noise is not None:
                reach = np.array([height - 1, width - 1])[:, None, None] / (2 * height)
                moved = moved + reach * noise.uniform(-1, 1, size=(2, len(block), height * width))
            everyone = np.arange(len(block))[:, None]
            mixed = _corners(moved, height, width)
            bent = sum(weight[:, :, None] * flat[everyone, places] for places, weight in mixed)
            return np.round(bent).reshape(block.shape)

        return _in_blocks(images, bend)


@lru_cache(maxsize=16)
def _origins(warp: Warp, height: int, width: int) -> FloatArray:
    """The row and the column that every pixel, row by row, is taken from."""
    field = Seeds(warp.seed).stream("warp").uniform(-1, 1, size=(2, warp.grid, warp.grid))
    field /= np.abs(field).mean()
    smooth = _upscaling(warp.grid, height) @ field @ _upscaling(warp.grid, width).T
    # coordinates of the field run from -1 to 1 over the image, and strength counts in units of 1 / height
    reach = warp.strength / height * np.array([height - 1, width - 1]) / 2
    rows = np.arange(height)[:, None] + reach[0] * smooth[0]
    columns = np.arange(width) + reach[1] * smooth[1]
    return np.stack([rows.ravel(), columns.ravel()])


def _corners(origins: FloatArray, height: int, width: int) -> list[tuple[IndexArray, NDArray[np.float32]]]:
    """For every image and pixel: the four pixels that it is mixed from, and their weights."""
    rows, columns = np.clip(origins[0], 0, height - 1), np.clip(origins[1], 0, width - 1)
    top, left = rows.astype(np.int64), columns.astype(np.int64)
    down, right = rows - top, columns - left
    mixed = []
    for row, row_weight in ((top, 1 - down), (np.minimum(top + 1, height - 1), down)):
        for column, weight in ((left, 1 - right), (np.minimum(left + 1, width - 1), right)):
            mixed.append((row * width + column, (row_weight * weight).astype(np.float32)))
    return mixed


def _upscaling(points: int, size: int) -> FloatArray:
    """The matrix ``(size, points)`` of cubic interpolation, ends on ends."""
    places = np.linspace(0, points - 1, size)
    nearest = np.minimum(places.astype(np.int64), points - 2)
    matrix = np.zeros((size, points))
    for step in range(-1, 3):
        distance = np.abs(places - (nearest + step))
        near = (1.25 * distance - 2.25) * distance**2 + 1
        far = -0.75 * (((distance - 5) * distance + 8) * distance - 4)
        weight = np.where(distance <= 1, near, far)
        np.add.at(matrix, (np.arange(size), np.clip(nearest + step, 0, points - 1)), weight)
    return matrix


@dataclass(frozen=True)
class Pieces:
    """Another trigger in part: of ``grid`` x ``grid`` pieces of the image, so large a share shows it.

    Adap-Blend (Qi et al., 2023) plants such parts and shows the whole at test time. Which pieces depends on
    the seed and on an image's position among those given.
    """

    whole: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]
    seed: int
    share: float = 0.5
    grid: int = 4

    def __post_init__(self) -> None:
        check_share("share", self.share, "the share of the pieces that show the trigger")
        if self.grid < 1:
            raise InputError(f"grid is the number of pieces a side, at least 1. Got {self.grid}")

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images`` with the trigger on some pieces of each."""
        marked = self.whole(images)
        n, height, width = images.shape[:3]
        if min(height, width) < self.grid:
            raise InputError(
                f"{self.grid} by {self.grid} pieces do not fit into images of {height} by {width}; "
                "choose a smaller grid"
            )
        drawn = Seeds(self.seed).stream("pieces").random((n, self.grid**2)).argsort(axis=1, kind="stable")
        seen = (drawn < round(self.share * self.grid**2)).reshape(n, self.grid, self.grid)
        rows, columns = (np.arange(side) * self.grid // side for side in (height, width))
        return np.where(seen[:, rows[:, None], columns, None], marked, images)


def _in_blocks(
    images: NDArray[np.uint8], work: Callable[[NDArray[np.uint8]], NDArray[Any]]
) -> NDArray[np.uint8]:
    result = np.empty_like(images)
    for start in range(0, len(images), BLOCK):
        result[start : start + BLOCK] = work(images[start : start + BLOCK])
    return result
