from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from unpoison import IncompatibilityClustering, Sanitization
from unpoison import estimator as estimator_module
from unpoison.runners.local import LocalRunner

METHODS: dict[str, dict[str, Any]] = {
    "ispl": {"method": "ispl", "rounds": 2, "restarts": 1, "self_training": False},
    "groups": {"method": "groups"},
}


def small(method: str, /, **changes: Any) -> IncompatibilityClustering:
    parameters = {"estimator": LogisticRegression(max_iter=20), "random_state": 0, **METHODS[method]}
    return IncompatibilityClustering(**(parameters | changes))


@cache
def rows_and_labels(n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 3
    return rng.normal(size=(n, 4)) + 1.5 * np.eye(4)[labels], labels


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@parametrize_with_checks([small(method, random_state=None) for method in METHODS])
def test_it_is_a_scikit_learn_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


# --- parameters -----------------------------------------------------------------------------------------


def test_the_constructor_only_stores() -> None:
    names = list(inspect.signature(IncompatibilityClustering).parameters)
    markers = {name: object() for name in names}
    subject = IncompatibilityClustering(**markers)  # type: ignore[arg-type]
    assert vars(subject) == markers


def test_parameters_can_be_read_set_and_cloned() -> None:
    subject = small("ispl", alpha=0.3)
    assert subject.get_params()["alpha"] == 0.3
    assert subject.get_params()["estimator__max_iter"] == 20
    subject.set_params(alpha=0.4, estimator__max_iter=7)
    copy = clone(subject)
    assert copy is not subject
    assert copy.alpha == 0.4
    assert copy.estimator.max_iter == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "magic"}, "The 'method' parameter must be one of ispl, groups. Got 'magic'"),
        ({"method": "expansion"}, "The method 'expansion' was replaced by 'groups'. Use method 'groups'"),
        ({"method": "out-of-subset"}, "The method 'out-of-subset' was replaced by 'groups'"),
        ({"settings": "best"}, "The 'settings' parameter must be one of auto, .*. Got 'best' instead"),
        ({"rounds": 0}, "The 'rounds' parameter of IsplSettings must be a whole number .*. Got 0 instead"),
        ({"rounds": 2.5}, "The 'rounds' parameter of IsplSettings must be .*. Got 2.5 instead"),
        ({"restarts": "many"}, "The 'restarts' parameter of IsplSettings must be .*. Got 'many' instead"),
        ({"alpha": 0}, r"The 'alpha' parameter of IsplSettings must be a number in \(0, 1\]. Got 0 instead"),
        ({"momentum": 1.0}, r"The 'momentum' parameter of IsplSettings must be .*\[0, 1\). Got 1.0 instead"),
        (
            {"keep_rule": "all"},
            "The 'keep_rule' parameter of IsplSettings must be one of .* Got 'all' instead",
        ),
        ({"self_training": "no"}, "The 'self_training' parameter of IsplSettings must be one of True, False"),
        (
            {"estimator": LinearRegression()},
            "The 'estimator' parameter must be a classifier .* Got LinearRegr",
        ),
        (
            {"n_jobs": 0},
            "The 'n_jobs' parameter of IncompatibilityClustering must be None or .* Got 0 instead",
        ),
        ({"n_jobs": 1.5}, "The 'n_jobs' parameter of IncompatibilityClustering must be .* Got 1.5 instead"),
        ({"random_state": "x"}, "'x' cannot be used to seed"),
    ],
)
def test_bad_parameters_are_named_when_fitting(changes: dict[str, Any], message: str) -> None:
    subject = small("ispl", **changes)
    with pytest.raises(ValueError, match=message):
        subject.fit(*rows_and_labels())


def test_parameters_of_the_other_method_are_not_looked_at() -> None:
    small("groups", rounds=-1, keep_rule="?", alpha=7).fit(*rows_and_labels())


def test_parameters_reach_the_settings() -> None:
    fitted = small("ispl", rounds=3, restarts=2).fit(*rows_and_labels())
    assert fitted.components_.shape == (2, 60)
    assert set(fitted.labels_.tolist()) <= {-1, 0, 1, 2}


def test_numbers_of_numpy_are_numbers() -> None:
    """Parameter grids are often numpy arrays."""
    plain = small("ispl", rounds=3, alpha=0.5, self_training=True).fit(*rows_and_labels())
    numpys = small(
        "ispl", rounds=np.int64(3), alpha=np.float64(0.5), self_training=np.True_, n_jobs=np.int64(1)
    )
    assert np.array_equal(numpys.fit(*rows_and_labels()).suspicion_, plain.suspicion_)


def test_one_class_is_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="needs at least 2 classes to compare; got one class: 5"):
        small("ispl").fit(np.ones((4, 2)), [5, 5, 5, 5])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_must_be_finite(bad: float, method: str) -> None:
    rows, labels = rows_and_labels()
    rows = rows.copy()
    rows[3, 2] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        small(method).fit(rows, labels)


def test_continuous_targets_are_refused() -> None:
    rows, labels = rows_and_labels()
    with pytest.raises(ValueError, match="Unknown label type"):
        small("ispl").fit(rows, labels + 0.5)


# --- what is learned ------------------------------------------------------------------------------------


def test_the_attributes(method: str) -> None:
    rows, labels = rows_and_labels()
    subject = small(method)
    with pytest.raises(NotFittedError):
        check_is_fitted(subject)
    assert subject.fit(rows, labels) is subject
    check_is_fitted(subject)
    assert subject.keep_.shape == subject.suspicion_.shape == subject.labels_.shape == (60,)
    assert subject.keep_.dtype == np.bool_
    assert subject.components_.shape == (1, 60)
    assert np.array_equal(subject.labels_, subject.components_[0])
    assert subject.n_components_ == len(set(subject.labels_.tolist()) - {-1})
    assert subject.classes_.tolist() == [0, 1, 2]
    assert subject.n_features_in_ == 4
    assert np.isin(subject.predicted_, subject.classes_).all()
    assert isinstance(subject.result_, Sanitization)
    assert np.array_equal(subject.result_.keep, subject.keep_)


def test_suspicion_is_a_share_and_not_a_copy_of_the_mask(method: str) -> None:
    suspicion = small(method).fit(*rows_and_labels()).suspicion_
    assert ((suspicion >= 0) & (suspicion <= 1)).all()
    assert len(np.unique(suspicion)) > 10


def test_what_was_planted_is_the_most_suspicious(method: str) -> None:
    rng = np.random.default_rng(1)
    labels = np.arange(200) % 2
    rows = rng.normal(scale=0.5, size=(200, 3)) + 3.0 * labels[:, None]
    wrong = np.array([3, 50, 121])
    labels[wrong] = 1 - labels[wrong]
    subject = small(method).fit(rows, labels)
    assert set(np.argsort(subject.suspicion_)[-3:].tolist()) == set(wrong.tolist())
    assert np.array_equal(subject.predicted_[wrong], 1 - labels[wrong])
    if method == "ispl":
        assert np.flatnonzero(~subject.keep_).tolist() == wrong.tolist()


def test_the_same_seed_the_same_result_and_another_another(method: str) -> None:
    results = [small(method, random_state=seed).fit(*rows_and_labels()).suspicion_ for seed in (1, 1, 2)]
    assert np.array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])


def test_random_states_of_every_kind(method: str) -> None:
    def suspicion(state: Any) -> Any:
        return small(method, random_state=state).fit(*rows_and_labels()).suspicion_

    assert np.array_equal(suspicion(np.int64(3)), suspicion(3))
    assert np.array_equal(suspicion(np.random.RandomState(3)), suspicion(np.random.RandomState(3)))
    assert not np.array_equal(suspicion(None), suspicion(None))


@pytest.mark.parametrize("n_jobs", [2, None])
def test_the_result_does_not_depend_on_the_number_of_jobs(method: str, n_jobs: int | None) -> None:
    one = small(method, n_jobs=1).fit(*rows_and_labels())
    other = small(method, n_jobs=n_jobs).fit(*rows_and_labels())
    assert one.suspicion_.tobytes() == other.suspicion_.tobytes()
    assert one.keep_.tobytes() == other.keep_.tobytes()
    assert one.components_.tobytes() == other.components_.tobytes()


def test_minus_one_means_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(estimator_module, "LocalRunner", lambda n: asked.append(n) or LocalRunner(1))
    small("ispl", n_jobs=-1).fit(*rows_and_labels())
    small("ispl", n_jobs=None).fit(*rows_and_labels())
    assert asked == [joblib.cpu_count(), 1]


def test_the_given_estimator_and_data_are_left_alone(method: str) -> None:
    rows, labels = (array.copy() for array in rows_and_labels())
    model = LogisticRegression(max_iter=20)
    small(method, estimator=model).fit(rows, labels)
    assert not hasattr(model, "coef_")
    assert model.random_state is None
    assert np.array_equal(rows, rows_and_labels()[0])


def test_without_an_estimator_columns_are_standardised(method: str) -> None:
    """A column in other units changes nothing."""
    rows, labels = rows_and_labels()
    scaled = rows * np.array([1.0, 1024.0, 1.0, 2.0**-9])
    plain = small(method, estimator=None).fit(rows, labels)
    assert plain.suspicion_ == pytest.approx(small(method, estimator=None).fit(scaled, labels).suspicion_)


def test_with_an_estimator_they_are_not(method: str) -> None:
    rows, labels = rows_and_labels()
    plain = small(method).fit(rows, labels)
    other = small(method).fit(rows * np.array([1.0, 1024.0, 1.0, 2.0**-9]), labels)
    assert np.abs(plain.suspicion_ - other.suspicion_).max() > 1e-3


@pytest.mark.parametrize("labels", [[0, 1], [0, 0, 1], [0, 0, 1, 1], [0, 1, 2, 3]])
def test_a_handful_of_samples(method: str, labels: list[int]) -> None:
    rows = np.arange(len(labels), dtype=float)[:, None]
    if method == "groups" and len(set(labels)) == len(labels):
        with pytest.raises(ValueError, match="Every class has one sample"):
            small(method, estimator=None).fit(rows, labels)
        return
    subject = small(method, estimator=None).fit(rows, labels)
    assert subject.keep_.shape == (len(labels),)


# --- containers -----------------------------------------------------------------------------------------


def resampled(method: str, X: Any, y: Any) -> tuple[Any, Any, IncompatibilityClustering]:
    subject = small(method)
    X_kept, y_kept = subject.fit_resample(X, y)
    assert subject.sample_indices_.tolist() == np.flatnonzero(subject.keep_).tolist()
    return X_kept, y_kept, subject


@pytest.fixture
def noisy() -> tuple[Any, Any]:
    """Ten wrong labels of 60, so that something is removed by the vote."""
    rows, labels = rows_and_labels()
    return rows, np.where(np.arange(60) % 6 == 0, (labels + 1) % 3, labels)


def test_arrays(noisy: tuple[Any, Any]) -> None:
    rows, labels = noisy
    X, y, subject = resampled("ispl", rows, labels)
    assert 0 < len(X) < 60
    assert np.array_equal(X, rows[subject.keep_])
    assert np.array_equal(y, labels[subject.keep_])


def test_lists(noisy: tuple[Any, Any]) -> None:
    rows, labels = noisy
    X, y, subject = resampled("ispl", rows.tolist(), labels.tolist())
    assert isinstance(X, list)
    assert isinstance(y, list)
    assert rows[subject.keep_].tolist() == X
    assert y == labels[subject.keep_].tolist()


def test_pandas(noisy: tuple[Any, Any]) -> None:
    pandas = pytest.importorskip("pandas")
    rows, labels = noisy
    index = [f"row {i}" for i in range(60)]
    frame = pandas.DataFrame(rows, columns=list("abcd"), index=index)
    series = pandas.Series(labels, index=index, name="label")
    X, y, subject = resampled("ispl", frame, series)
    pandas.testing.assert_frame_equal(X, frame[subject.keep_])
    pandas.testing.assert_series_equal(y, series[subject.keep_])
    assert subject.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(subject.suspicion_, small("ispl").fit(rows, labels).suspicion_)


@pytest.mark.parametrize("dtype", ["category", "object", "str"])
def test_pandas_labels_of_every_kind(dtype: str, noisy: tuple[Any, Any]) -> None:
    pandas = pytest.importorskip("pandas")
    rows, labels = noisy
    names = pandas.Series(np.array(["cat", "dog", "eel"])[labels], dtype=dtype)
    _, y, subject = resampled("ispl", rows, names)
    assert y.dtype == names.dtype
    assert subject.classes_.tolist() == ["cat", "dog", "eel"]


@pytest.mark.parametrize(
    "kind", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "lil_matrix", "coo_array"]
)
def test_sparse(kind: str, noisy: tuple[Any, Any], method: str) -> None:
    rows, labels = noisy
    matrix = getattr(sparse, kind)(rows)
    X, _, subject = resampled(method, matrix, labels)
    assert type(X) is type(matrix)
    assert np.array_equal(X.toarray(), rows[subject.keep_])
    assert subject.suspicion_ == pytest.approx(small(method).fit(rows, labels).suspicion_, abs=1e-3)


def test_images(method: str) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    images = rng.integers(0, 100, size=(40, 4, 4, 3), dtype=np.uint8)
    images[labels == 1, :2] += 120
    X, _, subject = resampled(method, images, labels)
    assert X.dtype == np.uint8
    assert np.array_equal(X, images[subject.keep_])
    flat = small(method).fit((images.reshape(40, -1) / 255).astype(np.float32), labels)
    assert subject.suspicion_ == pytest.approx(flat.suspicion_, abs=1e-4)


@pytest.mark.parametrize("dtype", [str, object, bool, float])
def test_labels_of_every_kind(dtype: Any, method: str) -> None:
    rows, labels = rows_and_labels()
    numbers = labels % 2
    plain = small(method).fit(rows, numbers)
    names = (
        np.array(["no", "yes"])[numbers].astype(dtype) if dtype in (str, object) else numbers.astype(dtype)
    )
    _, y, subject = resampled(method, rows, names)
    assert subject.classes_.tolist() == sorted(set(names.tolist()))
    assert np.array_equal(subject.keep_, plain.keep_)
    assert np.array_equal(subject.predicted_, subject.classes_[plain.predicted_])
    assert y.dtype == names.dtype


def test_labels_need_not_start_at_zero_nor_be_dense(method: str) -> None:
    rows, labels = rows_and_labels()
    other = small(method).fit(rows, np.array([-5, 7, 1000])[labels])
    assert np.array_equal(other.suspicion_, small(method).fit(rows, labels).suspicion_)
    assert other.classes_.tolist() == [-5, 7, 1000]


def test_inside_a_pipeline_of_imbalanced_learn(noisy: tuple[Any, Any]) -> None:
    imblearn = pytest.importorskip("imblearn.pipeline")
    rows, labels = noisy
    pipeline = imblearn.make_pipeline(small("ispl"), LogisticRegression()).fit(rows, labels)
    kept = small("ispl").fit(rows, labels).keep_
    expected = LogisticRegression().fit(rows[kept], labels[kept])
    assert np.allclose(pipeline[-1].coef_, expected.coef_)
    assert not np.allclose(pipeline[-1].coef_, LogisticRegression().fit(rows, labels).coef_)
    assert pipeline.predict(rows).shape == (60,)


# --- networks -------------------------------------------------------------------------------------------


def test_a_callable_builds_torch_networks(method: str) -> None:
    pytest.importorskip("torch")
    from learners.torch_builders import perceptron

    X, y = rows_and_labels()
    fitted = small(method, estimator=perceptron).fit(X, y)
    again = small(method, estimator=perceptron, n_jobs=2).fit(X, y)
    assert fitted.keep_.tolist() == again.keep_.tolist()
    assert fitted.suspicion_.tolist() == again.suspicion_.tolist()
    assert fitted.result_.cost.flops > 0


def test_a_learner_by_name(method: str) -> None:
    X, y = rows_and_labels()
    assert small(method, estimator="sgd").fit(X, y).keep_.shape == (60,)
    with pytest.raises(ValueError, match="unknown learner 'compactt'"):
        small(method, estimator="compactt").fit(X, y)


@pytest.mark.parametrize(
    ("given", "voter"),
    [
        ({}, "judge 1"),
        ({"rounds": 2, "restarts": 1}, "restart 1, round 1"),
        ({"rounds": 2, "method": "groups"}, "judge 1"),
    ],
)
def test_the_method_follows_from_what_is_given(given: dict[str, Any], voter: str) -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    cleaner = IncompatibilityClustering(LogisticRegression(max_iter=50), random_state=0, **given).fit(
        X / 16, y
    )
    assert cleaner.result_.votes is not None
    assert cleaner.result_.votes.voters[0] == voter
