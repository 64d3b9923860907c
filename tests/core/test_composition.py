from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.core.composition import calls_by_class, composition

CONFUSED = np.array([[60.0, 30.0, 10.0], [25.0, 65.0, 10.0], [1.0, 1.0, 98.0]])
"""Of a hundred samples of each class, how many are called each class."""


def test_calls_are_counted_by_class() -> None:
    calls = calls_by_class(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]), n_classes=3)
    assert calls.tolist() == [[1, 1, 0], [0, 2, 0], [0, 0, 0]]


@pytest.mark.parametrize("label", [0, 1, 2])
def test_a_group_that_is_called_like_a_class_is_of_that_class(label: int) -> None:
    called = np.repeat([0, 1, 2], CONFUSED[label].astype(int))
    assert composition(called, CONFUSED)[label] > 0.95


def test_a_mixture_is_taken_apart() -> None:
    called = np.repeat([0, 1, 2], (CONFUSED[0] + 3 * CONFUSED[2]).astype(int))
    np.testing.assert_allclose(composition(called, CONFUSED), [0.25, 0.0, 0.75], atol=0.03)


def test_being_called_another_class_says_little_where_it_is_usual() -> None:
    """A third of the calls are right: much for a confused class, and too few for one that is known well."""
    called = np.array([0] * 4 + [1] * 6)
    assert composition(called, CONFUSED)[0] > 0.3
    known_well = np.array([[98.0, 2.0], [2.0, 98.0]])
    assert composition(called, known_well)[0] == pytest.approx(0.4, abs=0.03)


def test_a_class_that_was_never_called_is_no_error() -> None:
    shares = composition(np.array([0, 0, 1]), np.zeros((3, 3)))
    np.testing.assert_allclose(shares, 1 / 3)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40))
def test_shares_are_shares(called: list[int]) -> None:
    shares = composition(np.array(called), CONFUSED)
    assert shares.min() >= 0.0
    assert shares.sum() == pytest.approx(1.0)
