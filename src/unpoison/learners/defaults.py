"""Which classifier to use when nobody says: plain ones that train in milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unpoison.errors import InputError


def default_estimator(features: Any) -> Any:
    """A logistic regression; dense rows are standardised first, images and sparse rows are scaled already."""
    is_dense_rows = getattr(features, "ndim", 2) == 2 and not hasattr(features, "tocsr")
    return _logistic(is_dense_rows)


def named_estimator(name: str, features: Any) -> Any:
    """The classifier that ``--learner NAME`` means."""
    is_dense_rows = getattr(features, "ndim", 2) == 2 and not hasattr(features, "tocsr")
    if name not in LEARNERS:
        raise InputError(f"unknown learner {name!r}; choose one of {', '.join(LEARNERS)}")
    return LEARNERS[name](is_dense_rows)


def _logistic(is_dense_rows: bool) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(max_iter=100)
    return make_pipeline(StandardScaler(), model) if is_dense_rows else model


def _mlp(is_dense_rows: bool) -> Any:  # noqa: ARG001
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(hidden_layer_sizes=(64,), batch_size=32)


def _sgd(is_dense_rows: bool) -> Any:  # noqa: ARG001
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01)


def _forest(is_dense_rows: bool) -> Any:  # noqa: ARG001
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, min_samples_leaf=2)


def _boosting(is_dense_rows: bool) -> Any:  # noqa: ARG001
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=50, min_samples_leaf=5)


LEARNERS: dict[str, Callable[[bool], Any]] = {
    "logistic": _logistic,
    "mlp": _mlp,
    "sgd": _sgd,
    "forest": _forest,
    "boosting": _boosting,
}
