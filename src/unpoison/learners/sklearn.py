"""Any scikit-learn classifier as a learner: epoch by epoch with ``partial_fit``, refitted without."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from unpoison.core.learner import Assessment
from unpoison.core.result import Cost
from unpoison.errors import InputError
from unpoison.learners.answers import assess_in_parts, in_parts, softmax, without
from unpoison.learners.marks import marked_copies
from unpoison.learners.meter import Meter
from unpoison.seeds import Seeds
from unpoison.types import FloatArray, IndexArray, LabelArray

SCORED_AT_ONCE = 65_536
"""Rows passed to ``predict_proba`` in one call, to bound memory."""
AXES_OF_WORDS = 60
"""Most axes of what a linear model sees in texts and wide tables."""
ROWS_SHUFFLED = 30_000
"""Rows predicted in search of the columns that a model relies on, a share for each column, and the"""
ROWS_PER_COLUMN = (100, 1_000)
"""fewest and most of these shares. Predicting so many takes half of what training on 1,000 does."""
SHUFFLED_AT_ONCE = 1_000_000
"""Values of shuffled rows in memory. A forest's call takes as long for 1 row as for 1,000."""
FAINTEST = 1e-6
"""Probabilities below this look the same: how far below says more about the model than the sample."""


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

    @property
    def is_wide(self) -> bool:
        """Whether rows are sparse: words of texts, values of categories."""
        return hasattr(self.matrix, "tocsr")

    def with_marked_copies(
        self, indices: IndexArray, labels: LabelArray, groups: IndexArray, *, seed: int
    ) -> SklearnFactory:
        """The same samples, and after them copies of some under other labels, each group with its mark."""
        copies = marked_copies(self.matrix, indices, groups, seed=seed)
        if self.is_wide:
            from scipy.sparse import vstack

            matrix = vstack([self.matrix, copies], format="csr")
        else:
            matrix = np.concatenate([self.matrix, copies])
        return replace(self, matrix=matrix, labels=np.concatenate([self.labels, labels]))

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
        self._trained_on: IndexArray = np.zeros(0, dtype=np.int64)
        self._meter = Meter()

    @property
    def cost(self) -> Cost:
        """Sample passes spent so far. A refit counts each sample once, whatever the solver does inside."""
        return self._meter.cost

    def fit(
        self,
        indices: IndexArray,
        *,
        epochs: int,
        min_steps: int = 0,
        final: bool = False,  # noqa: ARG002 - no schedule to bring to its end
    ) -> None:
        """Train on, or refit where the model cannot continue."""
        self._trained_on = indices
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
        with self._meter.running(scored=len(indices)):
            return assess_in_parts(indices, self._labels, self._probabilities, at_once=SCORED_AT_ONCE)

    def probabilities(self, indices: IndexArray) -> FloatArray:
        """Of each class, a row a sample; zero for classes that the model never saw."""
        with self._meter.running(scored=len(indices)):
            return in_parts(indices, self._probabilities, at_once=SCORED_AT_ONCE)

    def activations(self, indices: IndexArray, *, layer: str | None = None) -> FloatArray:
        """What goes into the last linear map: the last hidden layer of an MLP, a linear model's features.

        Of a pipeline, what reaches its last step counts as the features.
        """
        if layer is not None:
            raise InputError(f"a scikit-learn model has no layers with names; got {layer!r}, leave it out")
        with self._meter.running(scored=len(indices)):
            return _before_the_last_map(self._model, self._matrix[indices])

    def embed(self, indices: IndexArray) -> FloatArray:
        """What the model sees: a row of numbers a sample.

        Of an MLP its last hidden layer; of other models every column by how much the model makes of it. Of
        sparse rows and models without coefficients the logarithms of probabilities.
        """
        last = self._model[-1] if hasattr(self._model, "steps") else self._model
        if hasattr(last, "coefs_"):
            return self.activations(indices)
        with self._meter.running(scored=len(indices)):
            if self._only_class is not None:
                return np.zeros((len(indices), 1))
            rows = self._matrix[indices]
            if hasattr(last, "coef_"):
                rows = self._model[:-1].transform(rows) if last is not self._model else rows
                return _turned(rows, _weights(last))
            if hasattr(rows, "tocsr"):
                return np.log(np.maximum(np.nan_to_num(self._probabilities(indices)), FAINTEST))
            return _turned(rows, self._reliance())

    def _reliance(self) -> FloatArray:
        """How much probabilities change when a column is shuffled, for its spread; a number a column."""
        rng = np.random.default_rng(0)
        n_columns = self._matrix.shape[1]
        n_rows = int(np.clip(ROWS_SHUFFLED // n_columns, *ROWS_PER_COLUMN))
        rows = rng.permutation(self._trained_on)[:n_rows]
        before, original = self._probabilities(rows), np.asarray(self._matrix[rows], dtype=np.float64)
        spread = original.std(axis=0)
        reliance = np.zeros(n_columns)
        varying = np.flatnonzero(spread > 0.0)
        at_once = max(1, SHUFFLED_AT_ONCE // original.size)
        for columns in np.split(varying, range(at_once, len(varying), at_once)):
            shuffled = np.repeat(original[None], len(columns), axis=0)
            for copy, column in zip(shuffled, columns.tolist(), strict=True):
                copy[:, column] = rng.permutation(copy[:, column])
            after = self._predicted(shuffled.reshape(-1, n_columns)).reshape(len(columns), *before.shape)
            change = ((after - before) ** 2).sum(axis=2).mean(axis=1)
            reliance[columns] = np.sqrt(change) / spread[columns]
        return reliance

    def _train_on(self, indices: IndexArray, epochs: int) -> None:
        everything = np.arange(self._n_classes)
        self._seen[self._labels[indices]] = True
        with self._meter.running(trained=epochs * len(indices)):
            for _ in range(epochs):
                order = self._shuffling.permutation(indices)
                self._model.partial_fit(self._matrix[order], self._labels[order], classes=everything)

    def _refit(self, indices: IndexArray) -> None:
        targets = self._labels[indices]
        # most classifiers refuse a single class; what they would learn from it is clear
        self._only_class = int(targets[0]) if (targets == targets[0]).all() else None
        with self._meter.running(trained=len(indices)):
            if self._only_class is None:
                self._model.fit(self._matrix[indices], targets)
        self._seen[:] = False
        self._seen[targets] = True

    def _steps_per_epoch(self, n: int) -> int:
        batch = getattr(self._model, "batch_size", None)
        if batch == "auto":  # MLPClassifier
            batch = min(200, n)
        return ceil(n / batch) if isinstance(batch, int) else n  # without batches every sample is a step

    def _probabilities(self, indices: IndexArray) -> FloatArray:
        """Shape ``(len(indices), n_classes)``; zero for classes the model never saw."""
        if self._only_class is not None:
            constant = np.zeros((len(indices), self._n_classes))
            constant[:, self._only_class] = 1.0
            return constant
        return self._predicted(self._matrix[indices])

    def _predicted(self, rows: Any) -> FloatArray:
        # naive Bayes takes the logarithm of the zero prior of an unseen class; what is NaN is dealt with
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if hasattr(self._model, "predict_proba"):
                known = np.asarray(self._model.predict_proba(rows), dtype=np.float64)
            else:
                known = softmax(np.asarray(self._model.decision_function(rows), dtype=np.float64))
        result = np.zeros((rows.shape[0], self._n_classes))
        result[:, np.asarray(self._model.classes_, dtype=np.int64)] = known
        return result if self._seen.all() else without(result, ~self._seen)


def _weights(model: Any) -> FloatArray:
    """For every column, how differently the classes weigh it."""
    weights = np.asarray(model.coef_, dtype=np.float64)
    if len(weights) > 1:
        weights = weights - weights.mean(axis=0)
    return np.asarray(np.sqrt((weights**2).sum(axis=0)))


def _turned(rows: Any, weights: FloatArray) -> FloatArray:
    """Every column by its weight, of sparse rows the leading axes of that; turned at random.

    Turned, all columns of the view are about equally wide, and whoever evens the widths of columns does not
    take the weights away again.
    """
    if hasattr(rows, "tocsr"):
        from sklearn.decomposition import TruncatedSVD

        weighted = rows.multiply(weights).tocsr()
        axes = max(1, min(AXES_OF_WORDS, *(side - 1 for side in weighted.shape)))
        columns = TruncatedSVD(axes, random_state=0).fit_transform(weighted)
    else:
        columns = np.asarray(rows, dtype=np.float64) * weights
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(columns.shape[1],) * 2))
    return np.asarray(columns @ turn, dtype=np.float64)


def _seed_everything(model: Any, seed: int) -> None:
    """Give every ``random_state`` in the model, however deep, a value that follows from ``seed``."""
    seeds = Seeds(seed)
    names = sorted(name for name in model.get_params(deep=True) if name.split("__")[-1] == "random_state")
    model.set_params(**{name: seeds.integer(name) for name in names})


def _before_the_last_map(model: Any, rows: Any) -> FloatArray:
    if hasattr(model, "steps"):
        return _before_the_last_map(model[-1], model[:-1].transform(rows) if len(model) > 1 else rows)
    if hasattr(model, "coefs_"):  # MLPClassifier
        bend = _BENDS[model.activation]
        for weights, biases in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
            rows = bend(rows @ weights + biases)
    elif not hasattr(model, "coef_"):
        raise InputError(
            f"{type(model).__name__} has no activations to look at; use a network, an MLP or a linear model"
        )
    if hasattr(rows, "tocsr"):
        raise InputError("the features of text or wide tables are too many to look at; use the learner 'mlp'")
    return np.asarray(rows, dtype=np.float64)


def _logistic(values: FloatArray) -> FloatArray:
    result: FloatArray = 0.5 * (1.0 + np.tanh(0.5 * values))  # never overflows
    return result


_BENDS: dict[str, Callable[[Any], Any]] = {
    "identity": np.asarray,
    "relu": lambda values: np.maximum(values, 0.0),
    "tanh": np.tanh,
    "logistic": _logistic,
}
