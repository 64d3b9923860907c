"""The dirty-label backdoor: a trigger on some images of one class, which are then called another class."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.triggers import Patch, Trigger
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, LabelArray


@dataclass(frozen=True)
class Poisoned:
    """A poisoned training set and, for evaluation only, the truth: which samples were planted."""

    images: NDArray[np.uint8]
    labels: LabelArray
    truth: BoolArray


@dataclass(frozen=True)
class DirtyLabel:
    """Put ``patch`` on a share ``epsilon`` of class ``source`` and label it ``target`` (one to one)."""

    source: int
    target: int
    epsilon: float
    patch: Trigger = field(default_factory=Patch)

    def __post_init__(self) -> None:
        if self.source == self.target:
            raise InputError(f"source and target are both class {self.source}; choose two different classes")
        if not 0.0 < self.epsilon <= 1.0:
            raise InputError(
                f"epsilon is the poisoned share of the source class, in (0, 1]. Got {self.epsilon}"
            )

    def trigger(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """What the attacker does to an image at test time."""
        return self.patch(images)

    def apply(self, images: NDArray[np.uint8], labels: LabelArray, *, seed: int) -> Poisoned:
        """Poison a training set; the arrays given stay as they are."""
        for name, wanted in (("source", self.source), ("target", self.target)):
            if wanted not in labels:
                raise InputError(f"the {name} class {wanted} does not occur in the data")
        candidates = np.flatnonzero(labels == self.source)
        count = max(1, int(self.epsilon * len(candidates)))
        chosen = Seeds(seed).stream("dirty-label").choice(candidates, size=count, replace=False)
        poisoned_images, poisoned_labels = images.copy(), labels.copy()
        poisoned_images[chosen] = self.trigger(images[chosen])
        poisoned_labels[chosen] = self.target
        truth = np.zeros(len(labels), dtype=np.bool_)
        truth[chosen] = True
        return Poisoned(poisoned_images, poisoned_labels, truth)
