from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from defenses.builders import GivenActivations, planted
from unpoison.defenses.spectral import (
    LEAST_SHARE_200_EPOCHS,
    SpectralSignatures,
    n_outliers,
    spectral_scores,
)
from unpoison.errors import InputError
from unpoison.seeds import Seeds


def restated(activations: Any, *, centred: bool) -> Any:
    """Tran et al., Algorithm 1, as it is written (and as their code has it, where it is not centred)."""
    mean = sum(activations) / len(activations)
    matrix = np.array([row - mean for row in activations])
    v = np.linalg.svd(matrix)[2][0]
    if centred:
        return np.array([((row - mean) @ v) ** 2 for row in activations])
    return np.array([abs(row @ v) for row in activations])


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (12, 12), (2, 5), (9, 1)])
def test_scores_are_those_of_the_paper(shape: tuple[int, int], centred: bool) -> None:
    activations = np.random.default_rng(1).normal(size=shape) * np.arange(1, shape[1] + 1) + 3.0
    scores = spectral_scores(activations, centred=centred)
    assert scores == pytest.approx(restated(activations, centred=centred), rel=1e-6, abs=1e-9)


def test_centred_scores_do_not_depend_on_where_the_class_lies() -> None:
    activations, _, _ = planted(30)
    there, here = (spectral_scores(each, centred=True) for each in (activations + 100.0, activations))
    assert there == pytest.approx(here, rel=1e-6)
    assert spectral_scores(activations + 100.0).min() > 10.0


def test_by_default_it_is_the_official_code() -> None:
    """Which the paper uses: the direction is of the centred activations, the scores are not."""
    activations = np.random.default_rng(2).normal(size=(40, 7)) * np.arange(1, 8) + 3.0
    assert spectral_scores(activations) == pytest.approx(restated(activations, centred=False), rel=1e-6)
    assert not SpectralSignatures().centred
    assert not SpectralSignatures.for_epsilon(0.1).centred
    removed = SpectralSignatures().judge_class(activations, seeds=Seeds(0)).removed
    assert np.flatnonzero(removed).tolist() == sorted(np.argsort(restated(activations, centred=False))[-8:])


@pytest.mark.parametrize(("share", "expected"), [(0.1, 10), (0.2, 20), (0.3, 30), (0.999, 99)])
def test_the_share_of_a_hundred(share: float, expected: int) -> None:
    assert n_outliers(share, 100) == expected


@pytest.mark.parametrize("share", [0.01, 0.1, 0.15, 0.2, 0.3, 0.5])
def test_outliers_are_counted_as_by_a_quantile(share: float) -> None:
    for count in range(2, 300):
        scores = np.arange(count, dtype=float)
        cut = np.quantile(scores, 1.0 - share)
        assert n_outliers(share, count) == (scores >= cut - 1e-6).sum()
        assert 1 <= n_outliers(share, count) <= count
        assert abs(n_outliers(share, count) - share * count) <= 1


@pytest.mark.parametrize("centred", [True, False])
def test_planted_outliers_are_found(centred: bool) -> None:
    activations, labels, outliers = planted(100, 0.1)
    activations -= 5.0 * labels[:, None]  # where the class lies would hide them from uncentred scores
    defense = SpectralSignatures(centred=centred)
    decision = defense.judge(labels, GivenActivations(activations), seed=0)
    assert not decision.keep[outliers].any()
    assert decision.n_removed == 40
    assert decision.suspicion[outliers].min() > decision.suspicion[~outliers].max()


def test_suspicion_is_above_one_half_for_what_is_removed() -> None:
    activations, labels, _ = planted(50)
    decision = SpectralSignatures(0.3).judge(labels, GivenActivations(activations), seed=0)
    assert decision.suspicion[~decision.keep].min() >= 0.5
    assert decision.suspicion[decision.keep].max() < 0.5
    assert [(~decision.keep & (labels == label)).sum() for label in (0, 1)] == [15, 15]


@pytest.mark.parametrize("centred", [True, False])
def test_equal_activations_lose_their_share_at_random(centred: bool) -> None:
    activations = np.full((40, 6), 0.1)
    defense = SpectralSignatures(centred=centred)
    first, second = (defense.judge_class(activations, seeds=Seeds(seed)).removed for seed in (0, 1))
    assert first.sum() == second.sum() == 8
    assert not np.array_equal(first, second)


def test_shares_of_the_appendix() -> None:
    assert [SpectralSignatures.for_epsilon(epsilon).share for epsilon in (0.05, 0.1, 0.2)] == [0.2, 0.2, 0.3]
    assert SpectralSignatures.for_epsilon(0.2, epochs=3, centred=True, layer="x", min_steps=4) == (
        SpectralSignatures(0.3, epochs=3, centred=True, layer="x", min_steps=4)
    )
    longer = [
        SpectralSignatures.for_epsilon(epsilon, least_share=LEAST_SHARE_200_EPOCHS).share
        for epsilon in (0.05, 0.1, 0.2)
    ]
    assert longer == [0.15, 0.15, 0.3]


def test_the_model_is_trained_as_asked() -> None:
    factory = GivenActivations(np.eye(4))
    SpectralSignatures(epochs=12, min_steps=9, layer="x").judge(np.zeros(4, dtype=int), factory, seed=0)
    assert factory.fits == [(4, 12, 9, True)]
    assert set(factory.layers) == {"x"}


@pytest.mark.parametrize(
    "settings",
    [{"share": 0.0}, {"share": 1.0}, {"share": 20}, {"epochs": 0}, {"min_steps": -1}, {"centred": 2}],
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="parameter of SpectralSignatures must be"):
        SpectralSignatures(**settings)
    with pytest.raises(InputError, match="poisoned share"):
        SpectralSignatures.for_epsilon(20)
