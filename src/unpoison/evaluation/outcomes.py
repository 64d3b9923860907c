"""From runs of our own to one outcome for each scenario and defense.

A run is a plain dict: ``scenario``, ``scale``, ``seed``, ``defense``, ``took_hold``, and ``accuracy``,
``tmr``, ``asr`` (shares, 0 to 1), ``false_positives``, ``false_negatives`` (counts), each of which may be
None or absent.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from reprlib import repr as shortened
from statistics import median
from typing import Any, TypeAlias

from unpoison.errors import InputError
from unpoison.evaluation.scenarios import OURS, WITH_IMAGES, by_name

Result: TypeAlias = Mapping[str, Any]

SUCCESS = 1.0
"""A defense succeeds with a targeted misclassification rate below this, in percent."""
LENIENT = 5.0
"""The other threshold that the appendix counts at: 142 of its 165 scenarios, where 134 are below 1%."""
CONTROLS = ("oracle", "nothing")
"""What defenses are compared with: trained on the clean samples alone, and on everything."""
REQUIRED = ("scenario", "scale", "seed", "defense", "took_hold")


@dataclass(frozen=True)
class Outcome:
    """Medians over the runs of one scenario with one defense; rates in percent, None if not measured."""

    defense: str
    runs: int
    took_hold: bool
    """Whether the attack worked on an undefended network in more than half of the runs."""
    accuracy: float | None
    tmr: float | None
    asr: float | None
    false_positives: float | None
    false_negatives: float | None

    @property
    def defended(self) -> bool:
        """A success: an attack that took hold, a defense, and a TMR below 1%."""
        return self.below(SUCCESS) and self.took_hold and self.defense not in CONTROLS

    def below(self, percent: float) -> bool:
        """Whether the TMR is below this; at 1%, what the paper counts, also where the attack did nothing."""
        return self.tmr is not None and self.tmr < percent


def scale_of(results: Iterable[Result]) -> str | None:
    """The one scale of the results; None without any."""
    scales = sorted({str(result["scale"]) for result in results})
    if len(scales) > 1:
        raise InputError(
            f"the results are of the scales {' and '.join(scales)}, which no table may mix; choose one"
        )
    return scales[0] if scales else None


def whose_images(results: Iterable[Result]) -> list[str]:
    """A note that says whose pictures were used where there are official ones; empty where there are none."""
    images = {run.get("images", OURS) for run in results if by_name(run["scenario"]).family in WITH_IMAGES}
    return [f"Clean-label images and watermarks: {' and '.join(sorted(images))}."] if images else []


def outcomes(results: Iterable[Result]) -> dict[tuple[str, str], Outcome]:
    """By scenario and defense, in the order of the results."""
    runs: dict[tuple[str, str], dict[int, Result]] = defaultdict(dict)
    results = list(results)
    for result in results:
        _check(result)
        group = runs[str(result["scenario"]), str(result["defense"])]
        if result["seed"] in group:
            raise InputError(
                f"there are two results of {result['defense']!r} on {result['scenario']!r} with seed "
                f"{result['seed']}; keep one of them"
            )
        group[result["seed"]] = result
    scale_of(results)
    return {place: _outcome(list(group.values())) for place, group in runs.items()}


def check_values(result: Result) -> None:
    """Refuse the result of an experiment with a value that it cannot have measured.

    Raises:
        ValueError: A rate is no number from 0 to 1, a count is negative, ``n`` or a cost is missing.
    """
    for name in ("accuracy", "tmr", "asr", "false_positive_rate"):
        _check_number(name, result.get(name), 0, 1)
    # without poison there are none of the first two; the others are of victims trained in an attacker's way
    for name in ("true_positive_rate", "auc", "attacker_accuracy", "attacker_tmr", "attacker_asr"):
        if result.get(name) is not None:
            _check_number(name, result[name], 0, 1)
    for name in ("n", "false_positives", "false_negatives"):
        _check_number(name, result.get(name), int(name == "n"))
    cost = result.get("defense_cost")
    for name in ("trained", "scored"):
        _check_number(f"defense_cost.{name}", cost.get(name) if isinstance(cost, dict) else None, 0)
    if not isinstance(result.get("took_hold"), (bool, type(None))):
        raise ValueError(f"its took_hold is {shortened(result['took_hold'])}")


def _check_number(name: str, value: object, low: float, high: float = sys.float_info.max) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(f"its {name} is {shortened(value)}")


def _check(result: Result) -> None:
    missing = [name for name in REQUIRED if result.get(name) is None]
    if missing:
        raise InputError(f"a result has no {missing[0]!r}; every result needs {', '.join(REQUIRED)}")


def _outcome(runs: list[Result]) -> Outcome:
    return Outcome(
        defense=str(runs[0]["defense"]),
        runs=len(runs),
        took_hold=2 * sum(bool(run["took_hold"]) for run in runs) > len(runs),
        accuracy=_median(runs, "accuracy", 100.0),
        tmr=_median(runs, "tmr", 100.0),
        asr=_median(runs, "asr", 100.0),
        false_positives=_median(runs, "false_positives"),
        false_negatives=_median(runs, "false_negatives"),
    )


def _median(runs: list[Result], name: str, unit: float = 1.0) -> float | None:
    values = [float(run[name]) for run in runs if run.get(name) is not None]
    return unit * median(values) if values else None
