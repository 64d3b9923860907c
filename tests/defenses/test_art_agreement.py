"""The same decisions as the Adversarial Robustness Toolbox on the same activations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from defenses.builders import GivenActivations, planted
from unpoison.defenses.activation_clustering import STARTS, ActivationClustering
from unpoison.defenses.spectral import SpectralSignatures
from unpoison.learners.sklearn import SklearnFactory
from unpoison.seeds import Seeds


@pytest.fixture(scope="module")
def art(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The toolbox's poison detectors; it writes a configuration into the home folder when imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        return pytest.importorskip("art.defences.detector.poison")


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    """The hidden layer of an MLP on the digits, and their labels."""
    images, labels = load_digits(return_X_y=True)
    learner = SklearnFactory(MLPClassifier((32,), batch_size=32), images / 16.0, labels, 10)(0)
    learner.fit(np.arange(len(labels)), epochs=5, final=True)
    return learner.activations(np.arange(len(labels))), labels


class Classifier:
    """What the toolbox asks of a classifier: the activations of its last layer."""

    layer_names = ("last",)

    def __init__(self, activations: Any, labels: Any) -> None:
        self._activations = activations
        self.nb_classes = int(labels.max()) + 1

    def get_activations(self, positions: Any, *, layer: int, batch_size: int) -> Any:
        return self._activations[positions]


def their_keep(detector: Any, activations: Any, labels: Any, *, asked: Any = None, **settings: Any) -> Any:
    classifier = Classifier(activations, labels)
    _, is_clean = detector(classifier, np.arange(len(labels)), labels, **settings).detect_poison(
        **asked or {}
    )
    return np.array(is_clean, dtype=bool)


def our_keep(defense: Any, activations: Any, labels: Any, *, seed: int = 0) -> Any:
    return defense.judge(labels, GivenActivations(activations), seed=seed).keep


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
def test_spectral_signatures_as_the_toolbox_has_them(art: Any, digits: Any, share: float) -> None:
    settings = {"expected_pp_poison": share, "eps_multiplier": 1.0}
    theirs = their_keep(art.SpectralSignatureDefense, *digits, **settings)
    assert np.array_equal(our_keep(SpectralSignatures(share), *digits), theirs)
    assert not np.array_equal(our_keep(SpectralSignatures(share, centred=True), *digits), theirs)


def test_spectral_signatures_agree_on_classes_around_the_origin(art: Any, digits: Any) -> None:
    """There the centred scores are the squares of the others."""
    activations, labels = digits[0].copy(), digits[1]
    for label in range(10):
        activations[labels == label] -= activations[labels == label].mean(axis=0)
    theirs = their_keep(
        art.SpectralSignatureDefense, activations, labels, expected_pp_poison=0.2, eps_multiplier=1.0
    )
    assert np.array_equal(our_keep(SpectralSignatures(0.2, centred=True), activations, labels), theirs)


@pytest.mark.parametrize("rule", ["smaller", "relative-size"])
@pytest.mark.parametrize("width", [6, 60])
def test_clusters_that_are_there_are_found_by_both(art: Any, width: int, rule: Any) -> None:
    """Both classes have a small one: with numpy 2 the toolbox's ``relative-size`` fails where none is."""
    activations, labels, outliers = planted(80, 0.15, width=width, distance=30.0)
    activations[(labels == 0) & (np.arange(160) < 40)] += 20.0
    theirs = their_keep(art.ActivationDefence, activations, labels, asked={"cluster_analysis": rule})
    assert np.array_equal(our_keep(ActivationClustering(rule=rule), activations, labels), theirs)
    assert np.array_equal(theirs[labels == 1], ~outliers[labels == 1])


class OurDraws:
    """k-means with the starts that our defense draws, class after class."""

    def __init__(self, n_clusters: int, seeds: Iterator[int]) -> None:
        self._n_clusters = n_clusters
        self._seeds = seeds

    def fit_predict(self, rows: Any) -> Any:
        return KMeans(self._n_clusters, n_init=STARTS, random_state=next(self._seeds)).fit_predict(rows)


def test_real_activations_split_alike_given_the_same_draws(
    art: Any, digits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With draws of its own and today's single start, the toolbox does not even agree with itself here."""
    seeds = Seeds(4).within(ActivationClustering.name)
    drawn = iter([seeds.within("class", label).integer("k-means") for label in range(10)])
    monkeypatch.setattr(art.activation_defence, "KMeans", lambda n_clusters: OurDraws(n_clusters, drawn))
    theirs = their_keep(art.ActivationDefence, *digits)
    assert np.array_equal(our_keep(ActivationClustering(), *digits, seed=4), theirs)
    assert 0 < (~theirs).sum() < len(theirs) / 2
