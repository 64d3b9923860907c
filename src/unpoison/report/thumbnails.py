"""Samples as small pictures inside the page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, features

LARGE_SIDE = 128
"""Pixels a side of a picture where there are few."""
CLOSE_SIDE = 64
"""Pixels a side of a picture of the samples that are looked at first, where there are many."""
SMALL_SIDE = 32
"""Pixels a side of all other pictures."""
PIXELATED_BELOW = 48
"""Pictures with no longer side than this are shown pixel by pixel."""

_QUALITY = 80


@dataclass(frozen=True)
class Picture:
    """A picture as a ``data:`` address, with what the page needs to lay it out."""

    uri: str
    tiny: bool


def picture(image: NDArray[np.uint8], *, side: int = CLOSE_SIDE) -> Picture:
    """``image``, ``(height, width)`` or ``(height, width, channels)``, at most ``side`` pixels a side."""
    uri = "data:image/" + encode(image, side=side, exact=True)
    return Picture(uri=uri, tiny=max(image.shape[:2]) <= PIXELATED_BELOW)


def encode(image: NDArray[np.uint8], *, side: int, exact: bool) -> str:
    """``image`` as the end of a ``data:image/`` address.

    ``exact`` keeps every pixel as it is, for marks that are faint or a pixel small; otherwise it is a quarter
    of the size.
    """
    pixels = Image.fromarray(np.ascontiguousarray(_displayable(image)))
    if max(pixels.size) > side:
        pixels.thumbnail((side, side), Image.Resampling.BOX)
    buffer = io.BytesIO()
    if exact:
        kind = "png"
        pixels.save(buffer, format="PNG", compress_level=9)
    elif features.check("webp"):
        kind = "webp"
        pixels.save(buffer, format="WEBP", quality=_QUALITY, method=2)
    else:  # Pillow can be built without it
        kind = "jpeg"
        pixels.save(buffer, format="JPEG", quality=_QUALITY)
    return f"{kind};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def _displayable(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey or RGB: one channel loses its axis, channels beyond three are not shown."""
    if image.ndim == 2:
        return image
    return image[:, :, :3] if image.shape[2] >= 3 else image[:, :, 0]
