"""Expansion errors without sampling: every alpha-subset of a small set is enumerated, in fractions.

The definitions of self-expansion and compatibility to the letter. ``unpoison.core.expansion`` estimates the
same quantity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, product
from math import ceil
from typing import TypeAlias

from unpoison.errors import InputError

Samples: TypeAlias = frozenset[int]
Learner: TypeAlias = Callable[[Samples], Sequence[Fraction | int]]
"""Trained on these samples, how probably it is wrong about each sample there is. A learner that draws lots
gives fractions, a deterministic one 0 and 1."""

NOTHING: Samples = frozenset()


@dataclass(frozen=True)
class Finding:
    """How often a statement was put to the test, and how often it was wrong."""

    cases: int
    failures: int

    @property
    def held(self) -> bool:
        """Whether it was tested and never wrong."""
        return self.cases > 0 and self.failures == 0

    def __add__(self, other: Finding) -> Finding:
        return Finding(self.cases + other.cases, self.failures + other.failures)


class Expansion:
    """The alpha-expansion errors of all sets of some samples, under one learner."""

    def __init__(self, labels: Sequence[int], learner: Learner, *, alpha: Fraction) -> None:
        if not 0 < alpha <= 1:
            raise InputError(f"The 'alpha' parameter must be a share in (0, 1]. Got {alpha} instead.")
        self.labels = tuple(labels)
        self.alpha = alpha
        self._learner = learner
        self._answers: dict[Samples, Sequence[Fraction | int]] = {}
        self._expected: dict[Samples, tuple[Fraction, ...]] = {}
        self._errors: dict[tuple[Samples, Samples], Fraction] = {}

    @property
    def samples(self) -> Samples:
        """All there are."""
        return frozenset(range(len(self.labels)))

    def error(self, of: Samples, given: Samples = NOTHING) -> Fraction:
        """epsilon(S | T; alpha), for S not empty."""
        if not of:
            raise InputError("the expansion error of an empty set is not defined; give at least one sample")
        asked = of, of | given
        if asked not in self._errors:
            expected = self._expected_errors(asked[1])
            self._errors[asked] = sum((expected[i] for i in of), Fraction(0)) / len(of)
        return self._errors[asked]

    def total(self, of: Samples, given: Samples = NOTHING) -> Fraction:
        """|S| epsilon(S | T; alpha), which is 0 for the empty set by the paper's convention."""
        return len(of) * self.error(of, given) if of else Fraction(0)

    def _expected_errors(self, trained: Samples) -> tuple[Fraction, ...]:
        """For every sample, the chance that a model of a random share of ``trained`` is wrong about it."""
        if trained not in self._expected:
            drawn = list(alpha_samples(trained, self.labels, alpha=self.alpha))
            rows = [self._answer(subset) for subset in drawn]
            self._expected[trained] = tuple(
                Fraction(sum(column), len(drawn)) for column in zip(*rows, strict=True)
            )
        return self._expected[trained]

    def _answer(self, subset: Samples) -> Sequence[Fraction | int]:
        if subset not in self._answers:
            self._answers[subset] = self._learner(subset)
        return self._answers[subset]


def alpha_samples(of: Samples, labels: Sequence[int], *, alpha: Fraction) -> Iterator[Samples]:
    """Every subset that Sample may draw: an ``alpha`` share of each class, rounded up. All equally likely.

    >>> [sorted(drawn) for drawn in alpha_samples(frozenset({0, 1, 2}), (0, 0, 1), alpha=Fraction(1, 2))]
    [[0, 2], [1, 2]]
    """
    classes = [sorted(i for i in of if labels[i] == label) for label in sorted({labels[i] for i in of})]
    choices = [combinations(members, ceil(alpha * len(members))) for members in classes]
    for parts in product(*choices):
        yield frozenset(chain.from_iterable(parts))


def subsets(of: Samples) -> Iterator[Samples]:
    """All but the empty one, smaller ones first."""
    members = sorted(of)
    for size in range(1, len(members) + 1):
        yield from map(frozenset, combinations(members, size))


def splits(of: Samples) -> Iterator[tuple[Samples, Samples]]:
    """Every way to cut a set into two parts that are not empty, each once."""
    first = min(of)
    for part in subsets(of):
        if first in part and part != of:
            yield part, of - part


def is_incompatible(expansion: Expansion, given: Samples, *, of: Samples, strict: bool = False) -> bool:
    """Whether ``given`` does not help with ``of`` (strictly: harms it)."""
    alone, together = expansion.error(of), expansion.error(of, given)
    return alone < together if strict else alone <= together


def completely_incompatible(
    expansion: Expansion, given: Samples, *, of: Samples, strict: bool = False
) -> bool:
    """Whether that holds for every part of ``given`` with every part of ``of``, none of them empty."""
    return all(
        is_incompatible(expansion, other, of=part, strict=strict)
        for part in subsets(of)
        for other in subsets(given)
    )


def mutually_incompatible(expansion: Expansion, a: Samples, b: Samples) -> bool:
    """The premise of the minimal-expansion theorem: completely, in both directions."""
    return completely_incompatible(expansion, b, of=a) and completely_incompatible(expansion, a, of=b)


def decomposition_gap(expansion: Expansion, a: Samples, b: Samples) -> Fraction:
    """The left minus the right side of the decomposition lemma; 0 where the lemma holds."""
    return expansion.total(a | b) - expansion.total(a, b) - expansion.total(b, a)


def check_decomposition(expansion: Expansion, *, disjoint: bool = True) -> Finding:
    """The lemma for every pair of sets without (or only those with) samples in common."""
    everything = [NOTHING, *subsets(expansion.samples)]
    pairs = [(a, b) for a in everything for b in everything if a.isdisjoint(b) is disjoint and a | b]
    return Finding(len(pairs), sum(decomposition_gap(expansion, a, b) != 0 for a, b in pairs))


def check_decomposition_of_overlaps(expansion: Expansion) -> Finding:
    """What is true of any two sets: what they have in common is counted twice."""
    everything = list(subsets(expansion.samples))
    failures = sum(
        decomposition_gap(expansion, a, b) != -expansion.total(a & b, a | b)
        for a in everything
        for b in everything
    )
    return Finding(len(everything) ** 2, failures)
