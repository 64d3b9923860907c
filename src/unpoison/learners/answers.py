"""From class probabilities to an assessment: the one place that decides what odd answers mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unpoison.core.learner import Assessment
from unpoison.types import BoolArray, FloatArray, IndexArray, LabelArray

SMALLEST_PROBABILITY = 1e-12
"""Probabilities are clipped here: the loss of a sample whose class the model never saw is -log of it."""


def softmax(scores: FloatArray) -> FloatArray:
    """Scores to probabilities; for two classes scikit-learn gives one column, the log-odds."""
    columns = np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
    powers = np.exp(columns - columns.max(axis=1, keepdims=True))
    result: FloatArray = powers / powers.sum(axis=1, keepdims=True)
    return result


def without(probabilities: FloatArray, columns: BoolArray) -> FloatArray:
    """Nothing for some classes: a model trained by epochs knows the names of those it never saw."""
    probabilities[:, columns] = 0.0
    total = probabilities.sum(axis=1, keepdims=True)
    result: FloatArray = probabilities / np.where(total > 0.0, total, 1.0)
    return result


def assess_in_parts(
    indices: IndexArray,
    labels: LabelArray,
    probabilities: Callable[[IndexArray], FloatArray],
    *,
    at_once: int,
) -> Assessment:
    """What a model says of ``indices``, asked for ``at_once`` samples at a time to bound memory."""
    losses = np.empty(len(indices))
    predictions = np.empty(len(indices), dtype=np.int64)
    confidences = np.empty(len(indices))
    for start in range(0, len(indices), at_once):
        part = slice(start, start + at_once)
        asked = indices[part]
        losses[part], predictions[part], confidences[part] = judge(probabilities(asked), labels[asked])
    return Assessment(losses, predictions, confidences)


def in_parts(
    indices: IndexArray, probabilities: Callable[[IndexArray], FloatArray], *, at_once: int
) -> FloatArray:
    """All rows of probabilities, asked for ``at_once`` samples at a time; what is no number is 0."""
    starts = range(0, max(len(indices), 1), at_once)
    rows = np.concatenate([probabilities(indices[start : start + at_once]) for start in starts])
    numbers: FloatArray = np.nan_to_num(rows, posinf=0.0, neginf=0.0)
    return numbers


def judge(probabilities: FloatArray, labels: LabelArray) -> tuple[FloatArray, LabelArray, FloatArray]:
    """Loss of the own label, predicted label and its probability, for rows of probabilities.

    Changes ``probabilities`` where they are not numbers.
    """
    unusable = np.isnan(probabilities).any(axis=1)
    probabilities[unusable] = 0.0
    own = probabilities[np.arange(len(labels)), labels]
    predictions = probabilities.argmax(axis=1)
    # a model that answers NaN must not vote for the label by accident
    predictions[unusable] = (labels[unusable] + 1) % probabilities.shape[1]
    return -np.log(np.clip(own, SMALLEST_PROBABILITY, 1.0)), predictions, probabilities.max(axis=1)
