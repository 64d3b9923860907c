"""Learners whose activations are given, and data with something planted in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unpoison.core.learner import Assessment
from unpoison.core.result import Cost


class GivenActivationsLearner:
    """Learns nothing; its activations are rows of a table."""

    def __init__(self, factory: GivenActivations, seed: int) -> None:
        self._factory = factory
        self.seed = seed
        self._cost = Cost()

    @property
    def cost(self) -> Cost:
        return self._cost

    def fit(self, indices: Any, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        self._factory.fits.append((len(indices), epochs, min_steps, final))
        self._cost += Cost(epochs * len(indices), 0)

    def assess(self, indices: Any) -> Assessment:
        raise NotImplementedError

    def activations(self, indices: Any, *, layer: str | None = None) -> Any:
        self._factory.layers.append(layer)
        self._cost += Cost(0, len(indices))
        return self._factory.table[indices]


@dataclass(frozen=True)
class GivenActivations:
    table: Any
    fits: list[Any] = field(default_factory=list)
    layers: list[Any] = field(default_factory=list)

    def __call__(self, seed: int) -> GivenActivationsLearner:
        return GivenActivationsLearner(self, seed)


def planted(
    n: int = 100, share: float = 0.1, *, width: int = 20, distance: float = 12.0, seed: int = 0
) -> tuple[Any, Any, Any]:
    """Activations of two classes of ``n``, labels, and a mask: some of class 1 lie somewhere else."""
    rng = np.random.default_rng(seed)
    labels = np.arange(2 * n) % 2
    activations = rng.normal(size=(2 * n, width)) + 5.0 * labels[:, None]
    outliers = np.zeros(2 * n, dtype=bool)
    outliers[rng.choice(np.flatnonzero(labels == 1), size=round(share * n), replace=False)] = True
    away = rng.normal(size=width)
    activations[outliers] += distance * away / np.linalg.norm(away)
    return activations, labels, outliers
