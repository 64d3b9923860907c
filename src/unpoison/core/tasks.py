"""Independent pieces of work: run those not done yet, keep each result as it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from unpoison.core.checkpoint import Checkpoints, NoCheckpoints
from unpoison.core.learner import Learner, LearnerFactory
from unpoison.core.result import Cost
from unpoison.events import Listener, Progress, ignore
from unpoison.types import Arrays, IndexArray

Task: TypeAlias = Callable[[], Arrays]
"""Pure and picklable: its result follows from its fields alone, wherever and whenever it runs."""

Runner: TypeAlias = Callable[[Mapping[str, Task]], Iterable[tuple[str, Arrays]]]
"""Runs named tasks, yields each name with its result as it arrives, in any order."""


@dataclass(frozen=True)
class FitTask:
    """Train a fresh model on ``indices`` and keep what it says of all ``n_samples``; the model is dropped."""

    factory: LearnerFactory
    n_samples: int
    indices: IndexArray
    epochs: int
    min_steps: int
    seed: int
    annealing: bool = True
    """Whether the learning rate comes to an end, for learners with a schedule."""

    def __call__(self) -> Arrays:
        """One row each of losses, predictions and confidences."""
        learner = self.factory(self.seed)
        said = finished(
            learner, self.indices, self.n_samples,
            epochs=self.epochs, min_steps=self.min_steps, annealing=self.annealing,
        )  # fmt: skip
        return {**said, "cost": cost_array(learner.cost)}


def finished(
    learner: Learner,
    indices: IndexArray,
    n_samples: int,
    *,
    epochs: int,
    min_steps: int,
    annealing: bool = True,
) -> Arrays:
    """Train a model for the last time; what it says of all ``n_samples``, a row each."""
    learner.fit(indices, epochs=epochs, min_steps=min_steps, final=annealing)
    assessment = learner.assess(np.arange(n_samples))
    return {
        "losses": assessment.losses.astype(np.float32),
        "predictions": assessment.predictions.astype(np.int32),
        "confidences": assessment.confidences.astype(np.float32),
    }


def run_serially(tasks: Mapping[str, Task]) -> Iterator[tuple[str, Arrays]]:
    """The plainest runner: one task after another, in this process."""
    for name, task in tasks.items():
        yield name, task()


@dataclass
class Workshop:
    """Runs batches of tasks through a runner, with checkpoints and progress; adds up their cost."""

    runner: Runner = run_serially
    checkpoints: Checkpoints = field(default_factory=NoCheckpoints)
    listener: Listener = ignore
    stage: str = "tasks"
    total: int = 0
    done: int = 0
    resumed: int = 0
    cost: Cost = field(default_factory=Cost)

    def begin(self, stage: str, total: int) -> None:
        """Announce a stage of ``total`` tasks."""
        self.stage, self.total, self.done, self.resumed = stage, total, 0, 0
        self._tell()

    def run(self, tasks: Mapping[str, Task]) -> dict[str, Arrays]:
        """Results of all ``tasks`` by name, in the order they were given."""
        results: dict[str, Arrays] = {}
        for name in tasks:
            stored = self.checkpoints.load(name)
            if stored is not None:
                self.resumed += 1
                self._finish(name, stored, results)
        for name, arrays in self.runner({name: tasks[name] for name in tasks if name not in results}):
            self.checkpoints.save(name, arrays)
            self._finish(name, arrays, results)
        return {name: results[name] for name in tasks}

    def _finish(self, name: str, arrays: Arrays, results: dict[str, Arrays]) -> None:
        results[name] = arrays
        trained, scored, seconds, flops = arrays["cost"].tolist()
        self.cost += Cost(int(trained), int(scored), seconds=seconds, flops=flops)
        self.done += 1
        self._tell()

    def _tell(self) -> None:
        self.listener(Progress(self.stage, self.done, self.total, self.resumed))


def cost_array(cost: Cost) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Cost in the form that a task's result carries it."""
    return np.array([cost.trained, cost.scored, cost.seconds, cost.flops], dtype=np.float64)
