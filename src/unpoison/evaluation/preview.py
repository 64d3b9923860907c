"""Clean and poisoned images side by side, as in the paper's figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import NOT_ATTACKED, Attack, Samples, Truth
from unpoison.report.text import printable
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray

if TYPE_CHECKING:
    from PIL import Image, ImageFont

MOST_PAIRS = 8
TEST_PAIRS = 2
"""Of those, pairs of the test set."""
SMALLEST_SIDE = 128
"""Pixels that an image is enlarged to, at least."""
FONT_SIZE = 11
GAP = 6
LINE = 15
HEADINGS = ("clean", "poisoned", "difference")


@dataclass(frozen=True)
class Pair:
    """An image before and after, ``(height, width, channels)``, and the label to write below each."""

    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    was: str
    now: str
    heading: str
    """``train`` or ``test``."""


def train_pairs(clean: Samples, poisoned: Samples, truth: Truth, *, most: int = MOST_PAIRS) -> list[Pair]:
    """Planted images, as different classes as there are, each as it was and is."""
    planted = np.flatnonzero(truth.planted)
    names = clean.class_names
    return [
        Pair(
            clean.features[i],
            poisoned.features[i],
            names[clean.labels[i]],
            names[poisoned.labels[i]],
            "train",
        )
        for i in by_turns(planted, truth.original_labels[planted], most).tolist()
    ]


def triggered_pairs(test: Samples, attack: Attack, *, most: int = TEST_PAIRS) -> list[Pair]:
    """Attacked test images without and with the trigger; below that, after ``>``, what the attacker wants."""
    goal = attack.goal(test.labels)
    attacked = np.flatnonzero(goal != NOT_ATTACKED)
    chosen = by_turns(attacked, test.labels[attacked], most)
    triggered = attack.trigger(test.features[chosen])
    names = test.class_names
    return [
        Pair(test.features[i], image, names[test.labels[i]], f"> {names[goal[i]]}", "test")
        for i, image in zip(chosen.tolist(), triggered, strict=True)
    ]


def by_turns(places: IndexArray, labels: LabelArray, most: int) -> IndexArray:
    """At most ``most`` of the places, ascending: one of each class, then another of each, and so on.

    Which of a class is left to chance, always the same: neighbours are often pictures of one thing.

    >>> by_turns(np.array([3, 4, 5, 9]), np.array([0, 0, 0, 1]), 2).tolist()
    [4, 9]
    """
    mixed = Seeds(0).stream("preview").permutation(len(places))
    order = mixed[np.argsort(labels[mixed], kind="stable")]
    by_class = labels[order]
    turn = np.arange(len(order)) - np.searchsorted(by_class, by_class)
    return np.sort(places[order[np.argsort(turn, kind="stable")[:most]]])


def draw(pairs: Sequence[Pair]) -> Image.Image:
    """A picture with a column for each pair: clean, poisoned, and the difference made visible."""
    from PIL import Image, ImageDraw, ImageFont

    height, width = pairs[0].before.shape[:2]
    scale = -(-SMALLEST_SIDE // min(height, width))
    cell_width, cell_height = scale * width, scale * height
    font = ImageFont.load_default(size=FONT_SIZE)
    margin = GAP + max(round(font.getlength(heading)) for heading in HEADINGS)
    size = (
        margin + GAP + len(pairs) * (cell_width + GAP),
        LINE + len(HEADINGS) * (cell_height + LINE) + GAP,
    )
    picture = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(picture)
    for row, heading in enumerate(HEADINGS):
        top = LINE + row * (cell_height + LINE)
        pen.text((GAP, top + (cell_height - LINE) // 2), heading, fill="black", font=font)
    for column, pair in enumerate(pairs):
        left = margin + GAP + column * (cell_width + GAP)
        pen.text((left, 1), pair.heading, fill="gray", font=font)
        captions = (pair.was, pair.now, amplification(pair))
        for row, (pixels, caption) in enumerate(zip(_images(pair), captions, strict=True)):
            top = LINE + row * (cell_height + LINE)
            enlarged = Image.fromarray(pixels).resize((cell_width, cell_height), Image.Resampling.NEAREST)
            picture.paste(enlarged, (left, top))
            pen.text(
                (left, top + cell_height + 1), _fitting(caption, font, cell_width), fill="black", font=font
            )
    return picture


def difference(pair: Pair) -> tuple[NDArray[np.uint8], float]:
    """What was added, around middle gray and stretched to be seen, and by how much it was stretched."""
    change = pair.after.astype(np.float64) - pair.before
    largest = float(np.abs(change).max())
    factor = 127 / largest if largest else 1.0
    return np.round(128 + factor * change).clip(0, 255).astype(np.uint8), factor


def amplification(pair: Pair) -> str:
    """What to write below the difference."""
    if np.array_equal(pair.before, pair.after):
        return "none"
    return f"times {difference(pair)[1]:.1f}"


def _images(pair: Pair) -> list[NDArray[np.uint8]]:
    return [_in_color(pixels) for pixels in (pair.before, pair.after, difference(pair)[0])]


def _in_color(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def _fitting(caption: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont | Any, width: int) -> str:
    """As much of a caption as is as wide as its image."""
    for limit in range(60, 2, -1):
        text = printable(caption, limit)
        if font.getlength(text) <= width:
            return text
    return ""
