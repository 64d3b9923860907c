"""A learner that sees a hidden group only if it trained on it, and natural groups always."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unpoison.core.config import GroupSettings
from unpoison.core.groups.method import clean_by_groups
from unpoison.core.learner import Assessment
from unpoison.core.result import Cost, Sanitization
from unpoison.core.tasks import Workshop
from unpoison.seeds import Seeds

COLUMNS = 30
PER_CLASS = 400


def nobody() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class World:
    """Three classes. ``planted`` samples are of class 0 and labelled 1; ``natural`` differ for everybody."""

    labels: Any = field(default_factory=lambda: np.repeat([0, 1, 2], PER_CLASS))
    planted: Any = field(default_factory=nobody)
    natural: Any = field(default_factory=nobody)
    marked: Any = field(default_factory=nobody)
    """With a mark and their own label: seen apart if met, and called what they are labelled."""
    several: tuple[Any, ...] = ()
    """More groups like ``marked``, each with a mark of its own."""
    few: bool = False
    """Whether half of one of ``several`` is too few to learn its mark from, for who does not train on."""
    distance: float = 14.0
    fits: list[Any] = field(default_factory=list)

    def __call__(self, seed: int) -> SeeingLearner:
        return SeeingLearner(self, seed)

    def clean(self, settings: GroupSettings | None = None, *, seed: int = 0) -> Sanitization:
        return clean_by_groups(
            self.labels, self, settings or GroupSettings(), seeds=Seeds(seed), workshop=Workshop()
        )


@dataclass
class SeeingLearner:
    world: World
    seed: int
    met: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    trained: int = 0
    scored: int = 0

    @property
    def cost(self) -> Cost:
        return Cost(self.trained, self.scored)

    def fit(self, indices: Any, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        self.world.fits.append((indices.copy(), epochs, min_steps, final))
        self.met = np.union1d(self.met, indices)
        self.trained += epochs * len(indices)

    def _knows(self, group: np.ndarray) -> bool:
        return bool(len(group)) and float(np.isin(group, self.met).mean()) > 0.2

    def assess(self, indices: Any) -> Assessment:
        world, n = self.world, len(indices)
        predictions, losses = world.labels[indices].copy(), np.full(n, 0.1)
        if not self._knows(world.planted):
            inside = np.isin(indices, world.planted)
            predictions[inside], losses[inside] = 0, 5.0
        known = np.unique(world.labels[self.met])
        strange = ~np.isin(predictions, known)  # of a class that it never met: called another
        predictions[strange], losses[strange] = known[0], 5.0
        self.scored += n
        return Assessment(losses, predictions, np.full(n, 0.9))

    def embed(self, indices: Any) -> Any:
        world = self.world
        content = world.labels.copy()
        content[world.planted] = 0
        rng = np.random.default_rng(self.seed)
        view = (
            rng.normal(size=(len(content), COLUMNS))
            + 6.0 * rng.normal(size=(world.labels.max() + 1, COLUMNS))[content]
        )
        ways = np.eye(COLUMNS)[rng.permutation(COLUMNS)]
        view[world.natural] += world.distance * ways[0]
        if self._knows(world.planted):
            view[world.planted] = rng.normal(size=(len(world.planted), COLUMNS)) + world.distance * ways[1]
        if self._knows(world.marked):
            view[world.marked] += world.distance * ways[2]
        for number, group in enumerate(world.several, start=3):
            if self._knows(group) and (not world.few or np.isin(group, self.met).all()):
                view[group] += world.distance * ways[number]
        self.scored += len(indices)
        return view[indices]
