from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from unpoison.core.comovement import HALO, LOSS_CEILING, best_cut, movements, split_in_two

NAN, INF = float("nan"), float("inf")


def nobody(losses: np.ndarray) -> np.ndarray:
    return np.zeros(losses.shape, dtype=bool)


def planted_losses(
    *, n: int = 120, n_planted: int = 15, n_models: int = 40, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Clean samples are explained by all models; planted ones, together, by a third of them."""
    rng = np.random.default_rng(seed)
    planted = np.zeros(n, dtype=bool)
    planted[rng.choice(n, size=n_planted, replace=False)] = True
    difficulty = rng.exponential(0.5, size=n)
    losses = difficulty + rng.normal(scale=0.3, size=(n_models, n))
    caught = rng.random(n_models) < 1 / 3
    losses += np.where(planted & ~caught[:, None], 4.0, 0.0)
    return np.abs(losses), planted


# --- the cut --------------------------------------------------------------------------------------------


def brute_force_share(values: np.ndarray) -> float:
    """Best between-group share of variance over all thresholds between distinct values."""
    total = ((values - values.mean()) ** 2).sum()
    best = 0.0
    for border in np.unique(values)[:-1]:
        low, high = values[values <= border], values[values > border]
        between = (
            len(low) * (low.mean() - values.mean()) ** 2 + len(high) * (high.mean() - values.mean()) ** 2
        )
        best = max(best, between / total)
    return best


@settings(deadline=None)
@given(hnp.arrays(float, st.integers(2, 25), elements=st.floats(-100, 100, width=16)))
def test_the_cut_is_the_best_of_all_cuts(values: np.ndarray) -> None:
    assume(np.ptp(values) > 1e-2)
    border, share = best_cut(values)
    assert share == pytest.approx(brute_force_share(values), abs=1e-9)
    low, high = values[values <= border], values[values > border]
    assert len(low)
    assert len(high)
    within = ((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum()
    assert 1 - within / ((values - values.mean()) ** 2).sum() == pytest.approx(share, abs=1e-9)


def test_the_cut_by_hand() -> None:
    border, share = best_cut(np.array([3.0, 1.0, 2.0, 11.0, 10.0]))
    # means 2 and 10.5, sizes 3 and 2: between 3 * 2/5 * 8.5^2 = 86.7; total 89.2
    assert border == 3.0
    assert share == pytest.approx(86.7 / 89.2)


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [0.0] * 5, [1e9, 1e9 + 1e-7, 1e9], [0.1 + 0.2, 0.3]])
def test_constant_values_have_no_two_sides(values: list[float]) -> None:
    border, share = best_cut(np.array(values))
    assert share == 0.0
    assert not (np.array(values) > border).any()


# --- movement -------------------------------------------------------------------------------------------


def test_movements_by_hand() -> None:
    losses = np.array([[1.0, 2.0, 6.0], [3.0, 2.0, 0.0]])
    # log-likelihoods less each sample's mean: [1, 0, -3], [-1, 0, 3]; the median sample is at 0 in both
    assert movements(losses, nobody(losses)).tolist() == [[1.0, 0.0, -3.0], [-1.0, 0.0, 3.0]]


def test_each_model_is_centred_on_its_median_sample() -> None:
    losses = np.array([[1.0, 1.0, 1.0], [5.0, 5.0, 9.0]])
    # [2, 2, 4], [-2, -2, -4] less the medians 2, -2
    assert movements(losses, nobody(losses)).tolist() == [[0.0, 0.0, 2.0], [0.0, 0.0, -2.0]]


def test_a_model_says_nothing_of_what_it_trained_on() -> None:
    """Changing the losses of seen samples changes nothing: neither theirs nor any other movement."""
    rng = np.random.default_rng(0)
    losses = rng.exponential(size=(12, 30))
    seen = rng.random((12, 30)) < 0.3
    other = np.where(seen, rng.exponential(50, size=(12, 30)), losses)
    assert np.array_equal(movements(losses, seen), movements(other, seen))
    assert (movements(losses, seen)[seen] == 0).all()


def test_samples_are_centred_over_the_models_that_did_not_see_them() -> None:
    losses = np.array([[2.0, 0.0], [4.0, 0.0], [99.0, 0.0]])
    seen = np.array([[False, False], [False, False], [True, False]])
    moved = movements(losses, seen)
    # sample 0: mean 3 over two models, so +1, -1; then the median of (1, 0) and (-1, 0) is taken away
    assert moved == pytest.approx(np.array([[0.5, -0.5], [-0.5, 0.5], [0.0, 0.0]]))


def test_a_sample_that_every_model_saw_does_not_move() -> None:
    losses = np.array([[1.0, 5.0, 2.0], [2.0, 7.0, 1.0]])
    seen = np.array([[False, True, False], [False, True, False]])
    moved = movements(losses, seen)
    assert moved[:, 1].tolist() == [0.0, 0.0]
    assert np.isfinite(moved).all()


def test_a_model_that_saw_everything_does_not_move() -> None:
    losses = np.array([[1.0, 5.0], [2.0, 7.0]])
    seen = np.array([[True, True], [False, False]])
    assert movements(losses, seen).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("bad", [NAN, INF, -INF, 1e30])
def test_hopeless_losses_are_all_equally_hopeless(bad: float) -> None:
    losses = np.random.default_rng(1).exponential(size=(6, 8))
    broken, capped = losses.copy(), losses.copy()
    broken[2, 3], capped[2, 3] = bad, LOSS_CEILING
    assert np.array_equal(movements(broken, nobody(losses)), movements(capped, nobody(losses)))


def test_inputs_are_left_alone() -> None:
    losses = np.array([[NAN, 20.0], [1.0, 2.0]], dtype=np.float32)
    before = losses.copy()
    seen = np.array([[False, True], [False, False]])
    movements(losses, seen)
    assert np.array_equal(losses, before, equal_nan=True)


# --- the split ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_a_planted_group_is_found_exactly(seed: int) -> None:
    losses, planted = planted_losses(seed=seed)
    split = split_in_two(movements(losses, nobody(losses)))
    assert np.array_equal(split.group, planted)
    assert split.separation > 0.9
    assert not (split.halo & split.group).any()


def test_a_planted_group_is_found_through_the_gaps() -> None:
    losses, planted = planted_losses(n_models=60)
    seen = np.random.default_rng(3).random(losses.shape) < 0.08
    losses[seen] = 1e-6
    assert np.array_equal(split_in_two(movements(losses, seen)).group, planted)


def test_pure_noise_is_not_two_sided() -> None:
    losses = np.random.default_rng(0).exponential(size=(60, 200))
    assert split_in_two(movements(losses, nobody(losses))).separation < 0.75


@pytest.mark.parametrize("seed", range(4))
def test_the_group_does_not_depend_on_the_sign_of_the_movement(seed: int) -> None:
    losses, _ = planted_losses(seed=seed)
    moved = movements(losses, nobody(losses))
    left, right = split_in_two(moved), split_in_two(-moved)
    assert np.array_equal(left.group, right.group)
    assert np.array_equal(left.halo, right.halo)
    assert left.separation == pytest.approx(right.separation)


def test_the_group_does_not_depend_on_the_order_of_samples_or_models() -> None:
    losses, _ = planted_losses()
    moved = movements(losses, nobody(losses))
    rng = np.random.default_rng(0)
    samples, models = rng.permutation(moved.shape[1]), rng.permutation(moved.shape[0])
    straight, mixed = split_in_two(moved), split_in_two(moved[models][:, samples])
    assert np.array_equal(straight.group[samples], mixed.group)
    assert np.array_equal(straight.halo[samples], mixed.halo)


def rank_one(positions: list[float]) -> np.ndarray:
    return np.outer([1.0, -2.0, 0.5, 1.5], positions)


def test_the_group_is_the_smaller_side() -> None:
    split = split_in_two(rank_one([1.0] * 4 + [0.0] * 6))
    assert np.flatnonzero(split.group).tolist() == [0, 1, 2, 3]
    split = split_in_two(rank_one([1.0] * 6 + [0.0] * 4))
    assert np.flatnonzero(split.group).tolist() == [6, 7, 8, 9]
    assert split.separation == pytest.approx(1.0)
    assert not split.halo.any()


def test_the_halo_goes_some_of_the_way() -> None:
    """Near is the mean of the rest: 0.5 / 22 = 0.0227, so 0.35 is at 0.335 of the way and 0.15 at 0.13."""
    positions = [0.0] * 20 + [1.0] * 6 + [0.35, 0.15]
    split = split_in_two(rank_one(positions))
    assert np.flatnonzero(split.group).tolist() == [20, 21, 22, 23, 24, 25]
    assert np.flatnonzero(split.halo).tolist() == [26]
    assert 0.13 < HALO < 0.335


def test_the_direction_between_the_sides_beats_a_noisy_singular_vector() -> None:
    """Two samples with huge noise of their own do not hide the group."""
    losses, planted = planted_losses(n=200, n_planted=30, n_models=60)
    noisy = np.flatnonzero(~planted)[:3]
    losses[:, noisy] = np.random.default_rng(9).uniform(0, 12, size=(60, 3))
    found = split_in_two(movements(losses, nobody(losses)))
    assert np.array_equal(found.group, planted)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["constant", "random", "nan", "seen"])
def test_tiny_classes(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    losses = {"constant": np.ones((5, n)), "nan": np.full((5, n), NAN)}.get(
        kind, rng.exponential(size=(5, n))
    )
    seen = np.full(losses.shape, kind == "seen")
    split = split_in_two(movements(losses, seen))
    assert split.group.shape == split.halo.shape == (n,)
    assert 2 * split.group.sum() <= n
    assert not (split.group & split.halo).any()
    if kind != "random" or n == 1:
        assert not split.group.any()
        assert split.separation == 0.0
        assert not split.halo.any()
