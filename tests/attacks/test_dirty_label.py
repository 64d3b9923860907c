from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.attacks.base import NOT_ATTACKED, Samples
from unpoison.attacks.dirty_label import DirtyLabel
from unpoison.attacks.labels import AllToAll, AllToOne, OneToOne
from unpoison.attacks.triggers import Blend, Patch
from unpoison.errors import InputError
from unpoison.seeds import Seeds

LABELS = np.repeat([0, 1, 2, 3], [10, 20, 5, 40])
IMAGES = np.random.default_rng(0).integers(1, 255, (75, 4, 4, 1), dtype=np.uint8)
SAMPLES = Samples.numbered(IMAGES, LABELS)


def test_marks_and_relabels_the_same_samples_of_the_source() -> None:
    attack = DirtyLabel.one_to_one(source=1, target=2, epsilon=0.3, mark=Patch())
    poisoned, truth = attack.apply(SAMPLES, seed=0)
    assert truth.planted.sum() == 6
    assert set(LABELS[truth.planted]) == {1}
    assert set(poisoned.labels[truth.planted]) == {2}
    assert (poisoned.features[truth.planted] == Patch()(IMAGES[truth.planted])).all()
    assert not truth.covers.any()
    assert poisoned.class_names == SAMPLES.class_names


def test_which_ones_follow_from_the_seed_as_they_always_did() -> None:
    """The draw of the demo and of the published figures: changing it changes them."""
    _, truth = DirtyLabel.one_to_one(1, 2, 0.3, Patch()).apply(SAMPLES, seed=7)
    drawn = Seeds(7).stream("dirty-label").choice(np.arange(10, 30), size=6, replace=False)
    assert np.flatnonzero(truth.planted).tolist() == sorted(drawn.tolist())


@given(
    epsilon=st.floats(min_value=0, max_value=1, exclude_min=True),
    seed=st.integers(min_value=0),
    source=st.integers(0, 3),
    step=st.integers(1, 3),
)
def test_how_many(epsilon: float, seed: int, source: int, step: int) -> None:
    """The share rounded down, but at least one: an attack of nothing is none."""
    target = (source + step) % 4
    poisoned, truth = DirtyLabel.one_to_one(source, target, epsilon, Patch()).apply(SAMPLES, seed=seed)
    n_source = LABELS.tolist().count(source)
    assert truth.planted.sum() == max(1, int(epsilon * n_source))
    assert (poisoned.labels != LABELS).tolist() == truth.planted.tolist()


def test_all_to_all_calls_each_class_the_next() -> None:
    poisoned, truth = DirtyLabel(AllToAll(4), 0.2, Patch()).apply(SAMPLES, seed=0)
    assert np.bincount(LABELS[truth.planted]).tolist() == [2, 4, 1, 8]
    assert (poisoned.labels[truth.planted] == (LABELS[truth.planted] + 1) % 4).all()


def test_goals_come_from_the_relabelling() -> None:
    attack = DirtyLabel(AllToOne(2), 0.5, Patch())
    assert attack.goal(np.arange(4)).tolist() == [2, 2, NOT_ATTACKED, 2]


def test_the_trigger_is_the_mark() -> None:
    patch = Patch(row=2, column=2, value=9)
    attack = DirtyLabel.one_to_one(1, 0, 0.5, patch)
    assert (attack.trigger(IMAGES) == patch(IMAGES)).all()


class TestCovers:
    def test_one_to_one_covers_come_from_bystanders(self) -> None:
        """TaCT: neither source nor target."""
        attack = DirtyLabel(OneToOne(1, 2), 0.5, Patch(), cover=0.2)
        poisoned, truth = attack.apply(SAMPLES, seed=0)
        assert np.bincount(LABELS[truth.covers], minlength=4)[[1, 2]].tolist() == [0, 0]
        assert truth.covers.sum() == 10
        assert (poisoned.features[truth.covers] == Patch()(IMAGES[truth.covers])).all()
        assert (poisoned.labels[truth.covers] == LABELS[truth.covers]).all()

    def test_all_to_one_covers_come_from_every_class_and_from_no_planted_sample(self) -> None:
        attack = DirtyLabel(AllToOne(2), 0.9, Patch(), cover=1.0)
        _, truth = attack.apply(SAMPLES, seed=0)
        assert not (truth.covers & truth.planted).any()
        assert (truth.covers | truth.planted).all()

    def test_planted_samples_are_the_same_with_and_without(self) -> None:
        plain, covered = (DirtyLabel(OneToOne(1, 2), 0.5, Patch(), cover=cover) for cover in (0.0, 0.3))
        assert (
            plain.apply(SAMPLES, seed=3)[1].planted.tolist()
            == covered.apply(SAMPLES, seed=3)[1].planted.tolist()
        )

    def test_marks_of_their_own(self) -> None:
        """Adap-Blend: training sees a weaker mark than the test."""
        strong, weak, other = Blend.noise(0, ratio=0.4), Blend.noise(0, ratio=0.1), Patch()
        attack = DirtyLabel(AllToOne(2), 0.6, strong, cover=0.1, train_mark=weak, cover_mark=other)
        poisoned, truth = attack.apply(SAMPLES, seed=0)
        assert (poisoned.features[truth.planted] == weak(IMAGES[truth.planted])).all()
        assert (poisoned.features[truth.covers] == other(IMAGES[truth.covers])).all()
        assert (attack.trigger(IMAGES) == strong(IMAGES)).all()

    def test_covers_look_like_the_planted_unless_told_otherwise(self) -> None:
        weak = Patch(size=1)
        attack = DirtyLabel(OneToOne(1, 2), 0.5, Patch(), cover=0.1, train_mark=weak)
        poisoned, truth = attack.apply(SAMPLES, seed=0)
        assert (poisoned.features[truth.covers] == weak(IMAGES[truth.covers])).all()

    def test_nobody_left(self) -> None:
        with pytest.raises(InputError, match="no image is left"):
            DirtyLabel(AllToAll(4), 1.0, Patch(), cover=0.1).apply(SAMPLES, seed=0)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": 0.0}, r"epsilon is .* in \(0, 1\]. Got 0.0"),
        ({"cover": 1.5}, r"cover is .* in \[0, 1\]. Got 1.5"),
        ({"cover": -0.1}, "Got -0.1"),
        ({"cover_mark": Patch()}, "cover is 0.0; say how many"),
    ],
)
def test_bad_options(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        DirtyLabel(**{"relabelling": OneToOne(0, 1), "epsilon": 0.1, "mark": Patch(), **given})
