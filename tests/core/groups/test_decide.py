from __future__ import annotations

import numpy as np
import pytest

from unpoison.core.groups.decide import Evidence, Thresholds, decide
from unpoison.core.groups.separation import NOT_MEASURED, Separation

USUAL = Thresholds()


def verdict(met: float, kept: float, *, error: float = 0.2, thresholds: Thresholds = USUAL) -> str:
    """Of a group that keeps this part of its distance; ``error``: of that distance."""
    measured = Evidence(1, 50, Separation(met, error), Separation(kept * met, 0.0), 0.0, 2)
    return decide(measured, thresholds)


@pytest.mark.parametrize(
    ("met", "kept", "expected"),
    [
        (7.21, 0.0, "planted"),
        (7.19, 0.0, "undecided"),
        (6.81, 0.0, "undecided"),
        (6.79, 0.0, "natural"),
        (20.0, 0.24, "planted"),
        (20.0, 0.249, "undecided"),
        (20.0, 0.251, "undecided"),
        (20.0, 0.26, "natural"),
        (6.79, 0.249, "natural"),
        (12.0, -0.2, "planted"),
    ],
)
def test_both_sides_of_each_bound(met: float, kept: float, expected: str) -> None:
    """Moved by a tenth, either threshold changes one of these."""
    assert verdict(met, kept) == expected


@pytest.mark.parametrize(
    "moved", [Thresholds(met=6.3), Thresholds(met=7.7), Thresholds(kept=0.225), Thresholds(kept=0.275)]
)
def test_the_thresholds_are_those_that_are_documented(moved: Thresholds) -> None:
    cases = [(7.21, 0.0), (6.79, 0.0), (20.0, 0.24), (20.0, 0.26)]
    assert [verdict(*case, thresholds=moved) for case in cases] != [verdict(*case) for case in cases]


def test_what_is_measured_less_exactly_is_less_often_decided() -> None:
    assert verdict(8.0, 0.2, error=0.2) == "planted"
    assert verdict(8.0, 0.2, error=1.1) == "undecided"
    measured = Evidence(1, 50, Separation(20.0, 0.2), Separation(4.0, 1.5), 0.0, 2)
    assert decide(measured, USUAL) == "undecided"


def test_what_judges_could_not_compare_is_undecided() -> None:
    measured = Evidence(1, 50, Separation(20.0, 0.2), Separation(0.0, NOT_MEASURED), 0.0, 2)
    assert decide(measured, USUAL) == "undecided"


def test_the_error_of_what_is_kept() -> None:
    """As that of a quotient, by drawing both of its parts."""
    evidence = Evidence(1, 50, Separation(12.0, 0.8), Separation(3.0, 0.3), 0.0, 2)
    rng = np.random.default_rng(0)
    drawn = rng.normal(3.0, 0.3, 20_000) / rng.normal(12.0, 0.8, 20_000)
    assert evidence.kept == 0.25
    assert evidence.kept_error == pytest.approx(float(drawn.std()), rel=0.05)


def test_what_a_planted_group_is() -> None:
    apart, dissolved = Separation(9.0, 0.1), Separation(0.0, 0.1)
    assert Evidence(1, 50, apart, dissolved, 0.1, 2).kind == "filed under the wrong class"
    assert Evidence(1, 50, apart, dissolved, 0.9, 1).kind == "a mark on right labels"
