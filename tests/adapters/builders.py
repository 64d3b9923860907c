"""Small sets with wrong labels that a quick cleaner finds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from unpoison import IncompatibilityClustering

WRONG = np.array([3, 50, 121])
N = 200
EXPECTED = ~np.isin(np.arange(N), WRONG)
"""What to keep of either set."""


def quick(**changes: Any) -> IncompatibilityClustering:
    settings = {"method": "ispl", "rounds": 2, "restarts": 1, "self_training": False, "random_state": 0}
    return IncompatibilityClustering(LogisticRegression(max_iter=20), **(settings | changes))


def labels() -> NDArray[np.int64]:
    """Of two classes, three of them wrong."""
    numbers = np.arange(N) % 2
    numbers[WRONG] = 1 - numbers[WRONG]
    return numbers


def rows() -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    return rng.normal(scale=0.5, size=(N, 3)) + 3.0 * (np.arange(N) % 2)[:, None]


def images(channels: int = 3, side: int = 8) -> NDArray[np.uint8]:
    """Bright above in one class, below in the other; ``(n, side, side, channels)``."""
    pixels = np.random.default_rng(2).integers(0, 100, size=(N, side, side, channels), dtype=np.uint8)
    pixels[::2, : side // 2] += 120
    pixels[1::2, side // 2 :] += 120
    return pixels
