"""Small networks for tests; at module level, so that worker processes can import them."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from unpoison.learners.recipes import Recipe, TrainingOptions
from unpoison.learners.torch import TorchFactory

RECIPE = Recipe(0.1, batch_size=16, schedule="one-cycle", nesterov=True)


def perceptron(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """With dropout, so that training draws on torch's own random numbers."""
    return nn.Sequential(
        nn.Linear(shape[0], 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, n_classes)
    )


def convolution(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(shape[0], 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, n_classes),
    )


def on_rows(rows: Any, labels: Any, *, n_classes: int) -> TorchFactory:
    options = TrainingOptions(recipe=RECIPE, device="cpu")
    return TorchFactory(perceptron, rows.astype(np.float32), labels, n_classes, options)


def on_images(rows: Any, labels: Any, *, n_classes: int) -> TorchFactory:
    """Each of four numbers is the shade of a quarter of the image."""
    shades = np.clip(60 * rows[:, :4] + 60, 0, 255).astype(np.uint8).reshape(-1, 2, 2)
    images = shades.repeat(6, axis=1).repeat(6, axis=2)[..., None]
    options = TrainingOptions(recipe=RECIPE, device="cpu")
    return TorchFactory(convolution, images, labels, n_classes, options)
