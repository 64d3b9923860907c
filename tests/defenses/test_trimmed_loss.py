from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from core.fakes import ScriptedLearner
from unpoison.defenses.trimmed_loss import TrimmedLoss
from unpoison.errors import InputError
from unpoison.learners.sklearn import SklearnFactory

LABELS = np.arange(10) % 2


@dataclass(frozen=True)
class Scripted:
    """The t-th model made gives the t-th row of losses."""

    losses: Any
    made: list[ScriptedLearner] = field(default_factory=list)

    def __call__(self, seed: int) -> ScriptedLearner:
        learner = ScriptedLearner(self.losses[len(self.made) : len(self.made) + 1])
        self.made.append(learner)
        return learner


def test_each_model_is_fresh_and_trained_on_what_the_last_one_explains_best() -> None:
    up, down = np.arange(10.0), np.arange(10.0)[::-1]
    factory = Scripted([up, down, up])
    decision = TrimmedLoss(0.8, rounds=3, min_steps=5).judge(LABELS, factory, seed=0)
    fits = [(fit.indices, fit.epochs, fit.min_steps) for learner in factory.made for fit in learner.fits]
    assert fits == [
        (list(range(10)), 80, 5),
        (list(range(8)), 40, 5),
        (list(range(2, 10)), 40, 5),  # also of those that were out before
    ]
    assert decision.keep.tolist() == [True] * 8 + [False] * 2


def test_suspicion_follows_the_last_losses() -> None:
    last = np.array([3.0, 0.5, 9.0, 0.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0])
    decision = TrimmedLoss(0.9, rounds=1).judge(LABELS, Scripted([last]), seed=0)
    assert np.flatnonzero(~decision.keep).tolist() == [2]
    assert np.argsort(decision.suspicion).tolist() == np.argsort(last).tolist()
    assert decision.suspicion[3] == 0.0
    assert decision.suspicion[9] == 0.5


def test_losses_that_are_not_finite_go_first() -> None:
    losses = np.arange(10.0)
    losses[[0, 4]] = np.nan, np.inf
    decision = TrimmedLoss(0.8, rounds=1).judge(LABELS, Scripted([losses]), seed=0)
    assert np.flatnonzero(~decision.keep).tolist() == [0, 4]
    assert decision.suspicion[[0, 4]].tolist() == [1.0, 1.0]
    with pytest.raises(InputError, match="NaN or infinite"):
        TrimmedLoss().judge(LABELS, Scripted([np.full(10, np.nan)]), seed=0)


def test_ties_are_drawn_by_the_seed() -> None:
    keeps = [
        TrimmedLoss(0.5, rounds=1).judge(LABELS, Scripted([np.zeros(10)]), seed=s).keep for s in (0, 0, 1)
    ]
    assert [keep.sum() for keep in keeps] == [5, 5, 5]
    assert np.array_equal(keeps[0], keeps[1])
    assert not np.array_equal(keeps[0], keeps[2])


@pytest.mark.parametrize(("alpha", "kept"), [(0.98, 9), (0.9, 9), (0.3, 3), (0.01, 1), (1.0, 10)])
def test_the_share_is_rounded_down(alpha: float, kept: int) -> None:
    decision = TrimmedLoss(alpha, rounds=1).judge(LABELS, Scripted([np.arange(10.0)]), seed=0)
    assert decision.keep.sum() == kept


def test_flipped_labels_are_found_on_easy_data() -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 2
    rows = rng.normal(size=(200, 5)) + 4.0 * truth[:, None]
    flipped = np.zeros(200, dtype=bool)
    flipped[rng.choice(200, size=10, replace=False)] = True
    labels = np.where(flipped, 1 - truth, truth)
    factory = SklearnFactory(LogisticRegression(), rows, labels, 2)
    decision = TrimmedLoss(0.95, first_epochs=2, later_epochs=1, rounds=3).judge(labels, factory, seed=0)
    assert np.array_equal(~decision.keep, flipped)
    assert decision.suspicion[flipped].min() > decision.suspicion[~flipped].max()
    assert decision.cost.scored == 600


def test_alpha_of_the_appendix() -> None:
    assert [TrimmedLoss.for_epsilon(epsilon).alpha for epsilon in (0.05, 0.1, 0.2)] == [0.98, 0.96, 0.92]
    defense = TrimmedLoss.for_epsilon(0.1, first_epochs=3, later_epochs=2, rounds=1, min_steps=4)
    assert defense == TrimmedLoss(0.96, first_epochs=3, later_epochs=2, rounds=1, min_steps=4)
    with pytest.raises(InputError, match="poisoned share"):
        TrimmedLoss.for_epsilon(5)


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.0},
        {"alpha": 98},
        {"first_epochs": 0},
        {"later_epochs": 0},
        {"rounds": 0},
        {"min_steps": -1},
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="parameter of TrimmedLoss must be"):
        TrimmedLoss(**settings)
