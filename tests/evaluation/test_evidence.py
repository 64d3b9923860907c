from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

from unpoison.attacks.base import Truth
from unpoison.cli.app import app
from unpoison.core.groups import canaries
from unpoison.core.result import Cost, Group
from unpoison.data.named.fetch import fetch
from unpoison.defenses.base import Decision
from unpoison.errors import CheckpointError, InputError
from unpoison.evaluation import experiment, scales
from unpoison.evaluation.bench import BenchTask
from unpoison.evaluation.evidence import replay, told_groups
from unpoison.evaluation.experiment import _measured, run_task
from unpoison.evaluation.scales import Scale, Setup
from unpoison.evaluation.victims import Effect
from unpoison.learners.torch import TorchLearner

from .test_experiment import SHARED, with_a_small_test_set

SCENARIO = "gtsrb-watermark-1-2-eps20"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A run of ours on 2,000 signs with its evidence kept, and its result."""
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not there")
    evidence = tmp_path_factory.mktemp("evidence")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNPOISON_CACHE", str(tmp_path_factory.mktemp("cache")))
        small = Setup("compact", 1, limit=2000, augmentation="none")
        patch.setitem(scales.SCALES, "small", Scale("small", {"gtsrb": small}, own_networks=False))
        patch.setattr(experiment, "attacked", with_a_small_test_set)
        patch.setattr(canaries, "SMALLEST", 1)  # some, also in classes of a few dozen
        fetch("gtsrb", source=SHARED)
        task = BenchTask(SCENARIO, "small", "groups", 0, evidence=str(evidence))
        yield evidence, run_task(task, work=evidence)


def test_a_replay_decides_as_the_run_did_and_trains_nothing(
    run: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence, result = run
    monkeypatch.setattr(TorchLearner, "__init__", None)
    (found,) = replay(evidence, {})
    assert found.needs == ""
    assert (found.planted, found.lost) == (result["planted"], result["false_positives"])
    assert found.found == result["planted"] - result["false_negatives"]
    assert list(found.groups) == result["groups"]
    assert list(found.canaries) == result["canaries"]
    assert all(0 <= each["found"] <= each["size"] for each in found.canaries)


def test_another_rule_is_tried_on_the_same_evidence(run: tuple[Path, dict[str, Any]]) -> None:
    evidence, _ = run
    (strict,) = replay(evidence, {"kept": -5.0})
    assert (strict.found, strict.lost) == (0, 0)
    assert not any(group["removed"] for group in strict.groups)


def test_judges_of_other_groups_are_asked_for(run: tuple[Path, dict[str, Any]]) -> None:
    evidence, result = run
    assert result["groups"], "there are groups that another threshold would not propose"
    (found,) = replay(evidence, {"met": 3.0})
    assert found.needs.startswith("judge-")
    assert found.groups == ()
    (longer,) = replay(evidence, {"epochs": 9})
    assert longer.needs.startswith("model-"), "models of other passes are not taken for these"


def test_the_command_prints_a_line_a_task(run: tuple[Path, dict[str, Any]]) -> None:
    evidence, result = run
    done = CliRunner().invoke(app, ["bench", "replay", "--evidence", str(evidence)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"small/{SCENARIO}/groups-seed0: ")
    assert f"of {result['planted']} found" in done.stdout
    told = CliRunner().invoke(
        app, ["bench", "replay", "--evidence", str(evidence), "--json", "--set", "met=99"]
    )
    assert json.loads(told.stdout)["groups"] == []


def test_evidence_of_other_data_is_not_mixed(run: tuple[Path, dict[str, Any]]) -> None:
    evidence, _ = run
    record = evidence / "small" / SCENARIO / "groups-seed0" / "identity.json"
    before = record.read_text(encoding="utf-8")
    record.write_text(before.replace('"labels": "', '"labels": "0'), encoding="utf-8")
    with pytest.raises(CheckpointError, match="belongs to another run: labels was"):
        run_task(BenchTask(SCENARIO, "small", "groups", 0, evidence=str(evidence)), work=evidence)
    record.write_text(before, encoding="utf-8")


def test_bad_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no evidence; run: unpoison bench run --keep-evidence"):
        list(replay(tmp_path / "nowhere", {}))
    done = CliRunner().invoke(app, ["bench", "replay", "--evidence", str(tmp_path), "--set", "met"])
    assert done.exit_code == 2
    assert "is not NAME=VALUE" in done.output


def test_covers_are_neither_planted_nor_lost() -> None:
    """They carry the trigger: whoever removes them loses nothing."""
    planted, covers = np.arange(6) < 2, np.isin(np.arange(6), [2, 3])
    labels = np.zeros(6, dtype=np.int64)
    keep = np.array([False, True, False, True, False, True])
    components = np.array([[1, 0, 1, 2, 0, 2]])
    groups = (Group(0, 2, True, 1), Group(0, 2, False, 0, undecided=True))
    decision = Decision(keep, np.zeros(6), components=components, groups=groups)
    one, other = told_groups(decision, Truth(planted, covers, labels))
    assert (one["planted"], one["covers"], "undecided" in one) == (1, 1, False)
    assert (other["planted"], other["covers"], other["undecided"]) == (0, 1, True)
    measured = _measured(decision, Effect(0.9, 0.0, 0.0, Cost()), Truth(planted, covers, labels))
    assert (measured["false_positives"], measured["covers_removed"]) == (1, 1)
    assert measured["false_positive_rate"] == 0.5
    assert measured["false_negatives"] == 1
