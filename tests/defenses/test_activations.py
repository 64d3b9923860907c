from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from core.fakes import CentroidFactory, two_blobs
from defenses.builders import GivenActivations, planted
from unpoison.core.result import Cost
from unpoison.core.tasks import Workshop
from unpoison.defenses.activations import ClassVerdict, judge_by_activations
from unpoison.errors import InputError
from unpoison.learners.sklearn import SklearnFactory
from unpoison.seeds import Seeds

ROWS, LABELS = two_blobs(60, n_classes=3)
EVERYONE = np.arange(60)


@dataclass(frozen=True)
class AboveTheMean:
    """Removes what has a first activation above its class's mean."""

    layer: str | None = None
    epochs: int = 3
    min_steps: int = 7

    def judge_class(self, activations: Any, *, seeds: Seeds) -> ClassVerdict:
        removed = activations[:, 0] > activations[:, 0].mean()
        return ClassVerdict(removed, removed * 0.75, removed.astype(np.int64))


def judge(rule: Any, labels: Any, factory: Any, *, seed: int = 0) -> Any:
    return judge_by_activations(rule, labels, factory, seeds=Seeds(seed), workshop=Workshop())


def test_classes_are_judged_apart_and_put_together_again() -> None:
    factory = GivenActivations(np.array([[0.0], [10.0], [1.0], [11.0], [5.0], [20.0]]))
    labels = np.array([0, 1, 0, 1, 2, 1])  # class 2 has a single sample
    decision = judge(AboveTheMean(), labels, factory)
    assert decision.keep.tolist() == [True, True, False, True, True, False]
    assert decision.suspicion.tolist() == [0.0, 0.0, 0.75, 0.0, 0.0, 0.75]
    assert decision.components.tolist() == [[0, 2, 1, 2, -1, 3]]


def test_one_model_is_trained_on_everything_to_its_end() -> None:
    activations, labels, _ = planted(10)
    factory = GivenActivations(activations)
    decision = judge(AboveTheMean(), labels, factory)
    assert factory.fits == [(20, 3, 7, True)]
    assert decision.cost == Cost(trained=60, scored=20)


def test_a_named_layer_is_asked_for_before_training_and_after() -> None:
    factory = GivenActivations(np.zeros((4, 2)))
    judge(AboveTheMean(layer="stages.6"), np.array([0, 0, 1, 1]), factory)
    assert factory.layers == ["stages.6"] * 3


def test_a_learner_without_activations_is_refused_before_training() -> None:
    with pytest.raises(InputError, match="CentroidLearner has no method 'activations'"):
        judge(AboveTheMean(), LABELS, CentroidFactory(ROWS, LABELS))


def test_activations_that_are_not_finite_are_refused() -> None:
    factory = GivenActivations(np.array([[0.0], [np.nan]]))
    with pytest.raises(InputError, match="diverged"):
        judge(AboveTheMean(), np.array([0, 0]), factory)


def scikit(estimator: Any, rows: Any = ROWS) -> Any:
    learner = SklearnFactory(estimator, rows, LABELS, 3)(0)
    learner.fit(EVERYONE, epochs=3, final=True)
    return learner


def test_activations_of_a_linear_model_are_its_features() -> None:
    learner = scikit(LogisticRegression())
    asked = np.array([7, 3, 50])
    assert learner.activations(asked).tolist() == ROWS[asked].tolist()
    assert learner.cost.scored == 3


def test_activations_of_a_pipeline_are_what_its_last_step_sees() -> None:
    given = scikit(make_pipeline(StandardScaler(), LogisticRegression())).activations(EVERYONE)
    assert given.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)
    assert given.std(axis=0) == pytest.approx(np.ones(3))
    alone = scikit(make_pipeline(LogisticRegression())).activations(EVERYONE)
    assert alone.tolist() == ROWS.tolist()


@pytest.mark.parametrize("activation", ["identity", "relu", "tanh", "logistic"])
@pytest.mark.parametrize("layers", [(8,), (8, 5)])
def test_the_last_hidden_layer_of_an_mlp_leads_to_its_answer(activation: str, layers: Any) -> None:
    learner = scikit(MLPClassifier(layers, activation=activation))
    hidden = learner.activations(EVERYONE)
    assert hidden.shape == (60, layers[-1])
    model = learner._model
    scores = hidden @ model.coefs_[-1] + model.intercepts_[-1]
    powers = np.exp(scores)
    assert powers / powers.sum(axis=1, keepdims=True) == pytest.approx(model.predict_proba(ROWS), abs=1e-6)


def test_an_mlp_on_sparse_features_has_dense_activations() -> None:
    assert scikit(MLPClassifier((4,)), sparse.csr_matrix(ROWS)).activations(EVERYONE).shape == (60, 4)


def test_what_has_no_activations_says_so() -> None:
    with pytest.raises(InputError, match="RandomForestClassifier has no activations"):
        scikit(RandomForestClassifier(n_estimators=3)).activations(EVERYONE)
    with pytest.raises(InputError, match="use the learner 'mlp'"):
        scikit(LogisticRegression(), sparse.csr_matrix(ROWS)).activations(EVERYONE)
    with pytest.raises(InputError, match="no layers with names"):
        scikit(LogisticRegression()).activations(EVERYONE, layer="head")
