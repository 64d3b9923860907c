"""Data that stays where it is: one tensor for all samples, batches by index arithmetic.

A subset is a list of positions. Shifting and mirroring are done for a whole batch at once by computing where
each pixel comes from, so there are no worker processes and no Python per sample.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unpoison.errors import InputError
from unpoison.learners.recipes import AUGMENTATIONS

RESIDENT_SHARE = 0.5
"""The share of a GPU's free memory that the data may take."""
STATISTICS_FROM = 10_000
"""Mean and spread of the pixels are taken from at most this many samples, evenly spaced."""


class Resident:
    """All samples of a dataset on one device: uint8 images ``(n, h, w, c)``, or float rows ``(n, d)``.

    Where they would fill more than half of a GPU's free memory, they stay at home in the computer's, and only
    batches travel.
    """

    def __init__(self, samples: NDArray[Any], *, device: torch.device, augmentation: str = "crop") -> None:
        if augmentation not in AUGMENTATIONS:
            raise InputError(f"augmentation must be one of {', '.join(AUGMENTATIONS)}, got {augmentation!r}")
        self._is_image = samples.ndim == 4
        self._augmentation = augmentation if self._is_image else "none"
        mean, spread = _statistics(samples)
        # one number a pixel, not a channel: long rows are vectorised, rows of three are not
        pixels = int(np.prod(samples.shape[1:-1]))
        self._mean = torch.from_numpy(np.tile(mean, pixels)).to(device)
        self._scale = torch.from_numpy(np.tile(1.0 / spread, pixels)).to(device)
        self.device = device
        self._home = device if _has_room(device, samples.nbytes) else torch.device("cpu")
        self._samples = as_tensor(samples).to(self._home)

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample as a network sees it: channels first."""
        if self._is_image:
            _, height, width, channels = self._samples.shape
            return channels, height, width
        return tuple(self._samples.shape[1:])

    def prepared(self, pixels: Tensor) -> Tensor:
        """Other images ``(n, channels, height, width)`` of values 0 to 255, as a network is given them.

        Differentiable: gradients reach the pixels.
        """
        channels, height, width = self.shape
        mean, scale = (
            numbers.view(height, width, channels).permute(2, 0, 1) for numbers in (self._mean, self._scale)
        )
        return (pixels - mean) * scale

    def plain(self, positions: NDArray[np.int64]) -> Tensor:
        """A normalised batch, as it is. Images come channels first in shape and channels last in memory."""
        return self._normalized(self._samples[self._at_home(positions)])

    def varied(self, positions: NDArray[np.int64], rng: np.random.Generator) -> Tensor:
        """A normalised batch, each image shifted and perhaps mirrored at random."""
        if self._augmentation == "none":
            return self.plain(positions)
        rows, columns = self._origins(len(positions), rng)
        _, height, width, channels = self._samples.shape
        inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[
            :, None, :
        ]
        row_starts = (self._at_home(positions)[:, None] * height + rows.clamp_(0, height - 1)) * width
        places = row_starts[:, :, None] + columns.clamp_(0, width - 1)[:, None, :]
        batch = self._samples.view(-1, channels).index_select(0, places.view(-1))
        normal = self._normalized(batch.view(len(positions), height, width, channels))
        # what was shifted in is the mean colour
        return normal.mul_(inside[:, None].to(self.device))

    def _origins(self, n: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """For each image, which row and which column each row and column of the result is taken from.

        Drawn by numpy: the same on every device.
        """
        height, width = self._samples.shape[1:3]
        reach = max(1, round(min(height, width) / 8))  # 4 pixels of 32, as usual
        shifts = self._at_home(rng.integers(-reach, reach + 1, size=(2, n, 1)))
        rows = torch.arange(height, device=self._home) + shifts[0]
        columns = torch.arange(width, device=self._home) + shifts[1]
        if self._augmentation == "crop-flip":
            mirrored = self._at_home(rng.random((n, 1)) < 0.5)
            columns = torch.where(mirrored, columns.flip(1), columns)
        return rows, columns

    def _normalized(self, batch: Tensor) -> Tensor:
        rows = (
            batch.to(self.device, non_blocking=True)
            .to(torch.float32)
            .flatten(1)
            .sub_(self._mean)
            .mul_(self._scale)
        )
        return rows.view(batch.shape).permute(0, 3, 1, 2) if self._is_image else rows

    def _at_home(self, values: NDArray[Any]) -> Tensor:
        return torch.from_numpy(values).to(self._home, non_blocking=True)


def _has_room(device: torch.device, n_bytes: int) -> bool:
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return n_bytes <= RESIDENT_SHARE * free


def as_tensor(array: NDArray[Any]) -> Tensor:
    """A tensor over the array's own memory, also where that is read-only or a file."""
    with warnings.catch_warnings():
        # nobody writes to it
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.ascontiguousarray(array))


def _statistics(samples: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of each channel or column; a constant one gets 1."""
    some = samples[:: max(1, -(-len(samples) // STATISTICS_FROM))]
    axes = tuple(range(some.ndim - 1))
    total, squares, count = 0.0, 0.0, 0
    for start in range(
        0, len(some), 256
    ):  # whole arrays in double precision would take eight times the memory
        block = some[start : start + 256].astype(np.float64)
        total = total + block.sum(axis=axes)
        squares = squares + (block**2).sum(axis=axes)
        count += block[..., 0].size
    mean = np.asarray(total / count)
    spread = np.sqrt(np.maximum(np.asarray(squares / count) - mean**2, 0.0))
    return mean.astype(np.float32), np.where(spread > 1e-6, spread, 1.0).astype(np.float32)
