"""Replacing the results of a run by those after a review, interrupted anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.errors import OutputError
from unpoison.outputs import WORK_FOLDER, prepare, record, verify, write
from unpoison.outputs.bundle import finish_review, rewrite
from unpoison.outputs.overrides import Overrides
from unpoison.outputs.place import READY_REVIEW
from unpoison.outputs.record import read_record
from unpoison.outputs.stored import read_stored
from unpoison.report.review import Review

from .builders import RUN, KilledError, LineOrigin, killed_at, make_dataset, make_result, tree
from .test_bundle import EVERYTHING, names

OVERRIDES = Overrides("", frozenset({"pets/0000"}), frozenset({"pets/0005"}), "0" * 64)


def reviewed(directory: Path, dataset: Dataset, result: Sanitization) -> None:
    keep, decided = result.keep.copy(), np.zeros(40, dtype=np.bool_)
    keep[[0, 5]] = True, False
    decided[[0, 5]] = True
    review = Review(keep, decided)
    facts = record.reviewed(read_record(directory), dataset, result, review=review, overrides=OVERRIDES)
    rewrite(dataset, result, directory, facts=facts, review=review)


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Before and after."""
    directory = tmp_path_factory.mktemp("states")
    dataset = make_dataset()
    result = make_result(dataset)
    write(dataset, result, directory, run=RUN)
    before = tree(directory)
    reviewed(directory, dataset, result)
    return before, tree(directory)


def test_replaces_everything_and_leaves_nothing_else(tmp_path: Path) -> None:
    dataset = make_dataset()
    result = make_result(dataset)
    write(dataset, result, tmp_path, run=RUN)
    reviewed(tmp_path, dataset, result)
    assert names(tmp_path) == EVERYTHING
    assert (tmp_path / "clean" / "kept.csv").read_text().startswith("0\n1\n2\n4\n7\n")
    stored = read_stored(tmp_path)
    assert np.array_equal(stored.result.keep, result.keep), "what the run decided is not forgotten"
    assert np.flatnonzero(stored.review.decided).tolist() == [0, 5]
    assert stored.record["review"]["n_put_back"] == 1


def test_what_is_stored_is_what_was_written(tmp_path: Path) -> None:
    dataset = make_dataset()
    result = make_result(dataset)
    write(dataset, result, tmp_path, run=RUN)
    stored = read_stored(tmp_path)
    assert stored.ids == list(dataset.ids)
    assert stored.class_names == dataset.class_names
    assert np.array_equal(stored.result.predicted, result.predicted)
    assert np.array_equal(stored.result.components, result.components)
    assert np.allclose(stored.result.suspicion, result.suspicion, atol=1e-6)
    assert not stored.review.decided.any()


@pytest.mark.parametrize("moves", range(10))
def test_stopped_anywhere_it_is_the_old_or_is_finished(
    tmp_path: Path, states: tuple[dict[str, bytes], dict[str, bytes]], moves: int
) -> None:
    before, after = states
    dataset = make_dataset()
    result = make_result(dataset)
    write(dataset, result, tmp_path, run=RUN)
    try:
        with killed_at(moves):
            reviewed(tmp_path, dataset, result)
    except KilledError:
        assert (tmp_path / WORK_FOLDER / READY_REVIEW).exists() == (moves > 0)
    else:
        assert moves == 9, "one move to be ready, two to set aside, six to put in place"
    if moves == 0:
        assert tree(tmp_path) == before
        return
    if moves < 9:
        with pytest.raises(OutputError, match="finish it with the same unpoison apply"):
            read_stored(tmp_path)
        assert any("finish it with the same" in problem for problem in verify(tmp_path))
    if 1 < moves < 9:
        with pytest.raises(OutputError, match="finish it with the same unpoison apply"):
            prepare(tmp_path, resume=True)
    finish_review(tmp_path)
    assert tree(tmp_path) == after
    finish_review(tmp_path)
    assert tree(tmp_path) == after


def test_stopped_again_and_again_while_it_is_finished(
    tmp_path: Path, states: tuple[dict[str, bytes], dict[str, bytes]]
) -> None:
    dataset = make_dataset()
    result = make_result(dataset)
    write(dataset, result, tmp_path, run=RUN)
    with killed_at(1), pytest.raises(KilledError):
        reviewed(tmp_path, dataset, result)
    for _ in range(7):
        with killed_at(1), pytest.raises(KilledError):
            finish_review(tmp_path)
    finish_review(tmp_path)
    assert tree(tmp_path) == states[1]


def test_a_full_disk_changes_nothing(
    tmp_path: Path, states: tuple[dict[str, bytes], dict[str, bytes]]
) -> None:
    dataset = make_dataset()
    result = make_result(dataset)
    write(dataset, result, tmp_path, run=RUN)
    with pytest.raises(OutputError, match=r"No space left on device.*nothing was changed"):
        reviewed(tmp_path, make_dataset(origin=LineOrigin(fail=True)), result)
    assert tree(tmp_path) == states[0]
