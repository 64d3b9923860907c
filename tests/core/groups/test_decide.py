from __future__ import annotations

import numpy as np
import pytest

from unpoison.core.groups.decide import Evidence, Thresholds, decide
from unpoison.core.groups.separation import NOT_MEASURED, Separation

USUAL = Thresholds()


def evidence(
    met: float, kept: float, *, elsewhere: float = 0.0, error: float = 0.2, unmet_error: float = 0.0
) -> Evidence:
    """Of a group that keeps this part of its distance; ``error``: of that distance."""
    apart, left = Separation(met, error), Separation(kept * met, unmet_error)
    return Evidence(1, 50, apart, left, 0.0, elsewhere, 2)


def verdict(
    met: float, kept: float, *, elsewhere: float = 0.0, error: float = 0.2, thresholds: Thresholds = USUAL
) -> str:
    return decide(evidence(met, kept, elsewhere=elsewhere, error=error), thresholds)


@pytest.mark.parametrize(
    ("met", "kept", "expected"),
    [
        (6.21, 0.0, "planted"),
        (6.19, 0.0, "undecided"),
        (5.81, 0.0, "undecided"),
        (5.79, 0.0, "natural"),
        (20.0, 0.19, "planted"),
        (20.0, 0.199, "undecided"),
        (20.0, 0.201, "undecided"),
        (20.0, 0.21, "natural"),
        (5.79, 0.199, "natural"),
        (12.0, -0.2, "planted"),
    ],
)
def test_both_sides_of_each_bound(met: float, kept: float, expected: str) -> None:
    """Moved by a tenth, either threshold changes one of these."""
    assert verdict(met, kept) == expected


@pytest.mark.parametrize(
    "moved", [Thresholds(met=5.4), Thresholds(met=6.6), Thresholds(kept=0.18), Thresholds(kept=0.22)]
)
def test_the_thresholds_are_those_that_are_documented(moved: Thresholds) -> None:
    cases = [(6.21, 0.0), (5.79, 0.0), (20.0, 0.19), (20.0, 0.21)]
    assert [verdict(*case, thresholds=moved) for case in cases] != [verdict(*case) for case in cases]


@pytest.mark.parametrize(
    ("seen", "elsewhere", "expected"),
    [
        (0.6, 0.8, "planted"),
        (0.6, 0.65, "undecided"),
        (0.6, 0.5, "natural"),
        (1.0, 1.0, "planted"),
        (0.1, 0.0, "planted"),
        (0.25, 0.0, "natural"),
    ],
)
def test_what_is_surely_something_else_keeps_nothing_under_its_label(
    seen: float, elsewhere: float, expected: str
) -> None:
    """A mark that judges see as well, on samples that they call something else."""
    assert verdict(20.0, seen, elsewhere=elsewhere) == expected
    assert evidence(20.0, seen, elsewhere=elsewhere).kept == pytest.approx(seen * (1.0 - elsewhere))


@pytest.mark.parametrize(
    ("agreement", "expected"), [(0.0, "planted"), (0.4, "planted"), (0.5, "undecided"), (0.6, "natural")]
)
def test_where_every_rare_value_is_a_mark_right_labels_stay(agreement: float, expected: str) -> None:
    plain = Thresholds(right_labels=False)
    measured = Evidence(1, 50, Separation(20.0, 0.2), Separation(1.0, 0.2), agreement, 0.0, 2)
    assert decide(measured, plain) == expected
    assert decide(measured, USUAL) == "planted"


def test_what_is_measured_less_exactly_is_less_often_decided() -> None:
    assert verdict(8.0, 0.15, error=0.2) == "planted"
    assert verdict(8.0, 0.15, error=2.1) == "undecided"
    assert decide(evidence(20.0, 0.15, unmet_error=1.5), USUAL) == "undecided"


def test_what_judges_could_not_compare_is_undecided() -> None:
    assert decide(evidence(20.0, 0.0, unmet_error=NOT_MEASURED), USUAL) == "undecided"


def test_the_error_of_what_is_kept() -> None:
    """As that of a quotient, by drawing both of its parts."""
    measured = Evidence(1, 50, Separation(12.0, 0.8), Separation(3.0, 0.3), 0.0, 0.0, 2)
    rng = np.random.default_rng(0)
    drawn = rng.normal(3.0, 0.3, 20_000) / rng.normal(12.0, 0.8, 20_000)
    assert measured.kept == 0.25
    assert measured.seen_error == pytest.approx(float(drawn.std()), rel=0.05)
    half = Evidence(1, 50, measured.met, measured.unmet, 0.0, 0.5, 2)
    drawn *= 1.0 - rng.normal(0.5, half.error_of(0.5), 20_000)
    assert half.kept_error == pytest.approx(float(drawn.std()), rel=0.05)


def test_what_a_planted_group_is() -> None:
    apart, dissolved = Separation(9.0, 0.1), Separation(0.0, 0.1)
    assert Evidence(1, 50, apart, dissolved, 0.1, 0.9, 2).kind == "filed under the wrong class"
    assert Evidence(1, 50, apart, dissolved, 0.9, 0.0, 1).kind == "a mark on right labels"


def test_the_error_of_a_share() -> None:
    measured = Evidence(1, 100, Separation(9.0, 0.1), Separation(9.0, 0.1), 0.0, 0.0, 2)
    assert measured.error_of(0.5) == pytest.approx(0.05)
    assert 0.005 < measured.error_of(0.0) < 0.02


def test_the_reason_says_the_numbers() -> None:
    reason = evidence(13.3, 0.1, elsewhere=0.9).reason("planted")
    assert all(part in reason for part in ("Planted", "filed under the wrong class", "13.3", "1.3", "90%"))
    unknown = evidence(13.3, 0.0, unmet_error=NOT_MEASURED).reason("undecided")
    assert "too little of its kind" in unknown
