"""How well a set generalises to itself, and whether another set helps (the paper's section 2.2).

The alpha-expansion error of ``S`` given ``T`` is the expected error on all of ``S``, trained on or not, of a
model trained on a random alpha share, per class and rounded up, of both together. ``T`` is compatible with
``S`` where it does not raise that error, and incompatible where it does not lower it: no change is both.

A finite number of models never shows that nothing changes, so what is decided here is the strict side:
``compatible`` that ``T`` lowers the error, ``incompatible`` that it raises it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from math import gamma, isfinite, pi, sqrt
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unpoison.core.learner import LearnerFactory
from unpoison.core.result import Cost
from unpoison.core.sampling import first_per_class
from unpoison.core.tasks import Runner, Task, Workshop, cost_array, run_serially
from unpoison.errors import InputError
from unpoison.events import Listener, ignore
from unpoison.seeds import Seeds
from unpoison.types import Arrays, IndexArray, LabelArray

Decision: TypeAlias = Literal["compatible", "incompatible", "undecided"]


@dataclass(frozen=True)
class Measuring:
    """How errors are estimated."""

    alpha: float = 0.5
    """Share of each class that a model is trained on."""
    repeats: int = 8
    """Models trained for each error."""
    epochs: int = 10
    min_steps: int = 300
    """Small sets are trained on for more epochs, up to this many steps: an error alone should not be large
    for want of training."""
    confidence: float = 0.95
    """Of intervals and decisions."""

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha <= 1.0:
            raise InputError(f"The 'alpha' parameter must be a share in (0, 1]. Got {self.alpha} instead.")
        if self.repeats < 2:
            raise InputError(
                f"The 'repeats' parameter must be at least 2: one model has no spread. Got {self.repeats}."
            )
        if self.epochs < 1:
            raise InputError(f"The 'epochs' parameter must be at least 1. Got {self.epochs} instead.")
        if self.min_steps < 0:
            raise InputError(f"The 'min_steps' parameter must not be negative. Got {self.min_steps} instead.")
        if not 0.5 < self.confidence < 1.0:
            raise InputError(
                f"The 'confidence' parameter must be in (0.5, 1). Got {self.confidence} instead."
            )


@dataclass(frozen=True)
class Estimate:
    """A mean over models, and how sure it is."""

    mean: float
    standard_error: float
    freedom: float
    """Degrees of freedom of the standard error."""

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds that hold the true value with this confidence (Student's t)."""
        reach = student_quantile((1.0 + confidence) / 2.0, self.freedom) * self.standard_error
        return self.mean - reach, self.mean + reach


@dataclass(frozen=True)
class Compatibility:
    """What ``T`` does for ``S``."""

    decision: Decision
    alone: Estimate
    """The error of ``S`` by itself."""
    given: Estimate
    """The error of ``S`` given ``T``."""
    difference: Estimate
    """Given minus alone, model by model: above 0 means incompatible."""
    repeats_needed: int | None
    """With how many repeats the interval would leave 0, if difference and spread stay what they are. None
    where the difference is 0."""
    cost: Cost


@dataclass(frozen=True)
class ErrorTask:
    """One model on one random share of the samples; what it gets wrong in each of the sets that are judged.

    Which samples are drawn follows from an order of all samples. With the same seeds, a set and a larger one
    so draw mostly the same of what they share: their errors differ by what is added more than by chance.
    """

    factory: LearnerFactory
    labels: LabelArray
    trained: IndexArray
    judged: tuple[IndexArray, ...]
    how: Measuring
    seeds: Seeds

    def __call__(self) -> Arrays:
        """``wrong``: for each judged set, how many of its samples the model gets wrong."""
        learner = self.factory(self.seeds.integer("learner"))
        learner.fit(self.sample(), epochs=self.how.epochs, min_steps=self.how.min_steps, final=True)
        wrong = [
            np.count_nonzero(learner.assess(judged).predictions != self.labels[judged])
            for judged in self.judged
        ]
        return {"wrong": np.array(wrong, dtype=np.int64), "cost": cost_array(learner.cost)}

    def sample(self) -> IndexArray:
        """What the model is trained on."""
        member = np.zeros(len(self.labels), dtype=np.bool_)
        member[self.trained] = True
        order = self.seeds.stream("sample").permutation(len(self.labels))
        return first_per_class(order[member[order]], self.labels, alpha=self.how.alpha)


def expansion_error(
    labels: LabelArray,
    factory: LearnerFactory,
    of: IndexArray,
    *,
    given: IndexArray | None = None,
    how: Measuring | None = None,
    seed: int = 0,
    runner: Runner = run_serially,
    listener: Listener = ignore,
) -> Estimate:
    """The alpha-expansion error of the samples ``of``, given others or alone."""
    how = how or Measuring()
    sets = {"S": of} if given is None else {"S": of, "T": given}
    together = tuple(sets)
    counts = _count(
        labels, factory, sets, {together: ("S",)}, how, Seeds(seed), Workshop(runner, listener=listener)
    )
    return counts[together, "S"].estimate()


def compatibility(
    labels: LabelArray,
    factory: LearnerFactory,
    of: IndexArray,
    given: IndexArray,
    *,
    how: Measuring | None = None,
    seed: int = 0,
    runner: Runner = run_serially,
    listener: Listener = ignore,
) -> Compatibility:
    """Whether the samples ``given`` help with the samples ``of``, decided at the confidence asked for."""
    how = how or Measuring()
    workshop = Workshop(runner, listener=listener)
    trainings: _Trainings = {("S",): ("S",), ("S", "T"): ("S",)}
    counts = _count(labels, factory, {"S": of, "T": given}, trainings, how, Seeds(seed), workshop)
    return _compared(counts[("S",), "S"], counts[("S", "T"), "S"], how, workshop.cost)


def compatibility_matrix(
    labels: LabelArray,
    factory: LearnerFactory,
    sets: Mapping[str, IndexArray],
    *,
    how: Measuring | None = None,
    seed: int = 0,
    runner: Runner = run_serially,
    listener: Listener = ignore,
) -> dict[tuple[str, str], Compatibility]:
    """For every ordered pair of sets ``(S, T)``, what ``T`` does for ``S``. The cost is that of all.

    ``S`` given ``T`` and ``T`` given ``S`` are errors of the same models, so two sets take three models a
    repeat, and k sets take k (k + 1) / 2.
    """
    how = how or Measuring()
    workshop = Workshop(runner, listener=listener)
    trainings: _Trainings = {(name,): (name,) for name in sets}
    trainings |= {pair: pair for pair in combinations(sets, 2)}
    counts = _count(labels, factory, sets, trainings, how, Seeds(seed), workshop)
    return {
        (of, given): _compared(
            counts[(of,), of],
            counts[(of, given) if (of, given) in trainings else (given, of), of],
            how,
            workshop.cost,
        )
        for of, given in permutations(sets, 2)
    }


_Trainings: TypeAlias = dict[tuple[str, ...], tuple[str, ...]]
"""The sets that are trained on together, by name, and those of them that are judged."""


@dataclass(frozen=True)
class _Counts:
    """Of one set, how many of its ``size`` samples each model gets wrong (or by how many two differ)."""

    wrong: NDArray[np.int64]
    size: int

    def estimate(self) -> Estimate:
        # whole numbers until here: a mean of nothing is 0, and not almost 0
        n = len(self.wrong)
        spread = float(self.wrong.std(ddof=1)) / self.size
        return Estimate(int(self.wrong.sum()) / (n * self.size), spread / sqrt(n), n - 1.0)


def _count(
    labels: LabelArray,
    factory: LearnerFactory,
    sets: Mapping[str, IndexArray],
    trainings: _Trainings,
    how: Measuring,
    seeds: Seeds,
    workshop: Workshop,
) -> dict[tuple[tuple[str, ...], str], _Counts]:
    """For each training and each set that it judges, the errors of every repeat."""
    for name, members in sets.items():
        if len(members) == 0:
            raise InputError(f"the set {name!r} is empty; its error is not defined")
    unique = {name: np.unique(members) for name, members in sets.items()}
    tasks: dict[str, Task] = {}
    for number, (together, judged) in enumerate(trainings.items()):
        trained = np.unique(np.concatenate([unique[name] for name in together]))
        for repeat in range(how.repeats):
            tasks[f"training-{number}-repeat-{repeat}"] = ErrorTask(
                factory, labels, trained, tuple(unique[name] for name in judged), how,
                seeds.within("expansion", repeat),
            )  # fmt: skip
    workshop.begin("models", len(tasks))
    done = list(workshop.run(tasks).values())
    counts = {}
    for number, (together, judged) in enumerate(trainings.items()):
        wrong = np.array([done[number * how.repeats + repeat]["wrong"] for repeat in range(how.repeats)])
        for column, name in enumerate(judged):
            counts[together, name] = _Counts(wrong[:, column].astype(np.int64), len(unique[name]))
    return counts


def _compared(alone: _Counts, given: _Counts, how: Measuring, cost: Cost) -> Compatibility:
    difference = _Counts(given.wrong - alone.wrong, alone.size).estimate()
    low, high = difference.interval(how.confidence)
    decision: Decision = "incompatible" if low > 0 else "compatible" if high < 0 else "undecided"
    return Compatibility(
        decision, alone.estimate(), given.estimate(), difference, _repeats_needed(difference, how), cost
    )


def _repeats_needed(difference: Estimate, how: Measuring) -> int | None:
    if difference.mean == 0.0:
        return None
    spread = difference.standard_error * sqrt(how.repeats) / abs(difference.mean)

    def decides(repeats: int) -> bool:
        return student_quantile((1.0 + how.confidence) / 2.0, repeats - 1.0) * spread < sqrt(repeats)

    few, enough = 1, 2
    while not decides(enough):
        few, enough = enough, 2 * enough
    while enough - few > 1:
        between = (few + enough) // 2
        few, enough = (few, between) if decides(between) else (between, enough)
    return enough


@cache
def student_quantile(probability: float, freedom: float) -> float:
    """The value that Student's t with ``freedom`` degrees stays below with this probability, above one half.

    >>> round(student_quantile(0.975, 7.0), 3)
    2.365
    """
    if not isfinite(freedom) or freedom > 300.0:
        freedom = 300.0  # by then the normal distribution to two digits
    scale = gamma((freedom + 1) / 2) / (sqrt(freedom * pi) * gamma(freedom / 2))
    # with x = tan(u), the density over u is smooth and ends at a right angle: a fine grid is exact enough
    angle = np.linspace(0.0, pi / 2, 20_001)[:-1]
    tangent = np.tan(angle)
    density = scale * (1 + tangent**2 / freedom) ** (-(freedom + 1) / 2) * (1 + tangent**2)
    steps = (density[1:] + density[:-1]) / 2 * (angle[1] - angle[0])
    below = 0.5 + np.concatenate([[0.0], np.cumsum(steps)])
    return float(np.interp(probability, below, tangent))
