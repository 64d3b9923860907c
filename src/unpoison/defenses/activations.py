"""What the defenses that look inside a model share: train it on everything, judge class by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.core.learner import LearnerFactory, check_finite, method_of
from unpoison.core.sampling import class_members
from unpoison.core.tasks import Workshop, cost_array
from unpoison.defenses.base import Decision
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, FloatArray, LabelArray


class ClassVerdict(NamedTuple):
    """About the members of one class, in the order of their activations."""

    removed: BoolArray
    suspicion: FloatArray
    groups: NDArray[np.int64]
    """The group of each member, from 0 on."""


class ClassRule(Protocol):
    """How one class is judged by its activations; picklable."""

    @property
    def layer(self) -> str | None:
        """The module whose input is looked at; None leaves it to the learner."""
        ...

    @property
    def epochs(self) -> int:
        """How long the model is trained."""
        ...

    @property
    def min_steps(self) -> int:
        """The fewest steps it is trained."""
        ...

    def judge_class(self, activations: FloatArray, *, seeds: Seeds) -> ClassVerdict:
        """The verdict on two samples or more, one row each."""
        ...


@dataclass(frozen=True)
class ActivationTask:
    """Train one model on all samples, then judge the classes one at a time: activations can be large."""

    rule: ClassRule
    factory: LearnerFactory
    labels: LabelArray
    seeds: Seeds

    def __call__(self) -> Arrays:
        """Masks, suspicion and groups of all samples; the model and its activations are dropped."""
        n, rule = len(self.labels), self.rule
        removed, suspicion = np.zeros(n, dtype=np.bool_), np.zeros(n)
        groups = np.full(n, -1, dtype=np.int64)
        learner = self.factory(self.seeds.integer("learner"))
        ask = method_of(
            learner,
            "activations",
            needed="This defense looks at activations",
            instead="a network, an MLP or a linear model",
        )
        if rule.layer is not None:
            ask(np.arange(1), layer=rule.layer)  # a wrong name should not cost a training
        learner.fit(np.arange(n), epochs=rule.epochs, min_steps=rule.min_steps, final=True)
        for members in class_members(self.labels):
            if len(members) < 2:
                continue  # nothing to compare it with
            activations = ask(members, layer=rule.layer)
            check_finite(activations, "The activations of the trained model are")
            label = int(self.labels[members[0]])
            verdict = rule.judge_class(activations, seeds=self.seeds.within("class", label))
            removed[members], suspicion[members] = verdict.removed, verdict.suspicion
            groups[members] = verdict.groups
        return {
            "removed": removed,
            "suspicion": suspicion,
            "groups": groups,
            "cost": cost_array(learner.cost),
        }


def judge_by_activations(
    rule: ClassRule, labels: LabelArray, factory: LearnerFactory, *, seeds: Seeds, workshop: Workshop
) -> Decision:
    """The decision that follows from judging each class by ``rule``.

    A row of components tells classes apart: the groups of the first class come first, and so on.
    """
    workshop.begin("activations", 1)
    done = workshop.run({"activations": ActivationTask(rule, factory, labels, seeds)})["activations"]
    groups = done["groups"].astype(np.int64)
    most = int(groups.max(initial=0)) + 1
    return Decision(
        keep=~done["removed"].astype(np.bool_),
        suspicion=done["suspicion"].astype(np.float64),
        cost=workshop.cost,
        components=np.where(groups >= 0, labels * most + groups, -1)[None],
    )
