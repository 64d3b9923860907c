"""The paper's figures of its data: poisoned images beside the clean ones that they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.evaluation.experiment import Arena, set_up
from unpoison.evaluation.scales import LAPTOP, PAPER
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
SLEEPER_AGENT = "cifar10-sleeper-agent-7-5"
"""From horse to dog, as in the paper's figure."""
IMAGENETTE = ("imagenette-dirty-label-0-2-eps20", "imagenette-dirty-label-1-3-eps20")
"""Ours: the paper shows two pairs and does not say of which scenarios."""
IMAGENETTE_LIMIT = 200
"""Images of all classes that are read, two of which are drawn."""
EXAMPLES = 4
"""Images a panel of Sleeper Agent's figure."""


def draw_datasets(target: Path) -> None:
    """A column an attack, poisoned above clean.

    Needs both datasets fetched; the clean-label attacks take minutes the first time.
    """
    seeds = dict(LAPTOP.recorded)
    columns = {}
    for title, name in SHOWN:
        scenario = by_name(name)
        arena = set_up(scenario, LAPTOP.setup_for(scenario), seed=seeds[name])
        columns[title] = most_visible(arena)
    _draw_columns(list(columns.values()), list(columns), target)


def draw_imagenette(target: Path) -> None:
    """Two columns, clean above poisoned, at the paper's 224 pixels. Needs the dataset fetched."""
    columns = []
    for name in IMAGENETTE:
        scenario = by_name(name)
        setup = replace(PAPER.setup_for(scenario), limit=IMAGENETTE_LIMIT)
        poisoned, clean = most_visible(set_up(scenario, setup, seed=scenario.seeds[0]))
        columns.append((clean, poisoned))
    _draw_columns(columns, ["", ""], target)


def draw_sleeper_agent(target: Path) -> None:
    """Clean above poisoned: dogs of the training set on the left, horses of the test set on the right.

    Needs CIFAR-10 fetched; the attack, at the laptop's scale, takes minutes the first time.
    """
    scenario = by_name(SLEEPER_AGENT)
    arena = set_up(scenario, LAPTOP.setup_for(scenario), seed=scenario.seeds[0])
    planted = np.flatnonzero(arena.truth.planted)[:EXAMPLES]
    attacked = arena.exam.attacked[:EXAMPLES]
    train = zip(arena.clean.features[planted], arena.poisoned.features[planted], strict=True)
    test = zip(arena.exam.features[attacked], arena.exam.triggered[:EXAMPLES], strict=True)
    columns = [*train, *test]
    titles = ["train", *[""] * (len(planted) - 1), "test", *[""] * (len(attacked) - 1)]
    _draw_columns(columns, titles, target)


def _draw_columns(columns: Sequence[tuple[Any, Any]], titles: Sequence[str], target: Path) -> None:
    """Images above each other in pairs, a pair a column."""
    figure, axes = pyplot().subplots(2, len(columns), figsize=(1.7 * len(columns), 4.2), squeeze=False)
    for column, (pair, title) in enumerate(zip(columns, titles, strict=True)):
        for row, image in enumerate(pair):
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
