from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.core.sampling import ceil_share, dealt, sample_binomial, sample_per_class


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("share", "count", "expected"),
    [
        (0.25, 8, 2),
        (0.25, 9, 3),
        (0.25, 1, 1),
        (0.1, 30, 3),  # 0.1 * 30 is 3.0000000000000004
        (0.07, 100, 7),  # 7.000000000000001
        (0.29, 100, 29),  # 28.999999999999996
        (0.12, 10_000, 1200),
        (1 / 3, 3, 1),
        (2 / 3, 3, 2),
        (1.0, 7, 7),
        (3.0, 7, 7),
        (0.0, 7, 0),
        (0.5, 0, 0),
    ],
)
def test_ceil_share_by_hand(share: float, count: int, expected: int) -> None:
    assert ceil_share(share, count) == expected


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 5000))
def test_ceil_share_is_the_exact_ceiling_of_a_ratio(numerator: int, denominator: int, count: int) -> None:
    numerator = min(numerator, denominator)
    assert ceil_share(numerator / denominator, count) == ceil(Fraction(numerator * count, denominator))


def test_each_class_gives_its_share_rounded_up() -> None:
    labels = np.repeat([0, 1, 2, 3], [8, 9, 1, 4])
    drawn = sample_per_class(np.arange(22), labels, alpha=0.25, rng=rng())
    assert np.bincount(labels[drawn]).tolist() == [2, 3, 1, 1]


def test_only_the_given_indices_count() -> None:
    """Shares are of the class among ``indices``, not of the class in the dataset."""
    labels = np.repeat([0, 1], [100, 100])
    indices = np.array([150, 3, 101, 7, 120, 5, 1, 130])
    drawn = sample_per_class(indices, labels, alpha=0.5, rng=rng())
    assert np.bincount(labels[drawn]).tolist() == [2, 2]
    assert set(drawn.tolist()) <= set(indices.tolist())


def test_a_class_that_is_absent_from_the_indices_is_fine() -> None:
    labels = np.array([0, 0, 1, 2, 2])
    assert labels[sample_per_class(np.array([0, 1, 3, 4]), labels, alpha=0.5, rng=rng())].tolist() == [0, 2]


def test_all_of_it_is_all_of_it_sorted() -> None:
    indices = np.array([5, 1, 3])
    assert sample_per_class(indices, np.zeros(6, dtype=int), alpha=1.0, rng=rng()).tolist() == [1, 3, 5]
    assert indices.tolist() == [5, 1, 3]


def test_nothing_of_nothing() -> None:
    empty = np.array([], dtype=np.int64)
    assert len(sample_per_class(empty, np.zeros(3, dtype=int), alpha=0.5, rng=rng())) == 0
    assert len(sample_binomial(empty, alpha=0.5, rng=rng())) == 0


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=60),
    st.integers(1, 20),
    st.integers(0, 2**32 - 1),
    st.data(),
)
def test_a_sample_is_a_sorted_subset_of_the_right_sizes(
    labels_list: list[int], twentieths: int, seed: int, data: st.DataObject
) -> None:
    labels = np.array(labels_list)
    positions = data.draw(
        st.lists(st.integers(0, len(labels) - 1), unique=True, min_size=1, max_size=len(labels))
    )
    indices = np.array(positions)
    drawn = sample_per_class(indices, labels, alpha=twentieths / 20, rng=rng(seed))
    assert (np.diff(drawn) > 0).all()
    assert np.isin(drawn, indices).all()
    for label in np.unique(labels[indices]):
        size = int((labels[indices] == label).sum())
        assert int((labels[drawn] == label).sum()) == ceil(Fraction(twentieths * size, 20))


def test_every_sample_is_as_likely_as_any_other() -> None:
    labels = np.array([0] * 10 + [1] * 5)
    hits = np.zeros(15)
    generator = rng(1)
    for _ in range(4000):
        hits[sample_per_class(np.arange(15), labels, alpha=0.2, rng=generator)] += 1
    # 800 expected each, standard deviation 25
    assert (np.abs(hits - 800) < 130).all()


def test_per_class_sampling_follows_its_stream() -> None:
    labels = np.repeat([0, 1], 50)
    everyone = np.arange(100)
    first, again, other = (
        sample_per_class(everyone, labels, alpha=0.3, rng=rng(seed)).tolist() for seed in (1, 1, 2)
    )
    assert first == again != other


def test_binomial_takes_each_with_probability_alpha() -> None:
    sizes = [len(sample_binomial(np.arange(1000), alpha=0.25, rng=rng(seed))) for seed in range(40)]
    assert len(set(sizes)) > 10, "a fixed size would not be binomial"
    assert abs(np.mean(sizes) - 250) < 12


def test_binomial_is_a_sorted_subset_and_never_empty() -> None:
    indices = np.array([9, 4, 7])
    for seed in range(50):
        drawn = sample_binomial(indices, alpha=0.01, rng=rng(seed))
        assert len(drawn) >= 1
        assert drawn.tolist() == sorted(set(drawn.tolist()) & {4, 7, 9})
    assert sample_binomial(indices, alpha=1.0, rng=rng()).tolist() == [4, 7, 9]


@pytest.mark.parametrize("parts", [2, 3, 10])
def test_every_class_is_dealt_evenly(parts: int) -> None:
    labels = np.repeat([0, 1, 2], [30, 61, 4])
    part = dealt(labels, parts, rng=np.random.default_rng(0))
    for label in range(3):
        counts = np.bincount(part[labels == label], minlength=parts)
        assert counts.max() - counts.min() <= 1
