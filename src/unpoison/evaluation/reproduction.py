"""The paper's method run with the paper's settings: every run beside the paper's own row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from unpoison.errors import InputError
from unpoison.evaluation.bench import ON_CLEAN, UNDEFENDED
from unpoison.evaluation.comparison import PERFECT, epoch_equivalents
from unpoison.evaluation.outcomes import Result, scale_of, whose_images
from unpoison.evaluation.published import OWN, PER_SCENARIO, Measured, read_rows
from unpoison.evaluation.scenarios import by_name
from unpoison.evaluation.table_layout import Table

REPRODUCTION = "reproduction"
"""The name of the table on the command line."""
COMPONENTS = "components"
"""The name of :func:`by_component` there."""
COLUMNS = (
    "scenario", "seed", "planted", "undefended TMR", "paper", "perfect filter TMR", "paper", "TMR", "paper",
    "accuracy", "paper", "false positives", "paper", "false negatives", "paper", "cost",
)  # fmt: skip


def reproduce(results: Iterable[Result], *, defense: str = OWN) -> Table:
    """Each run of ``defense`` with the paper's numbers for that very scenario, then its clean sets."""
    results = list(results)
    runs = _sorted(result for result in results if result["defense"] == defense)
    clean = _sorted(result for result in results if result["defense"] == defense + ON_CLEAN)
    if not runs:
        raise InputError(f"there are no results of {defense!r}; run it, or name another with --defense")
    tmr = {(result["scenario"], result["seed"], result["defense"]): result["tmr"] for result in results}
    rows = [_row(run, tmr) for run in runs] + [_clean_row(run) for run in clean]
    title = f"{defense} at scale {scale_of(results)}, beside the paper"
    return Table(title, COLUMNS, tuple(rows), _notes(runs))


def _sorted(results: Iterable[Result]) -> list[Result]:
    return sorted(results, key=lambda result: (str(result["scenario"]), int(result["seed"])))


def _row(run: Result, tmr: Mapping[tuple[str, int, str], float]) -> tuple[str, ...]:
    scenario, seed = run["scenario"], run["seed"]
    theirs = _published(scenario)
    own = theirs.get(OWN)
    return (
        scenario,
        str(seed),
        str(run["planted"]),
        *(
            cell
            for by in (UNDEFENDED, PERFECT)
            for cell in (_percent(tmr.get((scenario, seed, by))), _their(theirs.get(by), "tmr"))
        ),
        _percent(run["tmr"]),
        _their(own, "tmr"),
        _percent(run["accuracy"]),
        _their(own, "accuracy"),
        str(run["false_positives"]),
        _their(own, "false_positives"),
        str(run["false_negatives"]),
        _their(own, "false_negatives"),
        f"{epoch_equivalents(run['defense_cost'], run['n']):.0f}",
    )


def _published(scenario: str) -> Mapping[str, Measured]:
    """What the paper prints for a scenario, by defense; nothing for one that has no row."""
    tables = [table for table in by_name(scenario).tables if table in PER_SCENARIO]
    rows = [row for table in tables for row in read_rows(table) if row.scenario == scenario]
    return rows[0].cells if rows else {}


def _clean_row(run: Result) -> tuple[str, ...]:
    """Data of a scenario before the attack: there is nothing to find."""
    cost = f"{epoch_equivalents(run['defense_cost'], run['n']):.0f}"
    name = f"{run['scenario'].partition('-')[0]}, clean"
    blank = "-"
    return (
        name, str(run["seed"]), "0", *[blank] * 6, _percent(run["accuracy"]), blank,
        str(run["false_positives"]), blank, "0", blank, cost,
    )  # fmt: skip


def by_component(results: Iterable[Result], *, defense: str = OWN) -> Table:
    """How many planted samples each component of each restart holds, the last number: those in none."""
    runs = _sorted(r for r in results if r["defense"] == defense and r.get("planted_by_component"))
    restarts = max((len(run["planted_by_component"]) for run in runs), default=0)
    rows = tuple(
        (
            run["scenario"],
            str(run["seed"]),
            *(_counts(row) for row in run["planted_by_component"]),
            *[""] * (restarts - len(run["planted_by_component"])),
            f"{run['voted_false_positives']}, {run['voted_false_negatives']}",
        )
        for run in runs
    )
    columns = ("scenario", "seed", *(f"restart {i + 1}" for i in range(restarts)), "by the vote alone")
    notes = (
        "Planted samples by component, in the order they were found; after the stroke, those in none.",
        "By the vote alone: false positives and negatives before self-training.",
    )
    return Table("Where the planted samples are", columns, rows, notes)


def _counts(row: Sequence[int]) -> str:
    return f"{' '.join(map(str, row[:-1]))} | {row[-1]}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _their(measured: Measured | None, name: str) -> str:
    value = None if measured is None else getattr(measured, name)
    return "-" if value is None else str(value)


def _notes(runs: Sequence[Result]) -> tuple[str, ...]:
    return (
        "TMR and accuracy in percent. The paper's are medians of three runs with its own networks.",
        "Cost: of the defense, in epochs of training over all the data; a forward pass counts a third.",
        *whose_images(runs),
    )
