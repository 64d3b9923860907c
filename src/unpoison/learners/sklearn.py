"""Any scikit-learn classifier as a learner: epoch by epoch with ``partial_fit``, refitted without."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from unpoison.core.learner import Assessment
from unpoison.core.result import Cost
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, FloatArray, IndexArray, LabelArray

SMALLEST_PROBABILITY = 1e-12
"""Probabilities are clipped here: the loss of a sample whose class the model never saw is -log of it."""

SCORED_AT_ONCE = 65_536
"""Rows passed to ``predict_proba`` in one call, to bound memory."""


@dataclass(frozen=True)
class SklearnFactory:
    """Fresh copies of ``estimator`` over the rows of ``matrix``. ``labels`` are 0 .. n_classes - 1."""

    estimator: Any
    matrix: Any
    labels: LabelArray
    n_classes: int

    def __post_init__(self) -> None:
        if not hasattr(self.estimator, "predict_proba") and not hasattr(self.estimator, "decision_function"):
            raise InputError(
                f"The 'estimator' parameter must be a classifier with predict_proba or decision_function. "
                f"Got {self.estimator!r} instead."
            )
        if getattr(self.estimator, "decision_function_shape", "ovr") == "ovo":
            raise InputError(
                "The 'estimator' parameter must give one score a class: its decision_function_shape must be "
                "'ovr'. Got 'ovo' instead."
            )

    def __call__(self, seed: int) -> SklearnLearner:
        """An untrained copy whose random states all follow from ``seed``."""
        model = clone(self.estimator)
        _seed_everything(model, seed)
        return SklearnLearner(model, self.matrix, self.labels, n_classes=self.n_classes, seed=seed)


class SklearnLearner:
    """One scikit-learn model, trained on subsets of a fixed matrix."""

    def __init__(self, model: Any, matrix: Any, labels: LabelArray, *, n_classes: int, seed: int) -> None:
        self._model = model
        self._matrix = matrix
        self._labels = labels
        self._n_classes = n_classes
        self._shuffling = Seeds(seed).stream("shuffle")
        self._only_class: int | None = None
        self._seen = np.zeros(n_classes, dtype=np.bool_)
        self._trained = 0
        self._scored = 0

    @property
    def cost(self) -> Cost:
        """Sample passes spent so far. A refit counts each sample once, whatever the solver does inside."""
        return Cost(self._trained, self._scored)

    def fit(self, indices: IndexArray, *, epochs: int, min_steps: int = 0) -> None:
        """Train on, or refit where the model cannot continue."""
        with warnings.catch_warnings():
            # training stops at the budget it was given, not at convergence, and that is meant
            warnings.simplefilter("ignore", ConvergenceWarning)
            # a subset smaller than a batch is one step an epoch
            warnings.filterwarnings("ignore", message="Got `batch_size` less than 1 or larger")
            if hasattr(self._model, "partial_fit"):
                self._train_on(indices, max(epochs, ceil(min_steps / self._steps_per_epoch(len(indices)))))
            else:
                self._refit(indices)

    def assess(self, indices: IndexArray) -> Assessment:
        """Cross-entropies and predictions; a class that was never seen has the worst loss."""
        losses = np.empty(len(indices))
        predictions = np.empty(len(indices), dtype=np.int64)
        confidences = np.empty(len(indices))
        for start in range(0, len(indices), SCORED_AT_ONCE):
            part = slice(start, start + SCORED_AT_ONCE)
            losses[part], predictions[part], confidences[part] = self._assess_part(indices[part])
        self._scored += len(indices)
        return Assessment(losses, predictions, confidences)

    def _train_on(self, indices: IndexArray, epochs: int) -> None:
        everything = np.arange(self._n_classes)
        self._seen[self._labels[indices]] = True
        for _ in range(epochs):
            order = self._shuffling.permutation(indices)
            self._model.partial_fit(self._matrix[order], self._labels[order], classes=everything)
        self._trained += epochs * len(indices)

    def _refit(self, indices: IndexArray) -> None:
        targets = self._labels[indices]
        # most classifiers refuse a single class; what they would learn from it is clear
        self._only_class = int(targets[0]) if (targets == targets[0]).all() else None
        if self._only_class is None:
            self._model.fit(self._matrix[indices], targets)
        self._seen[:] = False
        self._seen[targets] = True
        self._trained += len(indices)

    def _steps_per_epoch(self, n: int) -> int:
        batch = getattr(self._model, "batch_size", None)
        if batch == "auto":  # MLPClassifier
            batch = min(200, n)
        return ceil(n / batch) if isinstance(batch, int) else n  # without batches every sample is a step

    def _assess_part(self, indices: IndexArray) -> tuple[FloatArray, LabelArray, FloatArray]:
        probabilities = self._probabilities(indices)
        labels = self._labels[indices]
        unusable = np.isnan(probabilities).any(axis=1)
        probabilities[unusable] = 0.0
        own = probabilities[np.arange(len(indices)), labels]
        predictions = probabilities.argmax(axis=1)
        # a model that answers NaN must not vote for the label by accident
        predictions[unusable] = (labels[unusable] + 1) % self._n_classes
        return -np.log(np.clip(own, SMALLEST_PROBABILITY, 1.0)), predictions, probabilities.max(axis=1)

    def _probabilities(self, indices: IndexArray) -> FloatArray:
        """Shape ``(len(indices), n_classes)``; zero for classes the model never saw."""
        if self._only_class is not None:
            constant = np.zeros((len(indices), self._n_classes))
            constant[:, self._only_class] = 1.0
            return constant
        rows = self._matrix[indices]
        # naive Bayes takes the logarithm of the zero prior of an unseen class; what is NaN is dealt with
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if hasattr(self._model, "predict_proba"):
                known = np.asarray(self._model.predict_proba(rows), dtype=np.float64)
            else:
                known = _softmax(np.asarray(self._model.decision_function(rows), dtype=np.float64))
        result = np.zeros((len(indices), self._n_classes))
        result[:, np.asarray(self._model.classes_, dtype=np.int64)] = known
        return result if self._seen.all() else _without(result, ~self._seen)


def _without(probabilities: FloatArray, columns: BoolArray) -> FloatArray:
    """Nothing for some classes: one that is trained on by epochs knows the names of those it never saw."""
    probabilities[:, columns] = 0.0
    total = probabilities.sum(axis=1, keepdims=True)
    result: FloatArray = probabilities / np.where(total > 0.0, total, 1.0)
    return result


def _softmax(scores: NDArray[np.float64]) -> FloatArray:
    """Scores to probabilities; for two classes ``decision_function`` is one column, the log-odds."""
    columns = np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
    powers = np.exp(columns - columns.max(axis=1, keepdims=True))
    result: FloatArray = powers / powers.sum(axis=1, keepdims=True)
    return result


def _seed_everything(model: Any, seed: int) -> None:
    """Give every ``random_state`` in the model, however deep, a value that follows from ``seed``."""
    seeds = Seeds(seed)
    names = sorted(name for name in model.get_params(deep=True) if name.split("__")[-1] == "random_state")
    model.set_params(**{name: seeds.integer(name) for name in names})
