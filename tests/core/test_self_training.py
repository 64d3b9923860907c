from __future__ import annotations

from dataclasses import replace

import numpy as np

from unpoison.core.config import IsplSettings
from unpoison.core.self_training import recover

from .fakes import ScriptedLearner

SETTINGS = IsplSettings(
    self_training_updates=3, self_training_interval=5, self_training_momentum=0.8,
    self_training_returns="updated",
)  # fmt: skip


def recovered(learner: ScriptedLearner, keep: list[int], *, settings: IsplSettings = SETTINGS) -> list[int]:
    labels = np.zeros(4, dtype=np.int64)
    mask = np.isin(np.arange(4), keep)
    return np.flatnonzero(recover(learner, mask, labels, settings=settings)).tolist()


def test_an_agreeing_sample_comes_back_and_a_disagreeing_one_goes() -> None:
    """From one half, one agreement makes 0.6 and one disagreement 0.4."""
    learner = ScriptedLearner(predictions=[[0, 0, 1, 1]])
    assert recovered(learner, [1, 2]) == [0, 1]
    assert [fit.indices for fit in learner.fits] == [[1, 2], [0, 1], [0, 1]]


def test_the_paper_returns_what_the_last_epoch_trained_on() -> None:
    """The authors' code updates that set once more."""
    said = [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0]]
    calm = replace(SETTINGS, self_training_momentum=0.0)
    learner = ScriptedLearner(predictions=said)
    assert recovered(learner, [1, 2], settings=replace(calm, self_training_returns="trained")) == [0, 1]
    assert learner.fits[-1].indices == [0, 1]
    assert recovered(ScriptedLearner(predictions=said), [1, 2], settings=calm) == [2, 3]


def test_it_trains_five_epochs_between_updates() -> None:
    learner = ScriptedLearner(predictions=[[0, 0, 0, 0]])
    recovered(learner, [0], settings=IsplSettings())
    assert [fit.epochs for fit in learner.fits] == [5] * 20


def test_agreement_is_smoothed() -> None:
    """yes, no: 0.6, 0.48: out.  no, yes: 0.4, 0.52: in.  yes, yes, no: 0.6, 0.68, 0.544: in."""
    learner = ScriptedLearner(predictions=[[0, 1, 0, 1], [1, 0, 0, 1], [1, 0, 1, 1]])
    assert recovered(learner, [0, 1, 2, 3]) == [1, 2]
    assert [fit.indices for fit in learner.fits] == [[0, 1, 2, 3], [0, 2], [1, 2]]


def test_without_momentum_only_the_last_prediction_counts() -> None:
    learner = ScriptedLearner(predictions=[[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0]])
    assert recovered(learner, [0], settings=replace(SETTINGS, self_training_momentum=0.0)) == [1, 3]


def test_where_nobody_agrees_the_last_set_stands() -> None:
    learner = ScriptedLearner(predictions=[[1, 1, 1, 1]])
    assert recovered(learner, [1, 3]) == [1, 3]
    assert [fit.indices for fit in learner.fits] == [[1, 3]] * 3


def test_nothing_kept_is_nothing_to_train_on() -> None:
    learner = ScriptedLearner(predictions=[[0, 0, 0, 0]])
    assert recovered(learner, []) == []
    assert learner.fits == []


def test_the_given_mask_is_left_alone() -> None:
    keep = np.array([True, False, False, False])
    recover(ScriptedLearner(predictions=[[1, 0, 0, 0]]), keep, np.zeros(4, dtype=np.int64), settings=SETTINGS)
    assert keep.tolist() == [True, False, False, False]
