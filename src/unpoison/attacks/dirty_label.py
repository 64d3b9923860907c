"""The dirty-label backdoor: a trigger on some images, which are then called another class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import (
    NOT_ATTACKED,
    Samples,
    Truth,
    check_class,
    check_images,
    check_share,
    choose,
    plant,
)
from unpoison.attacks.labels import OneToOne, Relabelling, check_count, so_many
from unpoison.attacks.triggers import Trigger
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, FloatArray, IndexArray, LabelArray


@dataclass(frozen=True)
class DirtyLabel:
    """``mark`` on a share ``epsilon`` of the attacked classes, which are called what ``relabelling`` says.

    With ``cover`` above 0, or a ``cover_count``, further images get a mark and keep their labels, so that the
    mark alone says little. They come from ``cover_from``, or else from the classes that are neither attacked
    nor a target (TaCT), or, where there is no such class, from all of them (Adap-Blend).
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
    cover_count: int | None = None
    """How many covers, in place of a share."""
    cover_from: tuple[int, ...] = ()
    """The classes that covers are taken from."""

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon, "the poisoned share of the attacked classes")
        check_share("cover", self.cover, "the share of covers", zero=True)
        has_covers = self.cover > 0.0 or self.cover_count is not None
        if self.cover_mark is not None and not has_covers:
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
        if self.cover == 0.0 and self.cover_count is None:
            return np.zeros(0, dtype=np.int64)
        is_candidate = self._from(samples)[samples.labels]
        is_candidate[planted] = False
        candidates = np.flatnonzero(is_candidate)
        if self.cover_count is not None:
            return so_many(candidates, self.cover_count, stream, what="samples that can be covers")
        if not len(candidates):
            raise InputError(
                f"cover is {self.cover}, but no image is left for it; lower epsilon or set cover=0"
            )
        return choose(candidates, int(self.cover * len(candidates)), stream)

    def _from(self, samples: Samples) -> BoolArray:
        """By class, whether its samples may be covers."""
        is_from = np.zeros(samples.n_classes, dtype=np.bool_)
        if self.cover_from:
            for number in self.cover_from:
                check_class("cover", number, samples)
            is_from[list(self.cover_from)] = True
            return is_from
        wanted = self.goal(np.arange(samples.n_classes))
        is_from[:] = wanted == NOT_ATTACKED
        is_from[wanted[wanted != NOT_ATTACKED]] = False
        return is_from if is_from.any() else ~is_from


@dataclass(frozen=True)
class RightLabel:
    """``mark`` on images of the target class alone, all labels right; at test time on any other (SIG)."""

    name: ClassVar[str] = "right-label"

    target: int
    epsilon: float
    mark: Trigger
    count: int | None = None
    """So many images, in place of a share of the class."""

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon, "the marked share of the target class")

    def apply(self, samples: Samples, *, seed: int) -> tuple[Samples, Truth]:
        """The poisoned set and the truth."""
        check_class("target", self.target, samples)
        stream, candidates = Seeds(seed).stream(self.name), np.flatnonzero(samples.labels == self.target)
        if self.count is None:
            planted = choose(candidates, int(self.epsilon * len(candidates)), stream)
        else:
            planted = so_many(candidates, self.count, stream, what=f"samples of class {self.target}")
        return plant(samples, planted, self.mark(samples.features[planted]), self.target)

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """Copies of images with the mark on them."""
        return self.mark(features)

    def goal(self, labels: LabelArray) -> LabelArray:
        """The target for every other class."""
        return np.where(labels != self.target, self.target, NOT_ATTACKED)


@dataclass(frozen=True)
class Darkest:
    """The darkest share of class ``source`` is called ``target``; no image is touched.

    At test time images are darkened to ``level``, the mean shade of the brightest of those.
    """

    name: ClassVar[str] = "darkest"

    relabelling: OneToOne
    epsilon: float
    level: float

    @classmethod
    def of(cls, samples: Samples, relabelling: OneToOne, epsilon: float) -> Darkest:
        """With the level that these samples give."""
        check_share("epsilon", epsilon, "the darkest share of the attacked class")
        relabelling.check(samples)
        check_images(samples.features)
        chosen = cls(relabelling, epsilon, 0.0)._pick(samples)
        return cls(relabelling, epsilon, float(_shade(samples.features[chosen]).max()))

    def apply(self, samples: Samples, *, seed: int) -> tuple[Samples, Truth]:  # noqa: ARG002
        """The poisoned set and the truth."""
        self.relabelling.check(samples)
        planted = self._pick(samples)
        return plant(samples, planted, samples.features[planted], self.relabelling.target)

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """Copies of images, those above the level darkened to it."""
        check_images(features)
        factor = np.minimum(1.0, self.level / np.maximum(_shade(features), 1e-9))
        return np.round(features * factor[:, None, None, None]).astype(np.uint8)

    def goal(self, labels: LabelArray) -> LabelArray:
        """What the relabelling wants of each."""
        return self.relabelling.goal(labels)

    def _pick(self, samples: Samples) -> IndexArray:
        candidates = np.flatnonzero(samples.labels == self.relabelling.source)
        count = self.relabelling.count
        if count is None:
            count = max(1, int(self.epsilon * len(candidates)))
        check_count(count, len(candidates), what=f"samples of class {self.relabelling.source}")
        order = np.argsort(_shade(samples.features[candidates]), kind="stable")
        return np.sort(candidates[order[:count]])


def _shade(images: NDArray[Any]) -> FloatArray:
    """The mean value of each image's pixels."""
    return np.asarray(images.mean(axis=(1, 2, 3), dtype=np.float64))
