from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison.attacks.base import Samples
from unpoison.attacks.labels import OneToOne
from unpoison.attacks.rows import FixedValues, fitting_values
from unpoison.errors import InputError

ROWS = np.array([[1.0, 10.0, 7.0], [3.0, -10.0, 7.0], [2.0, np.nan, 7.0]])


def test_values_in_their_columns_and_nothing_else() -> None:
    attack = FixedValues(OneToOne(0, 1), 1.0, columns=(2, 0), values=(5.5, -1))
    assert attack.trigger(ROWS[:2]).tolist() == [[-1.0, 10.0, 5.5], [-1.0, -10.0, 5.5]]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_type_of_the_rows_stays(dtype: str) -> None:
    attack = FixedValues(OneToOne(0, 1), 1.0, (0,), (5.5,))
    samples = Samples.numbered(ROWS.astype(dtype), np.array([0, 0, 1]))
    poisoned, truth = attack.apply(samples, seed=0)
    assert poisoned.features.dtype == dtype
    assert poisoned.features[:, 0].tolist() == [5.5, 5.5, 2.0]
    assert truth.planted.tolist() == [True, True, False]


def test_fitting_values_stand_out() -> None:
    """As far above the largest as that is above the smallest; a constant column has no spread of its own."""
    assert fitting_values(ROWS, (0, 1, 2)) == (5.0, 30.0, 8.0)
    assert fitting_values(ROWS.astype("f4"), [2]) == (8.0,)


def test_fitting_values_pass_over_what_is_no_number() -> None:
    assert fitting_values(np.array([[np.inf], [1.0], [2.0]]), (0,)) == (3.0,)
    with pytest.raises(InputError, match="column 0 has no finite number"):
        fitting_values(np.array([[np.nan]]), (0,))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"columns": ()}, r"at least one. Got \(\)"),
        ({"columns": (-1,)}, r"Got \(-1,\)"),
        ({"columns": (1, 1), "values": (1, 2)}, r"Got \(1, 1\)"),
        ({"values": (1.0, 2.0)}, "1 columns but 2 values"),
        ({"values": (np.nan,)}, "finite"),
        ({"epsilon": -1.0}, "epsilon .* Got -1.0"),
    ],
)
def test_bad_options(options: dict[str, Any], named: str) -> None:
    usual: dict[str, Any] = {"epsilon": 0.1, "columns": (0,), "values": (1.0,)}
    with pytest.raises(InputError, match=named):
        FixedValues(OneToOne(0, 1), **usual | options)


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (ROWS, "no column 3 in rows of 3; choose 0 to 2"),
        (np.zeros((3, 5), int), "got int64 of shape"),
        (np.zeros((3, 5, 1)), "got float64 of shape"),
    ],
)
def test_rows_that_do_not_fit(rows: np.ndarray, named: str) -> None:
    attack = FixedValues(OneToOne(0, 1), 0.5, (3,), (1.0,))
    with pytest.raises(InputError, match=named):
        attack.apply(Samples.numbered(rows, np.array([0, 0, 1])), seed=0)
    with pytest.raises(InputError, match=named):
        attack.trigger(rows)
    with pytest.raises(InputError, match=named):
        fitting_values(rows, (3,))
