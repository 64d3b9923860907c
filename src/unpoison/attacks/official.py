"""The authors' dirty-label scenarios on CIFAR-10, number by number: their marks and their images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import Samples, Truth, check_share, plant
from unpoison.attacks.labels import OneToOne
from unpoison.attacks.triggers import Mark
from unpoison.errors import InputError
from unpoison.types import IndexArray, LabelArray

PAIRS = ((0, 2), (1, 3), (3, 5), (7, 4), (2, 5), (8, 6), (9, 2), (3, 7))
"""Source and target, in the order of the draws."""
SCENARIO_SEEDS = (100, 1000, 10000)
EPSILONS = (0.05, 0.1, 0.2)

_PLACES = {"pixel": (0, 31), "pattern": (1, 30), "ell": (0, 30)}
"""In the order of the draws: the smallest row and column, and the first that is too large."""


def official_marks(scenario_seed: int) -> dict[tuple[int, int], Mark]:
    """The mark of each pair, drawn one after the other from numpy's legacy generator."""
    generator = _generator(scenario_seed)
    return {pair: _draw(generator) for pair in PAIRS}


def official_mark(scenario_seed: int, pair: tuple[int, int]) -> Mark:
    """The mark of one pair; the same for every epsilon."""
    _check_pair(pair)
    return official_marks(scenario_seed)[pair]


def official_choice(
    labels: LabelArray, scenario_seed: int, pair: tuple[int, int], epsilon: float
) -> IndexArray:
    """Which samples the authors poison, ascending."""
    _check_pair(pair)
    source, target = pair
    candidates = np.flatnonzero(labels == source)
    count = int(epsilon * len(candidates))
    if not count:
        raise InputError(
            f"a share of {epsilon} of the {len(candidates)} samples of class {source} is not one sample; "
            "raise epsilon, or take more data"
        )
    generator = _generator(scenario_seed + int(100 * epsilon) + 10 * source + target)
    return np.sort(generator.choice(candidates, count, replace=False))


@dataclass(frozen=True)
class OfficialDirtyLabel:
    """One scenario of the authors. The seed of ``apply`` changes nothing: the scenario's own decides."""

    name: ClassVar[str] = "official-dirty-label"

    scenario_seed: int
    pair: tuple[int, int]
    epsilon: float

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon, "the poisoned share of the source class")
        official_mark(self.scenario_seed, self.pair)

    @property
    def mark(self) -> Mark:
        """The trigger, in training and at test time."""
        return official_mark(self.scenario_seed, self.pair)

    def apply(self, samples: Samples, *, seed: int = 0) -> tuple[Samples, Truth]:  # noqa: ARG002
        """The poisoned set and the truth."""
        OneToOne(*self.pair).check(samples)
        planted = official_choice(samples.labels, self.scenario_seed, self.pair, self.epsilon)
        return plant(samples, planted, self.trigger(samples.features[planted]), self.pair[1])

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """Copies of images with the mark on them."""
        return self.mark(features)

    def goal(self, labels: LabelArray) -> LabelArray:
        """The target for the source class."""
        return OneToOne(*self.pair).goal(labels)


def _draw(generator: np.random.RandomState) -> Mark:
    # the type is said because the draws depend on it, and its default on the platform
    shape = tuple(_PLACES)[generator.randint(3, dtype=np.int64)]
    row, column = generator.randint(*_PLACES[shape], size=2, dtype=np.int64).tolist()
    red, green, blue = generator.randint(255, size=3, dtype=np.int64).tolist()
    return Mark(shape, row, column, (red, green, blue))


def _generator(seed: int) -> np.random.RandomState:
    if not 0 <= seed < 2**32:
        raise InputError(f"the scenario seed must be from 0 to about 4 billion. Got {seed}")
    return np.random.RandomState(seed)


def _check_pair(pair: tuple[int, int]) -> None:
    if pair not in PAIRS:
        raise InputError(f"the authors have no scenario for the pair {pair}; choose one of {PAIRS}")
