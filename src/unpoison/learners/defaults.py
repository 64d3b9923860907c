"""The classifiers that go by name: plain ones that train in milliseconds. They expect standardised rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unpoison.errors import InputError

DEFAULT_LEARNER = "logistic"


def named_estimator(name: str = DEFAULT_LEARNER) -> Any:
    """The classifier that ``--learner NAME`` means."""
    if name not in LEARNERS:
        raise InputError(f"unknown learner {name!r}; choose one of {', '.join(LEARNERS)}")
    return LEARNERS[name]()


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=100)


def _mlp() -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(hidden_layer_sizes=(64,), batch_size=32)


def _sgd() -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01)


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, min_samples_leaf=2)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=50, min_samples_leaf=5)


LEARNERS: dict[str, Callable[[], Any]] = {
    "logistic": _logistic,
    "mlp": _mlp,
    "sgd": _sgd,
    "forest": _forest,
    "boosting": _boosting,
}
