from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.attacks.adaptive import Adaptive
from unpoison.attacks.base import Samples
from unpoison.attacks.labels import AllToOne, OneToOne
from unpoison.attacks.triggers import Patch
from unpoison.errors import InputError

LABELS = np.arange(300) % 3
IMAGES = np.full((300, 4, 4, 1), 9, np.uint8)
SAMPLES = Samples.numbered(IMAGES, LABELS)
SIZES = {-1: 5, 0: 10, 1: 35, 2: 50}
COMPONENTS = np.zeros(300, dtype=np.int64)
COMPONENTS[LABELS == 1] = np.repeat(list(SIZES), list(SIZES.values()))


@given(epsilon=st.floats(0, 1, exclude_min=True), seed=st.integers(0))
def test_the_same_share_of_the_source_in_every_component(epsilon: float, seed: int) -> None:
    attack = Adaptive(OneToOne(1, 2), epsilon, Patch(), COMPONENTS)
    poisoned, truth = attack.apply(SAMPLES, seed=seed)
    assert set(LABELS[truth.planted].tolist()) == {1}
    for component, size in SIZES.items():
        assert truth.planted[component == COMPONENTS].sum() == max(1, int(epsilon * size))
    assert (poisoned.labels != LABELS).tolist() == truth.planted.tolist()
    assert (poisoned.features[truth.planted] == Patch()(IMAGES[truth.planted])).all()


def test_all_to_one_takes_its_smaller_share_of_each() -> None:
    components = np.repeat([0, 1], 150)
    _, truth = Adaptive(AllToOne(0), 0.4, Patch(), components).apply(SAMPLES, seed=0)
    assert np.bincount(components[truth.planted]).tolist() == [20, 20]
    assert 0 not in LABELS[truth.planted]


def test_a_component_without_the_source_stays_clean() -> None:
    components = LABELS.copy()
    _, truth = Adaptive(OneToOne(1, 2), 0.1, Patch(), components).apply(SAMPLES, seed=0)
    assert np.bincount(components[truth.planted], minlength=3).tolist() == [0, 10, 0]


def test_one_component_does_not_stir_another() -> None:
    """Each has a stream of its own: splitting one leaves the choice in the others."""
    split = COMPONENTS.copy()
    split[(COMPONENTS == 2) & (np.arange(300) > 250)] = 7
    first, second = (
        Adaptive(OneToOne(1, 2), 0.3, Patch(), components).apply(SAMPLES, seed=0)[1].planted
        for components in (COMPONENTS, split)
    )
    untouched = COMPONENTS < 2
    assert (first[untouched] == second[untouched]).all()


def test_equal_settings_are_equal_attacks() -> None:
    first, second = (Adaptive(OneToOne(1, 2), 0.3, Patch(), COMPONENTS.copy()) for _ in range(2))
    assert first == second
    assert first != Adaptive(OneToOne(1, 2), 0.3, Patch(), COMPONENTS + 1)
    assert len(repr(first)) < 200


def test_bad_components() -> None:
    with pytest.raises(InputError, match="for 299 samples, the data have 300"):
        Adaptive(OneToOne(1, 2), 0.3, Patch(), COMPONENTS[1:]).apply(SAMPLES, seed=0)
    with pytest.raises(InputError, match="got float64"):
        Adaptive(OneToOne(1, 2), 0.3, Patch(), COMPONENTS / 2)
    with pytest.raises(InputError, match=r"shape \(300, 1\)"):
        Adaptive(OneToOne(1, 2), 0.3, Patch(), COMPONENTS[:, None])
