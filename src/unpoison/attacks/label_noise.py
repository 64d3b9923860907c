"""Wrong labels without any trigger."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import NOT_ATTACKED, Samples, Truth, check_class, check_share, choose, plant
from unpoison.attacks.labels import share_of_each
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray

KINDS = ("random", "class")


@dataclass(frozen=True)
class LabelNoise:
    """Wrong labels on a share ``epsilon`` of the samples.

    ``random``: any sample, any other class that occurs. ``class``: of each class, one fixed other class,
    by ``pairs`` or else along a random circle of all classes.
    """

    name: ClassVar[str] = "label-noise"

    epsilon: float
    kind: Literal["random", "class"] = "random"
    _: KW_ONLY
    pairs: tuple[tuple[int, int], ...] | None = None
    """A class and what it is called instead, for the kind ``class``; other classes keep their labels."""

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon, "the share of wrong labels")
        if self.kind not in KINDS:
            raise InputError(f"kind is one of {', '.join(KINDS)}. Got {self.kind!r}")
        if self.pairs is None:
            return
        if self.kind != "class":
            raise InputError(f"pairs are for the kind 'class'. Got kind {self.kind!r}")
        if not self.pairs:
            raise InputError("pairs is empty; name at least one pair, or leave it out")
        sources = [source for source, _ in self.pairs]
        if len(set(sources)) < len(sources):
            raise InputError(f"a class is in pairs twice: {self.pairs}; name each class once")
        for source, target in self.pairs:
            if source == target:
                raise InputError(f"class {source} is paired with itself; choose two different classes")

    def apply(self, samples: Samples, *, seed: int) -> tuple[Samples, Truth]:
        """The set with wrong labels and the truth."""
        present = np.unique(samples.labels)
        if len(present) < 2:
            raise InputError(f"label noise needs at least two classes with samples. Got {len(present)}")
        seeds = Seeds(seed).within(self.name)
        planted, labels = (self._random if self.kind == "random" else self._by_class)(samples, present, seeds)
        return plant(samples, planted, samples.features[planted], labels)

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """Plain copies: there is no trigger."""
        return features.copy()

    def goal(self, labels: LabelArray) -> LabelArray:
        """Nobody is attacked."""
        return np.full(len(labels), NOT_ATTACKED, dtype=np.int64)

    def _random(self, samples: Samples, present: LabelArray, seeds: Seeds) -> tuple[IndexArray, LabelArray]:
        everyone = np.arange(len(samples))
        planted = choose(everyone, int(self.epsilon * len(samples)), seeds.stream("samples"))
        steps = seeds.stream("labels").integers(1, len(present), size=len(planted))
        place = np.searchsorted(present, samples.labels[planted])
        return planted, present[(place + steps) % len(present)]

    def _by_class(self, samples: Samples, present: LabelArray, seeds: Seeds) -> tuple[IndexArray, LabelArray]:
        if self.pairs is None:
            circle = seeds.stream("classes").permutation(present)
            called = dict(zip(circle.tolist(), np.roll(circle, -1).tolist(), strict=True))
        else:
            called = dict(self.pairs)
            for number in sorted({*called, *called.values()}):
                check_class("paired", number, samples)
        planted = share_of_each(samples, sorted(called), self.epsilon, seeds.stream("samples"))
        return planted, np.array([called[label] for label in samples.labels[planted].tolist()])
