from __future__ import annotations

import numpy as np
import pytest

from unpoison.errors import InputError
from unpoison.evaluation.subsets import counts_to_hold_out, shares_of_limit, stratified
from unpoison.seeds import Seeds

LABELS = np.repeat(np.arange(5), [400, 200, 30, 3, 1])


@pytest.mark.parametrize("limit", [9, 10, 11, 50, 123, 633, 634, 10_000])
def test_a_limit_is_met_exactly_and_no_class_is_lost(limit: int) -> None:
    counts = shares_of_limit(LABELS, limit, 5)
    assert counts.sum() == min(limit, len(LABELS))
    assert (counts >= np.minimum(np.bincount(LABELS), 2)).all()
    assert (counts <= np.bincount(LABELS)).all()


def test_classes_keep_their_shares() -> None:
    assert shares_of_limit(np.repeat([0, 1, 2], [500, 300, 200]), 100, 3).tolist() == [50, 30, 20]


def test_a_limit_that_is_too_small() -> None:
    with pytest.raises(
        InputError, match=r"limit of 8 is too small for 5 classes .* raise --limit to 9 or more"
    ):
        shares_of_limit(LABELS, 8, 5)


def test_a_class_without_samples_gets_none() -> None:
    assert shares_of_limit(np.array([0, 0, 2, 2, 2]), 4, 3).tolist() == [2, 0, 2]


def test_a_stratified_part() -> None:
    counts = np.array([40, 20, 5, 2, 0])
    part = stratified(LABELS, counts, Seeds(3))
    assert np.bincount(LABELS[part], minlength=5).tolist() == counts.tolist()
    assert (np.diff(part) > 0).all()
    assert part.tolist() == stratified(LABELS, counts, Seeds(3)).tolist()
    assert part.tolist() != stratified(LABELS, counts, Seeds(4)).tolist()
    assert stratified(LABELS, np.zeros(5, dtype=np.int64), Seeds(0)).tolist() == []


def test_two_of_a_class_are_never_held_out() -> None:
    assert counts_to_hold_out(LABELS, 0.5, 5).tolist() == [200, 100, 15, 1, 0]
    assert counts_to_hold_out(LABELS, 0.99, 5).tolist() == [396, 198, 28, 1, 0]
    assert counts_to_hold_out(LABELS, 0.0, 5).tolist() == [0] * 5
