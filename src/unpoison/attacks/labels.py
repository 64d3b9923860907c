"""Who is attacked, and what the attacker wants to be called what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unpoison.attacks.base import NOT_ATTACKED, Samples, check_class, choose
from unpoison.errors import InputError
from unpoison.types import IndexArray, LabelArray


class Relabelling(Protocol):
    """From a class to the class that the attacker wants instead."""

    def check(self, samples: Samples) -> None:
        """Refuse classes that the data do not have."""
        ...

    def goal(self, labels: LabelArray) -> LabelArray:
        """The wanted class of each sample, or ``NOT_ATTACKED``."""
        ...

    def share(self, epsilon: float, n_classes: int) -> float:
        """The poisoned share of each attacked class at strength ``epsilon``."""
        ...

    def pick(self, samples: Samples, epsilon: float, stream: np.random.Generator) -> IndexArray:
        """The samples to poison at strength ``epsilon``, ascending."""
        ...


@dataclass(frozen=True)
class OneToOne:
    """A share epsilon of class ``source`` is called ``target``."""

    source: int
    target: int
    count: int | None = None
    """So many samples, in place of a share."""

    def __post_init__(self) -> None:
        if self.source == self.target:
            raise InputError(f"source and target are both class {self.source}; choose two different classes")

    def check(self, samples: Samples) -> None:
        """Refuse classes that the data do not have."""
        check_class("source", self.source, samples)
        check_class("target", self.target, samples)

    def goal(self, labels: LabelArray) -> LabelArray:
        """The target for the source class."""
        return np.where(labels == self.source, self.target, NOT_ATTACKED)

    def share(self, epsilon: float, n_classes: int) -> float:  # noqa: ARG002
        """Epsilon itself."""
        return epsilon

    def pick(self, samples: Samples, epsilon: float, stream: np.random.Generator) -> IndexArray:
        """A share epsilon of the source class, at least one sample."""
        candidates = np.flatnonzero(samples.labels == self.source)
        if self.count is not None:
            return so_many(candidates, self.count, stream, what=f"samples of class {self.source}")
        return choose(candidates, int(epsilon * len(candidates)), stream)


@dataclass(frozen=True)
class AllToOne:
    """A share epsilon / (K - 1) of every other class is called ``target``."""

    target: int
    count: int | None = None
    """So many samples of the other classes together, in place of a share."""

    def check(self, samples: Samples) -> None:
        """Refuse classes that the data do not have."""
        check_class("target", self.target, samples)
        if len(np.unique(samples.labels)) < 2:
            raise InputError("an all-to-one attack needs at least two classes with samples")

    def goal(self, labels: LabelArray) -> LabelArray:
        """The target for every other class."""
        return np.where(labels != self.target, self.target, NOT_ATTACKED)

    def share(self, epsilon: float, n_classes: int) -> float:
        """As much in all as one to one takes of one class."""
        return epsilon / (n_classes - 1)

    def pick(self, samples: Samples, epsilon: float, stream: np.random.Generator) -> IndexArray:
        """An equal share of every other class; classes too small for one sample give none."""
        if self.count is not None:
            candidates = np.flatnonzero(samples.labels != self.target)
            return so_many(candidates, self.count, stream, what="samples of other classes")
        others = [k for k in range(samples.n_classes) if k != self.target]
        return share_of_each(samples, others, self.share(epsilon, samples.n_classes), stream)


@dataclass(frozen=True)
class AllToAll:
    """A share epsilon of every class is called the class ``offset`` further on, around in a circle."""

    n_classes: int
    offset: int = 1

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise InputError(
                f"an all-to-all attack needs at least two classes. Got n_classes {self.n_classes}"
            )
        if self.offset % self.n_classes == 0:
            raise InputError(
                f"an offset of {self.offset} gives every one of {self.n_classes} classes its own label; "
                f"choose one from 1 to {self.n_classes - 1}"
            )

    def check(self, samples: Samples) -> None:
        """Refuse data with other classes."""
        if self.n_classes != samples.n_classes:
            raise InputError(
                f"the attack is for {self.n_classes} classes, the data have {samples.n_classes}; "
                f"make it with n_classes={samples.n_classes}"
            )

    def goal(self, labels: LabelArray) -> LabelArray:
        """The class ``offset`` further on."""
        return (labels + self.offset) % self.n_classes

    def share(self, epsilon: float, n_classes: int) -> float:  # noqa: ARG002
        """Epsilon itself."""
        return epsilon

    def pick(self, samples: Samples, epsilon: float, stream: np.random.Generator) -> IndexArray:
        """A share epsilon of every class."""
        return share_of_each(samples, range(samples.n_classes), epsilon, stream)


def so_many(candidates: IndexArray, count: int, stream: np.random.Generator, *, what: str) -> IndexArray:
    """``count`` of the candidates, ascending; an error if there are fewer."""
    check_count(count, len(candidates), what=what)
    return choose(candidates, count, stream)


def check_count(count: int, most: int, *, what: str) -> None:
    """Refuse a number of samples that there are not."""
    if not 1 <= count <= most:
        raise InputError(f"count is how many samples are planted, 1 to {most} {what}. Got {count}")


def share_of_each(
    samples: Samples, classes: Iterable[int], share: float, stream: np.random.Generator
) -> IndexArray:
    """A share of each of the classes, rounded down, ascending; an error if that is nothing at all."""
    parts = []
    for k in classes:
        members = np.flatnonzero(samples.labels == k)
        parts.append(stream.choice(members, size=int(share * len(members)), replace=False))
    chosen = np.concatenate(parts)
    if not len(chosen):
        raise InputError(
            f"a share of {share:.4g} of each class is not one sample anywhere; "
            "raise epsilon, or take more data"
        )
    chosen.sort()
    return chosen
