"""What learners show of what they see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from core.fakes import two_blobs
from unpoison.learners.sklearn import FAINTEST, SklearnFactory

torch = pytest.importorskip("torch")

from learners.torch_builders import on_images, on_rows  # noqa: E402
from unpoison.learners.networks import NETWORKS  # noqa: E402
from unpoison.learners.recipes import TrainingOptions  # noqa: E402
from unpoison.learners.torch import TorchFactory  # noqa: E402

ROWS, LABELS = two_blobs(60, n_classes=3)
ROWS = np.column_stack([ROWS, ROWS[:, 0]])
EVERYONE = np.arange(60)
CHANNELS = {"compact": 128, "preactresnet18": 512, "resnet32": 64, "resnet56": 256}


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_a_network_shows_the_highest_point_of_each_of_its_last_maps(name: str) -> None:
    images = np.random.default_rng(0).integers(0, 256, size=(5, 32, 32, 3), dtype=np.uint8)
    labels = np.array([0, 1, 2, 0, 1])
    learner = TorchFactory(NETWORKS[name], images, labels, 3, TrainingOptions(device="cpu"))(0)
    seen = learner.embed(np.arange(5))
    assert seen.shape[0] == 5
    # what goes into the last layer is the mean of the same maps, or what a pooling of them leaves
    mean: Any = learner.activations(np.arange(5), layer=_head(learner.network))
    assert seen.shape == mean.shape
    assert (seen >= mean - 1e-5).all()
    assert (seen > mean + 1e-5).any()


def _head(network: Any) -> str:
    return [name for name, part in network.named_modules() if isinstance(part, torch.nn.Linear)][-1]


def test_a_small_mark_shows_in_the_highest_points_and_hardly_in_the_means() -> None:
    images = np.full((40, 32, 32, 3), 120, dtype=np.uint8)
    images += np.random.default_rng(0).integers(0, 20, size=images.shape, dtype=np.uint8)
    images[:20, 2:5, 2:5] = (255, 0, 255)
    learner = TorchFactory(NETWORKS["compact"], images, np.arange(40) % 2, 2, TrainingOptions(device="cpu"))(
        0
    )
    learner.fit(np.arange(40), epochs=5, final=True)

    def distance(view: Any) -> float:
        return float((np.abs(view[:20].mean(0) - view[20:].mean(0)) / (view.std(0) + 1e-9)).max())

    assert distance(learner.embed(np.arange(40))) >= distance(learner.activations(np.arange(40)))


def test_networks_without_maps_show_the_input_of_the_last_layer() -> None:
    learner = on_rows(ROWS, LABELS, n_classes=3)(0)
    assert np.array_equal(learner.embed(EVERYONE), learner.activations(EVERYONE))


def test_order_batches_and_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = on_images(ROWS, LABELS, n_classes=3)(0)
    scored = learner.cost.scored
    whole = learner.embed(EVERYONE)
    assert learner.cost.scored == scored + 60
    mixed = np.random.default_rng(0).permutation(60)[:23]
    monkeypatch.setattr("unpoison.learners.torch.SCORED_AT_ONCE", 7)
    assert learner.embed(mixed) == pytest.approx(whole[mixed], abs=1e-6)
    assert learner.embed(EVERYONE[:0]).shape[0] == 0
    assert not any(module._forward_hooks for module in learner.network.modules())


def _after_fitting(model: Any, rows: Any = ROWS, labels: Any = LABELS) -> Any:
    learner = SklearnFactory(model, rows, labels, n_classes=int(labels.max()) + 1)(0)
    learner.fit(np.arange(len(labels)), epochs=3, final=True)
    return learner


@pytest.mark.filterwarnings("ignore:.*Stochastic Optimizer")
def test_an_mlp_shows_its_last_hidden_layer() -> None:
    hidden = _after_fitting(make_pipeline(StandardScaler(), MLPClassifier((7,), max_iter=20)))
    assert hidden.embed(EVERYONE).shape == (60, 7)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GaussianNB(),
        RandomForestClassifier(20, random_state=0),
        HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_plain_classifiers_see_the_columns_that_they_rely_on(model: Any) -> None:
    """The first column tells the classes, the others are noise: along the first samples differ more."""
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    rows = np.column_stack([labels + 0.2 * rng.normal(size=200), rng.normal(size=(200, 7))])
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    seen = _after_fitting(model, rows, labels).embed(np.arange(200))
    for view in (seen, seen / seen.std(axis=0)):  # evening its columns takes nothing away
        ways, *_ = np.linalg.lstsq(rows, view - view.mean(axis=0), rcond=None)
        relied, *noise = np.linalg.norm(ways, axis=1)
        assert relied > 2.0 * max(noise)


def test_what_a_tree_relies_on_is_looked_for_in_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a forest each call takes long; however they are cut, they give the same."""
    rows = np.random.default_rng(0).normal(size=(200, 30))
    learner = _after_fitting(RandomForestClassifier(5, random_state=0), rows, np.arange(200) % 2)
    calls: list[int] = []
    predicted = learner._predicted

    def counted(asked: Any) -> Any:
        calls.append(len(asked))
        return predicted(asked)

    monkeypatch.setattr(learner, "_predicted", counted)
    at_once = learner._reliance()
    assert calls == [200, 30 * 200]
    monkeypatch.setattr("unpoison.learners.sklearn.SHUFFLED_AT_ONCE", 7 * rows.size)
    assert learner._reliance() == pytest.approx(at_once)
    assert calls[2:] == [200, *[7 * 200] * 4, 2 * 200]


def test_what_a_plain_classifier_sees_does_not_depend_on_who_is_asked_about() -> None:
    for model in (LogisticRegression(), GaussianNB()):
        learner = _after_fitting(model)
        whole = learner.embed(EVERYONE)
        assert learner.embed(EVERYONE[10:30]) == pytest.approx(whole[10:30])


def test_of_sparse_rows_there_are_the_leading_axes_or_the_probabilities() -> None:
    words = sparse.csr_matrix(np.abs(ROWS))
    assert _after_fitting(LogisticRegression(), words).embed(EVERYONE).shape[0] == 60
    seen = _after_fitting(RandomForestClassifier(5, random_state=0), words).embed(EVERYONE)
    assert seen.shape == (60, 3)
    assert seen.min() >= np.log(FAINTEST)


def test_a_model_of_one_class_sees_nothing() -> None:
    learner = SklearnFactory(GaussianNB(), ROWS, LABELS, n_classes=3)(0)
    learner.fit(np.flatnonzero(LABELS == 1), epochs=1)
    assert not learner.embed(EVERYONE).any()
