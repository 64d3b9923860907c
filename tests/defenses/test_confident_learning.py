from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cleanlab.filter import find_label_issues
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from unpoison.core.result import Cost
from unpoison.core.sampling import dealt
from unpoison.defenses.confident_learning import ConfidentLearning
from unpoison.errors import InputError
from unpoison.learners.sklearn import SklearnFactory
from unpoison.seeds import Seeds

MODEL = LogisticRegression(max_iter=500)


def wrong_digits() -> tuple[Any, Any, Any]:
    """A twentieth of the digits have another label, each at random."""
    images, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    wrong = rng.choice(len(labels), len(labels) // 20, replace=False)
    noisy = labels.copy()
    noisy[wrong] = (labels[wrong] + rng.integers(1, 10, size=len(wrong))) % 10
    return images / 16.0, noisy, wrong


def test_wrong_labels_are_found() -> None:
    images, labels, wrong = wrong_digits()
    decision = ConfidentLearning(3, epochs=1).judge(labels, SklearnFactory(MODEL, images, labels, 10), seed=0)
    assert (~decision.keep)[wrong].mean() > 0.75
    assert decision.keep[np.setdiff1d(np.arange(len(labels)), wrong)].mean() > 0.97
    assert decision.cost.trained == 2 * len(labels)
    assert decision.cost.scored == len(labels)


def test_it_is_what_cleanlab_says_of_scikit_learns_cross_validation() -> None:
    images, labels, _ = wrong_digits()
    decision = ConfidentLearning(3, epochs=1).judge(labels, SklearnFactory(MODEL, images, labels, 10), seed=0)
    fold = dealt(labels, 3, rng=Seeds(0).within("confident-learning").stream("folds"))
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    probabilities = cross_val_predict(MODEL, images, labels, cv=splits, method="predict_proba")
    np.testing.assert_array_equal(~decision.keep, find_label_issues(labels, probabilities, n_jobs=1))


def test_a_learner_without_probabilities_is_refused_before_it_is_trained() -> None:
    class Silent:
        cost = Cost()

    with pytest.raises(InputError, match="Silent has no method 'probabilities'"):
        ConfidentLearning(2, epochs=1).judge(np.repeat([0, 1], 5), lambda _seed: Silent(), seed=0)  # type: ignore[arg-type, return-value]
