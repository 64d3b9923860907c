from __future__ import annotations

import pytest

from unpoison.core.groups.decide import Evidence, Thresholds, decide
from unpoison.core.groups.separation import Separation

ERROR = 0.2
USUAL = Thresholds()


def verdict(met: float, unmet: float, *, error: float = ERROR, thresholds: Thresholds = USUAL) -> str:
    measured = Evidence(1, 50, Separation(met, error), Separation(unmet, error), 0.0, 2)
    return decide(measured, thresholds)


@pytest.mark.parametrize(
    ("met", "unmet", "expected"),
    [
        (7.21, 2.29, "planted"),
        (7.19, 0.0, "undecided"),
        (6.81, 0.0, "undecided"),
        (6.79, 0.0, "natural"),
        (20.0, 2.31, "undecided"),
        (20.0, 2.69, "undecided"),
        (20.0, 2.71, "natural"),
        (6.79, 2.31, "natural"),
    ],
)
def test_both_sides_of_each_bound(met: float, unmet: float, expected: str) -> None:
    """Moved by a tenth, either threshold changes one of these."""
    assert verdict(met, unmet) == expected


@pytest.mark.parametrize("thresholds", [Thresholds(met=6.3), Thresholds(met=7.7)])
def test_the_first_threshold_is_the_one_that_is_documented(thresholds: Thresholds) -> None:
    cases = [(7.21, 0.0), (6.79, 0.0)]
    assert [verdict(*case, thresholds=thresholds) for case in cases] != [verdict(*case) for case in cases]


@pytest.mark.parametrize("thresholds", [Thresholds(unmet=2.25), Thresholds(unmet=2.75)])
def test_the_second_threshold_is_the_one_that_is_documented(thresholds: Thresholds) -> None:
    cases = [(20.0, 2.29), (20.0, 2.71)]
    assert [verdict(*case, thresholds=thresholds) for case in cases] != [verdict(*case) for case in cases]


def test_what_is_measured_less_exactly_is_less_often_decided() -> None:
    assert verdict(8.0, 1.5, error=0.2) == "planted"
    assert verdict(8.0, 1.5, error=1.1) == "undecided"


def test_what_a_planted_group_is() -> None:
    apart, dissolved = Separation(9.0, 0.1), Separation(0.0, 0.1)
    assert Evidence(1, 50, apart, dissolved, 0.1, 2).kind == "filed under the wrong class"
    assert Evidence(1, 50, apart, dissolved, 0.9, 1).kind == "a mark on right labels"
