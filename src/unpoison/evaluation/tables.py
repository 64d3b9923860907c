"""The paper's tables, recomputed from its numbers for each scenario, with our results beside them.

Ours are of one scale, medians over the seeds (:mod:`unpoison.evaluation.outcomes`). A scenario whose attack
did not take hold is shown, and not highlighted as defended; the paper counts it. The summary has both counts,
of the paper's numbers and of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import TypeAlias

from unpoison.attacks.options import meant
from unpoison.errors import InputError
from unpoison.evaluation.bench import TOOK_HOLD, UNDEFENDED
from unpoison.evaluation.outcomes import (
    CONTROLS,
    LENIENT,
    SUCCESS,
    Outcome,
    Result,
    outcomes,
    scale_of,
    whose_images,
)
from unpoison.evaluation.published import (
    DEFENSES,
    OWN,
    SUMMARIZED,
    TOTAL,
    Count,
    Measured,
    Row,
    counts,
    in_order,
    read_grid,
    read_rows,
    read_sleeper_agent,
)
from unpoison.evaluation.published.counts import taking_hold, tally
from unpoison.evaluation.scenarios import (
    ABLATION_BASES,
    ABLATION_SHARES,
    ABLATION_TABLES,
    GTSRB_ABLATION_BASES,
    GTSRB_ABLATION_TABLES,
    SLEEPER_RUNS,
    SUMMARY,
    ablation_name,
    by_name,
    of_table,
)
from unpoison.evaluation.table_layout import FORMATS, Entry, Format, Table

__all__ = ["FORMATS", "TITLES", "Entry", "Format", "Table", "build"]

_Ours: TypeAlias = dict[tuple[str, str], Outcome]
"""By scenario and defense."""
_Cells: TypeAlias = tuple[str | Entry, ...]
_Counts: TypeAlias = Mapping[tuple[str, str], Count]
"""By epsilon and table, and in total."""

SLEEPER = "cifar10-sleeper-agent"
TITLES: dict[str, str] = {
    SUMMARY: "Scenarios defended (TMR below 1%), of all",
    "cifar10-dirty-label": "CIFAR-10, dirty-label, one to one (PreActResNet-18)",
    "cifar10-all-to-one": "CIFAR-10, dirty-label, all to one (PreActResNet-18)",
    "cifar10-all-to-all": "CIFAR-10, dirty-label, all to all (PreActResNet-18)",
    "cifar10-watermark": "CIFAR-10, watermark (PreActResNet-18)",
    "cifar10-clean-label": "CIFAR-10, clean-label (PreActResNet-18)",
    "gtsrb-dirty-label": "GTSRB, dirty-label, one to one (ResNet-32)",
    "gtsrb-watermark": "GTSRB, watermark (ResNet-32)",
    SLEEPER: "CIFAR-10, Sleeper Agent (ResNet-32), mean and standard error of 24 runs",
    "imagenette-dirty-label": "Imagenette, dirty-label, one to one (ResNet-56)",
    "cifar10-adaptive": "CIFAR-10, adaptive attacker (PreActResNet-18)",
    "preactresnet18-200-epochs": "CIFAR-10, dirty-label, one to one (PreActResNet-18, 200 epochs)",
    "resnet32-200-epochs": "CIFAR-10, dirty-label, one to one (ResNet-32, 200 epochs)",
    "ablation-accuracy": "Clean accuracy by alpha (rows) and beta (columns), mean of three scenarios",
    "ablation-tmr": "TMR by alpha (rows) and beta (columns), mean of three scenarios",
    "gtsrb-ablation-accuracy": "Clean accuracy by alpha (rows) and beta (columns) on GTSRB",
    "gtsrb-ablation-tmr": "TMR by alpha (rows) and beta (columns) on GTSRB",
}
"""Every table of the paper, in its order, and the ablation on GTSRB, which is ours."""

PAPER, OURS = "paper", "ours"
STARRED = "Highlighted: TMR below 1%."
_METRICS = {"accuracy": "C", "tmr": "A", "false_positives": "FP", "false_negatives": "FN"}
_HEADS = "C: clean accuracy. A: targeted misclassification rate (TMR). FP, FN: false positives and negatives."
_AVERAGE = "average"
_STRENGTHS = ("5", "10", "20", TOTAL)
_HELD = 100 * TOOK_HOLD
"""In percent, as the paper's numbers are."""
_OTHER_COUNTS = ("took hold", "below 5%", "took hold, below 5%")
"""Columns of the summary beside the paper's total."""


def build(name: str, results: Iterable[Result] = ()) -> Table:
    """The table of that name: the paper's numbers alone, or with ours if results are given.

    >>> build("summary").rows[3][-4:]
    ('134 / 165', '88 / 116', '142 / 165', '94 / 116')
    """
    if name not in TITLES:
        raise InputError(
            f"no table is called {name!r}; {meant(name, TITLES)}the tables are: {', '.join(TITLES)}"
        )
    results = list(results)
    if name in GTSRB_ABLATION_TABLES and not results:
        raise InputError(f"the paper has no table {name!r}: it is ours, so give --out with your results")
    ours, scale = outcomes(results), scale_of(results)
    for scenario, _ in ours:
        by_name(scenario)  # refuses what is no scenario
    in_table = {scenario.name for scenario in of_table(name)}
    ours = {place: each for place, each in ours.items() if place[0] in in_table}
    notes = whose_images(result for result in results if result["scenario"] in in_table)
    if name == SUMMARY:
        return _summary(ours, scale)
    if name == SLEEPER:
        return _sleeper_agent([result for result in results if result["scenario"] in in_table], scale)
    if name in (*ABLATION_TABLES, *GTSRB_ABLATION_TABLES):
        return _ablation(name, ours, scale)
    return _per_scenario(name) if scale is None else _compared(name, ours, scale, notes)


def _summary(ours: _Ours, scale: str | None) -> Table:
    """Four rows for each defense, that of the paper first and as it prints it; then the other totals."""
    baselines = (name for name in DEFENSES if name not in ("oracle", OWN))
    blocks = {f"{DEFENSES[name]} ({PAPER})": _papers_counts(name) for name in (OWN, *baselines)}
    blocks[f"attack took hold ({PAPER})"] = (taking_hold(_HELD),)
    if scale is not None:
        blocks |= _our_counts(ours)
    rows = [
        (label, strength, *(str(block[0][strength, table]) for table in (*SUMMARIZED, TOTAL)),
         *(str(block[i][strength, TOTAL]) if i < len(block) else "-" for i in (1, 2, 3)))
        for label, block in blocks.items()
        for strength in _STRENGTHS
    ]  # fmt: skip
    notes = [
        "Up to the total: of all scenarios, as the paper counts. It counts a scenario as defended when its "
        "attack fails undefended (ND).",
        "Took hold: the total of the scenarios whose attack took hold, with a TMR above "
        f"{_HELD:.0f}% without a defense. Below 5%: the totals at that TMR in place of 1%.",
    ]
    columns = ("defense", "epsilon", *SUMMARIZED, TOTAL, *_OTHER_COUNTS)
    return _table(SUMMARY, columns, rows, notes, scale, every=len(_STRENGTHS))


def _papers_counts(defense: str) -> tuple[_Counts, ...]:
    """Below 1%: of all scenarios, of those that took hold; the same below 5%."""
    return tuple(
        counts(defense, below=below, undefended_above=above)
        for below in (SUCCESS, LENIENT)
        for above in (None, _HELD)
    )


def _our_counts(ours: _Ours) -> dict[str, tuple[_Counts, ...]]:
    """How many attacks took hold, and for each defense the same four counts as of the paper's."""
    places = {each.name: (each.epsilon, each.tables[0]) for each in of_table(SUMMARY)}
    held = {scenario: each.took_hold for (scenario, _), each in ours.items()}
    blocks: dict[str, tuple[_Counts, ...]] = {
        f"attack took hold ({OURS})": (tally([(*places[name], did) for name, did in held.items()]),)
    }
    for defense in _defenses(ours, without=CONTROLS):
        runs = {scenario: each for (scenario, by), each in ours.items() if by == defense}
        blocks[f"{defense} ({OURS})"] = tuple(
            tally(
                [
                    (*places[scenario], run.below(percent))
                    for scenario, run in runs.items()
                    if run.took_hold or of_all
                ]
            )
            for percent in (SUCCESS, LENIENT)
            for of_all in (True, False)
        )
    return blocks


def _per_scenario(name: str) -> Table:
    """The paper's table as it is: a row a scenario, the defenses side by side."""
    rows = read_rows(name)
    shown = [
        (defense, metric)
        for defense, cell in rows[0].cells.items()
        for metric in _METRICS
        if getattr(cell, metric) is not None
    ]
    heads = (f"{DEFENSES[by]} {_METRICS[metric]}" for by, metric in shown)
    columns = (_case_heads(rows[0]), "epsilon", *heads)
    body: list[_Cells] = [
        (_case(row), str(row.epsilon), *(_entry(row.cells[by], metric) for by, metric in shown))
        for row in rows
    ]
    return _table(name, columns, body, [_HEADS, STARRED], None, every=3)


def _compared(name: str, ours: _Ours, scale: str, more: Sequence[str]) -> Table:
    """A row for each scenario and defense: the paper's number and ours, metric by metric."""
    rows = read_rows(name)
    columns = [_case_heads(rows[0]), "epsilon", "defense"]
    columns += [f"{head} {by}" for head in _METRICS.values() for by in (PAPER, OURS)]
    body: list[_Cells] = []
    for row in rows:
        for defense in dict.fromkeys([*row.cells, *_defenses(ours)]):
            theirs, own = row.cells.get(defense), ours.get((row.scenario, defense))
            pairs = (_entry(each, metric) for metric in _METRICS for each in (theirs, own))
            if theirs is not None or own is not None:
                body.append((_case(row), str(row.epsilon), defense, *pairs, *_facts(own)))
    notes = [_HEADS, f"{STARRED} Ours only where the attack took hold.", *more]
    return _table(name, (*columns, "ASR ours", "runs", "took hold"), body, notes, scale)


def _ablation(name: str, ours: _Ours, scale: str | None) -> Table:
    """Alpha by beta. Ours leaves out the scenarios in which the attack did not take hold."""
    shares = [share_name(k) for k in ABLATION_SHARES]
    is_papers = name in ABLATION_TABLES
    published = read_grid(name) if is_papers else {}
    grids = {PAPER: {place: f"{value:.2f}" for place, value in published.items()}} if is_papers else {}
    if scale is not None:
        bases = ABLATION_BASES if is_papers else GTSRB_ABLATION_BASES
        means = ablation_means(ours, name.rpartition("-")[2], bases=bases)
        grids[OURS] = {place: f"{value:.2f}" for place, value in means.items()}
    rows = [
        (alpha, by, *(grid.get((alpha, beta), "") for beta in (*shares, _AVERAGE)))
        for alpha in (*shares, _AVERAGE)
        for by, grid in grids.items()
    ]
    choice = "Ours: those of our scenarios in which the attack took hold."
    notes = [] if scale is None else [choice]
    return _table(name, ("alpha", "by", *shares, _AVERAGE), rows, notes, scale)


def ablation_means(
    ours: _Ours, metric: str, *, bases: Sequence[str] = ABLATION_BASES
) -> dict[tuple[str, str], float]:
    """By alpha and beta, the mean of ours over the scenarios in which the attack took hold.

    ``average`` stands for whole rows and columns of these, as in :func:`read_grid`.
    """
    means: dict[tuple[str, str], float] = {}
    for alpha in ABLATION_SHARES:
        for beta in ABLATION_SHARES:
            runs = (ours.get((ablation_name(base, alpha, beta), OWN)) for base in bases)
            values = [getattr(run, metric) for run in runs if run is not None and run.took_hold]
            if values and None not in values:
                means[share_name(alpha), share_name(beta)] = fmean(values)
    shares = [share_name(k) for k in ABLATION_SHARES]
    lines = {(alpha, _AVERAGE): [(alpha, beta) for beta in shares] for alpha in shares}
    lines |= {(_AVERAGE, beta): [(alpha, beta) for alpha in shares] for beta in shares}
    for place, line in lines.items():
        if all(each in means for each in line):
            means[place] = fmean(means[each] for each in line)
    return means


_TRAININGS = {"attacker": "attacker_", "defender": ""}
"""From whose way of training the victim, in the paper's order, to what results call its numbers."""
_SLEEPER_NOTES = (
    "In brackets: standard error of the mean. Deviation: standard deviation over the runs.",
    "The paper calls its numbers in brackets standard errors, but over 24 runs none can exceed 10.4: compare "
    "them with our deviations.",
)


def _sleeper_agent(results: Sequence[Result], scale: str | None) -> Table:
    """Means over the runs, not medians, for both ways of training a victim on what a defense kept."""
    theirs = str(SLEEPER_RUNS)
    rows: list[_Cells] = [
        (PAPER, row.training, row.defense, theirs, f"{row.asr} ({row.asr_spread})", "", row.accuracy, "")
        for row in read_sleeper_agent()
    ]
    for training, prefix in _TRAININGS.items():
        held = _sleeper_held(results, prefix)
        for defense in in_order(str(run["defense"]) for run in results):
            runs = [
                run for run in results if run["defense"] == defense and run.get(f"{prefix}asr") is not None
            ]
            if runs:
                took = f"{sum((run['scenario'], run['seed']) in held for run in runs)} / {len(runs)}"
                rows.append((OURS, training, defense, str(len(runs)), *_sleeper_numbers(runs, prefix), took))
    columns = ("by", "training", "defense", "runs", "ASR", "ASR deviation", "accuracy", "took hold")
    return _table(SLEEPER, columns, rows, _SLEEPER_NOTES, scale)


def _sleeper_held(results: Sequence[Result], prefix: str) -> set[tuple[str, int]]:
    """Scenarios and seeds in which the attack took hold of the undefended victim trained that way."""
    if not prefix:
        return {(run["scenario"], run["seed"]) for run in results if run["took_hold"]}
    return {
        (run["scenario"], run["seed"])
        for run in results
        if run["defense"] == UNDEFENDED and (run.get(f"{prefix}tmr") or 0.0) > TOOK_HOLD
    }


def _sleeper_numbers(runs: Sequence[Result], prefix: str) -> _Cells:
    """Attack success rate with its deviation, and accuracy; in percent."""
    rates, accuracies = (
        [100.0 * run[prefix + name] for run in runs if run.get(prefix + name) is not None]
        for name in ("asr", "accuracy")
    )
    return _with_error(rates), f"{stdev(rates):.1f}" if len(rates) > 1 else "", _with_error(accuracies)


def _table(
    name: str,
    columns: Sequence[str],
    rows: Sequence[_Cells],
    notes: Sequence[str],
    scale: str | None,
    *,
    every: int | None = None,
) -> Table:
    whose = ["the paper's numbers"] if name not in GTSRB_ABLATION_TABLES else []
    who = " and ".join([*whose, *([] if scale is None else [f"ours at scale {scale}"])])
    ends = range(every - 1, len(rows) - 1, every) if every else ()
    return Table(f"{TITLES[name]}: {who}", tuple(columns), tuple(rows), tuple(notes), frozenset(ends))


def _entry(cell: Measured | Outcome | None, metric: str) -> Entry:
    value = None if cell is None else getattr(cell, metric)
    if cell is None or value is None:
        return Entry("")
    success = cell.highlighted if isinstance(cell, Measured) else cell.defended
    text = f"{value:.10g}" if metric.startswith("false") else f"{value:.1f}"
    return Entry(text, highlighted=success and metric == "tmr")


def _facts(own: Outcome | None) -> _Cells:
    if own is None:
        return ("", "", "")
    return (_entry(own, "asr"), str(own.runs), "yes" if own.took_hold else "no")


def _defenses(ours: _Ours, *, without: tuple[str, ...] = ()) -> list[str]:
    return in_order(defense for _, defense in ours if defense not in without)


def _case_heads(row: Row) -> str:
    return " / ".join(row.case)


def _case(row: Row) -> str:
    return " / ".join(row.case.values())


def share_name(k: int) -> str:
    return "1" if k == 1 else f"1/{k}"


def _with_error(values: Sequence[float]) -> str:
    """Mean and, of more than one, its standard error."""
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else ""
    return f"{fmean(values):.1f} ({stdev(values) / sqrt(len(values)):.1f})"
