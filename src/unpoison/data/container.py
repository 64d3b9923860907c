"""The one shape in which data travels: features for the learner, and what is needed to give it back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError
from unpoison.types import BoolArray, LabelArray

Kind: TypeAlias = Literal["image", "rows", "text"]
Augmentation: TypeAlias = Literal["none", "crop", "crop-flip"]


@dataclass(frozen=True)
class Preview:
    """One sample as a person would look at it. Exactly one of the three is set."""

    image: NDArray[np.uint8] | None = None
    """Pixels, shape ``(height, width)`` or ``(height, width, 3)``, at most about 128 pixels a side."""
    text: str | None = None
    columns: tuple[tuple[str, str], ...] | None = None
    """Column names and values, in the order of the file."""


class Origin(Protocol):
    """Where a dataset came from: knows how to show a sample and how to write the kept ones back."""

    @property
    def form(self) -> str:
        """``folder``, ``npz``, ``csv``, ``tsv``, ``parquet`` or ``hub``: the form of ``clean/``."""
        ...

    def preview(self, index: int) -> Preview:
        """The sample at ``index``, for the report."""
        ...

    def write_kept(self, keep: BoolArray, directory: Path) -> None:
        """Write the samples with ``keep`` True into the empty ``directory``, in the form they came."""
        ...


@dataclass(frozen=True)
class Dataset:
    """A labelled training set, read-only.

    ``features`` is a uint8 array ``(n, height, width, channels)`` for images, float32 ``(n, d)`` for rows,
    and a scipy CSR matrix for text or wide one-hot rows. ``ids`` are unique and stable across runs.
    """

    name: str
    kind: Kind
    features: Any
    labels: LabelArray
    class_names: tuple[str, ...]
    ids: tuple[str, ...]
    sources: tuple[str, ...]
    sha256: tuple[str, ...]
    origin: Origin
    augmentation: Augmentation = "crop"
    """How images may be varied in training: shifted, and mirrored too where left and right mean nothing."""

    def __post_init__(self) -> None:
        n = len(self.labels)
        for field in ("ids", "sources", "sha256"):
            if len(getattr(self, field)) != n:
                raise InputError(f"{self.name}: {len(getattr(self, field))} {field} for {n} labels")
        if self.features.shape[0] != n:
            raise InputError(f"{self.name}: {self.features.shape[0]} samples but {n} labels; they must match")
        check_unique(self.name, self.ids)
        check_classes(self.name, self.labels, self.class_names)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def fingerprint(self) -> str:
        """sha256 over ids, labels and sample hashes, in order: equal ones mean equal datasets."""
        digest = hashlib.sha256()
        for sample_id, label, sha in zip(self.ids, self.labels, self.sha256, strict=True):
            digest.update(f"{sample_id}\0{self.class_names[label]}\0{sha}\n".encode())
        return digest.hexdigest()


def check_unique(name: str, ids: Sequence[str]) -> None:
    """Refuse duplicate ids, naming the first."""
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    duplicate = next(i for i in ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
    raise InputError(
        f"{name}: the id {duplicate!r} occurs more than once; every sample needs an id of its own"
    )


def check_classes(name: str, labels: LabelArray, class_names: Sequence[str]) -> None:
    """Refuse label sets that no classifier can be trained and judged on."""
    if len(labels) == 0:
        raise InputError(f"{name}: no samples found")
    counts = np.bincount(labels, minlength=len(class_names))
    if len(counts) > len(class_names):
        raise InputError(
            f"{name}: label {len(counts) - 1} has no class name ({len(class_names)} names given)"
        )
    empty = [class_names[c] for c in np.flatnonzero(counts == 0).tolist()]
    if empty:
        raise InputError(f"{name}: class {empty[0]!r} is empty; remove it or add samples")
    if len(class_names) < 2:
        raise InputError(
            f"{name}: only one class ({class_names[0]!r}); unpoison compares what models say about labels "
            "and needs at least two classes"
        )
    for c in np.flatnonzero(counts < 2).tolist():
        raise InputError(
            f"{name}: class {class_names[c]!r} has {counts[c]} sample; every class needs at least 2. "
            "Remove the class or add samples"
        )
