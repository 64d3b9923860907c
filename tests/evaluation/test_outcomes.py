from __future__ import annotations

from typing import Any

import pytest

from unpoison.errors import InputError
from unpoison.evaluation.outcomes import LENIENT, SUCCESS, outcomes, scale_of

SCENARIO = "gtsrb-watermark-1-2-eps10"


def run(seed: int, **values: Any) -> dict[str, Any]:
    usual = {
        "scenario": SCENARIO,
        "scale": "laptop",
        "seed": seed,
        "defense": "ispl",
        "accuracy": 0.9,
        "tmr": 0.005,
        "asr": 0.01,
        "false_positives": 10,
        "false_negatives": 1,
        "took_hold": True,
    }
    return usual | values


def test_medians_in_percent() -> None:
    runs = [run(0, tmr=0.5, accuracy=0.7), run(1, tmr=0.0), run(2, tmr=0.002, false_positives=30)]
    (outcome,) = outcomes(runs).values()
    assert (outcome.runs, outcome.accuracy, outcome.false_positives) == (3, 90.0, 10)
    assert outcome.tmr == pytest.approx(0.2)
    assert outcome.defended


@pytest.mark.parametrize(("tmr", "defended"), [(0.0099, True), (0.01, False), (None, False)])
def test_defended_is_below_one_percent(tmr: float | None, defended: bool) -> None:
    assert outcomes([run(0, tmr=tmr)])[SCENARIO, "ispl"].defended is defended


@pytest.mark.parametrize(
    ("tmr", "at_one", "at_five"),
    [(0.0099, True, True), (0.01, False, True), (0.0499, False, True), (0.05, False, False)],
)
def test_below_a_threshold_whether_or_not_the_attack_took_hold(
    tmr: float, at_one: bool, at_five: bool
) -> None:
    outcome = outcomes([run(0, tmr=tmr, took_hold=False)])[SCENARIO, "ispl"]
    assert (outcome.below(SUCCESS), outcome.below(LENIENT)) == (at_one, at_five)
    assert not outcome.defended
    assert not outcomes([run(0, tmr=None)])[SCENARIO, "ispl"].below(LENIENT)


@pytest.mark.parametrize(("held", "expected"), [("ttt", True), ("ttf", True), ("tff", False), ("tf", False)])
def test_an_attack_takes_hold_in_more_than_half_of_the_runs(held: str, expected: bool) -> None:
    runs = [run(seed, took_hold=letter == "t") for seed, letter in enumerate(held)]
    outcome = outcomes(runs)[SCENARIO, "ispl"]
    assert outcome.took_hold is expected
    assert outcome.defended is expected


@pytest.mark.parametrize("control", ["oracle", "nothing"])
def test_controls_do_not_defend(control: str) -> None:
    assert not outcomes([run(0, defense=control)])[SCENARIO, control].defended


def test_what_was_not_measured_stays_out_of_the_median() -> None:
    runs = [run(0, asr=None, false_negatives=None), run(1, false_negatives=None)]
    outcome = outcomes(runs)[SCENARIO, "ispl"]
    assert (outcome.asr, outcome.false_negatives) == (1.0, None)


def test_scales_are_not_mixed() -> None:
    assert scale_of([]) is None
    assert scale_of([run(0), run(1)]) == "laptop"
    with pytest.raises(InputError, match="scales laptop and paper, which no table may mix"):
        outcomes([run(0), run(1, scale="paper")])


def test_two_results_of_one_run_are_refused() -> None:
    with pytest.raises(InputError, match=r"two results of 'ispl' on .* with seed 1"):
        outcomes([run(1), run(1, tmr=0.4)])


@pytest.mark.parametrize("name", ["scenario", "scale", "seed", "defense", "took_hold"])
def test_incomplete_results_are_refused(name: str) -> None:
    incomplete = {key: value for key, value in run(0).items() if key != name}
    with pytest.raises(InputError, match=f"a result has no '{name}'"):
        outcomes([incomplete])
