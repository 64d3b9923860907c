"""Small sources in the forms that are poisoned: image folders, tables of rows and of texts."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image

COLORS = {"cat": (200, 60, 60), "dog": (60, 60, 200), "eel": (60, 200, 60)}


def image_folder(root: Path, *, side: int = 20, names: str = "{kind}_{i:03d}") -> Path:
    """Twelve noisy images a class, every second one a JPEG."""
    stream = np.random.default_rng(5)
    for kind, color in COLORS.items():
        for i in range(12):
            pixels = np.clip(stream.normal(color, 30, (side + 4, side, 3)), 0, 255).astype(np.uint8)
            suffix = ("png", "jpg")[i % 2]
            path = root / kind / f"{names.format(kind=kind, i=i)}.{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(path)
    return root


N = 12
HEADER = ["key", "weight", "legs", "coat", "kind"]


def cells() -> list[list[str]]:
    """Numbers, whole numbers, words that need quotes, and labels."""
    return [
        [f"k{i}", f"{i / 4}", str(i % 5), ('red, "soft"', "gray")[i % 2], ("cat", "dog", "eel")[i % 3]]
        for i in range(N)
    ]


def write_csv(
    path: Path, *, end: str = "\n", last: str | None = None, quoting: int = csv.QUOTE_MINIMAL
) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=end, quoting=quoting).writerows([HEADER, *cells()])
    if last is not None:
        path.write_bytes(path.read_bytes().removesuffix(end.encode()) + last.encode())
    return path


def text_file(path: Path, delimiter: str) -> Path:
    lines = [
        f"{('ham', 'spam')[i % 2]}{delimiter}message number {i} {'call now' * (i % 2)}" for i in range(20)
    ]
    path.write_text(f"label{delimiter}words\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path
