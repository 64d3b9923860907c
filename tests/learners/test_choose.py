from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from unpoison.core.result import Cost
from unpoison.errors import InputError, MissingExtraError
from unpoison.learners import choose as module
from unpoison.learners.choose import LearnerChoice, choose, default_for, has_torch, matmul_share
from unpoison.learners.defaults import LEARNERS
from unpoison.learners.recipes import COMPACT, FAST, PAPER, TrainingOptions
from unpoison.learners.sklearn import SklearnFactory

needs_torch = pytest.mark.skipif(not has_torch(), reason="torch is not installed")

LABELS = np.arange(12) % 3
IMAGES = np.random.default_rng(0).integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
ROWS = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
ON_CPU = TrainingOptions(device="cpu")


def chosen(name: str, features: Any = IMAGES, **given: Any) -> module.Chosen:
    return choose(LearnerChoice(name, training=ON_CPU, **given), features, LABELS, n_classes=3)


@pytest.mark.parametrize("name", LEARNERS)
def test_plain_classifiers(name: str) -> None:
    result = chosen(name, ROWS)
    assert isinstance(result.factory, SklearnFactory)
    assert result.name == name
    assert not result.is_network
    assert result.training is None
    assert result.suitable_workers() == 1
    assert matmul_share(result, Cost(1, 1, seconds=1.0)) is None


@pytest.mark.parametrize(
    "features",
    [ROWS, csr_matrix(ROWS), IMAGES[:, :8, :8], IMAGES[:, :15]],
    ids=["rows", "text", "tiny", "flat"],
)
def test_auto_is_logistic_for_all_but_real_images(features: Any) -> None:
    assert default_for(features) == "logistic"


def test_auto_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "has_torch", lambda: False)
    assert default_for(IMAGES) == "logistic"
    with pytest.raises(MissingExtraError, match=r"'compact' needs .*pip install 'unpoison\[torch\]'"):
        chosen("compact")


@needs_torch
def test_auto_with_and_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert default_for(IMAGES) == "compact"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert default_for(IMAGES) == "preactresnet18"


@needs_torch
@pytest.mark.parametrize(
    ("name", "recipe", "expected"),
    [
        ("compact", None, COMPACT),
        ("resnet32", None, PAPER["resnet32"]),
        ("resnet56", "fast", FAST),
        ("preactresnet18", "paper", PAPER["preactresnet18"]),
    ],
)
def test_networks_by_name(name: str, recipe: str | None, expected: Any) -> None:
    result = chosen(name, recipe=recipe)
    assert result.is_network
    assert result.training is not None
    assert result.training["recipe"] == expected.as_dict()
    assert result.training["device"] == "cpu"
    learner = result.factory(0)
    learner.fit(np.arange(12), epochs=1)
    assert len(learner.assess(np.arange(12)).losses) == 12


@needs_torch
def test_workers_follow_the_device_and_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    result = chosen("compact")
    assert result.training is not None
    assert result.suitable_workers() == 6
    result.training["threads"] = 4
    assert result.suitable_workers() == 1
    result.training.update(threads=1, device="cuda")
    assert result.suitable_workers() == 1


@needs_torch
def test_the_share_of_the_matrix_product_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    from unpoison.learners import devices

    monkeypatch.setattr(devices, "product_rate", lambda *_, **__: 2e9)
    assert matmul_share(chosen("compact"), Cost(1, 1, seconds=4.0, flops=4e9)) == 0.5
    assert matmul_share(chosen("compact"), Cost()) is None


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_network.py").write_text(
        "import torch\n"
        "NUMBER = 3\n"
        "def build(shape, n_classes):\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(n_classes))\n"
        "def flat(shape, n_classes):\n"
        "    size = shape[0] * shape[1] * shape[2]\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(size, n_classes))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "own_network"
    sys.modules.pop("own_network", None)


@needs_torch
def test_an_own_network_from_the_current_folder(own_module: str, tmp_path: Path) -> None:
    result = chosen(f"{own_module}:flat")
    assert result.name == "own_network:flat"
    result.factory(0).fit(np.arange(12), epochs=1)
    assert sys.path[-1] == str(tmp_path)


@needs_torch
@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("missing", r"'own_network:missing' cannot be imported \(AttributeError"),
        ("NUMBER", "'own_network:NUMBER' is not callable"),
    ],
)
def test_own_networks_that_are_none(own_module: str, attribute: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chosen(f"{own_module}:{attribute}")


@needs_torch
def test_names_that_nobody_has() -> None:
    with pytest.raises(InputError, match=r"'no_such:thing' cannot be imported \(ModuleNotFoundError"):
        chosen("no_such:thing")
    with pytest.raises(InputError, match=r"unknown learner 'resnet'; choose one of .*resnet56, or your own"):
        chosen("resnet")


@needs_torch
def test_networks_take_no_text() -> None:
    with pytest.raises(InputError, match="'compact' cannot take text or wide tables; choose logistic"):
        chosen("compact", csr_matrix(ROWS))
    with pytest.raises(InputError, match=r"takes images, not samples of shape \(4,\)"):
        chosen("compact", ROWS)


def test_groups_looks_at_images_as_they_are() -> None:
    pytest.importorskip("torch")
    images, labels = np.zeros((4, 32, 32, 3), dtype=np.uint8), np.array([0, 0, 1, 1])
    chosen = choose(LearnerChoice("compact"), images, labels, n_classes=2)
    assert chosen.training is not None
    assert chosen.suited_to("ispl") is chosen
    suited = chosen.suited_to("groups")
    assert (chosen.training["augmentation"], suited.training["augmentation"]) == ("crop", "none")
    assert suited.factory.options.augmentation == "none"
    assert suited.training == {**chosen.training, "augmentation": "none"}


def test_a_plain_classifier_suits_any_method() -> None:
    chosen = choose(LearnerChoice("logistic"), np.zeros((4, 3)), np.array([0, 0, 1, 1]), n_classes=2)
    assert chosen.suited_to("groups") is chosen
