"""Decoding a whole set of images in threads, whatever they are stored in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from unpoison.data.images import Decoded
from unpoison.data.memory import room_for
from unpoison.data.options import LoadOptions

USUAL_IMAGE_SIZE = 32

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def usual_size(n: int, shorter_side_of: Callable[[int], int]) -> int:
    """Side in pixels for ``n`` images where none is asked for: 32, or the median shorter side if less."""
    return min(USUAL_IMAGE_SIZE, int(np.median(in_threads(shorter_side_of, range(n)))))


def decode_all(
    n: int, size: int, decode_one: Callable[[int], tuple[Decoded, str]]
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Pixels ``(n, size, size, 3)``, or one channel where all are gray, and the hash of each image."""
    pixels = room_for((n, size, size, 3))

    def place(index: int) -> tuple[str, bool]:
        decoded, sha256 = decode_one(index)
        pixels[index] = decoded.pixels
        return sha256, decoded.gray

    results = in_threads(place, range(n))
    if all(gray for _, gray in results):
        pixels = np.ascontiguousarray(pixels[..., :1])
    return pixels, tuple(sha256 for sha256, _ in results)


def in_threads(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """``work`` on every item, results in order; the error of the first item that failed."""
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        return list(pool.map(work, items))


def file_limit(options: LoadOptions) -> int:
    """Bytes a file may have: an uncompressed image of the most pixels allowed, 16 bits RGBA, and metadata."""
    return min(options.max_bytes, options.max_pixels * 8 + 2**20)
