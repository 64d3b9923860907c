"""Room for pixels: in memory or, where they would fill too much of it, in a file mapped into memory."""

from __future__ import annotations

import os
import tempfile
import weakref
from contextlib import suppress
from math import inf, prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError

MAPPED_SHARE = 0.25
"""Arrays above this share of the machine's memory live in a file; the system keeps in memory what is used."""


def room_for(shape: tuple[int, ...], *, mapped_above: int | None = None) -> NDArray[np.uint8]:
    """An array of bytes to be filled. A file behind it is removed with the array.

    ``mapped_above`` is the largest size in bytes that is kept in memory; by default a quarter of it.
    """
    limit = largest_in_memory() if mapped_above is None else mapped_above
    if prod(shape) <= limit:
        return np.empty(shape, dtype=np.uint8)
    handle, name = tempfile.mkstemp(prefix="unpoison-", suffix=".pixels")
    os.close(handle)
    try:
        mapped = np.memmap(name, dtype=np.uint8, mode="w+", shape=shape)
    except OSError as error:
        _remove(name)
        raise InputError(
            f"no room for {prod(shape):,} bytes of pixels in {tempfile.gettempdir()} ({error}); set TMPDIR "
            "to a folder with more space, or use smaller images"
        ) from error
    weakref.finalize(mapped, _remove, name)
    return mapped


def largest_in_memory() -> float:
    """The size in bytes above which an array lives in a file; infinite where the system does not tell."""
    try:
        return MAPPED_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return inf


def _remove(name: str) -> None:
    with suppress(OSError):
        Path(name).unlink()
