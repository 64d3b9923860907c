from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from PIL import Image

from unpoison.attacks.base import Samples, plant
from unpoison.evaluation import dataset_examples
from unpoison.evaluation.dataset_examples import SHOWN, draw_datasets, most_visible
from unpoison.evaluation.experiment import Arena
from unpoison.evaluation.figures import FIGURES
from unpoison.evaluation.scales import LAPTOP
from unpoison.evaluation.victims import Exam


def arena_of(*shades: int) -> Arena:
    """Black images, the first of which are planted with these shades."""
    clean = Samples.numbered(np.zeros((6, 8, 8, 3), np.uint8), np.array([0, 0, 0, 1, 1, 1]))
    images = np.stack([np.full((8, 8, 3), shade, np.uint8) for shade in shades])
    poisoned, truth = plant(clean, np.arange(len(shades)), images, 1)
    exam = Exam(clean.features, clean.labels, np.array([0]), clean.features[:1], np.array([1]))
    return Arena(clean, poisoned, truth, exam, "none")


def test_the_most_visible_planted_image_and_what_it_was() -> None:
    after, before = most_visible(arena_of(10, 200, 30))
    assert (after.max(), before.max()) == (200, 0)


def test_every_attack_is_of_a_recorded_scenario() -> None:
    assert {name for _, name in SHOWN} <= dict(LAPTOP.recorded).keys()


@pytest.mark.parametrize("draw", [draw_datasets, lambda to: FIGURES["datasets"]([], to)])
def test_the_figure(draw: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    asked: list[tuple[str, int]] = []

    def set_up(scenario: Any, setup: Any, *, seed: int) -> Arena:
        asked.append((scenario.name, seed))
        return arena_of(120)

    monkeypatch.setattr(dataset_examples, "set_up", set_up)
    draw(tmp_path / "datasets.png")
    assert [name for name, _ in asked] == [name for _, name in SHOWN]
    assert dict(asked).items() <= dict(LAPTOP.recorded).items()
    drawn = np.asarray(Image.open(tmp_path / "datasets.png"))
    assert {120, 0} <= set(np.unique(drawn[..., 0]).tolist())
