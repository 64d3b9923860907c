"""Fast 3 x 3 convolutions on CPUs, as matrix products by Winograd's minimal filtering.

``F(4 x 4, 3 x 3)`` of Lavin and Gray (2016): a tile of 4 x 4 outputs takes 36 products where the definition
takes 144. The transforms into and out of tiles are products with small constant matrices, one an axis, so
that all work is done by the matrix product of the platform and gradients follow by themselves. Results
differ from a direct convolution in the last bits only (a relative error of about 1e-5 in float32).

Maps are laid out as ``(height, width, samples, channels)``: every step is then a product of contiguous
matrices, and nothing has to be copied in between.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

TILE = 4
POINTS = 6
"""An axis of a tile with its border: 4 + 3 - 1."""

_INTO = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
_OUT_OF = (
    (1, 1, 1, 1, 1, 0),
    (0, 1, -1, 2, -2, 0),
    (0, 1, 1, 4, 4, 0),
    (0, 1, -1, 8, -8, 1),
)
_FILTER = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)


class MapConv(nn.Conv2d):
    """A 3 x 3 convolution with zeros around, of maps ``(height, width, samples, channels)``."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__(inside, outside, 3, padding=1, bias=False)

    def forward(self, input: Tensor) -> Tensor:
        """The maps convolved; by Winograd where that is faster and precise enough."""
        if input.device.type == "cpu" and not torch.is_autocast_enabled("cpu"):
            return convolve(input, self.weight)
        return super().forward(input.permute(2, 3, 0, 1)).permute(2, 3, 0, 1).contiguous()


class MapNorm(nn.BatchNorm1d):
    """Batch normalisation of maps ``(height, width, samples, channels)``, over all but the channels."""

    def forward(self, input: Tensor) -> Tensor:
        """The maps normalised."""
        return super().forward(input.reshape(-1, input.shape[-1])).view(input.shape)


def convolve(maps: Tensor, weight: Tensor) -> Tensor:
    """``conv2d`` with padding 1 of maps ``(height, width, samples, channels)``."""
    height, width, samples, inside = maps.shape
    outside = len(weight)
    rows, columns = -(-height // TILE), -(-width // TILE)
    into_rows, out_of_rows, spread_filter = _transforms(height, maps.dtype)
    into_columns, out_of_columns, _ = _transforms(width, maps.dtype)
    filters = (spread_filter @ weight.permute(2, 3, 1, 0).reshape(9, -1)).view(
        POINTS, 1, POINTS, inside, outside
    )
    tiles = into_rows @ maps.reshape(height, -1)
    tiles = torch.matmul(into_columns, tiles.view(POINTS * rows, width, samples * inside))
    products = torch.bmm(
        tiles.view(POINTS * rows * POINTS, columns * samples, inside),
        filters.expand(-1, rows, -1, -1, -1).reshape(POINTS * rows * POINTS, inside, outside),
    )
    result = torch.matmul(
        out_of_columns, products.view(POINTS * rows, POINTS * columns, samples * outside)
    ).view(POINTS * rows, -1)
    return (out_of_rows @ result).view(height, width, samples, outside)


@cache
def _transforms(side: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """An axis of ``side`` pixels into tiles and back, ordered by point and then by tile; and the filter's."""
    tiles = -(-side // TILE)
    exact: Any = {"dtype": torch.float64, "device": "cpu"}
    with torch.inference_mode(False):  # kept for all calls, so also for those with gradients
        into = torch.zeros(POINTS, tiles, TILE * tiles + 2, **exact)
        out_of = torch.zeros(TILE * tiles, POINTS, tiles, **exact)
        for tile in range(tiles):
            into[:, tile, TILE * tile : TILE * tile + POINTS] = torch.tensor(_INTO, **exact)
            out_of[TILE * tile : TILE * (tile + 1), :, tile] = torch.tensor(_OUT_OF, **exact)
        of_filter = torch.tensor(_FILTER, **exact)
        return (
            into.flatten(0, 1)[:, 1 : side + 1].to(dtype).contiguous(),
            out_of.flatten(1, 2)[:side].to(dtype).contiguous(),
            torch.kron(of_filter, of_filter).to(dtype),
        )


def grouped(maps: Tensor) -> Tensor:
    """Every 2 x 2 pixels as one with four times the channels; odd sides are filled up with zeros."""
    height, width, samples, channels = maps.shape
    if height % 2 or width % 2:
        maps = functional.pad(maps, (0, 0, 0, 0, 0, width % 2, 0, height % 2))
        height, width = maps.shape[:2]
    pairs = maps.reshape(height // 2, 2, width // 2, 2, samples, channels)
    return pairs.permute(0, 2, 4, 1, 3, 5).reshape(height // 2, width // 2, samples, 4 * channels)
