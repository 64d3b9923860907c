"""The Adversarial Robustness Toolbox: incompatibility clustering among its poison filtering defences."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from unpoison.adapters.judging import Samples, as_features, judge
from unpoison.errors import InputError, MissingExtraError
from unpoison.estimator import IncompatibilityClustering
from unpoison.types import LabelArray

try:
    _poison = import_module("art.defences.detector.poison")
    _utils = import_module("art.utils")
except ImportError as error:
    raise MissingExtraError("adversarial-robustness-toolbox", "art", "the defence for ART") from error


class IncompatibilityDefence(_poison.PoisonFilteringDefence):  # type: ignore[misc, name-defined]
    """Finds poison as ``IncompatibilityClustering`` does, behind the interface of ART.

    ``x_train`` are rows or images, channels where ``classifier.channels_first`` says; ``y_train`` are one-hot
    or class numbers. ``cleaner`` trains models of its own, so the classifier is not asked; it may be None.
    A cleaner that was fitted already is taken as it is, without one it is the usual of ``unpoison clean``.
    """

    defence_params: ClassVar[list[str]] = ["classifier", "x_train", "y_train", "cleaner"]

    def __init__(
        self,
        classifier: Any,
        x_train: Any,
        y_train: Any,
        cleaner: IncompatibilityClustering | None = None,
    ) -> None:
        super().__init__(classifier, x_train, y_train)
        self.cleaner = cleaner
        self.fitted_: IncompatibilityClustering | None = None
        self._check_params()

    def detect_poison(self, **kwargs: Any) -> tuple[dict[int, float], list[int]]:
        """The suspicion of each sample that is judged poison by its position, and 1 (clean) or 0 for all.

        ``kwargs`` change parameters first. The fitted cleaner with all evidence is then in ``fitted_``.
        """
        self.set_params(**kwargs)
        self.fitted_ = judge(self.cleaner, len(self.x_train), self._samples)
        removed = np.flatnonzero(~self.fitted_.keep_).tolist()
        report = {index: float(self.fitted_.suspicion_[index]) for index in removed}
        return report, self.fitted_.keep_.astype(int).tolist()

    def evaluate_defence(self, is_clean: Any, **kwargs: Any) -> str:
        """ART's confusion matrix of every class, as JSON; ``is_clean`` has 1 for clean samples, 0 for poison.

        Judges first, unless ``detect_poison`` did and no parameter is changed.
        """
        self.set_params(**kwargs)
        truth = np.asarray(is_clean)
        if truth.shape != (len(self.x_train),):
            raise InputError(
                f"is_clean must have one number for each of {len(self.x_train)} samples, got {truth.shape}"
            )
        if self.fitted_ is None or kwargs:
            self.detect_poison()
        labels, n_classes = self._labels()
        split = [
            _utils.segment_by_class(part, labels, n_classes)
            for part in (self.fitted_.keep_.astype(int), truth)  # type: ignore[union-attr]
        ]
        _, matrix = _poison.GroundTruthEvaluator().analyze_correctness(*split)
        return str(matrix)

    def _samples(self) -> Samples:
        channels_first = getattr(self.classifier, "channels_first", None)
        return as_features(self.x_train, where="x_train", channels_first=channels_first), self._labels()[0]

    def _labels(self) -> tuple[LabelArray, int]:
        """Class numbers, and how many classes there are."""
        y = np.asarray(self.y_train)
        if y.ndim == 2 and y.shape[1] > 1:
            return y.argmax(axis=1), y.shape[1]
        numbers = y.reshape(-1).astype(np.int64)
        return numbers, int(numbers.max(initial=0)) + 1

    def _check_params(self) -> None:
        y = np.asarray(self.y_train)
        if len(y) != len(self.x_train) or y.ndim > 2:
            raise InputError(
                f"y_train has shape {y.shape} for {len(self.x_train)} samples in x_train; give class numbers "
                "or one-hot rows"
            )
