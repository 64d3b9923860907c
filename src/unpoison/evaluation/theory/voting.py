"""The vote of Algorithm 2, against every answer that its voters could give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from unpoison.core.boosting import component_votes
from unpoison.evaluation.theory.exact import Finding
from unpoison.types import BoolArray, IndexArray, LabelArray

Mistakes: TypeAlias = NDArray[np.int64]
"""Voters by components: how many samples of a component the model of another gets wrong."""


@dataclass(frozen=True)
class Components:
    """Homogeneous sets by their sizes, and which of them are clean."""

    sizes: tuple[int, ...]
    clean: tuple[bool, ...]

    @property
    def clean_size(self) -> int:
        """Samples in clean components."""
        return sum(size for size, clean in zip(self.sizes, self.clean, strict=True) if clean)

    def named_right(self, mistakes: Mistakes) -> bool:
        """The theorem's conclusion: the clean components are voted in, the poisoned ones are not."""
        return bool((self._votes(mistakes) == np.array(self.clean)).all())

    def _votes(self, mistakes: Mistakes) -> BoolArray:
        """What the shipped vote makes of predictions with these mistakes."""
        ends = np.cumsum(self.sizes)
        members = [np.arange(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]
        predictions = np.zeros((len(self.sizes), int(ends[-1])), dtype=np.int64)
        for voter, k in np.ndindex(mistakes.shape):
            predictions[voter, members[k][: mistakes[voter, k]]] = 1
        return component_votes(predictions, members, np.zeros(int(ends[-1]), dtype=np.int64))


def has_property(components: Components, mistakes: Mistakes, *, own: bool = True) -> bool:
    """The compatibility property among these components; ``own``: clean models also know their own samples.

    The paper's property speaks of disjoint sets only, but a component's vote on itself is counted as well.
    """
    wrong_half = 2 * mistakes >= np.array(components.sizes)
    clean = np.array(components.clean)
    asked = clean[:, None] & (own | ~np.eye(len(clean), dtype=np.bool_))
    return bool((wrong_half == ~clean[None, :])[asked].all())


def all_mistakes(components: Components) -> Iterator[Mistakes]:
    """Just under and just at half wrong, for every voter and component: all that a vote sees."""
    half = (np.array(components.sizes) + 1) // 2
    n = len(components.sizes)
    for wrong in product((0, 1), repeat=n * n):
        yield half - 1 + np.array(wrong, dtype=np.int64).reshape(n, n)


def check_votes(components: Components, *, own: bool = True, lacking: bool = False) -> Finding:
    """The theorem over all answers that have the property (or, to see what it is for, all ``lacking`` it)."""
    relevant = [m for m in all_mistakes(components) if has_property(components, m, own=own) is not lacking]
    return Finding(len(relevant), sum(not components.named_right(m) for m in relevant))


def component_sets(n_clean: int, n_poisoned: int, *, most: int) -> Iterator[Components]:
    """Every way to cut so many clean and poisoned samples into at most ``most`` components, by size."""
    for clean in _partitions(n_clean):
        for poisoned in _partitions(n_poisoned):
            if len(clean) + len(poisoned) <= most:
                yield Components(clean + poisoned, (True,) * len(clean) + (False,) * len(poisoned))


def _partitions(total: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
    for first in range(min(total, largest or total), 0, -1):
        yield from ((first, *rest) for rest in _partitions(total - first, first))


def mistakes_between(
    predictions: Sequence[LabelArray], components: Sequence[IndexArray], labels: LabelArray
) -> Mistakes:
    """Of real models: row ``i`` of ``predictions`` is what the model of component ``i`` says of everyone."""
    return np.array([[(row[c] != labels[c]).sum() for c in components] for row in predictions])
