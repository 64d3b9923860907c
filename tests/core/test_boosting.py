from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from unpoison.core import boosting
from unpoison.core.boosting import (
    component_votes,
    keep_by_mode_or_lower_half,
    keep_by_two_votes,
    lower_half_of_class,
    modal_votes,
    suspicion_from_losses,
    tally,
)

NAN, INF = float("nan"), float("inf")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- Algorithm 2 ----------------------------------------------------------------------------------------


def votes(rows: list[list[int]], components: list[list[int]]) -> list[bool]:
    """All labels are 0, so that a row says 0 where it is right."""
    arrays = [np.array(component) for component in components]
    labels = np.zeros(len(rows[0]), dtype=np.int64)
    return component_votes(np.array(rows), arrays, labels).tolist()


def test_algorithm_2_separates_clean_from_poisoned() -> None:
    """Clean components (sizes 3 and 2) get each other right; the poisoned one (2) only itself."""
    components = [[0, 1, 2], [3, 4], [5, 6]]
    clean_voter, poisoned_voter = [0, 0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 1, 0, 0]
    assert votes([clean_voter, clean_voter, poisoned_voter], components) == [True, True, False]


def test_a_vote_weighs_as_much_as_its_component() -> None:
    """One component of four against three of one: C = 4 of n = 7 is more than half."""
    components = [[0, 1, 2, 3], [4], [5], [6]]
    big = [0] * 4 + [1] * 3
    small = [1] * 4 + [0] * 3
    assert votes([big, small, small, small], components) == [True, False, False, False]


def test_half_of_the_weight_is_not_more_than_half() -> None:
    components = [[0, 1], [2, 3]]
    assert votes([[0, 0, 1, 1], [1, 1, 0, 0]], components) == [False, False]
    assert votes([[0, 0, 1, 1], [0, 1, 0, 0]], components) == [False, False]
    assert votes([[0, 0, 1, 1], [0, 0, 0, 0]], components) == [True, False]


def test_half_wrong_is_no_support() -> None:
    """The zero-one loss must be under |S_k| / 2: two of four is not, one of three is."""
    assert votes([[0, 0, 1, 1]], [[0, 1, 2, 3]]) == [False]
    assert votes([[0, 0, 1]], [[0, 1, 2]]) == [True]
    assert votes([[0, 1, 1]], [[0, 1, 2]]) == [False]


def test_a_voter_also_votes_on_its_own_component() -> None:
    assert votes([[0, 0, 0, 1], [1, 1, 1, 1]], [[0, 1, 2], [3]]) == [True, False]


def test_samples_outside_all_components_play_no_part() -> None:
    assert votes([[0, 0, 1, 1, 1]], [[0, 1]]) == [True]


def test_components_are_compared_with_their_own_labels() -> None:
    predictions = np.array([[0, 1, 2], [0, 1, 2]])
    components = [np.array([0, 1]), np.array([2])]
    assert component_votes(predictions, components, np.array([0, 1, 0])).tolist() == [True, False]


# --- the vote on samples --------------------------------------------------------------------------------


def test_tally_by_hand() -> None:
    predictions = np.array([[0, 1, 2], [0, 1, 1], [2, 1, 0]])
    assert tally(predictions, n_classes=4).tolist() == [[2, 0, 1, 0], [0, 3, 0, 0], [1, 1, 1, 0]]


@settings(deadline=None)
@given(hnp.arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 12)), elements=st.integers(0, 4)))
def test_tally_counts_every_vote_once(predictions: np.ndarray) -> None:
    counts = tally(predictions, n_classes=5)
    expected = [np.bincount(column, minlength=5).tolist() for column in predictions.T]
    assert counts.tolist() == expected


def test_the_mode_by_hand() -> None:
    counts = np.array([[2, 0, 1], [0, 3, 0], [1, 0, 4]], dtype=np.int32)
    assert modal_votes(counts, rng=rng()).tolist() == [0, 1, 2]


def test_ties_are_drawn_evenly_among_the_tied_only() -> None:
    counts = np.tile(np.array([[2, 2, 1, 2]], dtype=np.int32), (3000, 1))
    drawn = np.bincount(modal_votes(counts, rng=rng(1)), minlength=4)
    assert drawn[2] == 0
    # 1000 expected, standard deviation 26
    assert (np.abs(drawn[[0, 1, 3]] - 1000) < 130).all()


def test_ties_follow_their_stream_and_certain_votes_do_not() -> None:
    counts = np.array([[1, 1]] * 40 + [[0, 2]] * 10, dtype=np.int32)
    first, again, other = (modal_votes(counts, rng=rng(seed)).tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert first[40:] == other[40:] == [1] * 10


def test_counts_are_left_alone() -> None:
    counts = np.array([[1, 1], [3, 0]], dtype=np.int32)
    modal_votes(counts, rng=rng())
    assert counts.tolist() == [[1, 1], [3, 0]]


def test_the_lower_half_of_each_class_rounded_down() -> None:
    losses = np.array([5.0, 1.0, 3.0, 2.0, 4.0, 60.0, 50.0, 0.0])
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 2])
    chosen = lower_half_of_class(losses, labels, rng=rng())
    assert np.flatnonzero(chosen).tolist() == [1, 3, 6]


def test_the_lower_half_never_holds_what_is_not_finite() -> None:
    losses = np.array([NAN, INF, NAN, 1.0, -INF, 2.0])
    labels = np.array([0, 0, 0, 0, 1, 1])
    assert np.flatnonzero(lower_half_of_class(losses, labels, rng=rng())).tolist() == [3, 5]


def test_the_paper_keeps_by_mode_or_lower_half() -> None:
    labels = np.array([0, 0, 0, 0, 1, 1])
    modal = np.array([0, 1, 1, 0, 0, 0])
    losses = np.array([9.0, 0.1, 8.0, 0.2, 1.0, 2.0])
    keep = keep_by_mode_or_lower_half(modal, losses, labels, rng=rng())
    # 0, 3: mode; 1: among the lower two of its four; 4: lower one of two; 2 and 5: neither
    assert keep.tolist() == [True, True, False, True, True, False]


@pytest.mark.parametrize(
    ("modal", "own_votes", "kept"), [(0, 3, True), (0, 2, True), (0, 1, False), (1, 2, False), (1, 0, False)]
)
def test_the_authors_keep_by_mode_and_two_votes(modal: int, own_votes: int, kept: bool) -> None:
    keep = keep_by_two_votes(np.array([modal]), np.array([own_votes], dtype=np.int32), np.array([0]))
    assert keep.tolist() == [kept]


# --- suspicion ------------------------------------------------------------------------------------------


def test_suspicion_by_hand() -> None:
    losses = np.array([[0.0, np.log(2), INF, NAN], [0.0, np.log(4), INF, 0.0], [0.0, INF, INF, 0.0]])
    assert suspicion_from_losses(losses) == pytest.approx([0.0, (0.5 + 0.75 + 1) / 3, 1.0, 1 / 3])


@settings(deadline=None)
@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 5), st.integers(1, 8)),
        elements=st.floats(0, 100, width=32) | st.sampled_from([NAN, INF]),
    )
)
def test_suspicion_is_a_share_and_grows_with_the_loss(losses: np.ndarray) -> None:
    suspicion = suspicion_from_losses(losses)
    assert ((suspicion >= 0) & (suspicion <= 1)).all()
    assert (suspicion_from_losses(losses + np.float32(1)) >= suspicion).all()


def test_votes_that_were_not_asked_for_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    predictions = np.array([[0, 1, 2], [0, 1, 0], [2, 0, 0]])
    asked = np.array([[True, False, True], [True, True, False], [False, True, False]])
    labels = np.array([0, 1, 0])
    counts = boosting.tally(predictions, n_classes=3, asked=asked)
    assert counts.tolist() == [[2, 0, 0], [1, 1, 0], [0, 0, 1]]
    whole = boosting.count_votes(predictions, labels, n_classes=3, rng=np.random.default_rng(0), asked=asked)
    monkeypatch.setattr(boosting, "TALLY_CELLS", 3)  # one sample a block
    blocks = boosting.count_votes(predictions, labels, n_classes=3, rng=np.random.default_rng(0), asked=asked)
    assert whole[0].tolist() == blocks[0].tolist()
    assert whole[0][[0, 2]].tolist() == [0, 2]
    assert whole[0][1] in (0, 1), "a tie between the two"
    assert whole[1].tolist() == blocks[1].tolist() == [2, 1, 0]
