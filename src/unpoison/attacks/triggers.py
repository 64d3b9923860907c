"""What a backdoor adds to an image."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError


class Trigger(Protocol):
    """Marks images."""

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images``, shape ``(n, height, width, channels)``, with the mark on them."""
        ...


@dataclass(frozen=True)
class Patch:
    """A solid square of ``size`` pixels with its upper left corner at (``row``, ``column``)."""

    row: int = 0
    column: int = 0
    size: int = 2
    value: int = 255

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[Any]:
        """Copies of ``images``, shape ``(n, height, width, channels)``, with the patch on them."""
        height, width = images.shape[1:3]
        fits = 0 <= self.row <= height - self.size and 0 <= self.column <= width - self.size
        if self.size < 1 or not fits:
            raise InputError(
                f"a patch of {self.size} pixels at row {self.row}, column {self.column} does not fit into "
                f"images of {height} by {width}; choose a smaller patch or another place"
            )
        marked = images.copy()
        marked[:, self.row : self.row + self.size, self.column : self.column + self.size] = self.value
        return marked


PEACE = (
    "..####..",
    ".#.##.#.",
    "#..##..#",
    "#..##..#",
    "#.####.#",
    "##.##.##",
    ".#.##.#.",
    "..####..",
)
"""A peace sign of 8 x 8 pixels."""


@dataclass(frozen=True)
class Watermark:
    """A drawing blended into the upper left corner at ``opacity``, times its own alpha."""

    colors: NDArray[np.uint8]
    """Shape ``(height, width, 3)``."""
    alpha: NDArray[np.float32]
    """Shape ``(height, width)``, 0 (see-through) to 1."""
    opacity: float = 0.8

    @classmethod
    def peace(cls) -> Watermark:
        """A black peace sign."""
        alpha = np.array([[cell == "#" for cell in row] for row in PEACE], dtype=np.float32)
        return cls(np.zeros((*alpha.shape, 3), dtype=np.uint8), alpha)

    @classmethod
    def from_png(cls, path: Path, *, size: int = 8) -> Watermark:
        """A picture with transparency, scaled to ``size`` x ``size`` pixels."""
        from PIL import Image

        with Image.open(path, formats=("PNG",)) as image:
            small = np.asarray(image.convert("RGBA").resize((size, size), Image.Resampling.LANCZOS))
        return cls(small[:, :, :3].copy(), small[:, :, 3].astype(np.float32) / np.float32(255))

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images`` with the drawing on them; in gray images its mean shade."""
        height, width = self.alpha.shape
        if height > images.shape[1] or width > images.shape[2]:
            raise InputError(
                f"a watermark of {height} by {width} pixels does not fit into images of "
                f"{images.shape[1]} by {images.shape[2]}; choose a smaller one"
            )
        colors = self.colors.astype(np.float32)
        if images.shape[3] == 1:
            colors = colors.mean(axis=2, keepdims=True)
        weight = (self.opacity * self.alpha)[:, :, None]
        marked = images.copy()
        corner = marked[:, :height, :width]
        marked[:, :height, :width] = np.round((1 - weight) * corner + weight * colors)
        return marked
