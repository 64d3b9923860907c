"""ISPL lowers its objective at every step, given alpha 1, eta 0 and an exact minimiser.

The learner is any finite family of hypotheses, given by the loss of each on each sample. Losses that are
multiples of a power of two add up without rounding, so that "not above" means exactly that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unpoison.core.config import IsplSettings
from unpoison.core.learner import Assessment
from unpoison.core.result import Cost
from unpoison.core.sampling import sample_per_class
from unpoison.core.trimming import beta_schedule, smooth_losses, target_fraction, trim
from unpoison.evaluation.theory.exact import Finding
from unpoison.seeds import Seeds
from unpoison.types import FloatArray, IndexArray, LabelArray

EXACT = IsplSettings(rounds=4, coverage=1.0, alpha=1.0, momentum=0.0, class_floor=0.0)
"""The premises of the proposition, in the terms of the shipped settings."""


class FamilyLearner:
    """Picks the hypothesis with the least total loss on what it is given; ``place`` 1 the second best."""

    def __init__(self, losses: FloatArray, *, place: int = 0) -> None:
        self._losses = losses
        self._place = place
        self._chosen = 0

    @property
    def cost(self) -> Cost:
        """Not counted."""
        return Cost()

    def fit(self, indices: IndexArray, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:  # noqa: ARG002
        """Minimise over the whole family; earlier calls leave no trace."""
        totals = self._losses[:, indices].sum(axis=1)
        self._chosen = int(np.argsort(totals, kind="stable")[self._place])

    def assess(self, indices: IndexArray) -> Assessment:
        """The chosen hypothesis' losses. It predicts nothing: the descent does not ask."""
        losses = self._losses[self._chosen, indices]
        return Assessment(losses, np.zeros(len(indices), dtype=np.int64), np.ones(len(indices)))


@dataclass(frozen=True)
class Descent:
    """The objective after each iteration, and the set that the last one chose."""

    objective: tuple[float, ...]
    chosen: IndexArray

    @property
    def never_rises(self) -> bool:
        """The proposition."""
        return all(later <= earlier for earlier, later in pairwise(self.objective))


def objective(losses: FloatArray, chosen: IndexArray, *, beta: float) -> float:
    """F: the loss of the chosen samples, and 1 for each that is missing to a ``beta`` share of all."""
    return float(losses[chosen].sum() + max(0.0, beta * len(losses) - len(chosen)))


def shipped_betas(n_samples: int, settings: IsplSettings) -> list[float]:
    """The schedule of the first round of the shipped algorithm."""
    return beta_schedule(
        target_fraction(n_samples, n_samples, rounds=settings.rounds, coverage=settings.coverage)
    )


def descend(
    learner: FamilyLearner,
    labels: LabelArray,
    betas: Sequence[float],
    *,
    settings: IsplSettings = EXACT,
    seeds: Seeds,
) -> Descent:
    """Algorithm 1 with any schedule, from the shipped steps, with F after each.

    On the shipped schedule this chooses what ``core.ispl.find_component`` does, draw for draw.
    """
    everyone = np.arange(len(labels))
    current, smoothed = everyone, np.zeros(len(labels))
    values: list[float] = []
    for t, beta in enumerate(betas):
        learner.fit(
            sample_per_class(current, labels, alpha=settings.alpha, rng=seeds.stream("sample", t)), epochs=1
        )
        losses = learner.assess(everyone).losses
        smoothed = smooth_losses(smoothed, losses, momentum=settings.momentum)
        floor = settings.class_floor * betas[-1]
        current = np.flatnonzero(
            trim(smoothed, labels, beta=beta, class_share=floor, rng=seeds.stream("trim", t))
        )
        values.append(objective(losses, current, beta=beta))
    return Descent(tuple(values), current)


def check_descent(
    losses: FloatArray,
    labels: LabelArray,
    betas: Sequence[float],
    *,
    settings: IsplSettings = EXACT,
    place: int = 0,
    further: int = 20,
    seeds: Seeds,
) -> Finding:
    """One run: the objective never rises, and stands still after ``further`` steps at the last beta.

    Over a finite family it takes finitely many values, so standing still is what convergence comes down to.
    """
    steps = [*betas, *[betas[-1]] * further]
    run = descend(FamilyLearner(losses, place=place), labels, steps, settings=settings, seeds=seeds)
    settled = run.objective[-1] == run.objective[-2]
    return Finding(1, int(not (run.never_rises and settled)))


def swap_would_help(losses: FloatArray, chosen: IndexArray) -> bool:
    """Whether exchanging one chosen sample for another, and minimising again, gives a lower objective."""
    totals = losses[:, chosen].sum(axis=1)
    others = np.setdiff1d(np.arange(losses.shape[1]), chosen)
    gains = losses[:, None, others] - losses[:, chosen, None]  # hypotheses by leaving by entering
    return bool((totals[:, None, None] + gains).min() < totals.min()) if len(others) else False
