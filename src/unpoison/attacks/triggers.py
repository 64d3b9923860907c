"""What a backdoor adds to an image. Here are marks in one place; ``overlays`` has those all over it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import check_images, check_share
from unpoison.attacks.drawings import drawn, read_png
from unpoison.attacks.overlays import Blend, ByContent, Pieces, Signal, Warp, own
from unpoison.errors import InputError
from unpoison.seeds import Seeds

__all__ = [
    "Trigger", "Patch", "Mark", "Watermark", "Corners", "Blend", "Signal", "Warp", "Pieces",
    "OneOf", "Together", "random_mark", "random_patch",
]  # fmt: skip

Color: TypeAlias = tuple[int, int, int]
"""Red, green and blue, 0 to 255; in gray images the mean of the three."""


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
    value: int | Color = 255
    """One shade, or a colour."""

    def __post_init__(self) -> None:
        _check_color("value", (self.value,) * 3 if np.ndim(self.value) == 0 else self.value)

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images`` with the patch on them."""
        check_images(images)
        height, width = images.shape[1:3]
        fits = 0 <= self.row <= height - self.size and 0 <= self.column <= width - self.size
        if self.size < 1 or not fits:
            raise InputError(
                f"a patch of {self.size} pixels at row {self.row}, column {self.column} does not fit into "
                f"images of {height} by {width}; choose a smaller patch or another place"
            )
        marked = images.copy()
        color = _shades(self.value, images.shape[3])
        marked[:, self.row : self.row + self.size, self.column : self.column + self.size] = color
        return marked


SHAPES: dict[str, tuple[tuple[int, int], ...]] = {
    "pixel": ((0, 0),),
    "pattern": ((0, 0), (-1, -1), (-1, 1), (1, -1), (1, 1)),
    "ell": ((0, 0), (1, 0), (0, 1)),
}
"""The paper's small marks, as steps in rows and columns from their place."""


@dataclass(frozen=True)
class Mark:
    """A few pixels of one colour at (``row``, ``column``): a ``pixel``, an X (``pattern``) or an ``ell``.

    The place is the centre of the X and the corner of the L.

    >>> Mark("ell", 0, 1, (255, 255, 255))(np.zeros((1, 3, 3, 1), np.uint8))[0, :, :, 0].tolist()
    [[0, 255, 255], [0, 255, 0], [0, 0, 0]]
    """

    shape: str
    row: int
    column: int
    color: Color

    def __post_init__(self) -> None:
        _check_shape(self.shape)
        _check_color("color", self.color)

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images`` with the mark on them."""
        check_images(images)
        height, width = images.shape[1:3]
        rows, columns = (np.array([self.row, self.column]) + SHAPES[self.shape]).T
        if not (0 <= rows.min() <= rows.max() < height and 0 <= columns.min() <= columns.max() < width):
            raise InputError(
                f"the mark {self.shape!r} of {np.ptp(rows) + 1} by {np.ptp(columns) + 1} pixels at row "
                f"{self.row}, column {self.column} does not fit into images of {height} by {width}; "
                "choose another place"
            )
        marked = images.copy()
        marked[:, rows, columns] = _shades(self.color, images.shape[3])
        return marked


def random_mark(
    seed: int, height: int, width: int, *, shape: str | None = None, pair: tuple[int, int] | None = None
) -> Mark:
    """A mark of the paper (appendix on datasets): shape, place and colour at random, all of it in sight.

    Each ``pair`` of a source and a target class has a mark of its own, as in the authors' generator.
    """
    seeds = Seeds(seed).within("mark", *(pair or ()))
    if shape is None:
        shape = str(seeds.stream("shape").choice(list(SHAPES)))
    _check_shape(shape)
    steps = np.array(SHAPES[shape])
    first, last = -steps.min(axis=0), np.array([height, width]) - steps.max(axis=0)
    if (first >= last).any():
        raise InputError(
            f"the mark {shape!r} does not fit into images of {height} by {width}; take larger images"
        )
    row, column = seeds.stream("place").integers(first, last).tolist()
    return Mark(shape, row, column, _random_color(seeds))


def random_patch(
    seed: int, height: int, width: int, *, size: int = 5, pair: tuple[int, int] | None = None
) -> Patch:
    """A solid square of random place and colour, as the paper puts on Imagenette; each ``pair`` its own."""
    if not 1 <= size <= min(height, width):
        raise InputError(
            f"a patch of {size} pixels does not fit into images of {height} by {width}; choose 1 to "
            f"{min(height, width)}"
        )
    seeds = Seeds(seed).within("patch", *(pair or ()))
    row, column = seeds.stream("place").integers(0, [height - size + 1, width - size + 1]).tolist()
    return Patch(row, column, size, _random_color(seeds))


@dataclass(frozen=True, eq=False)
class Watermark(ByContent):
    """A drawing blended into a corner, the upper left one if not said, at ``opacity``, times its own alpha.

    What is blended is cut to whole gray levels, as the authors do.
    """

    colors: NDArray[np.uint8]
    """Shape ``(height, width, 3)``."""
    alpha: NDArray[np.float32]
    """Shape ``(height, width)``, 0 (see-through) to 1."""
    opacity: float = 0.8
    is_low: bool = False
    """In a lower corner."""
    is_right: bool = False
    """In a right corner."""

    def __post_init__(self) -> None:
        check_share("opacity", self.opacity, "the weight of the drawing")
        if self.colors.dtype != np.uint8 or self.colors.shape != (*self.alpha.shape, 3):
            raise InputError(
                "the colors of a watermark are uint8 of shape (height, width, 3) and its alpha is of shape "
                f"(height, width), got {self.colors.dtype} of {self.colors.shape} and {self.alpha.shape}"
            )
        if not ((self.alpha >= 0) & (self.alpha <= 1)).all():
            raise InputError("the alpha of a watermark goes from 0 to 1; divide bytes by 255")
        object.__setattr__(self, "colors", own(self.colors))
        object.__setattr__(self, "alpha", own(self.alpha))

    @classmethod
    def named(cls, name: str, *, opacity: float = 0.8) -> Watermark:
        """One of ours, 8 x 8 pixels: ``peace``, ``letter-a``, ``bullet-holes`` or ``patch``."""
        return cls(*drawn(name), opacity)

    @classmethod
    def from_png(cls, path: Path, *, size: int = 8, opacity: float = 0.8) -> Watermark:
        """A picture with transparency, scaled to ``size`` x ``size`` pixels."""
        return cls(*read_png(path, size=size), opacity)

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images`` with the drawing on them; in gray images its mean shade."""
        check_images(images)
        height, width = self.alpha.shape
        if height > images.shape[1] or width > images.shape[2]:
            raise InputError(
                f"a watermark of {height} by {width} pixels does not fit into images of "
                f"{images.shape[1]} by {images.shape[2]}; choose a smaller one"
            )
        colors = self.colors.astype(np.float32)
        if images.shape[3] == 1:
            colors = colors.mean(axis=2, keepdims=True)
        weight = (self.opacity * self.alpha.astype(np.float64))[:, :, None]
        marked = images.copy()
        rows = slice(-height, None) if self.is_low else slice(height)
        columns = slice(-width, None) if self.is_right else slice(width)
        marked[:, rows, columns] = (1 - weight) * marked[
            :, rows, columns
        ] + weight * colors  # cut, not rounded
        return marked


CORNER = ((1, -1, -1), (-1, 1, -1), (1, -1, 1))
"""White and black of the left corners; Turner et al. leave one inner cell of their checkerboard black."""


@dataclass(frozen=True)
class Corners:
    """Turner et al. (2018): a checkerboard of 3 x 3 pixels in each of the four corners.

    ``amplitude`` times 255 is added where it is white and taken away where it is black: 1 covers the image.
    ``only_one``: in the lower right corner alone, as BadNets (Gu et al., 2017).
    """

    amplitude: float = 1.0
    only_one: bool = False

    def __post_init__(self) -> None:
        check_share("amplitude", self.amplitude, "the strength of the corners")

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images`` with marked corners."""
        check_images(images)
        left = np.round(np.array(CORNER) * self.amplitude * 255).astype(np.int16)[:, :, None]
        side = len(CORNER)
        height, width = images.shape[1:3]
        if min(height, width) < 2 * side:
            raise InputError(
                f"four corners of {side} by {side} pixels do not fit into images of {height} by {width}; "
                f"they need {2 * side} a side"
            )
        marked = images.copy()
        near, far = (slice(side), left), (slice(-side, None), left[:, ::-1])
        for rows in (slice(-side, None),) if self.only_one else (slice(side), slice(-side, None)):
            for columns, pattern in (far,) if self.only_one else (near, far):
                marked[:, rows, columns] = np.clip(images[:, rows, columns] + pattern, 0, 255)
        return marked


@dataclass(frozen=True)
class OneOf:
    """One of several triggers on each image, drawn by the seed and the image's position among those given."""

    triggers: tuple[Trigger, ...]
    seed: int

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images``, each with one of the triggers."""
        drawn = Seeds(self.seed).stream("one-of").integers(0, len(self.triggers), size=len(images))
        marked = images.copy()
        for number, trigger in enumerate(self.triggers):
            marked[drawn == number] = trigger(images[drawn == number])
        return marked


@dataclass(frozen=True)
class Together:
    """Several triggers, one after another, on every image."""

    triggers: tuple[Trigger, ...]

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images`` with all of the triggers."""
        for trigger in self.triggers:
            images = trigger(images)
        return images


def _shades(color: int | Color, channels: int) -> NDArray[np.uint8]:
    shades = np.atleast_1d(np.array(color, dtype=np.uint8))
    return np.round(shades.mean(keepdims=True)).astype(np.uint8) if channels == 1 else shades


def _random_color(seeds: Seeds) -> Color:
    red, green, blue = seeds.stream("color").integers(0, 256, size=3).tolist()
    return red, green, blue


def _check_shape(shape: str) -> None:
    if shape not in SHAPES:
        raise InputError(f"there is no mark {shape!r}; choose one of {', '.join(SHAPES)}")


def _check_color(name: str, color: Any) -> None:
    shades = np.array(color)
    is_whole = shades.shape == (3,) and np.issubdtype(shades.dtype, np.integer)
    if not (is_whole and (shades >= 0).all() and (shades <= 255).all()):
        raise InputError(f"{name} is red, green and blue, whole numbers from 0 to 255. Got {color}")
