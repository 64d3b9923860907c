"""Where in the picture a group's common mark sits, if it has one in one place.

The numbers below were chosen on groups drawn at random from GTSRB, CIFAR-10, Fashion-MNIST and digits, which
must not be given a pattern, and on the same with the paper's marks on them. A natural subgroup, such as the
photographs of one traffic sign, may share a pattern too: the words say what is common, not that it was
planted.
"""

from __future__ import annotations

import numpy as np

from unpoison.types import FloatArray

SMALLEST_GROUP = 5
"""The average of fewer images still looks like the images themselves."""

_LARGEST_SIDE = 1 / 3
_STRENGTH = 2.5
_NOISE_FLOOR = 8.0
"""Shades of grey below which a difference is not one to speak of."""

_PEAK_SHARE = 0.5
_BOX_SHARE = 0.8

_PLACES = (
    ("in the upper left corner", "at the upper edge", "in the upper right corner"),
    ("at the left edge", "in the middle", "at the right edge"),
    ("in the lower left corner", "at the lower edge", "in the lower right corner"),
)


def find_pattern(mark: FloatArray, spread: FloatArray, *, size: int) -> str | None:
    """Where the pattern is, in words such as ``in the upper left corner``; None where there is none.

    ``mark`` is by how much the average of ``size`` images differs, ``spread`` how much single images vary in
    each pixel, both ``(height, width, channels)``. A pattern is a sharp difference, strong against what
    chance would give, whose strongest pixels lie within a square of a third of the picture.
    """
    if size < SMALLEST_GROUP or min(mark.shape[:2]) < 3:
        return None
    against_chance = mark / (spread + _NOISE_FLOOR) * np.sqrt(size)
    sharp = _sharp(against_chance)
    # beside a sharp mark, what has none looks sharp too, but the other way round
    strength = np.where(sharp * mark > 0, np.abs(sharp), 0.0).max(axis=2)
    peak = float(strength.max())
    if peak < _STRENGTH:
        return None
    energy = np.where(strength >= _PEAK_SHARE * peak, strength**2, 0.0)
    return _place(energy)


def _sharp(image: FloatArray) -> FloatArray:
    """``image`` less its own blur: what is left of a difference in lighting is nothing."""
    radius = max(1, min(image.shape[:2]) // 8)
    width = 2 * radius + 1
    padded = np.pad(image, ((radius, radius), (radius, radius), (0, 0)), mode="edge")
    sharp: FloatArray = image - _box_sums(padded, width) / width**2
    return sharp


def _box_sums(image: FloatArray, side: int) -> FloatArray:
    """The sum over every square of ``side`` pixels that lies inside ``image``."""
    edges = ((1, 0), (1, 0), *((0, 0),) * (image.ndim - 2))
    total = np.pad(image, edges).cumsum(axis=0).cumsum(axis=1)
    sums: FloatArray = (
        total[side:, side:] - total[:-side, side:] - total[side:, :-side] + total[:-side, :-side]
    )
    return sums


def _place(energy: FloatArray) -> str | None:
    """The words for the smallest square that holds most of ``energy``, if it is small."""
    height, width = energy.shape
    for side in range(1, int(min(height, width) * _LARGEST_SIDE) + 1):
        sums = _box_sums(energy, side)
        if sums.max() >= _BOX_SHARE * energy.sum():
            row, column = np.unravel_index(int(sums.argmax()), sums.shape)
            down, right = (row + side / 2) / height, (column + side / 2) / width
            return _PLACES[min(2, int(3 * down))][min(2, int(3 * right))]
    return None
