from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from unpoison.core.sampling import class_members
from unpoison.core.trimming import beta_schedule, lowest, n_iterations, smooth_losses, target_fraction, trim

NAN, INF = float("nan"), float("inf")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def chosen(mask: np.ndarray) -> list[int]:
    return np.flatnonzero(mask).tolist()


# --- the schedule ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "betas"),
    [
        (1 / 8, [3 / 8, 2 / 8, 1 / 8, 1 / 8, 1 / 8]),
        (1 / 7, [3 / 7, 2 / 7, 1 / 7, 1 / 7, 1 / 7]),
        (1 / 6, [3 / 6, 2 / 6, 1 / 6, 1 / 6, 1 / 6]),
        (1 / 5, [3 / 5, 2 / 5, 1 / 5, 1 / 5, 1 / 5]),
        (1 / 4, [3 / 4, 2 / 4, 1 / 4, 1 / 4, 1 / 4]),
        (1 / 3, [1.0, 2 / 3, 1 / 3, 1 / 3, 1 / 3]),
        (0.33333333333333337, [1.0, 2 / 3, 1 / 3, 1 / 3, 1 / 3]),  # 1 / p is 2.9999999999999996
        (0.4, [1.0, 0.8, 0.4, 0.4]),
        (1 / 2, [1.0, 1.0, 0.5, 0.5]),
        (0.5000000000000001, [1.0, 1.0, 0.5, 0.5]),  # 1 / p is 1.9999999999999996
        (0.51, [1.0, 1.0, 0.51]),
        (1.0, [1.0, 1.0, 1.0]),
    ],
)
def test_beta_and_the_number_of_iterations_by_hand(p: float, betas: list[float]) -> None:
    assert beta_schedule(p) == pytest.approx(betas)
    assert n_iterations(p) == len(betas)


@pytest.mark.parametrize(
    ("p", "betas"),
    [
        (1 / 8, [3 / 8, 2 / 8, 1 / 8, 1 / 8, 1 / 8]),
        (1 / 3, [1.0, 2 / 3, 1 / 3, 1 / 3, 1 / 3]),
        (0.4, [0.8, 0.4, 0.4, 0.4]),
        (1 / 2, [1.0, 0.5, 0.5, 0.5]),
        (0.51, [0.51, 0.51, 0.51]),
        (1.0, [1.0, 1.0, 1.0]),
    ],
)
def test_beta_of_the_authors_starts_with_what_fits(p: float, betas: list[float]) -> None:
    """max(1, min(3, N - 2 - t)) * p: another schedule than the text's once 3p is more than there is."""
    assert beta_schedule(p, start="fits") == pytest.approx(betas)


@pytest.mark.parametrize(("rounds", "differ"), [(8, [6, 7]), (4, [2, 3])])
def test_text_and_code_differ_in_the_last_two_rounds(rounds: int, differ: list[int]) -> None:
    p = [1 / rounds * 0.96 / (1 - 0.96 * i / rounds) for i in range(rounds)]
    assert [i for i in range(rounds) if beta_schedule(p[i]) != beta_schedule(p[i], start="fits")] == differ


@settings(deadline=None)
@given(st.floats(1e-3, 1.0))
def test_beta_falls_from_at_most_one_to_p(p: float) -> None:
    betas = beta_schedule(p)
    assert all(later <= earlier for earlier, later in pairwise(betas))
    assert betas[0] == pytest.approx(min(1.0, 3 * p))
    assert betas[-1] == pytest.approx(p)
    assert beta_schedule(p, start="fits")[-3:] == pytest.approx([p, p, p])
    assert len(betas) == 2 + max(1, min(3, int(1 / p + 1e-9)))


@pytest.mark.parametrize(
    ("rounds", "expected", "size"),
    [
        (8, [12 / 100, 12 / 88, 12 / 76, 12 / 64, 12 / 52, 12 / 40, 12 / 28, 12 / 16], 1200),
        (4, [24 / 100, 24 / 76, 24 / 52, 24 / 28], 2400),
    ],
)
def test_p_of_each_round_makes_components_of_one_size(rounds: int, expected: list[float], size: int) -> None:
    n = active = 10_000
    for p in expected:
        found = target_fraction(n, active, rounds=rounds, coverage=0.96)
        assert found == pytest.approx(p)
        taken = int(
            trim(rng().random(active), np.zeros(active, int), beta=found, class_share=0, rng=rng()).sum()
        )
        assert taken == size
        active -= taken
    assert active == 400


def test_p_is_never_more_than_everything() -> None:
    assert target_fraction(1000, 100, rounds=8, coverage=0.96) == 1.0
    assert target_fraction(1000, 120, rounds=8, coverage=0.96) == pytest.approx(1.0)
    assert target_fraction(1000, 1000, rounds=1, coverage=1.0) == 1.0


# --- smoothing ------------------------------------------------------------------------------------------


def test_smoothing_by_hand() -> None:
    previous, current = np.array([1.0, 0.0, 4.0]), np.array([2.0, 10.0, 0.0])
    assert smooth_losses(previous, current, momentum=0.9) == pytest.approx([1.1, 1.0, 3.6])
    assert smooth_losses(previous, current, momentum=0.25) == pytest.approx([1.75, 7.5, 1.0])
    assert smooth_losses(previous, current, momentum=0.0).tolist() == [2.0, 10.0, 0.0]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_smoothing_makes_what_is_not_finite_the_worst_and_keeps_it_there(momentum: float) -> None:
    smoothed = smooth_losses(np.zeros(4), np.array([NAN, INF, -INF, 1.0]), momentum=momentum)
    assert smoothed[:3].tolist() == [INF] * 3
    assert smooth_losses(smoothed, np.full(4, NAN), momentum=momentum).tolist() == [INF] * 4


def test_an_infinite_past_is_forgotten_without_momentum() -> None:
    assert smooth_losses(np.array([INF]), np.array([2.0]), momentum=0.0).tolist() == [2.0]


def test_smoothing_leaves_its_inputs_alone() -> None:
    previous, current = np.array([1.0]), np.array([NAN])
    smooth_losses(previous, current, momentum=0.5)
    assert previous.tolist() == [1.0]
    assert np.isnan(current).all()


# --- lowest ---------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    hnp.arrays(
        float,
        st.integers(0, 40),
        elements=st.sampled_from([0.0, 0.5, 1.0, 2.0, -1.0, NAN, INF, -INF]),
    ),
    st.integers(0, 45),
    st.integers(0, 2**32 - 1),
)
def test_lowest_takes_that_many_finite_values_and_no_better_is_left(
    values: np.ndarray, count: int, seed: int
) -> None:
    mask = lowest(values, count, rng=rng(seed))
    finite = np.isfinite(values)
    assert mask.dtype == np.bool_
    assert mask.sum() == min(count, finite.sum())
    assert not (mask & ~finite).any()
    if mask.any() and (finite & ~mask).any():
        assert values[mask].max() <= values[finite & ~mask].min()


def test_ties_at_the_border_are_drawn_evenly_whatever_the_position() -> None:
    values = np.array([1.0, 0.0, 1.0, 2.0, 1.0, 1.0])
    generator, hits = rng(5), np.zeros(6)
    for _ in range(2000):
        hits += lowest(values, 3, rng=generator)
    assert hits[1] == 2000
    assert hits[3] == 0
    # two of four: 1000 expected, standard deviation 22
    assert (np.abs(hits[[0, 2, 4, 5]] - 1000) < 115).all()


def test_ties_follow_their_stream() -> None:
    draws = [chosen(lowest(np.zeros(50), 10, rng=rng(seed))) for seed in (3, 3, 4)]
    assert draws[0] == draws[1] != draws[2]


def test_an_infinitely_low_loss_takes_nobodys_place() -> None:
    assert chosen(lowest(np.array([-INF, 3.0, 1.0, 2.0]), 2, rng=rng())) == [2, 3]


# --- trim -----------------------------------------------------------------------------------------------


def test_trim_by_hand() -> None:
    losses = np.array([0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.8, 0.4])
    labels = np.zeros(8, dtype=int)
    assert chosen(trim(losses, labels, beta=0.5, class_share=0.0, rng=rng())) == [1, 3, 5, 7]
    assert chosen(trim(losses, labels, beta=0.51, class_share=0.0, rng=rng())) == [0, 1, 3, 5, 7]
    assert chosen(trim(losses, labels, beta=1e-3, class_share=0.0, rng=rng())) == [1]
    assert trim(losses, labels, beta=1.0, class_share=0.0, rng=rng()).all()


def test_the_class_floor_is_a_union_with_the_lowest_of_all() -> None:
    losses = np.array([0.1, 0.2, 0.3, 0.4, 5.0, 6.0, 7.0, 8.0, 99.0])
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    # ceil(4.5 / 9 -> 1/3 of 9) = 3 overall; ceil(0.3 * 4) = 2 of each class of four; 1 of the single one
    assert chosen(trim(losses, labels, beta=1 / 3, class_share=0.3, rng=rng())) == [0, 1, 2, 4, 5, 8]
    assert chosen(trim(losses, labels, beta=1 / 3, class_share=0.0, rng=rng())) == [0, 1, 2]


def test_the_class_floor_can_exceed_beta() -> None:
    labels = np.repeat([0, 1], 10)
    assert chosen(trim(np.arange(20.0), labels, beta=0.05, class_share=0.2, rng=rng())) == [0, 1, 10, 11]


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_losses_that_are_not_finite_are_never_chosen(bad: float) -> None:
    losses = np.array([bad, 1.0, bad, 2.0, bad])
    labels = np.array([0, 0, 1, 1, 2])
    assert chosen(trim(losses, labels, beta=1.0, class_share=0.5, rng=rng())) == [1, 3]
    assert chosen(trim(losses, labels, beta=0.2, class_share=0.0, rng=rng())) == [1]
    assert not trim(np.full(5, bad), labels, beta=1.0, class_share=1.0, rng=rng()).any()


def test_the_floor_of_a_class_skips_what_is_not_finite() -> None:
    losses = np.array([0.0, 0.0, NAN, 7.0, 6.0])
    labels = np.array([0, 0, 1, 1, 1])
    assert chosen(trim(losses, labels, beta=0.4, class_share=0.1, rng=rng())) == [0, 1, 4]


def test_trim_of_nothing() -> None:
    empty = np.array([])
    assert len(trim(empty, np.array([], dtype=int), beta=0.5, class_share=0.0, rng=rng())) == 0


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 10, width=16)), min_size=1, max_size=50),
    st.integers(1, 16),
    st.integers(0, 16),
    st.integers(0, 2**32 - 1),
)
def test_trim_sizes(pairs: list[tuple[int, float]], beta16: int, floor16: int, seed: int) -> None:
    labels = np.array([label for label, _ in pairs])
    losses = np.array([loss for _, loss in pairs])
    mask = trim(losses, labels, beta=beta16 / 16, class_share=floor16 / 16, rng=rng(seed))
    overall = ceil(Fraction(beta16 * len(losses), 16))
    floors = [ceil(Fraction(floor16 * int((labels == c).sum()), 16)) for c in np.unique(labels)]
    assert max(overall, sum(floors)) <= mask.sum() <= overall + sum(floors)
    for label, floor in zip(np.unique(labels), floors, strict=True):
        assert (mask & (labels == label)).sum() >= floor
    # everything below the border of the overall share is in
    assert mask[losses < np.sort(losses)[overall - 1]].all()


def test_tied_floors_favour_no_position() -> None:
    labels = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    losses = np.where(labels == 0, 0.0, 1.0)
    generator, hits = rng(2), np.zeros(8)
    for _ in range(2000):
        hits += trim(losses, labels, beta=0.5, class_share=0.25, rng=generator)
    assert (hits[labels == 0] == 2000).all()
    # one of four: 500 expected, standard deviation 19
    assert (np.abs(hits[labels == 1] - 500) < 100).all()


def test_members_of_each_class_that_occurs() -> None:
    members = class_members(np.array([3, 0, 3, 5, 0]))
    assert [part.tolist() for part in members] == [[1, 4], [0, 2], [3]]
