from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from unpoison.core.learner import Assessment
from unpoison.core.result import Cost
from unpoison.errors import InputError
from unpoison.learners import sklearn as module
from unpoison.learners.answers import SMALLEST_PROBABILITY
from unpoison.learners.sklearn import SklearnFactory, SklearnLearner

WORST = -np.log(SMALLEST_PROBABILITY)
RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 3
ROWS = RNG.normal(size=(60, 4)) + 2.0 * np.eye(4)[LABELS]
EVERYONE = np.arange(60)


class Recorder(ClassifierMixin, BaseEstimator):
    """Notes what it is trained on, and answers from a table: ``answers[label of row]`` or uniform."""

    def __init__(self, batch_size: Any = None, answers: Any = None) -> None:
        self.batch_size = batch_size
        self.answers = answers

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Recorder:
        self.calls_ = [*getattr(self, "calls_", []), (X.copy(), y.copy())]
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> Any:
        n = len(self.classes_)
        return np.full((len(X), n), 1 / n) if self.answers is None else self.answers[: len(X)]


class Refitted(ClassifierMixin, BaseEstimator):
    """Cannot go on training; has scores only, given by the row itself (its first columns)."""

    def fit(self, X: Any, y: Any) -> Refitted:
        self.n_fits_ = getattr(self, "n_fits_", 0) + 1
        self.seen_ = X.copy()
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Any) -> Any:
        return X[:, 0] if len(self.classes_) == 2 else X[:, : len(self.classes_)]


def recorder(n: int, **parameters: Any) -> SklearnLearner:
    """Over ``n`` rows that say their own number."""
    rows, labels = np.arange(n, dtype=float)[:, None], np.arange(n) % 2
    return SklearnFactory(Recorder(**parameters), rows, labels, 2)(0)


def learner(estimator: Any, rows: Any = ROWS, labels: Any = LABELS, *, seed: int = 0) -> SklearnLearner:
    return SklearnFactory(estimator, rows, labels, 3)(seed)


def equal(left: Assessment, right: Assessment) -> bool:
    return (
        np.array_equal(left.losses, right.losses)
        and np.array_equal(left.predictions, right.predictions)
        and np.array_equal(left.confidences, right.confidences)
    )


# --- training on ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch_size", "n", "epochs", "min_steps", "passes"),
    [
        (None, 25, 3, 0, 3),
        (None, 25, 1, 100, 4),  # without batches every sample is a step
        (None, 25, 1, 101, 5),
        (10, 25, 1, 9, 3),  # 3 steps an epoch
        (10, 25, 1, 10, 4),
        (10, 25, 6, 10, 6),  # never fewer than the epochs
        (100, 25, 1, 7, 7),  # a subset smaller than a batch is one step
        ("auto", 50, 1, 3, 3),  # MLPClassifier: at most 200
        ("auto", 400, 1, 3, 2),
        ("auto", 401, 1, 3, 1),
    ],
)
def test_epochs_and_steps_are_honoured(
    batch_size: Any, n: int, epochs: int, min_steps: int, passes: int
) -> None:
    subject = recorder(n + 5, batch_size=batch_size)
    subject.fit(np.arange(n), epochs=epochs, min_steps=min_steps)
    assert len(subject._model.calls_) == passes
    assert subject.cost == Cost(passes * n, 0)


def test_every_epoch_is_a_new_order_of_the_subset_with_its_labels() -> None:
    subject = recorder(100)
    subset = np.arange(10, 50)
    subject.fit(subset, epochs=3)
    orders = [rows[:, 0].astype(int) for rows, _ in subject._model.calls_]
    for order, (_, labels) in zip(orders, subject._model.calls_, strict=True):
        assert sorted(order) == subset.tolist()
        assert labels.tolist() == (order % 2).tolist()
    assert orders[0].tolist() != orders[1].tolist() != orders[2].tolist()


def test_all_classes_are_announced_whatever_the_subset_holds() -> None:
    subject = recorder(10)
    subject.fit(np.array([0, 2]), epochs=1)
    assert subject._model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    "estimator",
    [
        MLPClassifier(hidden_layer_sizes=(8,), batch_size=20),
        SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01),
    ],
)
def test_training_goes_on_where_it_stopped(estimator: Any) -> None:
    subject = learner(estimator)
    means = []
    for _ in range(5):
        subject.fit(EVERYONE, epochs=2)
        means.append(subject.assess(EVERYONE).losses.mean())
    assert all(later < earlier for earlier, later in pairwise(means)), means


def test_a_batch_larger_than_the_subset_is_no_cause_for_a_warning() -> None:
    subject = learner(MLPClassifier(hidden_layer_sizes=(4,), batch_size=32))
    subject.fit(EVERYONE[:5], epochs=2)
    assert np.isfinite(subject.assess(EVERYONE).losses).all()


# --- refitting ------------------------------------------------------------------------------------------


def test_a_model_that_cannot_go_on_is_refitted() -> None:
    twice, once = learner(LogisticRegression()), learner(LogisticRegression())
    twice.fit(EVERYONE[:30], epochs=40)
    twice.fit(EVERYONE[30:], epochs=1)
    once.fit(EVERYONE[30:], epochs=1)
    assert equal(twice.assess(EVERYONE), once.assess(EVERYONE))
    assert twice.cost.trained == 60


def test_refitting_happens_once_a_call_and_on_the_subset_only() -> None:
    subject = learner(Refitted())
    subject.fit(EVERYONE[6:30], epochs=7, min_steps=1000)
    assert subject._model.n_fits_ == 1
    assert np.array_equal(subject._model.seen_, ROWS[6:30])


def test_no_warning_for_a_budget_that_ends_before_convergence() -> None:
    learner(LogisticRegression(max_iter=1)).fit(EVERYONE, epochs=1)
    learner(make_pipeline(MLPClassifier(max_iter=1))).fit(EVERYONE, epochs=1)


def test_a_single_class_needs_no_model() -> None:
    subject = learner(LogisticRegression())
    subject.fit(EVERYONE[LABELS == 1], epochs=1)
    told = subject.assess(EVERYONE)
    assert (told.predictions == 1).all()
    assert (told.confidences == 1).all()
    assert told.losses == pytest.approx(np.where(LABELS == 1, 0.0, WORST))
    subject.fit(EVERYONE, epochs=1)
    assert set(subject.assess(EVERYONE).predictions.tolist()) == {0, 1, 2}


# --- what it says ---------------------------------------------------------------------------------------


def test_losses_are_the_cross_entropy_of_the_own_label() -> None:
    answers = np.array([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.0, 1.0, 0.0]])
    subject = learner(Recorder(answers=answers))
    subject.fit(EVERYONE, epochs=1)
    told = subject.assess(np.arange(4))
    assert told.losses == pytest.approx([-np.log(0.7), -np.log(0.2), -np.log(0.1), WORST])
    assert told.predictions.tolist() == [0, 0, 0, 1]
    assert told.confidences == pytest.approx([0.7, 0.7, 0.7, 1.0])


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), LinearSVC(), RandomForestClassifier(20), Refitted()]
)
@pytest.mark.parametrize("absent", [0, 1, 2])
def test_columns_belong_to_the_classes_that_the_model_saw(estimator: Any, absent: int) -> None:
    """Without class 0, column 0 of the model is class 1."""
    rows = 5.0 * np.eye(3)[LABELS] if not isinstance(estimator, Refitted) else np.zeros((60, 3))
    low, high = (label for label in range(3) if label != absent)
    if isinstance(estimator, Refitted):
        rows[:, 0] = np.where(high == LABELS, 4.0, -4.0)
    subject = learner(estimator, rows)
    subject.fit(EVERYONE[absent != LABELS], epochs=1)
    told = subject.assess(EVERYONE)
    assert told.losses[absent == LABELS] == pytest.approx(WORST)
    present = absent != LABELS
    assert told.predictions[present].tolist() == LABELS[present].tolist()
    assert told.losses[present].max() < 0.7
    assert np.isin(told.predictions, [low, high]).all()


def test_epochs_teach_only_the_classes_that_were_seen() -> None:
    """All classes are announced to ``partial_fit``, but one that never came has no probability."""
    answers = np.tile([0.5, 0.2, 0.3], (60, 1))
    answers[3] = [1.0, 0.0, 0.0]
    subject = learner(Recorder(answers=answers))
    subject.fit(EVERYONE[LABELS == 1], epochs=1)
    subject.fit(EVERYONE[LABELS == 2], epochs=1)
    told = subject.assess(EVERYONE)
    assert told.losses[:3] == pytest.approx([WORST, -np.log(0.4), -np.log(0.6)])
    assert told.losses[3] == pytest.approx(WORST)
    assert told.predictions[:3].tolist() == [2, 2, 2]
    assert told.confidences[:3] == pytest.approx(0.6)
    subject.fit(EVERYONE, epochs=1)
    assert subject.assess(EVERYONE).predictions[:3].tolist() == [0, 0, 0]


def test_scores_of_two_classes_are_log_odds() -> None:
    rows = np.array([[0.0], [np.log(3)], [-np.log(3)], [800.0], [-800.0]])
    labels = np.array([0, 1, 1, 1, 1])
    subject = SklearnFactory(Refitted(), rows, labels, 2)(0)
    subject.fit(np.arange(5), epochs=1)
    told = subject.assess(np.arange(5))
    assert told.losses == pytest.approx([np.log(2), -np.log(0.75), -np.log(0.25), 0.0, WORST])
    assert told.predictions[1:].tolist() == [1, 0, 1, 0]


def test_scores_of_several_classes_are_a_softmax() -> None:
    rows = np.array([[np.log(2), 0.0, 0.0], [1e4, 0.0, 0.0], [0.0, 0.0, np.log(6)]])
    subject = SklearnFactory(Refitted(), rows, np.array([0, 1, 2]), 3)(0)
    subject.fit(np.arange(3), epochs=1)
    told = subject.assess(np.arange(3))
    assert told.losses == pytest.approx([-np.log(0.5), WORST, -np.log(0.75)])
    assert told.predictions.tolist() == [0, 0, 2]


def test_an_infinite_score_is_an_answer_of_nan() -> None:
    rows = np.array([[np.inf, 0.0, np.inf], [0.0, 0.0, 1.0], [np.nan, 0.0, 0.0]])
    subject = SklearnFactory(Refitted(), rows, np.array([0, 1, 2]), 3)(0)
    subject.fit(np.arange(3), epochs=1)
    told = subject.assess(np.arange(3))
    assert told.losses[[0, 2]] == pytest.approx(WORST)
    assert told.predictions[0] != 0
    assert told.predictions[2] != 2


@pytest.mark.parametrize("column", [0, 1, 2])
def test_an_answer_of_nan_never_votes_for_the_label(column: int) -> None:
    answers = np.full((60, 3), 1 / 3)
    answers[:, column] = np.nan
    subject = learner(Recorder(answers=answers))
    subject.fit(EVERYONE, epochs=1)
    told = subject.assess(EVERYONE)
    assert (told.predictions != LABELS).all()
    assert np.isin(told.predictions, [0, 1, 2]).all()
    assert told.losses == pytest.approx(WORST)
    assert (told.confidences == 0).all()


def test_one_answer_of_nan_leaves_the_others_alone() -> None:
    answers = np.tile([0.6, 0.3, 0.1], (60, 1))
    answers[7] = np.nan
    subject = learner(Recorder(answers=answers))
    subject.fit(EVERYONE, epochs=1)
    told = subject.assess(EVERYONE)
    assert told.losses[7] == pytest.approx(WORST)
    assert told.predictions[np.arange(60) != 7].tolist() == [0] * 59


def test_naive_bayes_is_quiet_about_a_class_it_never_saw() -> None:
    subject = learner(GaussianNB())
    subject.fit(EVERYONE[LABELS != 2], epochs=2)
    told = subject.assess(EVERYONE)
    assert told.losses[LABELS == 2] == pytest.approx(WORST)
    assert (told.predictions != 2).all()


def test_scoring_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = learner(LogisticRegression())
    subject.fit(EVERYONE, epochs=1)
    mixed = np.random.default_rng(0).permutation(60)
    whole = subject.assess(mixed)
    monkeypatch.setattr(module, "SCORED_AT_ONCE", 7)
    parts = subject.assess(mixed)
    assert parts.losses == pytest.approx(whole.losses)
    assert parts.predictions.tolist() == whole.predictions.tolist()
    assert parts.confidences == pytest.approx(whole.confidences)
    assert subject.cost.scored == 120


# --- input and seeds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        # scikit-learn moves the intercept more slowly for sparse rows
        SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01, fit_intercept=False),
        make_pipeline(MaxAbsScaler(), LogisticRegression()),
    ],
)
def test_sparse_rows_give_what_dense_rows_give(container: Any, estimator: Any) -> None:
    rows = np.where(np.abs(ROWS) > 1, ROWS, 0.0)
    told = []
    for matrix in (rows, container(rows)):
        subject = learner(estimator, matrix)
        subject.fit(EVERYONE[::2], epochs=3)
        told.append(subject.assess(EVERYONE))
    assert told[0].losses == pytest.approx(told[1].losses, rel=1e-4, abs=1e-6)


def test_the_seed_reaches_every_random_state() -> None:
    nested = make_pipeline(MaxAbsScaler(), BaggingClassifier(DecisionTreeClassifier(), n_estimators=2))
    states = []
    for seed in (1, 1, 2):
        parameters = learner(nested, seed=seed)._model.get_params()
        states.append(
            (
                parameters["baggingclassifier__random_state"],
                parameters["baggingclassifier__estimator__random_state"],
            )
        )
    assert states[0] == states[1]
    assert len({*states[0], *states[2]}) == 4, "each has its own, and another seed gives others"
    assert nested.get_params()["baggingclassifier__random_state"] is None, "the original is left alone"


def test_the_order_of_samples_follows_the_seed() -> None:
    def first_order(seed: int) -> list[int]:
        rows, labels = np.arange(50.0)[:, None], np.arange(50) % 2
        subject = SklearnFactory(Recorder(), rows, labels, 2)(seed)
        subject.fit(np.arange(50), epochs=1)
        return subject._model.calls_[0][0][:, 0].tolist()

    assert first_order(1) == first_order(1) != first_order(2)


def test_what_gives_neither_probabilities_nor_scores_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        SklearnFactory(LinearRegression(), ROWS, LABELS, 3)
    assert str(caught.value) == (
        "The 'estimator' parameter must be a classifier with predict_proba or decision_function. "
        "Got LinearRegression() instead."
    )


def test_pairwise_scores_are_refused() -> None:
    from sklearn.svm import SVC

    with pytest.raises(InputError, match=r"decision_function_shape must be 'ovr'\. Got 'ovo'"):
        SklearnFactory(SVC(decision_function_shape="ovo"), np.zeros((3, 1)), np.array([0, 1, 2]), 3)
