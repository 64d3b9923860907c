"""The victim: a network that somebody trains on a set, and what an attack can do to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import NOT_ATTACKED, Attack, Samples
from unpoison.core.learner import LearnerFactory
from unpoison.core.result import Cost
from unpoison.evaluation.metrics import accuracy, attack_success, targeted_misclassification
from unpoison.types import BoolArray, LabelArray

FactoryOver: TypeAlias = Callable[[NDArray[Any], LabelArray], LearnerFactory]
"""From features and labels to a factory of learners over them."""


@dataclass(frozen=True)
class Exam:
    """What a victim is examined on: test samples, and those that the attacker is after, triggered."""

    features: NDArray[Any]
    labels: LabelArray
    attacked: NDArray[np.int64]
    """Positions of the samples that the attack is about."""
    triggered: NDArray[Any]
    goal: LabelArray
    """One a triggered sample: the class that the attacker wants."""

    @classmethod
    def of(cls, attack: Attack, test: Samples) -> Exam:
        """Trigger the test samples that the attack is about."""
        goal = attack.goal(test.labels)
        attacked = np.flatnonzero(goal != NOT_ATTACKED)
        triggered = attack.trigger(test.features[attacked])
        return cls(test.features, test.labels, attacked, triggered, goal[attacked])


@dataclass(frozen=True)
class Effect:
    """How a victim does."""

    accuracy: float
    targeted: float
    """Targeted misclassification rate: right without the trigger, what the attacker wants with it."""
    success: float
    """Attack success rate: what the attacker wants with the trigger, whatever without."""
    cost: Cost


def train_and_examine(
    train: Samples,
    keep: BoolArray,
    exam: Exam,
    factory_over: FactoryOver,
    *,
    epochs: int,
    min_steps: int,
    seed: int,
) -> Effect:
    """Train a victim on the kept samples and examine it."""
    n, n_test = len(train), len(exam.labels)
    features = np.concatenate([train.features, exam.features, exam.triggered])
    labels = np.concatenate([train.labels, exam.labels, exam.labels[exam.attacked]])
    learner = factory_over(features, labels)(seed)
    learner.fit(np.flatnonzero(keep), epochs=epochs, min_steps=min_steps, final=True)
    predicted = learner.assess(np.arange(n, n + n_test)).predictions
    with_trigger = learner.assess(np.arange(n + n_test, len(labels))).predictions
    return Effect(
        accuracy=accuracy(predicted, exam.labels),
        targeted=targeted_misclassification(
            predicted[exam.attacked], with_trigger, labels=exam.labels[exam.attacked], goal=exam.goal
        ),
        success=attack_success(with_trigger, goal=exam.goal),
        cost=learner.cost,
    )
