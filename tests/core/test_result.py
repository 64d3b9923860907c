from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from unpoison.core.result import Cost, Group, Sanitization


def test_costs_add() -> None:
    assert Cost(1, 2) + Cost(30, 40) == Cost(31, 42)
    assert Cost() == Cost(0, 0)


def result(keep: list[bool]) -> Sanitization:
    n = len(keep)
    return Sanitization(np.array(keep), np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros((1, n), np.int64))


def test_removed_is_what_is_not_kept() -> None:
    assert result([True, False, True, True]).n_removed == 1
    assert result([True, False, True, True]).removed_fraction == 0.25
    assert result([True]).removed_fraction == 0.0
    assert result([False, False]).removed_fraction == 1.0
    assert type(result([True, False]).n_removed) is int


def test_results_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        result([True]).keep = np.array([False])  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Group(0, 1, True, 1).size = 3  # type: ignore[misc]


def test_each_result_has_its_own_notes() -> None:
    first, second = result([True]), result([True])
    first.notes["a"] = 1
    assert second.notes == {}
