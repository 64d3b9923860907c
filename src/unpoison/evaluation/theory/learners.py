"""Learners whose every answer is known exactly: any there could be, and some that mean something."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from unpoison.evaluation.theory.exact import Learner, Samples, subsets
from unpoison.types import FloatArray, LabelArray


def any_learner(n_samples: int, *, rng: np.random.Generator) -> Learner:
    """One whose answers are drawn at random: a fixed but arbitrary mistake or not, for every training set."""
    everything = list(subsets(frozenset(range(n_samples))))
    mistakes = rng.integers(0, 2, size=(len(everything), n_samples)).tolist()
    table = dict(zip(everything, mistakes, strict=True))
    return table.__getitem__


def every_learner(n_samples: int) -> Iterator[Learner]:
    """Each one that differs in a mistake on what it was trained on, which is all that counts at alpha 1.

    There are 2 to the power of n times 2 to the n - 1: 4,096 for three samples.
    """
    places = [(part, i) for part in subsets(frozenset(range(n_samples))) for i in sorted(part)]
    for mistakes in product((0, 1), repeat=len(places)):
        table: dict[Samples, list[int]] = {}
        for (part, i), mistake in zip(places, mistakes, strict=True):
            table.setdefault(part, [0] * n_samples)[i] = mistake
        yield table.__getitem__


def posterior_sampler(hypotheses: Sequence[Sequence[int]], labels: Sequence[int], *, prior: int) -> Learner:
    """Draws a hypothesis in proportion to ``prior`` plus the training samples that it gets right.

    With hypotheses that are label conventions, samples of one convention are what harms the other. A prior
    above 0 makes one sample too few to learn from, so that larger sets of one kind expand better.
    """
    right = [[int(given == label) for given, label in zip(h, labels, strict=True)] for h in hypotheses]

    def errors(trained: Samples) -> list[Fraction]:
        weights = [prior + sum(row[i] for i in trained) for row in right]
        if not any(weights):  # nobody explains anything: all are as good
            weights = [1] * len(right)
        agreed = [sum(w * row[i] for w, row in zip(weights, right, strict=True)) for i in range(len(labels))]
        return [1 - Fraction(a, sum(weights)) for a in agreed]

    return errors


def risk_minimizer(hypotheses: Sequence[Sequence[int]], labels: Sequence[int]) -> Learner:
    """Draws one of the hypotheses with the fewest mistakes on the training samples, all equally likely."""
    wrong = [[int(given != label) for given, label in zip(h, labels, strict=True)] for h in hypotheses]

    def errors(trained: Samples) -> list[Fraction]:
        risks = [sum(row[i] for i in trained) for row in wrong]
        best = [row for row, risk in zip(wrong, risks, strict=True) if risk == min(risks)]
        return [Fraction(sum(column), len(best)) for column in zip(*best, strict=True)]

    return errors


def thresholds(n_samples: int) -> list[list[int]]:
    """Samples in a row, labels 0 and 1: one label on each side of a border. Both ways round."""
    steps = [[int(i >= border) for i in range(n_samples)] for border in range(n_samples + 1)]
    return steps + [[1 - label for label in step] for step in steps]


def stump_losses(rows: FloatArray, labels: LabelArray) -> FloatArray:
    """Zero-one losses, hypotheses by samples, of every decision stump there is on these rows.

    ``labels`` are 0 and 1. A stump says one of them where a column is at most one of its values.
    """
    below = [rows[:, c] <= value for c in range(rows.shape[1]) for value in np.unique(rows[:, c])]
    says_one = np.array(below + [~side for side in below])
    result: FloatArray = (says_one != (labels == 1)).astype(np.float64)
    return result
