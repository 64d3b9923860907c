"""The victim: a network that somebody trains on a set, and what an attack can do to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    attack_number: NDArray[np.int64] | None = None
    """One a triggered sample: whose it is, where several attacks share a training set."""

    @classmethod
    def of(cls, attack: Attack, test: Samples) -> Exam:
        """Trigger the test samples that the attack is about."""
        goal = attack.goal(test.labels)
        attacked = np.flatnonzero(goal != NOT_ATTACKED)
        triggered = attack.trigger(test.features[attacked])
        return cls(test.features, test.labels, attacked, triggered, goal[attacked])

    @classmethod
    def joined(cls, exams: Sequence[Exam]) -> Exam:
        """Of several attacks on one training set; the test samples are those of the first."""
        return cls(
            exams[0].features,
            exams[0].labels,
            np.concatenate([exam.attacked for exam in exams]),
            np.concatenate([exam.triggered for exam in exams]),
            np.concatenate([exam.goal for exam in exams]),
            np.repeat(np.arange(len(exams)), [len(exam.attacked) for exam in exams]),
        )


@dataclass(frozen=True)
class Effect:
    """How a victim does."""

    accuracy: float
    targeted: float
    """Targeted misclassification rate: right without the trigger, what the attacker wants with it."""
    success: float
    """Attack success rate: what the attacker wants with the trigger, whatever without."""
    cost: Cost
    of_each: tuple[tuple[float, float], ...] = ()
    """Both rates of each attack, where several share a training set."""


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

    def rates(asked: BoolArray) -> tuple[float, float]:
        attacked, goal = exam.attacked[asked], exam.goal[asked]
        targeted = targeted_misclassification(
            predicted[attacked], with_trigger[asked], labels=exam.labels[attacked], goal=goal
        )
        return targeted, attack_success(with_trigger[asked], goal=goal)

    targeted, success = rates(np.ones(len(exam.goal), dtype=np.bool_))
    numbers = exam.attack_number
    return Effect(
        accuracy=accuracy(predicted, exam.labels),
        targeted=targeted,
        success=success,
        cost=learner.cost,
        of_each=() if numbers is None else tuple(rates(numbers == k) for k in range(int(numbers.max()) + 1)),
    )
