from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.attacks.base import NOT_ATTACKED, Samples
from unpoison.attacks.labels import AllToAll, AllToOne, OneToOne, Relabelling, share_of_each
from unpoison.errors import InputError

SIZES = [10, 20, 5, 40]
LABELS = np.repeat([0, 1, 2, 3], SIZES)
SAMPLES = Samples.numbered(np.zeros((75, 1)), LABELS)
CLASSES = np.arange(4)


def picked(relabelling: Relabelling, epsilon: float, seed: int = 0) -> list[int]:
    """How many of each class."""
    relabelling.check(SAMPLES)
    chosen = relabelling.pick(SAMPLES, epsilon, np.random.default_rng(seed))
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    return np.bincount(LABELS[chosen], minlength=4).tolist()


def test_goals() -> None:
    no = NOT_ATTACKED
    assert OneToOne(1, 3).goal(CLASSES).tolist() == [no, 3, no, no]
    assert AllToOne(2).goal(CLASSES).tolist() == [2, 2, no, 2]
    assert AllToAll(4).goal(CLASSES).tolist() == [1, 2, 3, 0]
    assert AllToAll(4, 3).goal(CLASSES).tolist() == [3, 0, 1, 2]


@given(epsilon=st.floats(0, 1, exclude_min=True), seed=st.integers(0, 2**32))
def test_how_many(epsilon: float, seed: int) -> None:
    assert picked(OneToOne(1, 3), epsilon, seed) == [0, max(1, int(epsilon * 20)), 0, 0]
    if int(epsilon * 40):
        assert picked(AllToAll(4), epsilon, seed) == [int(epsilon * size) for size in SIZES]
    if int(epsilon / 3 * 40):
        expected = [int(epsilon / 3 * size) for size in SIZES]
        assert picked(AllToOne(2), epsilon, seed) == [*expected[:2], 0, expected[3]]


def test_all_to_one_takes_as_much_as_one_to_one() -> None:
    """With classes of one size: epsilon times the size of a class, spread over the others."""
    samples = Samples.numbered(np.zeros((1000, 1)), np.arange(1000) % 10)
    chosen = AllToOne(4).pick(samples, 0.27, np.random.default_rng(0))
    assert len(chosen) == 27
    assert np.bincount(samples.labels[chosen]).tolist() == [3, 3, 3, 3, 0, 3, 3, 3, 3, 3]


def test_too_little_for_a_single_sample() -> None:
    with pytest.raises(InputError, match=r"a share of 0.02 of each class is not one sample anywhere"):
        picked(AllToAll(4), 0.02)


def test_a_class_without_samples_gives_none() -> None:
    samples = Samples(np.zeros((4, 1)), np.array([0, 0, 2, 2]), ("a", "b", "c"))
    assert share_of_each(samples, range(3), 0.5, np.random.default_rng(0)).shape == (2,)


@pytest.mark.parametrize(
    ("relabelling", "named"),
    [
        (OneToOne(4, 1), "source class 4 does not exist; the classes are 0 to 3"),
        (OneToOne(1, -1), "target class -1 does not exist"),
        (AllToOne(9), "target class 9 does not exist"),
        (AllToAll(3), "for 3 classes, the data have 4"),
    ],
)
def test_classes_that_are_not_there(relabelling: Relabelling, named: str) -> None:
    with pytest.raises(InputError, match=named):
        relabelling.check(SAMPLES)


def test_a_class_that_has_a_name_but_no_samples() -> None:
    samples = Samples(np.zeros((2, 1)), np.array([0, 0]), ("a", "b"))
    with pytest.raises(InputError, match="target class 1 does not occur"):
        OneToOne(0, 1).check(samples)
    with pytest.raises(InputError, match="at least two classes"):
        AllToOne(0).check(samples)


def test_no_class_is_called_itself() -> None:
    with pytest.raises(InputError, match="both class 3"):
        OneToOne(3, 3)
    with pytest.raises(InputError, match="Got n_classes 1"):
        AllToAll(1)


@pytest.mark.parametrize("offset", [0, 4, -8])
def test_an_offset_that_changes_nothing(offset: int) -> None:
    with pytest.raises(InputError, match=f"an offset of {offset} gives every one of 4 classes its own label"):
        AllToAll(4, offset)
