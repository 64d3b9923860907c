from __future__ import annotations

import numpy as np
import pytest

from unpoison.report.ranges import Range, common_range
from unpoison.types import FloatArray

RNG = np.random.default_rng(0)
KEPT = RNG.normal(100, 20, 100)
CALLED = RNG.normal(140, 20, 100)


def planted(value: float, n: int = 20, *, varying: float = 0.02) -> FloatArray:
    values: FloatArray = value * (1 + np.random.default_rng(1).uniform(-varying, varying, n))
    return values


@pytest.mark.parametrize("value", [404.0, 60.0, 200.0, -50.0])
def test_finds_a_narrow_range_that_neither_class_has(value: float) -> None:
    found = common_range(planted(value), [KEPT, CALLED], n_columns=30)
    assert found is not None
    assert (found.removed, found.kept) == (1.0, pytest.approx(0.0, abs=0.05))
    assert found.low == planted(value).min()
    assert found.high == planted(value).max()


def test_the_few_that_do_not_have_it_do_not_hide_it() -> None:
    values = np.concatenate([planted(404), [90.0, 100.0, 130.0]])
    found = common_range(values, [KEPT, CALLED], n_columns=30)
    assert found is not None
    assert 395 < found.low < found.high < 413
    assert 0.8 < found.removed < 0.9


def test_what_either_class_has_is_no_mark() -> None:
    own = np.full(100, 404.0)
    assert common_range(planted(404), [KEPT, CALLED, own + RNG.normal(0, 1, 100)], n_columns=1) is None
    assert common_range(planted(404), [], n_columns=1) is None
    assert common_range(np.array([]), [KEPT], n_columns=1) is None


def test_a_wide_range_is_no_mark() -> None:
    assert common_range(RNG.uniform(300, 500, 20), [KEPT, CALLED], n_columns=1) is None


@pytest.mark.parametrize(("n", "n_columns", "is_found"), [(5, 30, True), (4, 30, False), (5, 3000, False)])
def test_a_few_rows_and_many_columns_could_be_chance(n: int, n_columns: int, is_found: bool) -> None:
    found = common_range(planted(404, n), [KEPT, CALLED], n_columns=n_columns)
    assert (found is not None) == is_found


def test_a_group_of_thousands() -> None:
    """The binomial coefficients are beyond what a float can hold."""
    found = common_range(planted(404.0, 5_000), [KEPT, CALLED], n_columns=30)
    assert found is not None
    assert found.removed == 1.0


def test_one_sample_shares_nothing() -> None:
    assert common_range(planted(404.0, 1), [KEPT, CALLED], n_columns=1) is None


def test_rows_drawn_from_a_class_share_no_range() -> None:
    drawn = np.random.default_rng(2)
    found = [
        common_range(drawn.normal(100, 20, n), [KEPT, CALLED], n_columns=30)
        for n in (5, 10, 30)
        for _ in range(200)
    ]
    assert found == [None] * 600


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (395.8, 412.1, "396 to 412"),
        (0.1231, 0.1271, "0.1231 to 0.1271"),
        (-3.0, -2.5, "-3.00 to -2.50"),
        (5, 5, "5.0000"),
        (8157, 8488, "8157 to 8488"),
        (1e-12, 3e-12, "1e-12 to 3e-12"),
        (-1e99, 1e99, "-1e+99 to 1e+99"),
    ],
)
def test_in_words(low: float, high: float, text: str) -> None:
    assert str(Range(low, high, 1.0, 0.0)) == text
