from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from unpoison.errors import InputError
from unpoison.learners.defaults import DEFAULT_LEARNER, DENSE_ONLY, LEARNERS, named_estimator
from unpoison.learners.sklearn import SklearnFactory

LABELS = np.arange(60) % 3
ROWS = np.random.default_rng(0).normal(size=(60, 4)) + 3.0 * np.eye(4)[LABELS]


def test_the_default_is_one_of_them() -> None:
    assert DEFAULT_LEARNER in LEARNERS
    assert type(named_estimator()) is type(named_estimator(DEFAULT_LEARNER))


@pytest.mark.parametrize("name", LEARNERS)
def test_each_learns_a_small_set_without_a_warning(name: str) -> None:
    learner = SklearnFactory(named_estimator(name), ROWS, LABELS, 3)(0)
    with threadpool_limits(limits=1):
        learner.fit(np.arange(0, 60, 2), epochs=8, min_steps=300)
        told = learner.assess(np.arange(1, 60, 2))
    assert (told.predictions == LABELS[1::2]).mean() > 0.8


@pytest.mark.parametrize("name", LEARNERS)
def test_each_name_gives_a_new_estimator(name: str) -> None:
    assert named_estimator(name) is not named_estimator(name)


@pytest.mark.parametrize("name", LEARNERS)
def test_each_takes_sparse_rows_or_says_that_it_does_not(name: str) -> None:
    if name in DENSE_ONLY:
        with pytest.raises(
            InputError, match=f"'{name}' cannot take text .* choose one of logistic, mlp, sgd, fo"
        ):
            named_estimator(name, sparse=True)
        return
    learner = SklearnFactory(named_estimator(name, sparse=True), csr_matrix(ROWS), LABELS, 3)(0)
    with threadpool_limits(limits=1):
        learner.fit(np.arange(60), epochs=2)
        assert np.isfinite(learner.assess(np.arange(60)).losses).all()


def test_a_few_texts_of_a_rare_class_are_enough_for_the_logistic_one() -> None:
    """Ten of a hundred, told by one word: with the usual penalty everything is the common class."""
    words = np.random.default_rng(0).random((100, 20)) < 0.1
    labels = np.repeat([0, 1], [90, 10])
    words[:, 0] = labels == 1

    def called(estimator: Any) -> Any:
        learner = SklearnFactory(estimator, csr_matrix(words * 0.3), labels, 2)(0)
        learner.fit(np.arange(0, 100, 2), epochs=1)
        return learner.assess(np.arange(1, 100, 2)).predictions

    assert (called(named_estimator(sparse=True)) == labels[1::2]).all()
    assert (called(named_estimator()) == 0).all()


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InputError, match="unknown learner 'magic'; choose one of logistic, mlp, sgd, forest, boosting"
    ):
        named_estimator("magic")
