from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest

from unpoison.core.config import IsplSettings
from unpoison.core.ispl import find_component
from unpoison.evaluation.theory.descent import (
    EXACT,
    FamilyLearner,
    check_descent,
    descend,
    objective,
    shipped_betas,
    swap_would_help,
)
from unpoison.evaluation.theory.exact import Finding
from unpoison.evaluation.theory.learners import stump_losses
from unpoison.seeds import Seeds
from unpoison.types import FloatArray, LabelArray

RUNS = 60
SLOWLY = (1.0, 0.9, 0.8, 0.7, 0.6)
WITHOUT_A_PREMISE = {
    "alpha below 1": (replace(EXACT, alpha=0.5), 0),
    "the per-class floor": (replace(EXACT, class_floor=0.5), 0),
    "not the minimiser but the second best": (EXACT, 1),
}


def family(seed: int, *, zero_one: bool) -> tuple[FloatArray, LabelArray]:
    """Any losses: mistakes, or numbers without a bound but multiples of 1/16."""
    rng = Seeds(seed).stream("family")
    shape = int(rng.integers(2, 30)), int(rng.integers(6, 40))
    losses = (rng.random(shape) < 0.6).astype(float) if zero_one else rng.integers(0, 200, size=shape) / 16
    return losses, rng.integers(0, 3, size=shape[1])


def over(*, zero_one: bool, settings: IsplSettings = EXACT, place: int = 0) -> Finding:
    runs = []
    for seed in range(RUNS):
        losses, labels = family(seed, zero_one=zero_one)
        run = check_descent(losses, labels, SLOWLY, settings=settings, place=place, seeds=Seeds(seed))
        runs.append(run)
    return reduce(add, runs)


@pytest.mark.parametrize("zero_one", [True, False], ids=["mistakes", "any losses"])
def test_the_objective_never_rises_and_settles(zero_one: bool) -> None:
    assert over(zero_one=zero_one) == Finding(RUNS, 0)


@pytest.mark.parametrize("zero_one", [True, False], ids=["mistakes", "any losses"])
def test_momentum_does_no_harm(zero_one: bool) -> None:
    """The proposition asks for eta 0, which it does not need (docs/theory.md)."""
    assert over(zero_one=zero_one, settings=replace(EXACT, momentum=0.5)) == Finding(RUNS, 0)


@pytest.mark.parametrize("name", list(WITHOUT_A_PREMISE))
def test_without_a_premise_it_rises(name: str) -> None:
    settings, place = WITHOUT_A_PREMISE[name]
    assert over(zero_one=True, settings=settings, place=place).failures > 0


def test_rounding_the_size_down_it_rises() -> None:
    """The paper does not say how beta |S| is rounded. Ten losses of 0, and beta from 0.4 to 0.39."""
    losses = np.zeros(10)
    assert objective(losses, np.arange(4), beta=0.4) == 0.0
    assert objective(losses, np.arange(3), beta=0.39) == pytest.approx(0.9)
    assert objective(losses, np.arange(4), beta=0.39) == 0.0


@pytest.mark.parametrize(
    "settings",
    [
        EXACT,
        *(settings for settings, _ in WITHOUT_A_PREMISE.values()),
        replace(EXACT, rounds=2, momentum=0.9),
    ],
    ids=["exact", *WITHOUT_A_PREMISE, "momentum"],
)
def test_it_is_the_shipped_algorithm(settings: IsplSettings) -> None:
    for seed in range(10):
        losses, labels = family(seed, zero_one=False)
        betas = shipped_betas(len(labels), settings)
        ours = descend(FamilyLearner(losses), labels, betas, settings=settings, seeds=Seeds(seed))
        shipped = find_component(
            FamilyLearner(losses),
            np.arange(len(labels)),
            labels,
            settings=settings,
            round_number=0,
            seeds=Seeds(seed),
        )
        assert ours.chosen.tolist() == shipped.tolist()


def test_stumps_on_real_data() -> None:
    from sklearn.datasets import load_breast_cancer

    rows, labels = load_breast_cancer(return_X_y=True)
    losses = stump_losses(rows[:, :2], labels)
    run = descend(FamilyLearner(losses), labels, SLOWLY, seeds=Seeds(0))
    assert run.never_rises
    assert run.objective[0] == losses.sum(axis=1).min()  # at beta 1, all are chosen
    assert 0 < run.objective[0] < 0.2 * len(labels)
    assert run.objective[-1] < run.objective[0]


def test_stump_losses() -> None:
    rows, labels = np.array([[1.0], [2.0], [3.0]]), np.array([1, 1, 0])
    losses = stump_losses(rows, labels)
    assert losses.shape == (6, 3)
    assert losses.min(axis=0).tolist() == [0, 0, 0]
    assert [0, 0, 0] in losses.tolist()  # "1 where at most 2"


def test_where_it_settles_need_not_be_a_local_optimum() -> None:
    """The text promises one. Neither step alone lowers the objective, but swapping one sample does."""
    stuck = 0
    for seed in range(RUNS):
        losses, labels = family(seed, zero_one=False)
        steps = [*SLOWLY, *[SLOWLY[-1]] * 20]
        run = descend(FamilyLearner(losses), labels, steps, seeds=Seeds(seed))
        best = losses[:, run.chosen].sum(axis=1).min()
        assert run.objective[-1] == best
        stuck += swap_would_help(losses, run.chosen)
    assert stuck > 0


def test_a_swap_that_helps() -> None:
    losses = np.array([[2.0, 2.0, 2.0], [0.0, 5.0, 0.0]])
    assert swap_would_help(losses, np.array([0, 1]))
    assert not swap_would_help(losses, np.array([0, 2]))
    assert not swap_would_help(losses, np.array([0, 1, 2]))
