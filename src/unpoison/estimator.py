"""IncompatibilityClustering: the method as a scikit-learn estimator and an imbalanced-learn sampler."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from unpoison.core.pipeline import sanitize
from unpoison.core.presets import settings_for, usual_method
from unpoison.core.result import Sanitization
from unpoison.errors import InputError
from unpoison.learners.choose import meant
from unpoison.runners.local import LocalRunner

AUTO = "auto"
OF_ISPL = ("rounds", "alpha", "momentum", "keep_rule", "self_training")
"""Settings that only the paper's method has."""


class IncompatibilityClustering(BaseEstimator):  # type: ignore[misc]
    """Split a labelled set into parts that generalise only to themselves, and tell which to train on.

    Parameters
    ----------
    estimator : classifier, str or callable, default=None
        The model whose training tells clean from planted data. A classifier with ``partial_fit`` is trained
        epoch by epoch, others are refitted. A name is one of ``unpoison clean --learner``, as "compact"; a
        callable makes a torch network: ``callable(shape, n_classes)``, for uint8 images of shape (n, height,
        width, channels) or rows of floats. None takes a logistic regression on standardised columns.
    method : {"auto", "ispl", "groups"}, default="auto"
        ``ispl`` is the paper's: inverse self-paced learning and a vote. ``groups`` looks for groups that
        stand apart for models that met them and not for judges that did not (docs/method.md). "auto" is
        ``ispl`` where one of its settings (but for ``restarts``) is given, else ``groups``.
    settings : {"auto", "paper-cifar10", "paper-gtsrb", "authors-cifar10", "authors-gtsrb"}, default="auto"
        Where the values below come from when they are "auto". All but "auto" are for ``ispl``: the paper's
        text, or its authors' code. "auto" is the text's for networks, by the size of the classes; for other
        classifiers rounds and alpha follow that size.
    rounds, restarts, alpha, momentum, keep_rule, self_training : default="auto" (restarts: 3)
        Settings of ``ispl``; see :class:`unpoison.core.config.IsplSettings`.
    n_jobs : int or None, default=1
        Worker processes; None is 1, -1 all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        An int makes the result reproducible bit for bit.

    Attributes
    ----------
    keep_ : bool array of shape (n_samples,)
        True for samples that are safe to train on.
    suspicion_ : float array of shape (n_samples,)
        0 (trusted) to 1: the mean probability that the voters give to other labels than the sample's own.
    labels_ : int array of shape (n_samples,)
        The component of each sample (first restart), -1 for none.
    components_ : int array of shape (n_restarts, n_samples)
        The same for every restart.
    predicted_ : array of shape (n_samples,)
        The label that the vote gives to each sample.
    n_components_ : int
        Number of components in ``labels_``.
    classes_ : array of shape (n_classes,)
        The distinct labels.
    result_ : Sanitization
        All of it, with the groups that were judged and the cost.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clean = IncompatibilityClustering(random_state=0).fit(X, y)
    >>> clean.keep_.shape
    (150,)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = AUTO,
        settings: str = AUTO,
        rounds: int | str = AUTO,
        restarts: int = 3,
        alpha: float | str = AUTO,
        momentum: float | str = AUTO,
        keep_rule: str = AUTO,
        self_training: bool | str = AUTO,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.settings = settings
        self.rounds = rounds
        self.restarts = restarts
        self.alpha = alpha
        self.momentum = momentum
        self.keep_rule = keep_rule
        self.self_training = self_training
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> IncompatibilityClustering:
        """Judge every sample of ``X`` (rows, images or a sparse matrix) with its label in ``y``."""
        X, y = self._validated(X, y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"IncompatibilityClustering needs at least 2 classes to compare; "
                f"got one class: {_plain(self.classes_[0])!r}"
            )
        labels = labels.astype(np.int64)
        learner = meant(self.estimator, X, labels, n_classes=len(self.classes_))
        method = self._method()
        learner = learner.suited_to(method)
        settings = settings_for(
            labels,
            method=method,
            preset=self.settings,
            networks=learner.is_network,
            **self._changes(method),
        )
        self.result_: Sanitization = sanitize(
            labels, learner.factory, settings, seed=self._seed(), runner=LocalRunner(self._workers())
        )
        self._publish()
        return self

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Fit, then give back the kept part of ``X`` and ``y`` in the containers they came in."""
        self.fit(X, y)
        kept = np.flatnonzero(self.keep_)
        self.sample_indices_ = kept
        return _take(X, kept), _take(y, kept)

    def _validated(self, X: Any, y: Any) -> tuple[Any, Any]:
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            allow_nd=True,
            dtype="numeric",
            y_numeric=False,
            multi_output=False,
        )
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        return X, y

    def _method(self) -> str:
        if not _is_auto(self.method):
            return self.method
        if any(not _is_auto(_plain(getattr(self, name))) for name in OF_ISPL):
            return "ispl"
        return usual_method(self.settings)

    def _changes(self, method: str) -> dict[str, Any]:
        """The settings that were given, for the method that was chosen."""
        names = (*OF_ISPL, "restarts") if method == "ispl" else ()
        chosen = {name: _plain(getattr(self, name)) for name in names}
        return {name: value for name, value in chosen.items() if not _is_auto(value)}

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _workers(self) -> int:
        wanted = _plain(self.n_jobs)
        if wanted is not None and (not isinstance(wanted, int) or wanted == 0):
            raise InputError(
                f"The 'n_jobs' parameter of {type(self).__name__} must be None or a whole number but 0. "
                f"Got {wanted!r} instead."
            )
        return int(joblib.effective_n_jobs(wanted))

    def _publish(self) -> None:
        result = self.result_
        self.keep_ = result.keep
        self.suspicion_ = result.suspicion
        self.components_ = result.components
        self.labels_ = result.components[0]
        self.predicted_ = self.classes_[result.predicted]
        self.n_components_ = int(self.labels_.max()) + 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = False
        tags.target_tags.required = True
        return tags


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO


def _plain(value: Any) -> Any:
    """A numpy scalar, as parameter grids give them, as the Python value it stands for."""
    return value.item() if isinstance(value, np.generic) else value


def _take(container: Any, indices: Any) -> Any:
    """The given positions of an array, sparse matrix, list, or pandas object."""
    if hasattr(container, "iloc"):
        return container.iloc[indices]
    if hasattr(container, "tocsr"):  # not every sparse format can be indexed
        return container.tocsr()[indices].asformat(container.format)
    if hasattr(container, "shape"):
        return container[indices]
    return [container[i] for i in indices]
