"""An attacker who knows the defense: poison spread over every component that it would find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import NOT_ATTACKED, Samples, Truth, check_share, choose, plant
from unpoison.attacks.labels import Relabelling
from unpoison.attacks.triggers import Trigger
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray


@dataclass(frozen=True)
class Adaptive:
    """The same share of the attacked samples of every component is poisoned, at least one of each.

    ``components`` gives each sample's component on the clean data; -1, none, counts as one more. A component
    without attacked samples stays clean.
    """

    name: ClassVar[str] = "adaptive"

    relabelling: Relabelling
    epsilon: float
    mark: Trigger
    components: Sequence[int] | NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon, "the poisoned share of the attacked classes")
        components = np.asarray(self.components)
        if components.ndim != 1 or not np.issubdtype(components.dtype, np.integer):
            raise InputError(
                "components are one whole number a sample, "
                f"got {components.dtype} of shape {components.shape}"
            )
        # a tuple, so that equal attacks are equal
        object.__setattr__(self, "components", tuple(components.tolist()))

    def apply(self, samples: Samples, *, seed: int) -> tuple[Samples, Truth]:
        """The poisoned set and the truth."""
        self.relabelling.check(samples)
        planted = self._pick(samples, Seeds(seed).within(self.name))
        marked = self.trigger(samples.features[planted])
        return plant(samples, planted, marked, self.goal(samples.labels[planted]))

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """Copies of images with the mark on them."""
        return self.mark(features)

    def goal(self, labels: LabelArray) -> LabelArray:
        """What the relabelling wants of each."""
        return self.relabelling.goal(labels)

    def _pick(self, samples: Samples, seeds: Seeds) -> IndexArray:
        if len(self.components) != len(samples):
            raise InputError(
                f"components are for {len(self.components)} samples, the data have {len(samples)}; "
                "find the components of these data"
            )
        components = np.asarray(self.components)
        is_attacked = self.goal(samples.labels) != NOT_ATTACKED
        share = self.relabelling.share(self.epsilon, samples.n_classes)
        parts = []
        for component in np.unique(components[is_attacked]).tolist():
            members = np.flatnonzero(is_attacked & (components == component))
            parts.append(choose(members, int(share * len(members)), seeds.stream("component", component)))
        return np.sort(np.concatenate(parts))
