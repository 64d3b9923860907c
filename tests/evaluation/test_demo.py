"""The demonstration must be a real success, for every one of five seeds."""

from __future__ import annotations

import csv
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from unpoison.cleaning import CleanOptions, clean
from unpoison.errors import OutputError
from unpoison.evaluation.demo import DIGITS_ATTACK, DemoResult, run_demo
from unpoison.events import Progress
from unpoison.outputs.verify import verify

SEEDS = range(5)


class Shown:
    """Each demonstration is run once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.result = cache(self._result)

    def _result(self, seed: int) -> DemoResult:
        return run_demo(self.folder(seed), seed=seed)

    def folder(self, seed: int) -> Path:
        return self.root / f"seed-{seed}"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(tmp_path_factory.mktemp("demo"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
class TestSuccess:
    def test_finds_the_planted_and_leaves_the_clean(self, seed: int, shown: Shown) -> None:
        result = shown.result(seed)
        assert result.n_poisoned >= 20
        assert result.found >= 0.95
        assert result.lost <= 0.03

    def test_the_attack_took_hold_and_is_gone(self, seed: int, shown: Shown) -> None:
        result = shown.result(seed)
        assert result.undefended.targeted > 0.5
        assert result.cleaned.targeted <= max(0.05, result.perfect.targeted + 0.03)

    def test_the_model_is_as_good_as_with_perfect_cleaning(self, seed: int, shown: Shown) -> None:
        result = shown.result(seed)
        assert result.perfect.accuracy > 0.9
        assert abs(result.cleaned.accuracy - result.perfect.accuracy) <= 0.02

    def test_the_figures_follow_from_the_files(self, seed: int, shown: Shown) -> None:
        result, folder = shown.result(seed), shown.folder(seed)
        keep = column(folder / "cleaned" / "manifest.csv", "keep") == "true"
        truth = column(folder / "truth.csv", "poisoned") == "1"
        assert result.n_train == len(keep) == len(truth) == 1348
        assert result.n_poisoned == truth.sum()
        assert result.n_found == (truth & ~keep).sum()
        assert result.n_clean_removed == (~truth & ~keep).sum()
        assert result.found == result.n_found / result.n_poisoned
        assert result.lost == result.n_clean_removed / (result.n_train - result.n_poisoned)
        assert result.report.is_file()
        assert verify(folder / "cleaned") == []


def column(path: Path, name: str) -> np.ndarray:
    with path.open(newline="", encoding="utf-8") as file:
        return np.array([row[name] for row in csv.DictReader(file)])


@pytest.mark.slow
def test_clean_never_reads_the_truth(shown: Shown, tmp_path: Path) -> None:
    """With a lie in its place, a second run ends with the same bytes."""
    shown.result(0)
    folder = shown.folder(0)
    shutil.copy(folder / "poisoned.npz", tmp_path)
    lies = "".join(f"{i},{int(i < 500)}\n" for i in range(1348))
    (tmp_path / "truth.csv").write_text("row,poisoned\n" + lies)
    clean(str(tmp_path / "poisoned.npz"), tmp_path / "cleaned", options=CleanOptions(seed=0))
    for name in ("manifest.csv", "manifest.parquet"):
        assert (tmp_path / "cleaned" / name).read_bytes() == (folder / "cleaned" / name).read_bytes()


@pytest.mark.slow
def test_the_truth_stays_out_of_what_clean_is_given_and_gives(shown: Shown) -> None:
    shown.result(0)
    folder = shown.folder(0)
    with np.load(folder / "poisoned.npz", allow_pickle=False) as stored:
        assert sorted(stored.files) == ["x", "y"]
        marked = (stored["x"][:, :2, :2, 0] == 255).all(axis=(1, 2))
        truth = column(folder / "truth.csv", "poisoned") == "1"
        assert truth.tolist() == marked.tolist(), "the patch is in the open, and only there"
        assert set(stored["y"][truth].tolist()) == set(DIGITS_ATTACK.goal(np.array([1])).tolist())
    for name in ("run.json", "report.html", "manifest.csv"):
        assert "truth" not in (folder / "cleaned" / name).read_text(encoding="utf-8").lower()


def test_progress_is_passed_on_and_a_full_folder_refused(tmp_path: Path) -> None:
    events: list[Progress] = []

    def stop(event: Progress) -> None:
        events.append(event)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path / "demo", listener=stop)
    assert events == [Progress("reading the data", 0, 1)]
    with pytest.raises(OutputError, match="is not empty"):
        run_demo(tmp_path / "demo")
    with pytest.raises(OutputError, match="cannot be used for the results"):
        run_demo(tmp_path / "demo" / "truth.csv")
