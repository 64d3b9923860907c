from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.attacks.base import NOT_ATTACKED, Samples
from unpoison.attacks.label_noise import LabelNoise
from unpoison.errors import InputError

LABELS = np.repeat([0, 1, 3], [100, 200, 300])
ROWS = np.random.default_rng(0).normal(size=(600, 2))
SAMPLES = Samples(ROWS, LABELS, ("a", "b", "no samples", "d"))


@given(epsilon=st.floats(0, 1, exclude_min=True), seed=st.integers(0))
def test_random_noise_touches_a_share_of_all(epsilon: float, seed: int) -> None:
    noisy, truth = LabelNoise(epsilon).apply(SAMPLES, seed=seed)
    assert truth.planted.sum() == max(1, int(epsilon * 600))
    assert (noisy.labels != LABELS).tolist() == truth.planted.tolist()
    assert (noisy.features == ROWS).all()


def test_random_noise_gives_any_other_class_that_occurs() -> None:
    noisy, _ = LabelNoise(1.0).apply(SAMPLES, seed=0)
    for label, others in ((0, (1, 3)), (1, (0, 3)), (3, (0, 1))):
        counts = np.bincount(noisy.labels[label == LABELS], minlength=4)
        assert counts[label] == counts[2] == 0
        assert min(counts[list(others)]) > 0.35 * counts.sum()


@pytest.mark.parametrize("seed", range(20))
def test_class_noise_sends_each_class_to_one_other(seed: int) -> None:
    noisy, truth = LabelNoise(0.25, "class").apply(SAMPLES, seed=seed)
    assert np.bincount(LABELS[truth.planted]).tolist() == [25, 50, 0, 75]
    called = {label: set(noisy.labels[truth.planted & (label == LABELS)].tolist()) for label in (0, 1, 3)}
    assert all(len(names) == 1 for names in called.values())
    assert all(label not in names for label, names in called.items())
    assert set.union(*called.values()) == {0, 1, 3}, "every class is somebody's wrong name"


def test_the_derangement_depends_on_the_seed() -> None:
    noisy = [LabelNoise(1.0, "class").apply(SAMPLES, seed=seed)[0].labels for seed in range(20)]
    found = {tuple(labels[[0, 100, 300]].tolist()) for labels in noisy}
    assert found == {(1, 3, 0), (3, 0, 1)}


def test_given_pairs() -> None:
    noisy, truth = LabelNoise(0.5, "class", pairs=((1, 0), (3, 0))).apply(SAMPLES, seed=0)
    assert np.bincount(LABELS[truth.planted]).tolist() == [0, 100, 0, 150]
    assert set(noisy.labels[truth.planted].tolist()) == {0}


def test_there_is_no_trigger_and_nobody_is_attacked() -> None:
    attack = LabelNoise(0.1)
    shown = attack.trigger(ROWS)
    assert shown is not ROWS
    assert (shown == ROWS).all()
    assert attack.goal(LABELS).tolist() == [NOT_ATTACKED] * 600


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"kind": "other"}, "one of random, class. Got 'other'"),
        ({"kind": "class", "pairs": ()}, "pairs is empty"),
        ({"kind": "class", "pairs": ((1, 1),)}, "class 1 is paired with itself"),
        ({"kind": "class", "pairs": ((1, 0), (1, 3))}, "in pairs twice"),
        ({"pairs": ((1, 0),)}, "for the kind 'class'. Got kind 'random'"),
        ({"epsilon": 1.2}, "epsilon .* Got 1.2"),
    ],
)
def test_bad_options(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        LabelNoise(**{"epsilon": 0.1, **given})


def test_bad_data() -> None:
    with pytest.raises(InputError, match="paired class 2 does not occur"):
        LabelNoise(0.1, "class", pairs=((1, 2),)).apply(SAMPLES, seed=0)
    with pytest.raises(InputError, match=r"at least two classes with samples. Got 1"):
        LabelNoise(0.1).apply(Samples(ROWS[:5], LABELS[:5], ("a", "b")), seed=0)
    with pytest.raises(InputError, match="not one sample anywhere"):
        LabelNoise(0.001, "class").apply(SAMPLES, seed=0)
