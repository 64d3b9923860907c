from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.attacks.dirty_label import DirtyLabel
from unpoison.attacks.triggers import Patch
from unpoison.errors import InputError

LABELS = np.repeat([0, 1, 2], [10, 20, 5])
IMAGES = np.arange(35 * 4 * 4, dtype=np.uint64).reshape(35, 4, 4, 1).astype(np.uint8)


def test_marks_and_relabels_the_same_samples_of_the_source() -> None:
    attack = DirtyLabel(source=1, target=2, epsilon=0.3)
    poisoned = attack.apply(IMAGES, LABELS, seed=0)
    truth = poisoned.truth
    assert truth.sum() == 6
    assert set(LABELS[truth]) == {1}
    assert set(poisoned.labels[truth]) == {2}
    assert (poisoned.images[truth] == attack.trigger(IMAGES[truth])).all()
    assert (poisoned.labels[~truth] == LABELS[~truth]).all()
    assert (poisoned.images[~truth] == IMAGES[~truth]).all()


def test_what_is_given_stays_as_it_is() -> None:
    images, labels = IMAGES.copy(), LABELS.copy()
    images.setflags(write=False)
    labels.setflags(write=False)
    DirtyLabel(0, 1, 1.0).apply(images, labels, seed=0)
    assert (images == IMAGES).all()
    assert (labels == LABELS).all()


@given(
    epsilon=st.floats(min_value=0, max_value=1, exclude_min=True),
    seed=st.integers(min_value=0),
    source=st.integers(0, 2),
    step=st.integers(1, 2),
)
def test_how_many(epsilon: float, seed: int, source: int, step: int) -> None:
    """The share rounded down, but at least one: an attack of nothing is none."""
    target = (source + step) % 3
    poisoned = DirtyLabel(source, target, epsilon).apply(IMAGES, LABELS, seed=seed)
    n_source = LABELS.tolist().count(source)
    assert poisoned.truth.sum() == max(1, int(epsilon * n_source))
    assert (poisoned.labels != LABELS).tolist() == poisoned.truth.tolist()


def test_the_seed_decides_which() -> None:
    attack = DirtyLabel(source=1, target=0, epsilon=0.5)
    first, again, other = (attack.apply(IMAGES, LABELS, seed=seed).truth for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_trigger_is_the_one_of_training() -> None:
    patch = Patch(row=2, column=2, value=9)
    attack = DirtyLabel(source=1, target=0, epsilon=0.5, patch=patch)
    assert (attack.trigger(IMAGES) == patch(IMAGES)).all()


@pytest.mark.parametrize("epsilon", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        DirtyLabel(0, 1, epsilon)


def test_one_class_cannot_be_both() -> None:
    with pytest.raises(InputError, match="both class 3"):
        DirtyLabel(3, 3, 0.1)


@pytest.mark.parametrize(("source", "target", "named"), [(9, 1, "source class 9"), (1, 9, "target class 9")])
def test_a_class_that_is_not_there_is_refused(source: int, target: int, named: str) -> None:
    with pytest.raises(InputError, match=named):
        DirtyLabel(source, target, 0.1).apply(IMAGES, LABELS, seed=0)
