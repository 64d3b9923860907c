from __future__ import annotations

import numpy as np
import pytest

from unpoison.core.groups.separation import NOT_MEASURED, Separation, alike, separation


def rows(n: int, *, seed: int, shift: float = 0.0, columns: int = 20) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(n, columns))
    drawn[:, 3] += shift
    return drawn


def measured(group: np.ndarray, comparison: np.ndarray, seed: int = 0) -> Separation:
    return separation(group, comparison, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("size", [8, 40, 300])
@pytest.mark.parametrize("columns", [5, 60, 400])
def test_two_sets_that_are_alike_do_not_stand_apart_however_many_axes_there_are(
    size: int, columns: int
) -> None:
    found = [
        measured(rows(size, seed=seed, columns=columns), rows(400, seed=100 + seed, columns=columns), seed)
        for seed in range(5)
    ]
    assert abs(np.mean([each.z for each in found])) < 0.6
    assert max(abs(each.z) for each in found) < 1.6


@pytest.mark.parametrize("shift", [4.0, 12.0])
def test_it_is_a_distance_in_standard_deviations_of_the_comparison(shift: float) -> None:
    found = measured(rows(200, seed=1, shift=shift), rows(1000, seed=2))
    assert found.z == pytest.approx(shift, rel=0.1)
    spread = measured(10.0 * rows(200, seed=1, shift=shift), 10.0 * rows(1000, seed=2))
    assert spread.z == pytest.approx(found.z, rel=1e-6)


def test_few_samples_have_a_larger_error() -> None:
    many, few = (measured(rows(n, seed=1, shift=6.0), rows(500, seed=2)) for n in (200, 8))
    assert few.error > 1.5 * many.error
    repeated = [measured(rows(8, seed=seed, shift=6.0), rows(500, seed=99)).z for seed in range(30)]
    assert float(np.std(repeated)) == pytest.approx(few.error, rel=0.6)


def test_constant_columns_and_equal_rows_do_no_harm() -> None:
    assert measured(np.zeros((10, 4)), np.zeros((50, 4))).z == 0.0
    constant = rows(50, seed=0)
    constant[:, :19] = 7.0
    assert abs(measured(constant[:10], constant[10:]).z) < 2.0


def test_what_cannot_be_compared_is_not_measured() -> None:
    for group, comparison in [(rows(4, seed=0), rows(50, seed=1)), (rows(20, seed=0), rows(9, seed=1))]:
        assert measured(group, comparison) == Separation(0.0, NOT_MEASURED)
    assert Separation.mean([]).error == NOT_MEASURED


def test_the_mean_of_what_several_models_see() -> None:
    assert Separation.mean([Separation(2.0, 0.1), Separation(4.0, 0.3)]) == Separation(3.0, 0.2)


def test_those_alike_are_called_the_same_classes_in_the_same_proportions() -> None:
    called = np.array([0] * 50 + [1] * 50 + [0, 1, 1, 1] + [2] * 50)
    members, unmet = np.arange(100, 104), np.ones(154, dtype=np.bool_)
    unmet[members] = False
    chosen = alike(called, members, unmet, 20, rng=np.random.default_rng(0))
    assert np.bincount(called[chosen]).tolist() == [5, 15]
    assert not np.isin(chosen, members).any()
    unmet[:50] = False
    assert np.bincount(called[alike(called, members, unmet, 20, rng=np.random.default_rng(0))]).tolist() == [
        0,
        15,
    ]
