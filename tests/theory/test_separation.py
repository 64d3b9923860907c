from __future__ import annotations

from fractions import Fraction
from functools import reduce
from operator import add

import numpy as np
import pytest

from unpoison.evaluation.theory.exact import (
    Expansion,
    Finding,
    Samples,
    mutually_incompatible,
    subsets,
)
from unpoison.evaluation.theory.learners import (
    any_learner,
    every_learner,
    posterior_sampler,
    risk_minimizer,
    thresholds,
)
from unpoison.evaluation.theory.separation import (
    Claim,
    all_are_homogeneous,
    check_separation,
    incompatible_as_wholes,
    incompatible_one_way,
    minimizers,
    separate,
    smallest_are_homogeneous,
    smallest_minimizers,
    strict_as_wholes,
    strictly_incompatible,
)

HALF, ONE = Fraction(1, 2), Fraction(1)


def over(expansions: list[Expansion], premise: Claim, conclusion: Claim) -> Finding:
    return reduce(add, (check_separation(e, premise, conclusion) for e in expansions))


def nothing(expansion: Expansion, a: Samples, b: Samples) -> bool:
    return True


@pytest.fixture(scope="module")
def every() -> list[Expansion]:
    """All learners on three samples, at alpha 1."""
    return [Expansion((0, 0, 1), learner, alpha=ONE) for learner in every_learner(3)]


@pytest.fixture(scope="module")
def arbitrary() -> list[Expansion]:
    """Learners drawn at random, on four samples of one or two classes, at three alphas."""
    rng = np.random.default_rng(0)
    return [
        Expansion(rng.integers(0, 2, size=4).tolist(), any_learner(4, rng=rng), alpha=Fraction(1, share))
        for share in (1, 2, 4)
        for _ in range(100)
    ]


@pytest.mark.parametrize("source", ["every", "arbitrary"])
def test_smallest_minimizers_are_homogeneous(source: str, request: pytest.FixtureRequest) -> None:
    found = over(request.getfixturevalue(source), mutually_incompatible, smallest_are_homogeneous)
    assert found.held
    assert found.cases > 50


@pytest.mark.parametrize("source", ["every", "arbitrary"])
def test_all_are_homogeneous_under_strict_incompatibility(
    source: str, request: pytest.FixtureRequest
) -> None:
    found = over(request.getfixturevalue(source), strictly_incompatible, all_are_homogeneous)
    assert found.held
    assert found.cases > 5


@pytest.mark.parametrize(
    ("premise", "conclusion"),
    [
        pytest.param(nothing, smallest_are_homogeneous, id="no incompatibility"),
        pytest.param(incompatible_as_wholes, smallest_are_homogeneous, id="not completely"),
        pytest.param(incompatible_one_way, smallest_are_homogeneous, id="not mutually"),
        pytest.param(mutually_incompatible, all_are_homogeneous, id="not strictly"),
        pytest.param(strict_as_wholes, all_are_homogeneous, id="strictly, but not for all parts"),
    ],
)
def test_each_premise_is_needed(every: list[Expansion], premise: Claim, conclusion: Claim) -> None:
    assert over(every, premise, conclusion).failures > 100


def test_the_theorem_also_holds_for_sets_that_overlap(every: list[Expansion]) -> None:
    """Though the lemma that its proof cites does not: what is in both may be counted with A alone."""
    everything = frozenset({0, 1, 2})
    covers = [
        (a, b) for a in subsets(everything) for b in subsets(everything) if a | b == everything and a & b
    ]
    cases = [
        smallest_are_homogeneous(e, a, b)
        for e in every[::2]
        for a, b in covers
        if a != everything and b != everything and mutually_incompatible(e, a, b)
    ]
    assert len(cases) > 50
    assert all(cases)


def conventions(
    n: int, *, prior: int, alpha: Fraction, same: bool = False
) -> tuple[Expansion, Samples, Samples]:
    """Half of the samples labelled by one convention, half by the opposite one (or by the ``same``)."""
    convention = [i % 2 for i in range(n)]
    a = frozenset(range(n // 2))
    labels = [c if same or i in a else 1 - c for i, c in enumerate(convention)]
    learner = posterior_sampler([convention, [1 - c for c in convention]], labels, prior=prior)
    return Expansion(labels, learner, alpha=alpha), a, frozenset(range(n)) - a


@pytest.mark.parametrize("alpha", [Fraction(1, 4), HALF, ONE])
def test_two_label_conventions_come_apart(alpha: Fraction) -> None:
    expansion, a, b = conventions(8, prior=1, alpha=alpha)
    assert strictly_incompatible(expansion, a, b)
    assert all(len(part) > 1 for part in minimizers(expansion, a | b))
    assert {*separate(expansion, largest=True)} == {a, b}
    parts = list(separate(expansion))
    assert all(part <= a or part <= b for part in parts)
    assert sorted(i for part in parts for i in part) == list(range(8))


def test_two_halves_of_one_convention_do_not() -> None:
    """The premise fails: each half helps the other. So does the conclusion: the whole expands best."""
    expansion, a, b = conventions(8, prior=1, alpha=ONE, same=True)
    assert not incompatible_as_wholes(expansion, a, b)
    assert smallest_minimizers(expansion, a | b) == [a | b]


@pytest.mark.parametrize("alpha", [HALF, ONE])
@pytest.mark.parametrize("labels", [(0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0)])
def test_for_a_learner_that_fits_what_it_can_the_theorem_is_empty(
    labels: tuple[int, ...], alpha: Fraction
) -> None:
    """Its first claim is true of any A and B at all: single samples have error 0, so they are the smallest.

    Its second has no premise: two samples of two classes do each other no harm, so nothing is strict.
    """
    expansion = Expansion(labels, risk_minimizer(thresholds(4), labels), alpha=alpha)
    assert check_separation(expansion, nothing, smallest_are_homogeneous) == Finding(7, 0)
    assert check_separation(expansion, strictly_incompatible, nothing).cases == 0
    assert [len(part) for part in separate(expansion)] == [1] * 4
