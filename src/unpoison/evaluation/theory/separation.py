"""Sets that minimise the expansion error are homogeneous: by brute force over all subsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from unpoison.evaluation.theory.exact import (
    Expansion,
    Finding,
    Samples,
    completely_incompatible,
    is_incompatible,
    mutually_incompatible,
    splits,
    subsets,
)

Claim: TypeAlias = Callable[[Expansion, Samples, Samples], bool]
"""Something to be said of a set's samples when they are cut into A and B."""


def minimizers(expansion: Expansion, within: Samples) -> list[Samples]:
    """The subsets with the least expansion error, smaller ones first. The empty set has none."""
    errors = {part: expansion.error(part) for part in subsets(within)}
    least = min(errors.values())
    return [part for part, error in errors.items() if error == least]


def smallest_minimizers(expansion: Expansion, within: Samples) -> list[Samples]:
    """Those with the fewest samples."""
    found = minimizers(expansion, within)
    return [part for part in found if len(part) == len(found[0])]


def smallest_are_homogeneous(expansion: Expansion, a: Samples, b: Samples) -> bool:
    """The theorem's first conclusion."""
    return all(part <= a or part <= b for part in smallest_minimizers(expansion, a | b))


def all_are_homogeneous(expansion: Expansion, a: Samples, b: Samples) -> bool:
    """The theorem's second conclusion."""
    return all(part <= a or part <= b for part in minimizers(expansion, a | b))


def strictly_incompatible(expansion: Expansion, a: Samples, b: Samples) -> bool:
    """The second premise, read as it must be: one of the two is strict for every pair of parts."""
    return mutually_incompatible(expansion, a, b) and (
        completely_incompatible(expansion, b, of=a, strict=True)
        or completely_incompatible(expansion, a, of=b, strict=True)
    )


def strict_as_wholes(expansion: Expansion, a: Samples, b: Samples) -> bool:
    """The second premise read too weakly: only A and B themselves need harm each other, not their parts."""
    return mutually_incompatible(expansion, a, b) and (
        is_incompatible(expansion, b, of=a, strict=True) or is_incompatible(expansion, a, of=b, strict=True)
    )


def incompatible_one_way(expansion: Expansion, a: Samples, b: Samples) -> bool:
    """The first premise without "mutually": B does not help A, but A may help B."""
    return completely_incompatible(expansion, b, of=a)


def incompatible_as_wholes(expansion: Expansion, a: Samples, b: Samples) -> bool:
    """The first premise without "completely"."""
    return is_incompatible(expansion, b, of=a) and is_incompatible(expansion, a, of=b)


def check_separation(expansion: Expansion, premise: Claim, conclusion: Claim) -> Finding:
    """The conclusion for every cut of the samples into A and B for which the premise holds."""
    cuts = [(a, b) for a, b in splits(expansion.samples) if premise(expansion, a, b)]
    return Finding(len(cuts), sum(not conclusion(expansion, a, b) for a, b in cuts))


def separate(expansion: Expansion, *, largest: bool = False) -> Iterator[Samples]:
    """The procedure that the theorem suggests: take a smallest minimiser away until nothing is left.

    ``largest`` takes a largest one, as the paper allows under strict incompatibility.
    """
    rest = expansion.samples
    while rest:
        found = minimizers(expansion, rest)[-1 if largest else 0]
        yield found
        rest -= found
