"""What the core relies on, for every kind of learner."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from unpoison.core.learner import Assessment, Learner, LearnerFactory
from unpoison.core.result import Cost
from unpoison.learners.sklearn import SklearnFactory

N_CLASSES = 3


class SoftmaxLearner:
    """Softmax regression by gradient descent, in plain numpy: the protocol and nothing else."""

    def __init__(self, rows: Any, labels: Any, seed: int) -> None:
        self._rows = np.column_stack([rows, np.ones(len(rows))])
        self._labels = labels
        self._rng = np.random.default_rng(seed)
        self._weights = self._rng.normal(scale=0.01, size=(self._rows.shape[1], N_CLASSES))
        self._seen = np.zeros(N_CLASSES, dtype=bool)
        self._trained = self._scored = 0

    @property
    def cost(self) -> Cost:
        return Cost(self._trained, self._scored)

    def fit(self, indices: Any, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        self._seen[self._labels[indices]] = True
        for _ in range(max(epochs, -(-min_steps // len(indices)))):
            for i in self._rng.permutation(indices):
                error = self._shares(np.array([i])) - np.eye(N_CLASSES)[self._labels[[i]]]
                self._weights -= 0.1 * self._rows[[i]].T @ error
            self._trained += len(indices)

    def assess(self, indices: Any) -> Assessment:
        shares = self._shares(indices)
        self._scored += len(indices)
        own = shares[np.arange(len(indices)), self._labels[indices]]
        return Assessment(-np.log(own), shares.argmax(axis=1), shares.max(axis=1, initial=0.0))

    def _shares(self, indices: Any) -> Any:
        scores = np.where(self._seen, self._rows[indices] @ self._weights, -1e3)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
        return np.maximum(powers / powers.sum(axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True)
class SoftmaxFactory:
    rows: Any
    labels: Any

    def __call__(self, seed: int) -> SoftmaxLearner:
        return SoftmaxLearner(self.rows, self.labels, seed)


def rows_and_labels() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    labels = np.arange(90) % N_CLASSES
    rows = rng.normal(scale=0.5, size=(90, 4)) + 3.0 * np.eye(4)[labels]
    rows.flags.writeable = labels.flags.writeable = False
    return rows, labels


def scikit(estimator: Any) -> LearnerFactory:
    rows, labels = rows_and_labels()
    return SklearnFactory(estimator, rows, labels, N_CLASSES)


def torch_on_rows() -> LearnerFactory:
    pytest.importorskip("torch")
    from learners.torch_builders import on_rows

    return on_rows(*rows_and_labels(), n_classes=N_CLASSES)


def torch_on_images() -> LearnerFactory:
    pytest.importorskip("torch")
    from learners.torch_builders import on_images

    return on_images(*rows_and_labels(), n_classes=N_CLASSES)


LEARNERS: dict[str, Callable[[], LearnerFactory]] = {
    "mlp": lambda: scikit(MLPClassifier(hidden_layer_sizes=(16,), batch_size=16, learning_rate_init=0.01)),
    "sgd-log": lambda: scikit(SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.05)),
    "sgd-hinge": lambda: scikit(SGDClassifier(loss="hinge", learning_rate="constant", eta0=0.05)),
    "logistic": lambda: scikit(LogisticRegression(max_iter=50)),
    "forest": lambda: scikit(RandomForestClassifier(n_estimators=10)),
    "boosting": lambda: scikit(HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=3)),
    "pipeline": lambda: scikit(make_pipeline(StandardScaler(), LogisticRegression(max_iter=50))),
    "naive-bayes": lambda: scikit(GaussianNB()),
    "linear-svc": lambda: scikit(LinearSVC()),
    "numpy": lambda: SoftmaxFactory(*rows_and_labels()),
    "torch-rows": torch_on_rows,
    "torch-images": torch_on_images,
}
SEEDED = ("mlp", "sgd-log", "sgd-hinge", "forest", "numpy", "torch-rows", "torch-images")
"""Those with randomness of their own on this data."""

EVERYONE = np.arange(90)
LABELS = rows_and_labels()[1]


@pytest.fixture(params=LEARNERS, autouse=True)
def factory(request: pytest.FixtureRequest) -> Any:
    with threadpool_limits(limits=1):
        yield LEARNERS[request.param]()


def fitted(factory: LearnerFactory, indices: Any = EVERYONE, *, seed: int = 1, epochs: int = 20) -> Learner:
    learner = factory(seed)
    learner.fit(np.asarray(indices), epochs=epochs)
    return learner


def same(left: Assessment, right: Assessment) -> bool:
    return all(
        np.array_equal(getattr(left, name), getattr(right, name))
        for name in ("losses", "predictions", "confidences")
    )


def check_sound(assessment: Assessment, indices: Any) -> None:
    assert assessment.losses.shape == assessment.predictions.shape == (len(indices),)
    assert assessment.confidences.shape == (len(indices),)
    assert np.issubdtype(assessment.predictions.dtype, np.integer)
    assert np.isfinite(assessment.losses).all()
    assert (assessment.losses >= 0).all()
    assert np.isin(assessment.predictions, np.arange(N_CLASSES)).all()
    assert ((assessment.confidences >= 0) & (assessment.confidences <= 1 + 1e-9)).all()
    agreed = assessment.predictions == LABELS[indices]
    # loss and confidence tell the same story: where the label is called, the loss is that of the confidence
    assert assessment.losses[agreed] == pytest.approx(-np.log(assessment.confidences[agreed]), abs=1e-9)
    assert (assessment.losses[~agreed] >= -np.log(0.5 + 1e-9)).all()


def test_it_learns(factory: LearnerFactory) -> None:
    assessment = fitted(factory).assess(EVERYONE)
    check_sound(assessment, EVERYONE)
    assert (assessment.predictions == LABELS).mean() > 0.95
    assert assessment.losses.mean() < 0.7


def test_it_generalises_to_what_it_did_not_see(factory: LearnerFactory) -> None:
    assessment = fitted(factory, EVERYONE[:45]).assess(EVERYONE[45:])
    check_sound(assessment, EVERYONE[45:])
    assert (assessment.predictions == LABELS[45:]).mean() > 0.9


def test_answers_come_in_the_order_of_the_question(factory: LearnerFactory) -> None:
    learner = fitted(factory, EVERYONE[::2])
    whole = learner.assess(EVERYONE)
    mixed = np.random.default_rng(0).permutation(90)[:40]
    part = learner.assess(mixed)
    assert part.losses == pytest.approx(whole.losses[mixed])
    assert part.predictions.tolist() == whole.predictions[mixed].tolist()
    assert part.confidences == pytest.approx(whole.confidences[mixed])


def test_asking_changes_nothing(factory: LearnerFactory) -> None:
    learner = fitted(factory)
    assert same(learner.assess(EVERYONE), learner.assess(EVERYONE))


def test_asking_about_nobody(factory: LearnerFactory) -> None:
    assessment = fitted(factory).assess(np.array([], dtype=np.int64))
    assert len(assessment.losses) == len(assessment.predictions) == len(assessment.confidences) == 0


def test_the_same_seed_gives_the_same_bits(factory: LearnerFactory) -> None:
    state = np.random.get_state()[1].copy()  # type: ignore[index,union-attr]
    assert same(fitted(factory, epochs=3).assess(EVERYONE), fitted(factory, epochs=3).assess(EVERYONE))
    assert np.array_equal(state, np.random.get_state()[1])  # type: ignore[index]


def test_another_seed_gives_another_model(factory: LearnerFactory, request: pytest.FixtureRequest) -> None:
    left = fitted(factory, seed=1, epochs=3).assess(EVERYONE)
    right = fitted(factory, seed=2, epochs=3).assess(EVERYONE)
    if request.node.callspec.params["factory"] in SEEDED:
        assert not same(left, right)


def test_learners_of_one_factory_are_strangers(factory: LearnerFactory) -> None:
    first = fitted(factory, EVERYONE[:45])
    before = first.assess(EVERYONE)
    fitted(factory, EVERYONE[60:], seed=9)
    assert same(before, first.assess(EVERYONE))
    assert first.cost.scored == 180


def test_a_factory_survives_pickling(factory: LearnerFactory) -> None:
    copy = pickle.loads(pickle.dumps(factory))  # noqa: S301
    assert same(fitted(factory, epochs=3).assess(EVERYONE), fitted(copy, epochs=3).assess(EVERYONE))


@pytest.mark.parametrize("absent", range(N_CLASSES))
def test_a_class_absent_from_the_subset_is_explained_worst(factory: LearnerFactory, absent: int) -> None:
    present = EVERYONE[absent != LABELS]
    assessment = fitted(factory, present).assess(EVERYONE)
    check_sound(assessment, EVERYONE)
    outside = absent == LABELS
    assert assessment.losses[outside].min() > assessment.losses[~outside].mean()
    assert (assessment.predictions[outside] != absent).all()
    assert (assessment.predictions[~outside] == LABELS[~outside]).mean() > 0.9


@pytest.mark.parametrize("label", range(N_CLASSES))
def test_a_subset_of_one_class(factory: LearnerFactory, label: int) -> None:
    assessment = fitted(factory, EVERYONE[label == LABELS][:9]).assess(EVERYONE)
    check_sound(assessment, EVERYONE)
    own = label == LABELS
    assert (assessment.predictions[own] == label).all()
    assert assessment.losses[own].mean() < assessment.losses[~own].mean()


def test_a_subset_of_one_sample(factory: LearnerFactory) -> None:
    check_sound(fitted(factory, [4]).assess(EVERYONE), EVERYONE)


def test_training_goes_on_from_one_class_to_all(factory: LearnerFactory) -> None:
    learner = fitted(factory, EVERYONE[LABELS == 0], epochs=2)
    learner.fit(EVERYONE, epochs=40)
    assert (learner.assess(EVERYONE).predictions == LABELS).mean() > 0.9


def test_costs_count_what_was_asked(factory: LearnerFactory) -> None:
    learner = factory(0)
    assert learner.cost == Cost(0, 0)
    learner.fit(EVERYONE[:30], epochs=1)
    first = learner.cost.trained
    assert first >= 30
    learner.fit(EVERYONE[:30], epochs=1)
    assert learner.cost.trained == 2 * first
    learner.assess(EVERYONE[:7])
    learner.assess(EVERYONE[:11])
    assert learner.cost.scored == 18


def test_enough_steps_are_taken_on_a_small_subset(factory: LearnerFactory) -> None:
    """Nine samples for one epoch teach an epoch learner little; the floor on steps makes up for it."""
    few = EVERYONE[:9]
    starved, fed = factory(1), factory(1)
    starved.fit(few, epochs=1)
    fed.fit(few, epochs=1, min_steps=400)
    assert fed.assess(few).losses.mean() <= starved.assess(few).losses.mean() + 1e-9
    assert (fed.assess(few).predictions == LABELS[few]).all()
