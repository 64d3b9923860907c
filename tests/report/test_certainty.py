from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from unpoison.core.result import Group, VoteRecord
from unpoison.data.container import Preview
from unpoison.report.certainty import certainty, own_share

from .builders import judged, make
from .test_canaries import with_canaries
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
    found = certainty(dataset, result)
    assert (found.level, found.why) == (
        "weak",
        "The votes are weak: models give the removed samples their own label in 50.0% of their votes, "
        "and the kept samples in 100%. No common mark was found in the 2 labelled 'cat': look there first.",
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
    found = certainty(dataset, result, marked={0})
    assert (found.level, "in 0% of" in found.why, "kept samples in 100%" in found.why) == (
        "clear",
        True,
        True,
    )
    nobody = dataclasses.replace(record, asked=np.zeros((1, 6), dtype=np.bool_))
    assert certainty(dataset, dataclasses.replace(result, votes=nobody)).level == "mixed"


@pytest.mark.parametrize(
    ("n_agreeing", "accuracy", "level"),
    [(0, None, "clear"), (2, 0.9, "clear"), (4, 0.9, "mixed"), (5, 0.9, "weak"), (0, 0.6, "weak")],
)
def test_levels(n_agreeing: int, accuracy: float | None, level: str) -> None:
    dataset = texts()
    result = judged(dataset, range(0, 30, 3))
    result.predicted[range(0, 3 * n_agreeing, 3)] = 0
    notes = {} if accuracy is None else {"vote_accuracy": accuracy}
    assert certainty(dataset, dataclasses.replace(result, notes=notes), marked={0}).level == level


def test_without_removed_or_kept_samples() -> None:
    dataset = texts()
    assert certainty(dataset, judged(dataset, [])).level == "clear"
    everything = certainty(dataset, judged(dataset, range(120)))
    assert (everything.level, "0%" in everything.why) == ("mixed", True)


@pytest.mark.parametrize(("undecided", "level"), [(True, "mixed"), (False, "clear")])
def test_a_class_left_undecided_is_not_clear(undecided: bool, level: str) -> None:
    dataset = texts()
    side = Group(1, 15, removed=False, called=0, undecided=undecided)
    found = certainty(dataset, dataclasses.replace(judged(dataset, []), groups=(side,)))
    assert found.level == level
    assert found.votes.startswith(f"The votes are {level}")


def test_votes_alone_are_not_enough() -> None:
    """They chose what is removed; a group that shares nothing foreign may be honest."""
    dataset = texts()
    result = judged(dataset, [*range(0, 30, 3), *range(1, 22, 3), 2], called=2)
    both = certainty(dataset, result, marked={0, 1})
    assert (both.level, both.why) == (
        "clear",
        f"{both.votes} Each removed group shares a mark.",
    )
    single = certainty(dataset, judged(dataset, range(0, 30, 3)), marked={0})
    assert (single.level, single.why) == ("clear", f"{single.votes} The removed group shares a mark.")
    one = certainty(dataset, result, marked={0})
    assert (one.level, one.votes) == ("mixed", both.votes)
    assert one.why == f"{both.votes} No common mark was found in the 7 labelled 'dog': look there first."
    none = certainty(dataset, result)
    assert "in the 10 labelled 'cat' and the 7 labelled 'dog': look there first." in none.why


def test_a_sample_alone_shares_nothing_and_many_labels_are_counted() -> None:
    dataset = texts()
    alone = certainty(dataset, judged(dataset, [0]))
    assert (alone.level, alone.why.split(". ")[-1]) == (
        "mixed",
        "No common mark was found in the 1 labelled 'cat': look there first.",
    )
    many = make("text", lambda _: Preview(), names=[f"class {i}" for i in range(10)])
    found = certainty(many, judged(many, range(60), called=1))
    assert "the 6 labelled 'class 2' and those of 7 other labels: look there first." in found.why


def test_names_are_made_harmless() -> None:
    dataset = texts(names=("cat\x1b[2J", "dog", "bird"))
    assert "'cat\\x1b[2J'" in certainty(dataset, judged(dataset, range(0, 30, 3))).why


@pytest.mark.parametrize(
    ("sizes", "undecided", "level"),
    [
        ([(150, 150), (45, 41)], False, "clear"),
        ([(150, 150), (45, 41)], True, "mixed"),
        ([(150, 150), (45, 40)], False, "mixed"),
        ([(150, 150), (45, 45), (15, 0)], False, "mixed"),
        ([(150, 0), (45, 0)], False, "weak"),
        ([(150, 0), (45, 0)], True, "weak"),
    ],
)
def test_with_planted_samples_of_our_own_it_is_measured(
    sizes: list[tuple[int, int]], undecided: bool, level: str
) -> None:
    dataset = texts()
    side = Group(1, 15, removed=False, called=0, undecided=undecided)
    result = with_canaries(dataclasses.replace(judged(dataset, []), groups=(side,)), *sizes)
    found = certainty(dataset, result)
    assert (found.level, found.votes, found.why) == (level, "", found.measured)
    assert found.measured.startswith("Of our own 150")


def test_a_measured_certainty_asks_neither_votes_nor_marks() -> None:
    dataset = texts()
    result = judged(dataset, range(0, 30, 3))
    result.predicted[:30] = dataset.labels[:30]
    weak = dataclasses.replace(result, notes={"vote_accuracy": 0.3})
    assert certainty(dataset, weak).level == "weak"
    found = certainty(dataset, with_canaries(weak, (12, 12)))
    assert (found.level, found.why) == (
        "clear",
        "Of our own 12 planted samples, 12 were found. "
        "No common mark was found in the 10 labelled 'cat': look there first.",
    )


def test_without_them_nothing_was_measured() -> None:
    dataset = texts()
    for result in (judged(dataset, [0]), with_canaries(judged(dataset, [0]))):
        found = certainty(dataset, result)
        assert (found.measured, found.votes.startswith("The votes are")) == ("", True)
