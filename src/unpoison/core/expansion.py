"""How well a set generalises to itself, and whether another set helps (the paper's section 2).

The alpha-expansion error of ``S`` given ``T`` is the expected error on ``S`` of a model trained on a random
alpha share, per class and rounded up, of both together. ``T`` is compatible with ``S`` where it lowers that
error, and incompatible where it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil, gamma, inf, isfinite, pi, sqrt
from typing import Literal, TypeAlias

import numpy as np

from unpoison.core.learner import LearnerFactory
from unpoison.core.result import Cost
from unpoison.core.sampling import sample_per_class
from unpoison.core.tasks import Runner, Task, Workshop, cost_array, run_serially
from unpoison.errors import InputError
from unpoison.events import Listener, ignore
from unpoison.seeds import Seeds
from unpoison.types import Arrays, FloatArray, IndexArray, LabelArray

Decision: TypeAlias = Literal["compatible", "incompatible", "undecided"]


@dataclass(frozen=True)
class Measuring:
    """How errors are estimated."""

    alpha: float = 0.5
    """Share of each class that a model is trained on."""
    repeats: int = 8
    """Models trained for each error."""
    epochs: int = 10
    min_steps: int = 0
    confidence: float = 0.95
    """Of intervals and decisions."""

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha <= 1.0:
            raise InputError(f"The 'alpha' parameter must be a share in (0, 1]. Got {self.alpha} instead.")
        if self.repeats < 2:
            raise InputError(
                f"The 'repeats' parameter must be at least 2: one model has no spread. Got {self.repeats}."
            )
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
    """Given minus alone: above 0 means incompatible."""
    repeats_needed: int | None
    """About how many models an error takes to decide, if this difference is the true one; None if it is 0."""
    cost: Cost


@dataclass(frozen=True)
class ErrorTask:
    """One model on one random share of the samples; what it gets wrong among those that are judged."""

    factory: LearnerFactory
    labels: LabelArray
    trained: IndexArray
    judged: IndexArray
    how: Measuring
    seeds: Seeds

    def __call__(self) -> Arrays:
        """The share of ``judged`` that the model gets wrong."""
        drawn = sample_per_class(
            self.trained, self.labels, alpha=self.how.alpha, rng=self.seeds.stream("sample")
        )
        learner = self.factory(self.seeds.integer("learner"))
        learner.fit(drawn, epochs=self.how.epochs, min_steps=self.how.min_steps, final=True)
        wrong = learner.assess(self.judged).predictions != self.labels[self.judged]
        return {"error": np.array(wrong.mean()), "cost": cost_array(learner.cost)}


def expansion_error(
    labels: LabelArray,
    factory: LearnerFactory,
    of: IndexArray,
    *,
    given: IndexArray | None = None,
    how: Measuring | None = None,
    seed: int = 0,
    runner: Runner = run_serially,
) -> Estimate:
    """The alpha-expansion error of the samples ``of``, given others or alone."""
    how = how or Measuring()
    workshop = Workshop(runner=runner)
    errors = _errors(labels, factory, {"S": (of, given)}, how, Seeds(seed), workshop)
    return _mean(errors["S"])


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
    workshop = Workshop(runner=runner, listener=listener)
    pairs: Pairs = {"alone": (of, None), "given": (of, given)}
    errors = _errors(labels, factory, pairs, how, Seeds(seed), workshop)
    return _compared(errors["alone"], errors["given"], how, workshop.cost)


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
    """For every ordered pair of sets ``(S, T)``, what ``T`` does for ``S``. The cost is that of all."""
    how = how or Measuring()
    workshop = Workshop(runner=runner, listener=listener)
    pairs: Pairs = {}
    for name, of in sets.items():
        pairs[name] = (of, None)
        pairs |= {f"{name} given {other}": (of, sets[other]) for other in sets if other != name}
    errors = _errors(labels, factory, pairs, how, Seeds(seed), workshop)
    return {
        (name, other): _compared(errors[name], errors[f"{name} given {other}"], how, workshop.cost)
        for name in sets
        for other in sets
        if other != name
    }


Pairs: TypeAlias = dict[str, tuple[IndexArray, IndexArray | None]]
"""By name, the samples that are judged and those that are trained on with them."""


def _errors(
    labels: LabelArray,
    factory: LearnerFactory,
    pairs: Pairs,
    how: Measuring,
    seeds: Seeds,
    workshop: Workshop,
) -> dict[str, FloatArray]:
    tasks: dict[str, Task] = {}
    for name, (of, given) in pairs.items():
        _check(name, of)
        trained = np.unique(of if given is None else np.concatenate([of, given]))
        for repeat in range(how.repeats):
            branch = seeds.within("expansion", name, repeat)
            tasks[f"{name} {repeat}"] = ErrorTask(factory, labels, trained, np.unique(of), how, branch)
    workshop.begin("models", len(tasks))
    done = workshop.run(tasks)
    return {
        name: np.array([float(done[f"{name} {repeat}"]["error"]) for repeat in range(how.repeats)])
        for name in pairs
    }


def _check(name: str, of: IndexArray) -> None:
    if len(of) == 0:
        raise InputError(f"the set {name!r} is empty; its error is not defined")


def _mean(errors: FloatArray) -> Estimate:
    return Estimate(float(errors.mean()), float(errors.std(ddof=1) / sqrt(len(errors))), len(errors) - 1.0)


def _compared(alone: FloatArray, given: FloatArray, how: Measuring, cost: Cost) -> Compatibility:
    first, second = _mean(alone), _mean(given)
    difference = _difference(first, second)
    low, high = difference.interval(how.confidence)
    decision: Decision = "incompatible" if low > 0 else "compatible" if high < 0 else "undecided"
    return Compatibility(decision, first, second, difference, _repeats_needed(difference, how), cost)


def _difference(first: Estimate, second: Estimate) -> Estimate:
    """Second minus first, by Welch: their spreads may differ."""
    variances = first.standard_error**2, second.standard_error**2
    total = sum(variances)
    shares = sum(v**2 / e.freedom for v, e in zip(variances, (first, second), strict=True))
    freedom = total**2 / shares if shares > 0 else inf
    return Estimate(second.mean - first.mean, sqrt(total), freedom)


def _repeats_needed(difference: Estimate, how: Measuring) -> int | None:
    """The standard error falls with the root of the repeats until the interval leaves 0."""
    if difference.mean == 0.0:
        return None
    reach = student_quantile((1.0 + how.confidence) / 2.0, difference.freedom) * difference.standard_error
    return max(2, ceil(how.repeats * (reach / difference.mean) ** 2))


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
