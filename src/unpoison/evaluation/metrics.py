"""What is measured when the truth is known."""

from __future__ import annotations

import numpy as np

from unpoison.types import BoolArray, FloatArray, IndexArray, LabelArray


def accuracy(predicted: LabelArray, labels: LabelArray) -> float:
    """Share of right predictions."""
    return float((predicted == labels).mean())


def targeted_misclassification(
    predicted_clean: LabelArray, predicted_triggered: LabelArray, *, labels: LabelArray, goal: LabelArray
) -> float:
    """TMR over the attacked test samples: right without the trigger *and* what is wanted with it."""
    return _share((predicted_clean == labels) & (predicted_triggered == goal))


def attack_success(predicted_triggered: LabelArray, *, goal: LabelArray) -> float:
    """ASR: share of the triggered samples that become what the attacker wants."""
    return _share(predicted_triggered == goal)


def auc(suspicion: FloatArray, truth: BoolArray) -> float | None:
    """The chance that a planted sample is more suspicious than a clean one; None without one of either."""
    n_planted, n_clean = int(truth.sum()), int((~truth).sum())
    if not n_planted or not n_clean:
        return None
    _, place, count = np.unique(suspicion, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place.ravel()]  # equal ones share their mean rank
    return float((ranks[truth].sum() - n_planted * (n_planted + 1) / 2) / (n_planted * n_clean))


def found_share(keep: BoolArray, truth: BoolArray) -> float:
    """Share of the planted samples that were removed; 1 where nothing was planted."""
    return float((~keep[truth]).mean()) if truth.any() else 1.0


def lost_share(keep: BoolArray, truth: BoolArray) -> float:
    """Share of the clean samples that were removed."""
    return float((~keep[~truth]).mean())


def by_component(component: IndexArray, whom: BoolArray, *, n_components: int) -> list[int]:
    """How many of ``whom`` each component holds; the last number: those in none (-1).

    >>> by_component(np.array([0, 1, 1, -1]), np.array([True, True, True, True]), n_components=2)
    [1, 2, 1]
    """
    counts = np.bincount(component[whom] % (n_components + 1), minlength=n_components + 1)
    return [int(count) for count in counts]


def _share(hits: BoolArray) -> float:
    """Of nothing, none: an attack without a trigger has nobody to attack."""
    return float(hits.mean()) if len(hits) else 0.0
