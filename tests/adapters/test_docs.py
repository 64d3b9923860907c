"""Every example in docs/adapters.md runs and does what the text around it says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")  # read when datasets is imported
PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters.md"
EXAMPLES = dict(
    re.findall(r"^## (.+?)\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
)
NEEDS = {
    "pandas": "pandas",
    "Hugging Face datasets": "datasets",
    "torch": "torch",
    "Adversarial Robustness Toolbox": "art",
    "cleanlab": "cleanlab",
    "imbalanced-learn": "imblearn",
}


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ART writes a configuration into the home folder when imported."""
    monkeypatch.setenv("HOME", str(tmp_path))


def run(title: str) -> dict[str, Any]:
    pytest.importorskip(NEEDS[title])
    names: dict[str, Any] = {}
    exec(compile(EXAMPLES[title], f"docs/adapters.md, {title}", "exec"), names)
    return names


def test_every_adapter_has_an_example() -> None:
    assert list(EXAMPLES) == list(NEEDS)


def test_pandas() -> None:
    names = run("pandas")
    assert len(names["clean"]) == names["wine"]["keep"].sum() > 150
    assert "target" in names["clean"].columns
    assert not hasattr(names["cleaner"], "keep_"), "the cleaner itself stays as it is"


def test_hugging_face_datasets() -> None:
    names = run("Hugging Face datasets")
    assert len(names["clean"]) == sum(names["dataset"]["keep"]) > 150


def test_torch() -> None:
    names = run("torch")
    assert names["X"].shape == (300, 8, 8, 1)
    assert len(names["clean"]) == names["cleaner"].keep_.sum() > 250
    assert names["clean"].dataset is names["dataset"]


def test_art() -> None:
    names = run("Adversarial Robustness Toolbox")
    assert len(names["is_clean"]) == 178
    assert len(names["report"]) == names["is_clean"].count(0)
    assert sorted(json.loads(names["matrix"])) == ["class_0", "class_1", "class_2"]


def test_cleanlab(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("cleanlab")
    assert names["issues"].columns.tolist() == ["is_poison_issue", "poison_score"]
    assert "Finding poison issues" in capsys.readouterr().out


def test_imbalanced_learn() -> None:
    names = run("imbalanced-learn")
    assert names["model"].score(names["X"], names["y"]) > 0.95
