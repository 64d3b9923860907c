from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from unpoison.core.result import VoteRecord
from unpoison.report.certainty import certainty, own_share

from .builders import judged
from .test_page import texts


def test_by_the_votes_that_count() -> None:
    dataset = texts(n=6)
    record = VoteRecord(
        voters=("a", "b"),
        predictions=np.array([[0, 1, 2, 0, 1, 2], [1, 1, 0, 1, 1, 2]], dtype=np.int32),
        losses=np.zeros((2, 6), dtype=np.float32),
        asked=np.array([[True] * 6, [True, True, False, True, False, False]]),
    )
    result = dataclasses.replace(judged(dataset, [0, 3]), votes=record)
    assert own_share(dataset.labels, result).tolist() == [0.5, 1, 1, 0.5, 1, 1]
    found = certainty(dataset.labels, result)
    assert (found.level, found.why) == (
        "weak",
        "Models give the removed samples their own label in 50.0% of their votes, "
        "and the kept samples in 100%.",
    )


def test_of_whom_nobody_votes_does_not_count() -> None:
    dataset = texts(n=6)
    record = VoteRecord(
        voters=("a",),
        predictions=np.array([[1, 1, 0, 1, 0, 0]], dtype=np.int32),
        losses=np.zeros((1, 6), dtype=np.float32),
        asked=np.array([[True, True, False, True, False, False]]),
    )
    result = dataclasses.replace(judged(dataset, [0, 3]), votes=record)
    assert np.isnan(own_share(dataset.labels, result)[[2, 4, 5]]).all()
    found = certainty(dataset.labels, result)
    assert (found.level, "in 0% of" in found.why, "kept samples in 100%" in found.why) == (
        "clear",
        True,
        True,
    )
    nobody = dataclasses.replace(record, asked=np.zeros((1, 6), dtype=np.bool_))
    assert certainty(dataset.labels, dataclasses.replace(result, votes=nobody)).level == "mixed"


@pytest.mark.parametrize(
    ("n_agreeing", "accuracy", "level"),
    [(0, None, "clear"), (2, 0.9, "clear"), (4, 0.9, "mixed"), (5, 0.9, "weak"), (0, 0.6, "weak")],
)
def test_levels(n_agreeing: int, accuracy: float | None, level: str) -> None:
    dataset = texts()
    result = judged(dataset, range(0, 30, 3))
    result.predicted[range(0, 3 * n_agreeing, 3)] = 0
    notes = {} if accuracy is None else {"vote_accuracy": accuracy}
    assert certainty(dataset.labels, dataclasses.replace(result, notes=notes)).level == level


def test_without_removed_or_kept_samples() -> None:
    dataset = texts()
    assert certainty(dataset.labels, judged(dataset, [])).level == "clear"
    everything = certainty(dataset.labels, judged(dataset, range(120)))
    assert (everything.level, "0%" in everything.why) == ("mixed", True)
