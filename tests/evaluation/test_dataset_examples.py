from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from PIL import Image

from unpoison.attacks.base import Samples, plant
from unpoison.evaluation import dataset_examples
from unpoison.evaluation.dataset_examples import (
    IMAGENETTE,
    SHOWN,
    SLEEPER_AGENT,
    draw_datasets,
    most_visible,
)
from unpoison.evaluation.experiment import Arena
from unpoison.evaluation.figures import FIGURES
from unpoison.evaluation.scales import LAPTOP
from unpoison.evaluation.scenarios import by_name
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


def columns_of(name: str, arena: Arena, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    """What a figure asks for (scenarios with their setups), and the shades of each column, from above."""
    asked: list[Any] = []
    columns: list[Any] = []

    def set_up(scenario: Any, setup: Any, *, seed: int) -> Arena:
        assert seed in scenario.seeds
        asked.append((scenario, setup))
        return arena

    def draw(pairs: Any, titles: Any, _target: Path) -> None:
        columns.extend(
            (title, *(int(image.max()) for image in pair)) for pair, title in zip(pairs, titles, strict=True)
        )

    monkeypatch.setattr(dataset_examples, "set_up", set_up)
    monkeypatch.setattr(dataset_examples, "_draw_columns", draw)
    FIGURES[name]([], Path("a.png"))
    return asked, columns


def test_sleeper_agent_is_dogs_to_train_on_and_patched_horses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caption: "clean (top) and poisoned (bottom) images from the train (left) and test (right)"."""
    arena = arena_of(50, 60)
    test = np.stack([np.full((8, 8, 3), shade, np.uint8) for shade in (1, 2, 3)])
    exam = Exam(test, np.array([0, 1, 0]), np.array([0, 2]), test[[0, 2]] + np.uint8(200), np.array([1, 1]))
    asked, columns = columns_of("sleeper-agent", replace(arena, exam=exam), monkeypatch)
    assert columns == [("train", 0, 50), ("", 0, 60), ("test", 1, 201), ("", 3, 203)]
    ((scenario, setup),) = asked
    assert scenario.name == SLEEPER_AGENT
    assert (scenario.options["source"], scenario.options["target"]) == (7, 5)  # horse, dog
    assert setup == LAPTOP.setup_for(scenario)


def test_imagenette_is_two_clean_images_above_what_became_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caption: "examples of clean (top) and poisoned (bottom) data"; the text: 224 by 224 pixels."""
    asked, columns = columns_of("imagenette", arena_of(10, 200), monkeypatch)
    assert columns == [("", 0, 200), ("", 0, 200)]
    assert [scenario.name for scenario, _ in asked] == list(IMAGENETTE)
    assert {setup.image_size for _, setup in asked} == {224}
    assert {by_name(name).dataset for name in IMAGENETTE} == {"imagenette"}


def test_figures_of_examples_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(dataset_examples, "set_up", lambda *_given, **_options: arena_of(120))
    for name in ("sleeper-agent", "imagenette"):
        FIGURES[name]([], tmp_path / f"{name}.png")
        drawn = np.asarray(Image.open(tmp_path / f"{name}.png"))
        assert {120, 0} <= set(np.unique(drawn[..., 0]).tolist())
