"""Small pictures for triggers: four drawings of our own, and PNG files that a user gives."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError

LARGEST_SIDE = 4096
"""Of a PNG file, and of the picture made from it."""
LARGEST_FILE = 64 * 2**20

CLEAR = "."
PALETTE = {
    "#": (0, 0, 0),
    "o": (150, 150, 150),
    "w": (255, 255, 255),
    "r": (230, 25, 40),
    "g": (20, 180, 60),
    "b": (30, 60, 220),
    "y": (250, 220, 20),
    "c": (30, 210, 230),
    "m": (220, 40, 200),
}

DRAWINGS: dict[str, tuple[str, ...]] = {
    "peace": (
        "..####..",
        ".#.##.#.",
        "#..##..#",
        "#..##..#",
        "#.####.#",
        "##.##.##",
        ".#.##.#.",
        "..####..",
    ),
    "letter-a": (
        "...##...",
        "...##...",
        "..#.##..",
        "..#.##..",
        ".######.",
        ".#...##.",
        "#.....##",
        "##...###",
    ),
    "bullet-holes": (
        ".....oo.",
        ".oo.o##o",
        "o##oo##o",
        "o##o.oo.",
        ".oo..oo.",
        "....o##o",
        "....o##o",
        ".....oo.",
    ),
    "patch": (
        "rryyggbb",
        "rryyggbb",
        "mmccwwoo",
        "mmccwwoo",
        "bb##rryy",
        "bb##rryy",
        "ggwwmmcc",
        "ggwwmmcc",
    ),
}
"""The paper's four watermarks in kind: 8 x 8 pixels, a letter a pixel, ``.`` lets the image through."""


def drawn(name: str) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """One of the drawings: its colours ``(8, 8, 3)``, and 0 or 1 for what lets the image through or not."""
    if name not in DRAWINGS:
        raise InputError(f"there is no drawing {name!r}; choose one of {', '.join(DRAWINGS)}")
    rows = DRAWINGS[name]
    colors = [[PALETTE.get(cell, (0, 0, 0)) for cell in row] for row in rows]
    alpha = [[cell != CLEAR for cell in row] for row in rows]
    return np.array(colors, dtype=np.uint8), np.array(alpha, dtype=np.float32)


def read_png(path: Path, *, size: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """A PNG file scaled to ``size`` x ``size`` pixels as the authors do: colours, and opacity from 0 to 1."""
    from PIL import Image

    from unpoison.data.files import read_regular, refusing, shown
    from unpoison.data.images import pillow_guard

    if not 1 <= size <= LARGEST_SIDE:
        raise InputError(f"size is the side of the picture in pixels, 1 to {LARGEST_SIDE}. Got {size}")
    name = shown(str(path))
    with pillow_guard(), refusing(name, "give a PNG picture"):
        data = read_regular(Path(path).resolve(), name, limit=LARGEST_FILE)
        image = Image.open(io.BytesIO(data), formats=("PNG",))
        if max(image.size) > LARGEST_SIDE:
            raise InputError(
                f"{name} says it is {image.size[0]} x {image.size[1]} pixels; each side may have at most "
                f"{LARGEST_SIDE}; shrink the picture"
            )
        small = np.asarray(image.convert("RGBA").resize((size, size), Image.Resampling.BICUBIC))
    return small[:, :, :3].copy(), small[:, :, 3].astype(np.float32) / np.float32(255)
