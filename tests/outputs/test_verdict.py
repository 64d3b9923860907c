from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from unpoison.core.result import Group, Sanitization
from unpoison.data.container import Dataset
from unpoison.outputs import verdict
from unpoison.outputs.verdict import caution

from .builders import NASTY, make_dataset, make_result

BY = "by models that did not train on them"


TWO_OF_A_LABEL = f"5 are labelled 'cat' and called 'dog' and 5 are labelled 'cat' and called 'bird' {BY}."


def with_groups(*groups: tuple[int, int, int], removed: int, shared: dict[int, str] | None = None) -> str:
    """Groups of (label, called, size), and as many other removed samples as there are besides."""
    dataset = make_dataset(3000)
    members: list[int] = []
    predicted = dataset.labels.copy()
    for label, called, size in groups:
        new = [i for i in np.flatnonzero(dataset.labels == label).tolist() if i not in members][:size]
        predicted[new] = called
        members += new
    members += [i for i in range(3000) if i not in members][: removed - len(members)]
    result = dataclasses.replace(make_result(dataset, members), predicted=predicted)
    judged = tuple(Group(label, size, True, called) for label, called, size in groups)
    kept = Group(2, 100, False, 0)
    return verdict(dataset, dataclasses.replace(result, groups=(kept, *judged)), shared=shared)


def test_nothing() -> None:
    dataset = make_dataset(1797)
    assert verdict(dataset, make_result(dataset, [])) == "Nothing in 1,797 samples looks planted."


def test_one_sample() -> None:
    dataset = make_dataset(1797)
    assert verdict(dataset, make_result(dataset, [0])) == (
        "1 of 1,797 samples (0.1%) looks planted: it is labelled 'cat' and called 'dog' "
        "by models that did not train on it."
    )


def test_one_group() -> None:
    assert with_groups((0, 1, 6), removed=6) == (
        f"6 of 3,000 samples (0.2%) look planted: all are labelled 'cat' and called 'dog' {BY}."
    )


@pytest.mark.parametrize(
    ("groups", "removed", "detail"),
    [
        ([(0, 1, 41), (1, 2, 4)], 45, f"most are labelled 'cat' and called 'dog' {BY}."),
        ([(0, 1, 40)], 45, f"most are labelled 'cat' and called 'dog' {BY}."),
        # 5 of the 35 others are labelled like the group: they went with it
        ([(0, 1, 10)], 45, f"15 are labelled 'cat' and mostly called 'dog' {BY}."),
        ([(0, 1, 5), (0, 2, 5)], 10, TWO_OF_A_LABEL),
        ([(0, 0, 45)], 45, "all are labelled 'cat'."),
        (
            [(0, 1, 20), (1, 2, 25)],
            45,
            f"25 are labelled 'dog' and called 'bird' and 20 are labelled 'cat' and called 'dog' {BY}.",
        ),
        (
            [(0, 1, 20), (1, 2, 15)],
            45,
            f"20 are labelled 'cat' and called 'dog' and 15 are labelled 'dog' and called 'bird' {BY}"
            "; the other 10 vary.",
        ),
        (
            [(0, 1, 2), (0, 2, 2), (1, 0, 2), (1, 2, 2), (2, 0, 2), (2, 1, 2)],
            12,
            "they carry 3 different labels, most often 'cat' (4).",
        ),
    ],
)
def test_several_groups(groups: list[tuple[int, int, int]], removed: int, detail: str) -> None:
    assert with_groups(*groups, removed=removed).split("planted: ")[1] == detail


def test_a_group_that_is_not_called_one_thing_only() -> None:
    dataset = make_dataset(30)
    result = make_result(dataset)
    result.predicted[3] = 2
    assert verdict(dataset, result).endswith(f"all are labelled 'cat' and mostly called 'dog' {BY}.")


def test_the_smallest_groups_are_not_named() -> None:
    assert with_groups((0, 1, 30), (1, 2, 3), (2, 0, 1), (1, 0, 11), removed=45).endswith(
        f"30 are labelled 'cat' and called 'dog' and 11 are labelled 'dog' and called 'cat' {BY}; "
        "the other 4 vary."
    )


def test_what_is_shared_is_said() -> None:
    pattern = {0: "share a pattern in the upper left corner"}
    assert with_groups((0, 1, 6), removed=6, shared=pattern) == (
        f"6 of 3,000 samples (0.2%) look planted: all are labelled 'cat' and called 'dog' {BY}, "
        "and share a pattern in the upper left corner."
    )
    assert with_groups((0, 1, 23), removed=31, shared=pattern).endswith(
        f"most are labelled 'cat' and called 'dog' {BY}, and share a pattern in the upper left corner."
    )
    assert with_groups((0, 1, 15), (1, 2, 2), removed=20, shared=pattern).endswith(
        f"15 are labelled 'cat' and called 'dog' and 3 are labelled 'dog' and mostly called 'bird' {BY}; "
        "the other 2 vary; those labelled 'cat' share a pattern in the upper left corner."
    )
    assert "share" not in with_groups((0, 1, 6), removed=6, shared={2: "share a pattern in the middle"})


def test_without_groups_samples_speak() -> None:
    dataset = make_dataset(30)
    result = dataclasses.replace(make_result(dataset, [0, 3]), groups=())
    assert verdict(dataset, result).endswith(f"all are labelled 'cat' and called 'dog' {BY}.")


def test_everything_removed() -> None:
    dataset = make_dataset(30)
    assert verdict(dataset, make_result(dataset, range(30))).startswith(
        "30 of 30 samples (100%) look planted"
    )


@pytest.mark.parametrize("name", NASTY)
def test_is_one_printable_line(name: str) -> None:
    dataset = make_dataset(30, names=(name, "b", "c"))
    sentence = verdict(dataset, make_result(dataset))
    assert sentence.isprintable()
    assert len(sentence) < 250


def kept_result(dataset: Dataset, *groups: Group, **notes: Any) -> Sanitization:
    return dataclasses.replace(make_result(dataset, ()), groups=groups, notes=notes)


@pytest.mark.parametrize(("accuracy", "weak"), [(0.38, True), (0.6999, True), (0.7, False), (0.95, False)])
def test_a_learner_that_explains_little_is_said_so(accuracy: float, weak: bool) -> None:
    dataset = make_dataset()
    message = caution(dataset, kept_result(dataset, vote_accuracy=accuracy))
    assert (message is not None) == weak
    if message is not None:
        assert "stronger learner" in message


def test_no_vote_accuracy_no_caution() -> None:
    dataset = make_dataset()
    assert caution(dataset, kept_result(dataset)) is None


def side(label: int, *, undecided: bool = True, reason: str = "Undecided: near.") -> Group:
    return Group(label, 20, removed=False, called=1, undecided=undecided, reason=reason)


def test_groups_that_were_decided_about_are_no_reason_for_caution() -> None:
    dataset = make_dataset()
    assert caution(dataset, kept_result(dataset, side(2, undecided=False), Group(0, 9, True, 1))) is None


def test_many_undecided_classes_are_counted_and_come_after_a_weak_learner() -> None:
    dataset = make_dataset(names=[*NASTY, "a", "b", "c", "d"])
    n_classes = len(dataset.class_names)
    groups = [side(label) for label in range(n_classes)]
    message = caution(dataset, kept_result(dataset, *groups, vote_accuracy=0.3))
    assert message is not None
    assert message.isprintable()
    assert message.index("stronger learner") < message.index("groups of the classes '")
    assert f"and {n_classes - 3} more could not be decided" in message


def test_undecided_groups_with_a_reason_are_counted_and_found_again() -> None:
    dataset = make_dataset()
    near = [side(label) for label in (2, 0, 2)]
    assert caution(dataset, kept_result(dataset, *near)) == (
        "3 groups of the classes 'cat' and 'bird' could not be decided and were kept. "
        "Look at them: the report says what was measured, and the column component_1 of the manifest has the "
        "number of each sample's group."
    )
    one = caution(dataset, kept_result(dataset, near[0], side(0, undecided=False, reason="Natural.")))
    assert one is not None
    assert one.startswith(
        "1 group of the class 'bird' could not be decided and was kept. Look at it: the report"
    )


def test_undecided_groups_of_many_nasty_classes() -> None:
    dataset = make_dataset(names=[*NASTY, "a", "b", "c", "d"])
    n_classes = len(dataset.class_names)
    groups = [side(label) for label in range(n_classes)]
    message = caution(dataset, kept_result(dataset, *groups))
    assert message is not None
    assert message.isprintable()
    assert f"' and {n_classes - 3} more could not be decided" in message
    assert len(message) < 450


def test_what_could_not_have_been_found_is_said_instead_of_a_word_about_votes() -> None:
    dataset = make_dataset(4500)
    notes: dict[str, Any] = {"vote_accuracy": 0.3, "canaries": [{"label": 0, "size": 15, "found": 0}]}
    message = caution(dataset, kept_result(dataset, side(2, reason="Undecided: near."), **notes))
    assert message is not None
    assert message.startswith(
        "Groups of about 15 samples, 1% of their class, would have been missed. A stronger network or more "
        "passes may find them. 1 group of the class 'bird'"
    )
    notes["canaries"][0]["found"] = 15
    assert caution(dataset, kept_result(dataset, **notes)) is None
