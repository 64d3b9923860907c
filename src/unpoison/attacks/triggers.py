"""What a backdoor adds to an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError


@dataclass(frozen=True)
class Patch:
    """A solid square of ``size`` pixels with its upper left corner at (``row``, ``column``)."""

    row: int = 0
    column: int = 0
    size: int = 2
    value: int = 255

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[Any]:
        """Copies of ``images``, shape ``(n, height, width, channels)``, with the patch on them."""
        height, width = images.shape[1:3]
        fits = 0 <= self.row <= height - self.size and 0 <= self.column <= width - self.size
        if self.size < 1 or not fits:
            raise InputError(
                f"a patch of {self.size} pixels at row {self.row}, column {self.column} does not fit into "
                f"images of {height} by {width}; choose a smaller patch or another place"
            )
        marked = images.copy()
        marked[:, self.row : self.row + self.size, self.column : self.column + self.size] = self.value
        return marked
