"""Defenses side by side on the same scenarios: what each finds, what it costs the clean data and in work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TypeAlias

from unpoison.errors import InputError
from unpoison.evaluation.bench import ON_CLEAN
from unpoison.evaluation.outcomes import SUCCESS, Result, scale_of
from unpoison.evaluation.published import in_order
from unpoison.evaluation.table_layout import Table

COMPARISON = "comparison"
"""The name of the table on the command line."""
COLUMNS = (
    "defense", "defended", "TMR", "accuracy", "found", "clean removed", "AUC", "removed, none planted", "cost"
)  # fmt: skip
FORWARD = 1 / 3
"""The work of a forward pass, where a training pass is one."""

_Place: TypeAlias = tuple[str, int]
"""A scenario and a seed."""


def compare(results: Iterable[Result]) -> Table:
    """Medians over the scenarios and seeds that every defense was run on, if the attack took hold there."""
    results = list(results)
    scale = scale_of(results)
    poisoned: dict[str, dict[_Place, Result]] = {}
    on_clean: dict[str, list[Result]] = {}
    for result in results:
        name = str(result["defense"])
        if name.endswith(ON_CLEAN):
            on_clean.setdefault(name.removesuffix(ON_CLEAN), []).append(result)
        else:
            poisoned.setdefault(name, {})[str(result["scenario"]), int(result["seed"])] = result
    shared = sorted(set.intersection(*(set(runs) for runs in poisoned.values()))) if poisoned else []
    held = [place for place in shared if any(runs[place]["took_hold"] for runs in poisoned.values())]
    if not held:
        raise InputError(
            "there is no scenario that every defense was run on and whose attack took hold; run more of them"
        )
    rows = tuple(
        _row(name, [poisoned[name][place] for place in held], on_clean.get(name, ()))
        for name in in_order(poisoned)
    )
    return Table(
        f"Defenses on the same {len(held)} attacks at scale {scale}", COLUMNS, rows, _notes(shared, held)
    )


def epoch_equivalents(cost: Mapping[str, float], n: int) -> float:
    """Passes over the data that cost as much as training does, forward and backward.

    >>> epoch_equivalents({"trained": 300, "scored": 300}, 100)
    4.0
    """
    return (cost["trained"] + FORWARD * cost["scored"]) / n


def _row(name: str, runs: Sequence[Result], clean: Sequence[Result]) -> tuple[str, ...]:
    defended = sum(run["tmr"] < SUCCESS / 100 for run in runs)
    cost = median(epoch_equivalents(run["defense_cost"], run["n"]) for run in runs)
    return (
        name,
        f"{defended} / {len(runs)}",
        _percent([run["tmr"] for run in runs]),
        _percent([run["accuracy"] for run in runs]),
        _percent([run["true_positive_rate"] for run in runs]),
        _percent([run["false_positive_rate"] for run in runs]),
        _number([run["auc"] for run in runs if run["auc"] is not None]),
        _percent([run["false_positive_rate"] for run in clean]),
        f"{cost:.0f}",
    )


def _percent(shares: Sequence[float]) -> str:
    return f"{100 * median(shares):.1f}" if shares else ""


def _number(values: Sequence[float]) -> str:
    return f"{median(values):.3f}" if values else ""


def _notes(shared: Sequence[_Place], held: Sequence[_Place]) -> tuple[str, ...]:
    return (
        f"Of {len(shared)} attacks that every defense met, {len(held)} took hold; the others do not count.",
        "Defended: TMR below 1%. All else are medians, in percent but for AUC and cost. Found: planted "
        "samples that it removes.",
        "Removed, none planted: of the same data before an attack. Cost: of the defense, without the victim, "
        "in epochs of training over all the data; a forward pass counts a third.",
    )
