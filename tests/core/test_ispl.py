from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from unpoison.core.config import IsplSettings
from unpoison.core.ispl import find_component
from unpoison.seeds import Seeds
from unpoison.types import IndexArray

from .fakes import ScriptedLearner

NAN = float("nan")
PLAIN = IsplSettings(rounds=2, coverage=1.0, alpha=1.0, momentum=0.0, class_floor=0.0, beta_from="fits")
"""p = 1/2 in the first round, so beta = 1, 1/2, 1/2, 1/2; trained on all of the current set."""


def run(
    learner: ScriptedLearner,
    labels: Any,
    *,
    settings: IsplSettings = PLAIN,
    active: IndexArray | None = None,
    round_number: int = 0,
    seed: int = 0,
) -> list[int]:
    labels = np.asarray(labels)
    active = np.arange(len(labels)) if active is None else active
    found = find_component(
        learner, active, labels, settings=settings, round_number=round_number, seeds=Seeds(seed)
    )
    return found.tolist()


def test_each_iteration_trains_on_what_the_last_one_chose() -> None:
    learner = ScriptedLearner(
        losses=[
            [9, 9, 9, 9, 9, 9, 9, 9],
            [1, 2, 3, 4, 5, 6, 7, 8],
            [8, 7, 6, 5, 4, 3, 2, 1],
            [0, 9, 0, 9, 0, 9, 0, 9],
        ]
    )
    assert run(learner, [0] * 8) == [0, 2, 4, 6]
    assert [fit.indices for fit in learner.fits] == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [0, 1, 2, 3, 4, 5, 6, 7],
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]


@pytest.mark.parametrize("annealing", [False, True])
def test_iterations_end_their_learning_rate_if_asked_to(annealing: bool) -> None:
    learner = ScriptedLearner()
    run(learner, [0] * 8, settings=replace(PLAIN, annealing=annealing))
    assert [fit.final for fit in learner.fits] == [annealing] * 4


def test_smoothed_losses_decide() -> None:
    """With eta = 1/2, from 0: L2 = R1/4 + R2/2, L3 = R1/8 + R2/4 + R3/2, L4 = R1/16 + R2/8 + R3/4 + R4/2."""
    learner = ScriptedLearner(losses=[[8, 0, 0, 6], [4, 4, 0, 0], [1, 0, 4, 4], [1, 1.5, 0, 0]])
    # L2: 4, 2, 0, 1.5; L3: 2.5, 1, 2, 2.75 (R3 alone: 0 and 1); L4: 1.75, 1.25, 1, 1.375 (R4 alone: 2, 3)
    assert run(learner, [0] * 4, settings=replace(PLAIN, momentum=0.5)) == [1, 2]
    assert [fit.indices for fit in learner.fits[2:]] == [[2, 3], [1, 2]]


def test_losses_are_asked_of_all_active_samples_at_every_iteration() -> None:
    """A sample that fell out comes back when its loss falls."""
    learner = ScriptedLearner(losses=[[0, 0, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9], [9, 9, 0, 0]])
    assert run(learner, [0] * 4) == [2, 3]


def test_only_active_samples_take_part() -> None:
    learner = ScriptedLearner(losses=[[0, 5, 0, 1, 0, 4, 0, 2]])
    found = run(learner, [0] * 8, active=np.array([1, 3, 5, 7]), settings=replace(PLAIN, rounds=4))
    # a component is a quarter of all eight samples: two of the four that are active
    assert found == [3, 7]
    assert all(set(fit.indices) <= {1, 3, 5, 7} for fit in learner.fits)


@pytest.mark.parametrize("round_number", [0, 1])
def test_eight_epochs_then_four_and_twice_the_steps_first(round_number: int) -> None:
    """Every round has its warm-up."""
    learner = ScriptedLearner(losses=[[0.0] * 16])
    run(learner, [0] * 16, settings=IsplSettings(min_steps=30), round_number=round_number)
    assert [fit.epochs for fit in learner.fits] == [8, 4, 4, 4, 4]
    assert [fit.min_steps for fit in learner.fits] == [60, 30, 30, 30, 30]


@pytest.mark.parametrize(
    ("round_number", "n_active", "n_fits"), [(0, 100, 5), (4, 52, 5), (5, 40, 5), (6, 28, 4), (7, 16, 3)]
)
def test_the_number_of_iterations_of_each_paper_round(round_number: int, n_active: int, n_fits: int) -> None:
    learner = ScriptedLearner(losses=[np.arange(100.0).tolist()])
    settings = IsplSettings(class_floor=0.0)
    found = run(learner, [0] * 100, settings=settings, active=np.arange(n_active), round_number=round_number)
    assert len(learner.fits) == n_fits
    assert found == list(range(12))


def test_sample_draws_alpha_of_each_class_of_the_current_set() -> None:
    labels = np.repeat([0, 1], 16)
    losses = np.concatenate([np.arange(16.0), 100 + np.arange(16.0)])
    learner = ScriptedLearner(losses=[losses.tolist()])
    run(learner, labels, settings=replace(PLAIN, alpha=0.25))
    first, second, third, fourth = (np.array(fit.indices) for fit in learner.fits)
    assert np.bincount(labels[first]).tolist() == [4, 4]
    # beta = 1: drawn anew from everything; then beta = 1/2: class 0 only
    assert np.bincount(labels[second]).tolist() == [4, 4]
    assert second.tolist() != first.tolist()
    for drawn in (third, fourth):
        assert len(drawn) == 4
        assert (labels[drawn] == 0).all()
    assert third.tolist() != fourth.tolist()


def test_the_papers_beta_starts_at_three_times_p() -> None:
    """p = 1/2: 3p and 2p are all there is, then p. The authors' code starts with 2p."""
    learner = ScriptedLearner(losses=[np.arange(400.0).tolist()])
    run(learner, [0] * 400, settings=replace(PLAIN, beta_from="3p"))
    assert [len(fit.indices) for fit in learner.fits] == [400, 400, 400, 200]


def test_half_then_all_in_the_first_round() -> None:
    labels = np.zeros(400, dtype=int)
    settings = replace(PLAIN, first_training="half-then-all", alpha=0.1)
    learner = ScriptedLearner(losses=[np.arange(400.0).tolist()])
    run(learner, labels, settings=settings, round_number=0)
    sizes = [len(fit.indices) for fit in learner.fits]
    assert 150 < sizes[0] < 250
    assert sizes[1:] == [40, 20, 20]


def test_half_then_all_in_later_rounds_starts_with_everything() -> None:
    settings = replace(PLAIN, first_training="half-then-all", alpha=0.1)
    learner = ScriptedLearner(losses=[np.arange(400.0).tolist()])
    run(learner, [0] * 400, settings=settings, round_number=1)
    assert [len(fit.indices) for fit in learner.fits] == [400, 40, 20, 20]


def test_binomial_sampling_ignores_the_classes() -> None:
    labels = np.arange(400) // 4
    settings = replace(PLAIN, sampling="binomial", alpha=0.1)
    learner = ScriptedLearner(losses=[np.arange(400.0).tolist()])
    run(learner, labels, settings=settings)
    # per class it would be one of each of the 100 classes
    assert 15 < len(learner.fits[0].indices) < 70


@pytest.mark.parametrize(("floor_of", "n_of_other_class"), [("target", 2), ("current", 6)])
def test_the_class_floor_is_of_p_or_of_beta(floor_of: Any, n_of_other_class: int) -> None:
    """16 hopeless samples, floor 1/2: of p = 1/4 that is 1/8, two; of beta_0 = 3/4 it is 3/8, six."""
    labels = np.array([0] * 48 + [1] * 16)
    losses = [*np.linspace(0, 1, 48), *np.linspace(50, 60, 16)]
    settings = replace(PLAIN, rounds=4, class_floor=0.5, class_floor_of=floor_of)
    learner = ScriptedLearner(losses=[losses])
    found = run(learner, labels, settings=settings)
    after_first = np.array(learner.fits[1].indices)
    assert after_first.tolist() == [*range(48), *range(48, 48 + n_of_other_class)]
    # the last beta is p, where both agree
    assert found == [*range(16), 48, 49]


def test_p_reaches_one() -> None:
    learner = ScriptedLearner(losses=[np.arange(10.0).tolist()])
    assert run(learner, [0] * 10, active=np.arange(3)) == [0, 1, 2]
    assert len(learner.fits) == 3


def test_more_rounds_than_samples() -> None:
    learner = ScriptedLearner(losses=[[3.0, 1.0, 2.0]])
    assert run(learner, [0, 0, 0], settings=replace(PLAIN, rounds=8)) == [1]


def test_a_learner_whose_every_loss_is_nan_finds_nothing_and_stops() -> None:
    learner = ScriptedLearner(losses=[[NAN] * 6])
    assert run(learner, [0, 0, 0, 1, 1, 1]) == []
    assert len(learner.fits) == 1


def test_samples_with_nan_losses_stay_out() -> None:
    learner = ScriptedLearner(losses=[[NAN, 1, 2, 3, NAN, 0]])
    assert run(learner, [0] * 6) == [1, 2, 5]
    learner = ScriptedLearner(losses=[[NAN, 1, 2, 3, NAN, 0]])
    assert run(learner, [0] * 6, settings=replace(PLAIN, rounds=1)) == [1, 2, 3, 5]


def test_ties_and_samples_follow_the_seed() -> None:
    settings = replace(PLAIN, alpha=0.5)
    runs = []
    for seed in (1, 1, 2):
        learner = ScriptedLearner(losses=[[0.0] * 40])
        runs.append((run(learner, [0] * 40, settings=settings, seed=seed), learner.fits))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0]
    assert runs[0][1][0].indices != runs[2][1][0].indices
