"""Canaries: a few small groups of our own go through everything, and say what this run could have found.

They are marked copies of the user's samples under another label, planted in the open, taken out at the end.
Where they are found, groups of that size and make would have been; where not, nothing found means little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.core.learner import LearnerFactory
from unpoison.core.sampling import class_members
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, IndexArray, LabelArray

SHARES = (0.1, 0.03, 0.01)
"""Of the class that each group is labelled as."""
SMALLEST = 8
"""Fewer are no group."""


@dataclass(frozen=True)
class Canary:
    """One group of ours, and what became of it."""

    label: int
    size: int
    found: int


@dataclass(frozen=True)
class Canaries:
    """The user's samples with ours after them."""

    factory: LearnerFactory
    labels: LabelArray
    number: IndexArray
    """0 for the user's samples, k for our k-th group."""

    @classmethod
    def none(cls, labels: LabelArray, factory: LearnerFactory) -> Canaries:
        """The user's samples alone."""
        return cls(factory, labels, np.zeros(len(labels), dtype=np.int64))

    @property
    def own(self) -> BoolArray:
        """The user's samples."""
        is_own: BoolArray = self.number == 0
        return is_own

    def found(self, keep: BoolArray) -> tuple[Canary, ...]:
        """How many of each group were removed."""
        groups = [np.flatnonzero(self.number == k) for k in range(1, int(self.number.max()) + 1)]
        return tuple(
            Canary(int(self.labels[group[0]]), len(group), int((~keep[group]).sum())) for group in groups
        )


def with_canaries(labels: LabelArray, factory: LearnerFactory, seeds: Seeds) -> Canaries:
    """The samples with canaries after them; without, where there is no class for them or no mark.

    Every group has a class of its own as its label; its samples are copies of another class's.
    """
    nobody = Canaries.none(labels, factory)
    mark: Any = getattr(factory, "with_marked_copies", None)
    classes = class_members(labels)
    if mark is None or len(classes) < 2:
        return nobody
    rng = seeds.stream("canaries")
    copied: list[IndexArray] = []
    given: list[int] = []
    targets = rng.permutation(len(classes)).tolist()
    sources = rng.permutation(len(classes)).tolist()
    for share, target in zip(SHARES, targets, strict=False):
        size = round(share * len(classes[target]))
        fitting = [k for k in sources if k != target and len(classes[k]) >= size]
        if size >= SMALLEST and fitting:
            sources.remove(fitting[0])
            copied.append(rng.choice(classes[fitting[0]], size=size, replace=False))
            given.append(int(labels[classes[target][0]]))
    if not copied:
        return nobody
    sizes = [len(group) for group in copied]
    numbers = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    more = np.repeat(np.array(given, dtype=np.int64), sizes)
    marked = mark(np.concatenate(copied), more, numbers, seed=seeds.integer("canaries"))
    return Canaries(marked, np.concatenate([labels, more]), np.concatenate([nobody.number, numbers]))
