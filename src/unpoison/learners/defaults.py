"""The classifiers that go by name: plain ones that train in milliseconds. They expect standardised rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unpoison.errors import InputError

DEFAULT_LEARNER = "logistic"


def named_estimator(name: str = DEFAULT_LEARNER, *, sparse: bool = False) -> Any:
    """The classifier that ``--learner NAME`` means, for dense or ``sparse`` features."""
    if name not in LEARNERS:
        raise InputError(f"unknown learner {name!r}; choose one of {', '.join(LEARNERS)}")
    if sparse and name in DENSE_ONLY:
        others = ", ".join(learner for learner in LEARNERS if learner not in DENSE_ONLY)
        raise InputError(f"the learner {name!r} cannot take text or very wide tables; choose one of {others}")
    return _logistic_for_words() if sparse and name == "logistic" else LEARNERS[name]()


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=100)


def _logistic_for_words() -> Any:
    """Free to trust a rare word. Classes count alike: of few texts, many kinds are mostly one class."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1000.0, class_weight="balanced", max_iter=300)


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

NETWORK_NAMES = ("compact", "preactresnet18", "resnet32", "resnet56")
"""Those that need torch; what they are is in ``networks.py``."""

SMALLEST_SIDE = 16
"""Networks take images of at least this many pixels a side: stages halve them."""

DENSE_ONLY = frozenset({"boosting"})
