from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison.core.result import Cost
from unpoison.defenses.base import Decision
from unpoison.defenses.controls import Given, Nothing, RandomFilter
from unpoison.errors import InputError

LABELS = np.arange(50) % 5


def no_model(seed: int) -> Any:
    raise AssertionError("a control needs no model")


def test_nothing_keeps_everything() -> None:
    decision = Nothing().judge(LABELS, no_model, seed=0)
    assert decision.keep.all()
    assert not decision.suspicion.any()
    assert decision.cost == Cost()


@pytest.mark.parametrize("count", [0, 1, 17, 50])
def test_random_removes_as_many_as_asked_and_suspects_them_most(count: int) -> None:
    decision = RandomFilter(count).judge(LABELS, no_model, seed=0)
    assert decision.n_removed == count
    order = np.argsort(decision.suspicion)
    assert not decision.keep[order[50 - count :]].any()


def test_random_follows_from_the_seed() -> None:
    first, again, other = (RandomFilter(20).judge(LABELS, no_model, seed=seed).keep for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_random_removes_everyone_equally_often() -> None:
    removed = sum(~RandomFilter(10).judge(LABELS, no_model, seed=seed).keep for seed in range(300))
    assert removed.sum() == 3000
    assert 30 < removed.min() <= removed.max() < 95  # 60 expected, standard deviation 7


def test_random_of_the_size_of_another_decision() -> None:
    assert RandomFilter.like(Decision(np.arange(9) > 3, np.zeros(9))) == RandomFilter(4)


@pytest.mark.parametrize("count", [-1, 2.5, True])
def test_random_wants_a_count(count: Any) -> None:
    with pytest.raises(InputError, match="'n_removed' parameter of RandomFilter"):
        RandomFilter(count)


def test_random_cannot_remove_more_than_there_is() -> None:
    with pytest.raises(InputError, match="at most the number of samples, 50"):
        RandomFilter(51).judge(LABELS, no_model, seed=0)


def test_given_gives_back_the_mask() -> None:
    keep = LABELS != 3
    decision = Given(keep).judge(LABELS, no_model, seed=0)
    assert np.array_equal(decision.keep, keep)
    assert decision.keep is not keep
    assert decision.suspicion.tolist() == (~keep).astype(float).tolist()


def test_given_wants_a_mask_of_the_right_size() -> None:
    with pytest.raises(InputError, match="for 49 samples, but there are 50"):
        Given(np.ones(49, dtype=bool)).judge(LABELS, no_model, seed=0)
    for wrong in (np.ones(50), np.ones((50, 1), dtype=bool)):
        with pytest.raises(InputError, match="one truth value a sample"):
            Given(wrong)  # type: ignore[arg-type]
