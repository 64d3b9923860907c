from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

from unpoison.core.expansion import Measuring, expansion_error
from unpoison.core.learner import Assessment
from unpoison.core.result import Cost
from unpoison.core.sampling import sample_per_class
from unpoison.errors import InputError
from unpoison.evaluation.theory.exact import (
    Expansion,
    Finding,
    alpha_samples,
    check_decomposition,
    check_decomposition_of_overlaps,
    completely_incompatible,
    decomposition_gap,
    is_incompatible,
    splits,
    subsets,
)
from unpoison.evaluation.theory.learners import any_learner, posterior_sampler
from unpoison.types import IndexArray, LabelArray

HALF, ONE = Fraction(1, 2), Fraction(1)


def some(*samples: int) -> frozenset[int]:
    return frozenset(samples)


def parity(trained: frozenset[int]) -> list[int]:
    """Trained on 0 it is wrong about 1, and the other way round."""
    return [int(1 in trained), int(0 in trained), 0]


def test_an_expansion_error_by_hand() -> None:
    expansion = Expansion((0, 0, 1), parity, alpha=HALF)
    # of class 0 one of two is drawn: each makes one mistake on {0, 1}, half of the time on 0
    assert expansion.error(some(0, 1)) == HALF
    assert expansion.error(some(0), some(1)) == HALF
    assert expansion.error(some(0)) == 0
    assert expansion.error(some(0, 1, 2)) == Fraction(1, 3)
    assert expansion.total(frozenset(), some(0)) == 0


def test_incompatible_and_strictly_so() -> None:
    expansion = Expansion((0, 0, 1), parity, alpha=HALF)
    assert is_incompatible(expansion, some(1), of=some(0), strict=True)
    assert is_incompatible(expansion, some(2), of=some(0))
    assert not is_incompatible(expansion, some(2), of=some(0), strict=True)
    assert completely_incompatible(expansion, some(1, 2), of=some(0))
    assert not completely_incompatible(expansion, some(1, 2), of=some(0), strict=True)


def test_what_is_compatible_by_the_papers_definition_can_be_incompatible_too() -> None:
    """Both are "at most": where nothing changes, both hold."""
    expansion = Expansion((0, 0, 1), parity, alpha=HALF)
    alone, together = expansion.error(some(0)), expansion.error(some(0), some(2))
    assert alone <= together <= alone


@pytest.mark.parametrize("alpha", [Fraction(1, 4), HALF, Fraction(3, 5), ONE])
def test_the_subsets_are_those_that_the_shipped_sampling_draws(alpha: Fraction) -> None:
    labels = np.array([0, 0, 0, 1, 1, 0, 2])
    given = np.array([0, 1, 2, 3, 4, 6])
    rng = np.random.default_rng(0)
    drawn = [
        frozenset(sample_per_class(given, labels, alpha=float(alpha), rng=rng).tolist()) for _ in range(300)
    ]
    enumerated = list(alpha_samples(frozenset(given.tolist()), labels.tolist(), alpha=alpha))
    assert set(drawn) == set(enumerated)
    assert len(set(enumerated)) == len(enumerated)


@dataclass
class Drawing:
    """The posterior sampler as a learner of the core: it draws its mistakes."""

    labels: LabelArray
    hypotheses: LabelArray
    rng: np.random.Generator
    chosen: int = 0
    cost: Cost = field(default_factory=Cost)

    def fit(self, indices: IndexArray, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        weights = 1 + (self.hypotheses[:, indices] == self.labels[indices]).sum(axis=1)
        self.chosen = int(self.rng.choice(len(weights), p=weights / weights.sum()))

    def assess(self, indices: IndexArray) -> Assessment:
        return Assessment(
            np.zeros(len(indices)), self.hypotheses[self.chosen, indices], np.ones(len(indices))
        )


@pytest.mark.parametrize(("of", "given"), [((0, 1, 2), ()), ((0, 1, 2), (3, 4, 5)), ((3, 4), (0,))])
def test_the_shipped_estimate_agrees(of: tuple[int, ...], given: tuple[int, ...]) -> None:
    labels = np.array([0, 1, 0, 1, 0, 1])
    hypotheses = np.array([[0, 1, 0, 0, 1, 0], [1, 0, 1, 1, 0, 1]])
    learner = posterior_sampler(hypotheses.tolist(), labels.tolist(), prior=1)
    exact = Expansion(labels.tolist(), learner, alpha=HALF).error(frozenset(of), frozenset(given))
    estimate = expansion_error(
        labels,
        lambda seed: Drawing(labels, hypotheses, np.random.default_rng(seed)),
        np.array(of),
        given=np.array(given) if given else None,
        how=Measuring(alpha=0.5, repeats=400),
    )
    low, high = estimate.interval(0.999)
    assert low <= exact <= high
    assert high - low < 0.25


@pytest.mark.parametrize("alpha", [Fraction(1, 4), HALF, ONE])
@pytest.mark.parametrize("labels", [(0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 2, 0)])
def test_the_lemma_for_disjoint_sets_and_any_learner(labels: tuple[int, ...], alpha: Fraction) -> None:
    for seed in range(5):
        expansion = Expansion(labels, any_learner(4, rng=np.random.default_rng(seed)), alpha=alpha)
        found = check_decomposition(expansion)
        assert found.held
        assert found.cases == 3**4 - 1  # each sample in A, in B or in neither


def test_the_lemma_as_printed_fails_for_sets_that_overlap() -> None:
    """It says "arbitrary sets". What is in both is counted twice."""
    expansion = Expansion((0, 0, 1, 1), any_learner(4, rng=np.random.default_rng(0)), alpha=HALF)
    assert check_decomposition(expansion, disjoint=False).failures > 100
    assert check_decomposition_of_overlaps(expansion).held


def test_errors_of_sets_that_are_trained_on_apart_do_not_add_up() -> None:
    """The lemma lives on all three errors drawing from the same samples."""
    expansion = Expansion((0, 0, 1, 1), any_learner(4, rng=np.random.default_rng(0)), alpha=HALF)
    a, b = some(0, 2), some(1, 3)
    assert decomposition_gap(expansion, a, b) == 0
    assert expansion.total(a | b) != expansion.total(a) + expansion.total(b)


def test_parts_and_cuts() -> None:
    assert [sorted(part) for part in subsets(some(0, 1, 2))] == [
        [0],
        [1],
        [2],
        [0, 1],
        [0, 2],
        [1, 2],
        [0, 1, 2],
    ]
    assert [(sorted(a), sorted(b)) for a, b in splits(some(4, 5, 6))] == [
        ([4], [5, 6]),
        ([4, 5], [6]),
        ([4, 6], [5]),
    ]


def test_a_statement_that_was_never_tested_has_not_held() -> None:
    assert not Finding(0, 0).held
    assert Finding(2, 0).held
    assert not (Finding(2, 0) + Finding(1, 1)).held


def test_what_is_not_defined() -> None:
    with pytest.raises(InputError, match=r"'alpha' parameter must be a share in \(0, 1\]. Got 2 instead"):
        Expansion((0, 1), parity, alpha=Fraction(2))
    with pytest.raises(InputError, match="empty set is not defined"):
        Expansion((0, 1), parity, alpha=ONE).error(frozenset())
