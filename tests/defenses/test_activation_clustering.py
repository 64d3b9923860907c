from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from defenses.builders import GivenActivations, planted
from unpoison.defenses.activation_clustering import ActivationClustering
from unpoison.errors import InputError
from unpoison.seeds import Seeds

SETTINGS: list[dict[str, Any]] = [
    {},
    {"reducer": "fastica"},
    {"rule": "relative-size"},
    {"n_components": 30},
    {"n_components": 1},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_planted_cluster_is_removed(settings: dict[str, Any]) -> None:
    activations, labels, outliers = planted(100, 0.2)
    decision = ActivationClustering(**settings).judge(labels, GivenActivations(activations), seed=0)
    of_target = labels == 1
    assert np.array_equal(~decision.keep[of_target], outliers[of_target])
    assert decision.suspicion[outliers].min() > 0.5
    assert decision.suspicion[of_target & ~outliers].max() < 0.5
    components = decision.components
    assert components is not None
    assert len(set(components[0, outliers])) == 1
    assert not set(components[0, labels == 0]) & set(components[0, of_target])


def test_by_default_the_smaller_part_of_every_class_goes_even_where_nothing_is_planted() -> None:
    activations, labels, _ = planted(100, 0.0)
    decision = ActivationClustering().judge(labels, GivenActivations(activations), seed=0)
    removed = [(~decision.keep & (labels == label)).sum() for label in (0, 1)]
    assert all(20 < count <= 50 for count in removed)


def test_relative_size_keeps_a_class_that_splits_into_halves() -> None:
    activations, labels, outliers = planted(100, 0.2)
    decision = ActivationClustering(rule="relative-size").judge(labels, GivenActivations(activations), seed=0)
    assert np.array_equal(~decision.keep, outliers)
    assert decision.suspicion[decision.keep].max() < 0.5


@pytest.mark.parametrize(("small", "is_removed"), [(34, True), (35, False), (36, False)])
def test_relative_size_removes_below_35_percent(small: int, is_removed: bool) -> None:
    activations = np.random.default_rng(0).normal(size=(100, 3))
    activations[:small] += 50.0
    verdict = ActivationClustering(rule="relative-size").judge_class(activations, seeds=Seeds(0))
    assert verdict.removed.any() == is_removed
    assert not verdict.removed[small:].any()


def test_the_smallest_of_three_clusters_goes() -> None:
    activations = np.random.default_rng(0).normal(size=(60, 4))
    activations[:10] += 30.0
    activations[10:30] -= 30.0
    verdict = ActivationClustering(n_clusters=3).judge_class(activations, seeds=Seeds(0))
    assert verdict.removed.tolist() == [True] * 10 + [False] * 50
    assert len(set(verdict.groups)) == 3


@pytest.mark.parametrize("reducer", ["pca", "fastica"])
@pytest.mark.parametrize("width", [4, 40])
def test_equal_activations_are_kept(reducer: Any, width: int) -> None:
    verdict = ActivationClustering(reducer=reducer).judge_class(np.full((30, width), 0.1), seeds=Seeds(0))
    assert not verdict.removed.any()
    assert not verdict.suspicion.any()


@pytest.mark.parametrize("reducer", ["pca", "fastica"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_classes_smaller_than_the_number_of_components(reducer: Any, n: int) -> None:
    activations = np.random.default_rng(0).normal(size=(n, 40))
    verdict = ActivationClustering(reducer=reducer).judge_class(activations, seeds=Seeds(0))
    assert 1 <= verdict.removed.sum() <= n // 2
    assert np.isfinite(verdict.suspicion).all()


def test_activations_of_low_rank() -> None:
    """Most units of a rectified layer can be silent for a class."""
    activations = np.zeros((50, 40))
    activations[:, 3] = np.random.default_rng(0).normal(size=50)
    activations[:12, 3] += 40.0
    for reducer in ("pca", "fastica"):
        verdict = ActivationClustering(reducer=reducer).judge_class(activations, seeds=Seeds(0))
        assert verdict.removed.tolist() == [True] * 12 + [False] * 38


def test_two_values_for_three_clusters() -> None:
    activations = np.repeat([[0.0], [1.0]], 10, axis=0)
    verdict = ActivationClustering(n_clusters=3).judge_class(activations, seeds=Seeds(0))
    assert not verdict.removed.any()


@pytest.mark.parametrize(
    "settings",
    [{"n_clusters": 1}, {"n_components": 0}, {"epochs": 0}, {"min_steps": -1}, {"reducer": "tsne"},
     {"rule": "distance"}, {"rule": "relative-size", "n_clusters": 3}],
)  # fmt: skip
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="parameter of ActivationClustering must be"):
        ActivationClustering(**settings)
