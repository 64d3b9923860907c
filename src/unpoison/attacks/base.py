"""What every attack is: it plants samples in a training set, and knows what it wants at test time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError
from unpoison.types import BoolArray, IndexArray, LabelArray

NOT_ATTACKED = -1
"""In :meth:`Attack.goal`: the attacker wants nothing of this sample."""


@dataclass(frozen=True)
class Samples:
    """What an attacker sees of a training set, as arrays of its own.

    ``features`` is uint8 ``(n, height, width, channels)`` for images, float ``(n, columns)`` in the units of
    the source for rows, and an object array ``(n,)`` of strings for texts.
    """

    features: NDArray[Any]
    labels: LabelArray
    class_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.features) != len(self.labels):
            raise InputError(f"{len(self.features)} samples but {len(self.labels)} labels; they must match")
        if self.labels.ndim != 1 or not np.issubdtype(self.labels.dtype, np.integer):
            raise InputError(
                "labels must be one class number a sample, "
                f"got {self.labels.dtype} of shape {self.labels.shape}"
            )
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < self.n_classes:
            raise InputError(
                f"labels go from {self.labels.min()} to {self.labels.max()}, but there are names for "
                f"{self.n_classes} classes; number the classes from 0 on, and name them all"
            )

    @classmethod
    def numbered(cls, features: NDArray[Any], labels: LabelArray) -> Samples:
        """Classes without names of their own, from 0 to the largest label.

        >>> Samples.numbered(np.zeros((3, 8, 8, 1), np.uint8), np.array([0, 2, 2])).class_names
        ('0', '1', '2')
        """
        n_classes = int(labels.max()) + 1 if len(labels) else 0
        return cls(features, labels, tuple(map(str, range(n_classes))))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """How many classes there are, with and without samples."""
        return len(self.class_names)

    def changed(self, features: NDArray[Any], labels: LabelArray) -> Samples:
        """The same set with other features and labels."""
        return replace(self, features=features, labels=labels)


@dataclass(frozen=True)
class Truth:
    """What an attack did, for evaluation only; apart from the samples, so that no defense can see it."""

    planted: BoolArray
    """The samples that carry the attack: what a perfect defense removes."""
    covers: BoolArray
    """Samples with the trigger and their own label, which hide the attack (TaCT, Adap-Blend)."""
    original_labels: LabelArray


class Attack(Protocol):
    """One way to poison a training set. Frozen dataclasses: equal settings, equal attacks."""

    name: ClassVar[str]

    def apply(self, samples: Samples, *, seed: int) -> tuple[Samples, Truth]:
        """The poisoned set, in the same order and of the same size, and apart from it the truth.

        What is given stays as it is; samples that are neither planted nor covers stay byte for byte.
        """
        ...

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """Copies of test samples with the trigger on them; labels are none of its business."""
        ...

    def goal(self, labels: LabelArray) -> LabelArray:
        """For test samples with these true labels: the class that the attacker wants the trigger to give
        them, or :data:`NOT_ATTACKED`."""
        ...


def check_share(name: str, value: float, meaning: str, *, zero: bool = False) -> None:
    """Refuse a share outside (0, 1], or [0, 1] with ``zero``."""
    if not (0.0 < value <= 1.0 or (zero and value == 0.0)):
        raise InputError(f"{name} is {meaning}, in {'[0' if zero else '(0'}, 1]. Got {value}")


def check_images(features: NDArray[Any]) -> None:
    """Refuse anything but uint8 images ``(n, height, width, channels)``, gray or in colour."""
    if features.dtype != np.uint8 or features.ndim != 4 or features.shape[3] not in (1, 3):
        raise InputError(
            "this trigger marks uint8 images of shape (n, height, width, 1 or 3), "
            f"got {features.dtype} of shape {features.shape}; choose a trigger for this kind of data"
        )


def check_class(name: str, number: int, samples: Samples) -> None:
    """Refuse a class that does not exist or has no samples."""
    if not 0 <= number < samples.n_classes:
        raise InputError(
            f"the {name} class {number} does not exist; the classes are 0 to {samples.n_classes - 1}"
        )
    if number not in samples.labels:
        raise InputError(f"the {name} class {number} does not occur in the data; choose another class")


def choose(candidates: IndexArray, count: int, stream: np.random.Generator) -> IndexArray:
    """``count`` of the candidates, at least one, without replacement, in ascending order."""
    chosen = stream.choice(candidates, size=max(1, count), replace=False)
    chosen.sort()
    return chosen


def plant(
    samples: Samples,
    planted: IndexArray,
    features: NDArray[Any],
    labels: LabelArray | int,
    *,
    covers: IndexArray | Sequence[int] = (),
    cover_features: NDArray[Any] | None = None,
) -> tuple[Samples, Truth]:
    """Put features and labels in place of the samples ``planted``, and features alone for the covers."""
    new_features, new_labels = samples.features.copy(), samples.labels.copy()
    new_features[planted] = features
    new_labels[planted] = labels
    covering = np.zeros(len(samples), dtype=np.bool_)
    if cover_features is not None:
        new_features[covers] = cover_features
        covering[covers] = True
    planting = np.zeros(len(samples), dtype=np.bool_)
    planting[planted] = True
    return samples.changed(new_features, new_labels), Truth(planting, covering, samples.labels.copy())
