"""Confident learning (Northcutt, Jiang and Chuang, 2021) by cleanlab: what practitioners reach for.

It looks for wrong labels, not for planted data: samples that cross-validated models call something else. What
is planted has a wrong label too, but one that a model learns from the rest of its kind.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from unpoison.core.config import check_counts
from unpoison.core.learner import LearnerFactory, method_of
from unpoison.core.sampling import dealt
from unpoison.core.tasks import Runner, Task, Workshop, cost_array, run_serially
from unpoison.defenses.base import Decision
from unpoison.errors import MissingExtraError
from unpoison.events import Listener, ignore
from unpoison.seeds import Seeds
from unpoison.types import Arrays, FloatArray, IndexArray, LabelArray


@dataclass(frozen=True)
class ProbabilityTask:
    """Train a model on some samples and keep the probabilities that it gives to others."""

    factory: LearnerFactory
    trained_on: IndexArray
    asked: IndexArray
    epochs: int
    min_steps: int
    seed: int

    def __call__(self) -> Arrays:
        """``probabilities``: a row for each of those asked for."""
        learner = self.factory(self.seed)
        probabilities = method_of(
            learner,
            "probabilities",
            needed="Confident learning needs the probabilities of all classes",
            instead="another defense, or another learner",
        )
        learner.fit(self.trained_on, epochs=self.epochs, min_steps=self.min_steps, final=True)
        rows = probabilities(self.asked).astype(np.float32)
        return {"probabilities": rows, "cost": cost_array(learner.cost)}


@dataclass(frozen=True)
class ConfidentLearning:
    """Removes what cleanlab's ``find_label_issues`` finds, with its defaults, on cross-validated models."""

    name: ClassVar[str] = "confident-learning"

    folds: int = 5
    _: KW_ONLY
    epochs: int = 100
    """Of each model."""
    min_steps: int = 0

    def __post_init__(self) -> None:
        check_counts(self, "folds", least=2)
        check_counts(self, "epochs", least=1)
        check_counts(self, "min_steps", least=0)

    def judge(
        self,
        labels: LabelArray,
        factory: LearnerFactory,
        *,
        seed: int,
        runner: Runner = run_serially,
        listener: Listener = ignore,
    ) -> Decision:
        """A model for each fold, on the others; then cleanlab."""
        find_issues, quality_of = _cleanlab()
        seeds = Seeds(seed).within(self.name)
        fold = dealt(labels, self.folds, rng=seeds.stream("folds"))
        workshop = Workshop(runner=runner, listener=listener)
        workshop.begin("folds", self.folds)
        tasks: dict[str, Task] = {
            f"fold-{f}": ProbabilityTask(
                factory,
                np.flatnonzero(fold != f),
                np.flatnonzero(fold == f),
                self.epochs,
                self.min_steps,
                seeds.integer("learner", f),
            )
            for f in range(self.folds)
        }
        found = [rows["probabilities"] for rows in workshop.run(tasks).values()]
        probabilities = np.zeros((len(labels), found[0].shape[1]))
        for f, rows in enumerate(found):
            probabilities[fold == f] = rows
        probabilities = _proper(probabilities)
        with warnings.catch_warnings():  # that it cannot say much of a class with a few samples is expected
            warnings.filterwarnings("ignore", message="May not flag all label issues in class")
            flagged = find_issues(labels, probabilities, n_jobs=1)
        suspicion = 1.0 - np.asarray(quality_of(labels, probabilities), dtype=np.float64)
        return Decision(~np.asarray(flagged, dtype=np.bool_), np.clip(suspicion, 0.0, 1.0), workshop.cost)


def _proper(probabilities: FloatArray) -> FloatArray:
    """Rows that add up to 1; a model that gives no probabilities at all leaves every class possible."""
    total = probabilities.sum(axis=1, keepdims=True)
    even = np.full_like(probabilities, 1.0 / probabilities.shape[1])
    return np.where(total > 0.0, probabilities / np.where(total > 0.0, total, 1.0), even)


def _cleanlab() -> tuple[Any, Any]:
    try:
        filtering, ranking = import_module("cleanlab.filter"), import_module("cleanlab.rank")
    except ImportError as error:
        raise MissingExtraError("cleanlab", "cleanlab", "the defense confident-learning") from error
    return filtering.find_label_issues, ranking.get_label_quality_scores
