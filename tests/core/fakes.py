"""Learners small enough to compute by hand, and runners that misbehave on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from unpoison.core.checkpoint import Checkpoints
from unpoison.core.learner import Assessment
from unpoison.core.result import Cost, Sanitization
from unpoison.core.tasks import Task
from unpoison.types import Arrays, FloatArray, IndexArray, LabelArray


@dataclass
class Fit:
    """One call of ``fit``."""

    indices: list[int]
    epochs: int
    min_steps: int
    final: bool = False


class ScriptedLearner:
    """Answers the t-th assessment from the t-th row of a table (the last row from then on)."""

    def __init__(
        self,
        losses: Sequence[Sequence[float]] | None = None,
        predictions: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.losses = None if losses is None else np.array(losses, dtype=float)
        self.predictions = None if predictions is None else np.array(predictions)
        self.fits: list[Fit] = []
        self.n_assessments = 0

    @property
    def cost(self) -> Cost:
        return Cost(sum(fit.epochs * len(fit.indices) for fit in self.fits), self.n_assessments)

    def fit(self, indices: IndexArray, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        self.fits.append(Fit(indices.tolist(), epochs, min_steps, final))

    def assess(self, indices: IndexArray) -> Assessment:
        t = self.n_assessments
        self.n_assessments += 1
        losses = _row(self.losses, t, indices, 0.0)
        predictions = _row(self.predictions, t, indices, 0).astype(np.int64)
        return Assessment(losses, predictions, np.ones(len(indices)))


def _row(table: np.ndarray | None, t: int, indices: IndexArray, otherwise: float) -> np.ndarray:
    return np.full(len(indices), otherwise) if table is None else table[min(t, len(table) - 1)][indices]


class CentroidLearner:
    """Nearest class mean, with a random jitter that follows from the seed."""

    def __init__(self, rows: FloatArray, labels: LabelArray, seed: int) -> None:
        self._rows = rows
        self._labels = labels
        self._n_classes = int(labels.max()) + 1
        self._jitter = np.random.default_rng(seed).normal(scale=0.05, size=(self._n_classes, rows.shape[1]))
        self._centres = np.zeros((self._n_classes, rows.shape[1]))
        self._known = np.zeros(self._n_classes, dtype=bool)
        self._cost = Cost()

    @property
    def cost(self) -> Cost:
        return self._cost

    def fit(self, indices: IndexArray, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        for label in range(self._n_classes):
            own = self._rows[indices[self._labels[indices] == label]]
            self._known[label] = len(own) > 0
            self._centres[label] = (own.mean(axis=0) if len(own) else 0.0) + self._jitter[label]
        self._cost += Cost(epochs * len(indices), 0)

    def assess(self, indices: IndexArray) -> Assessment:
        distances = ((self._rows[indices, None, :] - self._centres[None]) ** 2).sum(axis=2)
        scores = np.where(self._known, -distances, -50.0 - distances)
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        shares /= shares.sum(axis=1, keepdims=True)
        self._cost += Cost(0, len(indices))
        own = shares[np.arange(len(indices)), self._labels[indices]]
        return Assessment(-np.log(np.maximum(own, 1e-12)), shares.argmax(axis=1), shares.max(axis=1))


@dataclass(frozen=True)
class CentroidFactory:
    rows: FloatArray
    labels: LabelArray
    seeds_asked: list[int] = field(default_factory=list)

    def __call__(self, seed: int) -> CentroidLearner:
        self.seeds_asked.append(seed)
        return CentroidLearner(self.rows, self.labels, seed)


def two_blobs(n: int = 40, *, seed: int = 0, n_classes: int = 2) -> tuple[FloatArray, LabelArray]:
    """Overlapping classes: losses differ, so that seeds and orders have something to change."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    return rng.normal(size=(n, 3)) + 1.2 * labels[:, None], labels.astype(np.int64)


def same_bits(left: Sanitization, right: Sanitization) -> bool:
    """Whether two results agree in every array (values and types), group and cost."""
    arrays = ("keep", "suspicion", "predicted", "components")
    return (
        all(
            getattr(left, name).dtype == getattr(right, name).dtype
            and getattr(left, name).tobytes() == getattr(right, name).tobytes()
            for name in arrays
        )
        and left.groups == right.groups
        and left.cost == right.cost
    )


class StoppedError(Exception):
    """The machine went away."""


@dataclass
class CountingRunner:
    """Runs tasks in an order of choice, remembers their names, and may stop for good after some."""

    order: Callable[[list[str]], list[str]] = list
    stop_after: int | None = None
    ran: list[str] = field(default_factory=list)

    def __call__(self, tasks: Mapping[str, Task]) -> Iterator[tuple[str, Arrays]]:
        for name in self.order(list(tasks)):
            if len(self.ran) == self.stop_after:
                raise StoppedError
            self.ran.append(name)
            yield name, tasks[name]()


@dataclass
class MemoryCheckpoints(Checkpoints):
    """Checkpoints in a dictionary."""

    stored: dict[str, Arrays] = field(default_factory=dict)

    def load(self, name: str) -> Arrays | None:
        return self.stored.get(name)

    def save(self, name: str, arrays: Arrays) -> None:
        self.stored[name] = arrays
