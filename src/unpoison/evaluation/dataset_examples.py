"""The paper's figure of its datasets: a poisoned image above the clean one that it was, attack by attack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unpoison.evaluation.experiment import Arena, set_up
from unpoison.evaluation.scales import LAPTOP
from unpoison.evaluation.scenarios import by_name
from unpoison.report.plots import pyplot, save

SHOWN = (
    ("CIFAR-10\nclean-label, GAN", "cifar10-clean-label-gan-7-eps20"),
    ("CIFAR-10\nclean-label, l2", "cifar10-clean-label-l2-4-eps20"),
    ("CIFAR-10\nclean-label, linf", "cifar10-clean-label-linf-0-eps20"),
    ("CIFAR-10\ndirty-label", "cifar10-dirty-label-7-4-eps20"),
    ("CIFAR-10\nwatermark", "cifar10-watermark-1-3-eps20"),
    ("GTSRB\ndirty-label", "gtsrb-dirty-label-1-2-eps20"),
    ("GTSRB\nwatermark", "gtsrb-watermark-1-2-eps20"),
)
"""In the order of the paper, each from a recorded scenario with its seed."""


def draw_datasets(target: Path) -> None:
    """Needs both datasets fetched; the clean-label attacks take minutes the first time."""
    seeds = dict(LAPTOP.recorded)
    plots = pyplot()
    figure, axes = plots.subplots(2, len(SHOWN), figsize=(1.7 * len(SHOWN), 4.2))
    for column, (title, name) in enumerate(SHOWN):
        scenario = by_name(name)
        arena = set_up(scenario, LAPTOP.setup_for(scenario), seed=seeds[name])
        for row, image in enumerate(most_visible(arena)):
            axes[row][column].imshow(image)
            axes[row][column].set_axis_off()
        axes[0][column].set_title(title, fontsize=9)
    figure.tight_layout()
    save(figure, target)


def most_visible(arena: Arena) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Of the planted images the one that was changed most, as it is and as it was."""
    planted = np.flatnonzero(arena.truth.planted)
    after, before = arena.poisoned.features[planted], arena.clean.features[planted]
    change = np.abs(after.astype(np.int16) - before).reshape(len(planted), -1).sum(axis=1)
    most = int(change.argmax())
    return after[most], before[most]
