"""Decoding one image that may be hostile, with Pillow."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from unpoison.data.files import refusing
from unpoison.errors import InputError

ALLOWED_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM", "TIFF")
PREVIEW_SIDE = 128
LARGEST_SIDE = 65_535
"""Longer images are refused whatever their area: the resampling weights grow with the ratio of the sides."""

_FIX = "replace or remove the file"
_DEEP_MODES = ("I;16", "I;16L", "I;16B", "I;16N", "I")
_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True)
class Decoded:
    """Pixels of one image, uint8 ``(height, width, 3)``; ``gray`` if it had no colour to begin with."""

    pixels: NDArray[np.uint8]
    gray: bool


@contextmanager
def pillow_guard() -> Iterator[None]:
    """Let Pillow's bomb warning stop the decoding, and keep its remarks on odd metadata quiet.

    Warning filters belong to the whole process, so enter this once around a thread pool, not in its threads.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def shorter_side(stream: BinaryIO, *, name: str, max_pixels: int) -> int:
    """The shorter side in pixels, from the header alone."""
    with refusing(name, _FIX):
        return min(_open(stream, name, max_pixels).size)


def decode(data: bytes, *, name: str, size: int, max_pixels: int) -> Decoded:
    """Decode to ``size`` x ``size`` pixels. The whole image is kept (nothing is cropped away)."""
    with refusing(name, _FIX):
        image, gray = _plain(_upright(_load(data, name, max_pixels)), name)
        if image.size != (size, size):
            image = image.resize((size, size), Image.Resampling.LANCZOS)
        return Decoded(_on_white(image), gray)


def decode_exact(data: bytes, *, name: str, width: int, height: int) -> NDArray[np.uint8]:
    """Decode to RGB ``(height, width, 3)`` as stored, refusing an image of any other size."""
    with pillow_guard(), refusing(name, _FIX):
        image = _load(data, name, width * height)
        if image.size != (width, height):
            raise InputError(f"{name} is {image.size[0]} x {image.size[1]} pixels, not {width} x {height}")
        return np.asarray(image.convert("RGB"))


def decode_preview(data: bytes, *, name: str, max_pixels: int) -> NDArray[np.uint8]:
    """Decode to at most 128 pixels a side, proportions kept; ``(h, w)`` if gray, else ``(h, w, 3)``."""
    with refusing(name, _FIX):
        image, gray = _plain(_upright(_load(data, name, max_pixels)), name)
        pixels = _on_white(_thumbnail(image))
        return pixels[:, :, 0] if gray else pixels


def shrink(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An array ``(h, w, 1)`` or ``(h, w, 3)`` as a preview of at most 128 pixels a side."""
    flat = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    if max(flat.shape[:2]) <= PREVIEW_SIDE:
        return flat
    return np.asarray(_thumbnail(Image.fromarray(np.ascontiguousarray(flat))))


def composite_on_white(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """RGBA pixels ``(..., 4)`` as RGB ``(..., 3)``, as they look on white paper."""
    alpha = pixels[..., 3:].astype(np.uint16)
    blended = (pixels[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255
    return blended.astype(np.uint8)


def _open(stream: BinaryIO, name: str, max_pixels: int) -> Image.Image:
    try:
        image = Image.open(stream, formats=ALLOWED_FORMATS)
    except UnidentifiedImageError as error:
        raise InputError(
            f"{name} is not an image that unpoison reads ({', '.join(ALLOWED_FORMATS)}); remove it"
        ) from error
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise InputError(f"{name} looks like a decompression bomb ({error}); {_FIX}") from error
    _check_pixels(image, name, max_pixels)
    return image


def _check_pixels(image: Image.Image, name: str, max_pixels: int) -> None:
    width, height = image.size
    if width * height > max_pixels:
        raise InputError(
            f"{name} says it is {width} x {height} pixels, more than {max_pixels:,} (max_pixels); "
            "it may be a decompression bomb. Shrink or remove the file, or raise the limit"
        )
    if not 1 <= min(width, height) <= max(width, height) <= LARGEST_SIDE:
        raise InputError(
            f"{name} says it is {width} x {height} pixels; each side must be 1 to {LARGEST_SIDE}; {_FIX}"
        )


def _load(data: bytes, name: str, max_pixels: int) -> Image.Image:
    image = _open(io.BytesIO(data), name, max_pixels)
    try:
        image.load()
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise InputError(f"{name} looks like a decompression bomb ({error}); {_FIX}") from error
    _check_pixels(image, name, max_pixels)
    return image


def _upright(image: Image.Image) -> Image.Image:
    try:
        orientation = image.getexif().get(_ORIENTATION)
    except Exception:  # broken EXIF is common in honest photos; every viewer then shows them as stored
        return image
    method = _UPRIGHT.get(orientation) if isinstance(orientation, int) else None
    return image if method is None else image.transpose(method)


def _plain(image: Image.Image, name: str) -> tuple[Image.Image, bool]:
    """The image in mode L, RGB or RGBA, and whether it is gray."""
    if image.mode == "F":
        raise InputError(f"{name} holds floating-point pixels (mode F); save it with 8 bits a channel")
    if image.mode in _DEEP_MODES:
        return _eight_bits(image, name), True
    gray = image.mode in ("1", "L", "LA", "La")
    if image.has_transparency_data:
        return image.convert("RGBA"), gray
    return image.convert("L" if gray else "RGB"), gray


def _eight_bits(image: Image.Image, name: str) -> Image.Image:
    # Pillow's own conversion clips at 255 instead of scaling
    deep = np.asarray(image)
    low, high = int(deep.min()), int(deep.max())
    if low < 0 or high > 65_535:
        raise InputError(f"{name} has gray values from {low} to {high}; 16 bits hold 0 to 65535; {_FIX}")
    return Image.fromarray(((deep.astype(np.uint32) * 255 + 32_767) // 65_535).astype(np.uint8))


def _thumbnail(image: Image.Image) -> Image.Image:
    small = image.copy()
    small.thumbnail((PREVIEW_SIDE, PREVIEW_SIDE), Image.Resampling.LANCZOS)
    return small


def _on_white(image: Image.Image) -> NDArray[np.uint8]:
    # after resizing: Pillow resamples RGBA with premultiplied alpha, so the order does not matter
    if image.mode == "RGBA":
        return composite_on_white(np.asarray(image))
    return np.asarray(image.convert("RGB"))
