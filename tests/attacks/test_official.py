"""The authors' scenarios, against values drawn by hand from numpy's legacy generator."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison.attacks.base import NOT_ATTACKED, Samples
from unpoison.attacks.official import (
    EPSILONS,
    PAIRS,
    SCENARIO_SEEDS,
    OfficialDirtyLabel,
    official_choice,
    official_mark,
)
from unpoison.attacks.triggers import Mark
from unpoison.errors import InputError

MARKS = {
    (100, (0, 2)): ("pixel", 24, 3, (103, 87, 79)),
    (100, (1, 3)): ("pixel", 10, 30, (180, 98, 53)),
    (100, (3, 5)): ("ell", 2, 14, (34, 241, 240)),
    (100, (7, 4)): ("pixel", 15, 4, (107, 60, 58)),
    (100, (2, 5)): ("pixel", 27, 9, (93, 86, 130)),
    (100, (8, 6)): ("pixel", 4, 1, (141, 245, 211)),
    (100, (9, 2)): ("pixel", 4, 27, (187, 67, 135)),
    (100, (3, 7)): ("pattern", 16, 2, (61, 14, 183)),
    (1000, (0, 2)): ("pixel", 27, 30, (92, 1, 189)),
    (1000, (1, 3)): ("pixel", 25, 13, (40, 105, 92)),
    (1000, (3, 5)): ("pixel", 28, 13, (239, 42, 58)),
    (1000, (7, 4)): ("pattern", 5, 21, (242, 30, 233)),
    (1000, (2, 5)): ("pixel", 18, 30, (156, 158, 244)),
    (1000, (8, 6)): ("pattern", 19, 29, (213, 221, 138)),
    (1000, (9, 2)): ("ell", 14, 29, (69, 204, 11)),
    (1000, (3, 7)): ("pixel", 11, 0, (180, 50, 21)),
    (10000, (0, 2)): ("pixel", 21, 8, (47, 2, 21)),
    (10000, (1, 3)): ("pixel", 9, 29, (145, 70, 200)),
    (10000, (3, 5)): ("pattern", 7, 23, (39, 221, 162)),
    (10000, (7, 4)): ("ell", 11, 19, (76, 14, 15)),
    (10000, (2, 5)): ("pixel", 11, 9, (74, 162, 26)),
    (10000, (8, 6)): ("pixel", 3, 13, (121, 158, 6)),
    (10000, (9, 2)): ("pattern", 1, 29, (239, 186, 219)),
    (10000, (3, 7)): ("ell", 24, 22, (4, 221, 78)),
}
LABELS = np.arange(400) % 10
IMAGES = np.random.default_rng(0).integers(0, 256, (400, 32, 32, 3), dtype=np.uint8)


def test_every_scenario_is_stated() -> None:
    assert set(MARKS) == {(seed, pair) for seed in SCENARIO_SEEDS for pair in PAIRS}


@pytest.mark.parametrize(("seed", "pair"), MARKS)
def test_marks(seed: int, pair: tuple[int, int]) -> None:
    assert official_mark(seed, pair) == Mark(*MARKS[seed, pair])


def test_the_global_generator_is_left_alone() -> None:
    state = np.random.get_state()[1].copy()  # type: ignore[index,union-attr]
    official_mark(100, (3, 7))
    official_choice(LABELS, 100, (3, 7), 0.1)
    assert np.array_equal(state, np.random.get_state()[1])  # type: ignore[index]


def test_which_images() -> None:
    """np.random.seed(1000 + 10 + 13); np.random.choice(np.flatnonzero(labels == 1), 4, replace=False)"""
    assert official_choice(LABELS, 1000, (1, 3), 0.1).tolist() == [131, 171, 211, 221]
    assert official_choice(LABELS, 100, (3, 7), 0.2).tolist() == [43, 63, 83, 163, 233, 243, 323, 373]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_how_many(epsilon: float) -> None:
    labels = np.arange(50_000) % 10
    chosen = official_choice(labels, 10000, (9, 2), epsilon)
    assert len(set(chosen.tolist())) == int(epsilon * 5000)
    assert (labels[chosen] == 9).all()


def test_as_an_attack() -> None:
    attack = OfficialDirtyLabel(1000, (1, 3), 0.1)
    poisoned, truth = attack.apply(Samples.numbered(IMAGES, LABELS), seed=5)
    assert np.flatnonzero(truth.planted).tolist() == [131, 171, 211, 221]
    assert poisoned.labels[truth.planted].tolist() == [3, 3, 3, 3]
    changed = (poisoned.features != IMAGES).any(axis=3)
    assert set(map(tuple, np.argwhere(changed)[:, 1:].tolist())) == {(25, 13)}
    assert (poisoned.features[truth.planted][:, 25, 13] == (40, 105, 92)).all()
    assert (attack.trigger(IMAGES)[:, 25, 13] == (40, 105, 92)).all()
    assert attack.goal(np.array([1, 3, 0])).tolist() == [3, NOT_ATTACKED, NOT_ATTACKED]


def test_refusals() -> None:
    with pytest.raises(InputError, match=r"no scenario for the pair \(1, 2\)"):
        OfficialDirtyLabel(100, (1, 2), 0.1)
    with pytest.raises(InputError, match=r"epsilon .* Got 2"):
        OfficialDirtyLabel(100, (1, 3), 2)
    with pytest.raises(InputError, match="Got -1"):
        OfficialDirtyLabel(-1, (1, 3), 0.1)
    with pytest.raises(InputError, match=r"0.01 of the 40 samples of class 1 is not one sample"):
        official_choice(LABELS, 100, (1, 3), 0.01)
    with pytest.raises(InputError, match="does not fit into images of 8 by 8"):
        OfficialDirtyLabel(100, (1, 3), 0.1).trigger(IMAGES[:, :8, :8])
