"""The whole job with networks, on a few real traffic signs with a watermark planted among them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import unpoison
from cli.builders import manifest_bytes
from unpoison.attacks.base import Samples
from unpoison.attacks.dirty_label import DirtyLabel
from unpoison.attacks.triggers import Watermark
from unpoison.cleaning import CleanOptions, clean
from unpoison.core.presets import METHODS
from unpoison.errors import CheckpointError, InputError
from unpoison.learners.choose import LearnerChoice
from unpoison.learners.recipes import TrainingOptions
from unpoison.outputs.verify import verify

GTSRB = Path(__file__).resolve().parents[2] / "shared" / "data" / "gtsrb_32.npz"
CHANGES: dict[str, dict[str, Any]] = {
    "groups": {"epochs": 1, "judge_epochs": 1, "min_steps": 12, "met": 2.0},
    "ispl": {
        "rounds": 2, "restarts": 1, "first_epochs": 1, "epochs": 1, "weak_epochs": 1, "min_steps": 6,
        "weak_min_steps": 12, "self_training_updates": 2, "self_training_interval": 1,
    },
}  # fmt: skip
NETWORK = LearnerChoice("compact", training=TrainingOptions(device="cpu", precision="full"))


@pytest.fixture(scope="module")
def signs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four classes of 60 signs; a quarter of class 1 carries a watermark and is labelled 2."""
    if not GTSRB.is_file():
        pytest.skip("GTSRB is not beside the repository (../shared/data/gtsrb_32.npz)")
    with np.load(GTSRB, allow_pickle=False) as arrays:
        labels, images = arrays["y_train"].astype(np.int64), arrays["x_train"]
    chosen = np.concatenate([np.flatnonzero(labels == label)[::7][:60] for label in (1, 2, 12, 38)])
    attack = DirtyLabel.one_to_one(1, 2, 0.25, Watermark.named("peace"))
    poisoned, _ = attack.apply(Samples.numbered(images[chosen], labels[chosen]), seed=0)
    path = tmp_path_factory.mktemp("signs") / "signs.npz"
    np.savez(path, x=poisoned.features, y=poisoned.labels)
    return path


def options(method: str, **given: Any) -> CleanOptions:
    return CleanOptions(**{"method": method, "learner": NETWORK, "changes": CHANGES[method], **given})


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_mask(method: str, signs: Path, tmp_path: Path) -> None:
    """Twice, with one process and with two: the same bytes."""
    records = [
        clean(str(signs), tmp_path / f"out{workers}", options=options(method, workers=workers))
        for workers in (1, 2)
    ]
    one, two = (manifest_bytes(tmp_path / f"out{workers}") for workers in (1, 2))
    assert one == two
    for record in records:
        assert record["learner"] == "compact"
        assert record["training"]["augmentation"] == ("crop" if method == "ispl" else "none")
        assert record["settings"].get("effort") == ("standard" if method == "groups" else None)
        assert record["training"]["threads"] == 1
        assert record["versions"]["torch"]
        assert record["cost"]["flops"] > 1e9
        assert 0 < record["cost"]["matmul_share"] < 2
    assert verify(tmp_path / "out1") == []
    page = (tmp_path / "out1" / "report.html").read_text(encoding="utf-8")
    assert "training: augmentation" in page
    assert "of a large matrix product" in page


def test_another_seed_and_other_training_are_other_runs(signs: Path, tmp_path: Path) -> None:
    def manifest(name: str, **given: Any) -> Any:
        clean(str(signs), tmp_path / name, options=options("groups", **given))
        return manifest_bytes(tmp_path / name)

    plain = manifest("plain")
    assert manifest("seed", seed=1) != plain
    assert manifest("augment", augment="crop") != plain
    other = replace(NETWORK, training=replace(NETWORK.training, threads=2))
    with pytest.raises(CheckpointError, match=r"training was .*'threads': 1.* and is .*'threads': 2"):
        clean(str(signs), tmp_path / "plain", options=options("groups", learner=other, resume=True))


def test_a_network_of_the_paper(signs: Path, tmp_path: Path) -> None:
    wanted = options(
        "groups",
        learner=replace(NETWORK, name="resnet32"),
        changes={"epochs": 1, "judge_epochs": 1, "min_steps": 1, "canaries": False},
    )
    record = clean(str(signs), tmp_path / "out", options=wanted)
    assert record["training"]["recipe"]["schedule"] == "steps"


def test_an_own_network_on_the_command_line(signs: Path, tmp_path: Path) -> None:
    """As a user would: a module in the current folder, two worker processes."""
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "def network(shape, n_classes):\n"
        "    return nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(16 * shape[0], n_classes))\n"
    )
    command = ["clean", str(signs), "--out", "out", "--learner", "mine:network", "--workers", "2", "--json"]
    source = Path(unpoison.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "unpoison", *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["learner"] == "mine:network"


def test_images_that_are_too_small_for_a_network(tmp_path: Path) -> None:
    np.savez(tmp_path / "small.npz", x=np.zeros((8, 8, 8, 1), dtype=np.uint8), y=np.arange(8) % 2)
    with pytest.raises(InputError, match="at least 16 pixels a side, got 8 x 8"):
        clean(str(tmp_path / "small.npz"), tmp_path / "out", options=options("groups"))
    assert not (tmp_path / "out").exists()
