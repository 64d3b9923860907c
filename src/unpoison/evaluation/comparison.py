"""Defenses side by side on the same scenarios: what each finds, what it costs the clean data and in work."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import TypeAlias

from unpoison.errors import InputError
from unpoison.evaluation.bench import ON_CLEAN
from unpoison.evaluation.outcomes import LENIENT, SUCCESS, Result, scale_of
from unpoison.evaluation.published import Count, in_order
from unpoison.evaluation.scenarios import EPSILONS, by_name
from unpoison.evaluation.table_layout import Table

COMPARISON = "comparison"
"""The name of the table on the command line."""
COLUMNS = (
    "defense", "defended", "of all", "below 5%", "below 5% of all", "by epsilon",
    "of what a perfect filter defends", "TMR", "accuracy", "found", "clean removed", "AUC",
    "removed, none planted", "cost",
)  # fmt: skip
PERFECT = "oracle"
FORWARD = 1 / 3
"""The work of a forward pass, where a training pass is one."""

_Place: TypeAlias = tuple[str, int]
"""A scenario and a seed."""
_Runs: TypeAlias = Mapping[_Place, Result]


def compare(results: Iterable[Result], *, only: Collection[str] = ()) -> Table:
    """Medians over the scenarios and seeds that every defense was run on, if the attack took hold there.

    ``only`` names the defenses to compare, in place of all that have results.
    """
    results = list(results)
    scale = scale_of(results)
    runs = _by_defense(result for result in results if not _is_clean(result))
    on_clean = _by_defense(result for result in results if _is_clean(result))
    chosen = {name: runs.get(name, {}) for name in in_order(only or runs)}
    shared = sorted(set.intersection(*map(set, chosen.values()))) if chosen else []
    held = [place for place in shared if any(each[place]["took_hold"] for each in chosen.values())]
    if not held:
        raise InputError(
            "there is no scenario that every defense was run on and whose attack took hold; run more of "
            "them, or name the defenses to compare with --defense"
        )
    possible = {place for place, run in runs.get(PERFECT, {}).items() if _is_defended(run)}
    rows = tuple(
        (
            name,
            *_counts([each[place] for place in held], [each[place] for place in shared]),
            *_measures({place: each[place] for place in held}, on_clean.get(name + ON_CLEAN, {}), possible),
        )
        for name, each in chosen.items()
    )
    title = f"Defenses on the same {len(held)} attacks at scale {scale}"
    return Table(title, COLUMNS, rows, _notes(shared, held))


def _by_defense(results: Iterable[Result]) -> dict[str, dict[_Place, Result]]:
    found: dict[str, dict[_Place, Result]] = {}
    for result in results:
        place = str(result["scenario"]), int(result["seed"])
        found.setdefault(str(result["defense"]), {})[place] = result
    return found


def _is_clean(result: Result) -> bool:
    return str(result["defense"]).endswith(ON_CLEAN)


def _is_defended(run: Result, below: float = SUCCESS) -> bool:
    return bool(run["tmr"] < below / 100)


def epoch_equivalents(cost: Mapping[str, float], n: int) -> float:
    """Passes over the data that cost as much as training does, forward and backward.

    >>> epoch_equivalents({"trained": 300, "scored": 300}, 100)
    4.0
    """
    return (cost["trained"] + FORWARD * cost["scored"]) / n


def _counts(held: Sequence[Result], shared: Sequence[Result]) -> tuple[str, ...]:
    """Below 1% and below 5%: of the attacks that took hold, and of all, as the paper counts."""
    return tuple(str(_count(runs, below)) for below in (SUCCESS, LENIENT) for runs in (held, shared))


def _measures(held: _Runs, on_clean: _Runs, possible: Collection[_Place]) -> tuple[str, ...]:
    runs, clean = list(held.values()), list(on_clean.values())
    cost = median(epoch_equivalents(run["defense_cost"], run["n"]) for run in runs)
    return (
        _by_epsilon(held),
        str(_count([run for place, run in held.items() if place in possible])),
        _percent([run["tmr"] for run in runs]),
        _percent([run["accuracy"] for run in runs]),
        _percent([run["true_positive_rate"] for run in runs]),
        _percent([run["false_positive_rate"] for run in runs]),
        _number([run["auc"] for run in runs if run["auc"] is not None]),
        _percent([run["false_positive_rate"] for run in clean]),
        f"{cost:.0f}",
    )


def _count(runs: Sequence[Result], below: float = SUCCESS) -> Count:
    return Count(sum(_is_defended(run, below) for run in runs), len(runs))


def _by_epsilon(held: _Runs) -> str:
    groups = ([run for (name, _), run in held.items() if by_name(name).epsilon == e] for e in EPSILONS)
    return " ".join(str(_count(runs)).replace(" ", "") for runs in groups)


def _percent(shares: Sequence[float | None]) -> str:
    known = [share for share in shares if share is not None]
    return f"{100 * median(known):.1f}" if known else ""


def _number(values: Sequence[float]) -> str:
    return f"{median(values):.3f}" if values else ""


def _notes(shared: Sequence[_Place], held: Sequence[_Place]) -> tuple[str, ...]:
    return (
        f"Of {len(shared)} attacks that every defense met, {len(held)} took hold; the others do not count, "
        "but for the columns of all, which count as the paper does.",
        f"Defended: TMR below 1%; by epsilon: at {', '.join(map(str, EPSILONS))}%; of what a perfect filter "
        "defends: of the attacks that leave below 1% when exactly what was planted is removed.",
        "All else are medians, in percent but for AUC and cost. Found: planted samples that it removes.",
        "Removed, none planted: of the same data before an attack. Cost: of the defense, without the victim, "
        "in epochs of training over all the data; a forward pass counts a third.",
    )
