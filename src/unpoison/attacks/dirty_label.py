"""The dirty-label backdoor: a trigger on some images, which are then called another class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import NOT_ATTACKED, Samples, Truth, check_share, choose, plant
from unpoison.attacks.labels import OneToOne, Relabelling
from unpoison.attacks.triggers import Trigger
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray


@dataclass(frozen=True)
class DirtyLabel:
    """``mark`` on a share ``epsilon`` of the attacked classes, which are called what ``relabelling`` says.

    With ``cover`` above 0 further images get a mark and keep their labels, so that the mark alone says
    little. They come from the classes that are neither attacked nor a target (TaCT), or, where there is no
    such class, from all of them (Adap-Blend).
    """

    name: ClassVar[str] = "dirty-label"

    relabelling: Relabelling
    epsilon: float
    mark: Trigger
    """The trigger at test time, and in training unless ``train_mark`` is given."""
    _: KW_ONLY
    cover: float = 0.0
    """The share of the images that could be covers."""
    train_mark: Trigger | None = None
    """What the planted images carry: mostly a weaker or partial mark."""
    cover_mark: Trigger | None = None
    """What the covers carry; by default the same as the planted images."""

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon, "the poisoned share of the attacked classes")
        check_share("cover", self.cover, "the share of covers", zero=True)
        if self.cover_mark is not None and self.cover == 0.0:
            raise InputError("cover_mark is given, but cover is 0.0; say how many covers, such as cover=0.1")

    @classmethod
    def one_to_one(cls, source: int, target: int, epsilon: float, mark: Trigger) -> DirtyLabel:
        """A share ``epsilon`` of class ``source`` is called ``target``."""
        return cls(OneToOne(source, target), epsilon, mark)

    def apply(self, samples: Samples, *, seed: int) -> tuple[Samples, Truth]:
        """The poisoned set and the truth."""
        self.relabelling.check(samples)
        seeds = Seeds(seed)
        planted = self.relabelling.pick(samples, self.epsilon, seeds.stream(self.name))
        mark = self.train_mark or self.mark
        covers = self._covers(samples, planted, seeds.stream(self.name, "covers"))
        return plant(
            samples,
            planted,
            mark(samples.features[planted]),
            self.goal(samples.labels[planted]),
            covers=covers,
            cover_features=(self.cover_mark or mark)(samples.features[covers]),
        )

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """Copies of images with the mark on them."""
        return self.mark(features)

    def goal(self, labels: LabelArray) -> LabelArray:
        """What the relabelling wants of each."""
        return self.relabelling.goal(labels)

    def _covers(self, samples: Samples, planted: IndexArray, stream: np.random.Generator) -> IndexArray:
        if self.cover == 0.0:
            return np.zeros(0, dtype=np.int64)
        wanted = self.goal(np.arange(samples.n_classes))
        is_part = wanted != NOT_ATTACKED
        is_part[wanted[is_part]] = True
        is_candidate = ~is_part[samples.labels] if not is_part.all() else np.ones(len(samples), np.bool_)
        is_candidate[planted] = False
        candidates = np.flatnonzero(is_candidate)
        if not len(candidates):
            raise InputError(
                f"cover is {self.cover}, but no image is left for it; lower epsilon or set cover=0"
            )
        return choose(candidates, int(self.cover * len(candidates)), stream)
