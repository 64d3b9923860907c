"""The paper's incompatibility experiment: figure 2 and those of its appendix, a command each.

    python benchmarks/incompatibility.py --family gan|l2|linf|dirty-label|watermark [...]
        --scale laptop|full|paper --out FOLDER|FILE.jsonl [--figure FILE.png] [--each FILE.png]
        [--scenario 0-2 ...] [--network NAME] [--direction clean|poisoned] [--arrays FOLDER]
        [--seed 0] [--workers 1] [--draws 5] [--ratios 0 0.5 1]

C is an eighth of each class, P as many poisoned images as C has of the source class. Poison is added to C, in
a growing share, and clean data to P; networks are trained on half of both. `paper` is all of CIFAR-10 with
PreActResNet18, `full` the same with `compact`, each over the 8 pairs or 5 classes of the family; `laptop` is
one scenario of four classes of a fifth of it, without augmentation. `--network` is another network, with its
own recipe. `--arrays` are the official clean-label images, in place of our own.

A trend is the slope of the change in accuracy over the share that is added, with its 95% interval over the
scenarios, or over the draws of what is fixed if there is one scenario only. `--out` keeps a line a model as
it is measured, a file a scenario: a killed run goes on with the same command. `--figure` draws all scenarios
of a family together ("aggregated" in the paper) and several families side by side, `--each` every scenario of
a family ("full"). The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from unpoison.errors import InputError
from unpoison.evaluation.incompatibility import (
    CLEAN_LABEL,
    FAMILIES,
    FIXED,
    METRICS,
    Measured,
    Trial,
    draw_scenarios,
    draw_side_by_side,
    file_for,
    points_of,
    run_into,
    trends,
    trials_for,
)
from unpoison.report.plots import check_target
from unpoison.runners.local import LocalRunner


def main() -> None:
    parser = _parser()
    given, started = parser.parse_args(), time.perf_counter()
    try:
        trials = {family: list(_trials(given, family)) for family in given.family}
        _check(given, trials)
        groups = _measure(given, trials)
        for group in groups:
            _print_trends(group)
        if given.figure:
            draw_side_by_side(groups, given.figure, directions=given.direction or FIXED)
        if given.each:
            draw_scenarios(groups[0], given.each, directions=given.direction or FIXED)
        print(json.dumps(_summary(given, groups, started)))
    except InputError as error:
        parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", choices=list(FAMILIES), nargs="+", required=True)
    parser.add_argument("--scale", default="laptop")
    parser.add_argument("--scenario", nargs="+", default=())
    parser.add_argument("--network")
    parser.add_argument("--arrays", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--each", type=Path)
    parser.add_argument("--direction", choices=FIXED, nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--ratios", type=float, nargs="+")
    return parser


def _trials(given: argparse.Namespace, family: str) -> Iterator[Trial]:
    found = trials_for(family, given.scale, seed=given.seed, network=given.network, cases=given.scenario)
    for trial in found:
        changes: dict[str, Any] = {"draws": given.draws}
        if given.ratios:
            changes["ratios"] = tuple(given.ratios)
        if given.arrays and trial.attack == CLEAN_LABEL:
            changes["settings"] = {**trial.settings, "arrays": str(given.arrays)}
        yield replace(trial, **changes)


def _check(given: argparse.Namespace, trials: dict[str, list[Trial]]) -> None:
    """Before hours of work."""
    for target in filter(None, (given.figure, given.each)):
        check_target(target)
    files = [file_for(given.out, trial) for some in trials.values() for trial in some]
    if len(set(files)) < len(files):
        raise InputError(f"{given.out} is one file and there are {len(files)} scenarios; give a folder")
    if given.each and len(trials) > 1:
        raise InputError("--each draws the scenarios of one family; give one --family")


def _measure(given: argparse.Namespace, trials: dict[str, list[Trial]]) -> list[list[Measured]]:
    total = sum(len(points_of(trial)) for some in trials.values() for trial in some)
    runner, count = LocalRunner(given.workers), 0
    groups: list[list[Measured]] = []
    for some in trials.values():
        groups.append([])
        for trial in some:
            records = []
            for record in run_into(file_for(given.out, trial), trial, seed=given.seed, runner=runner):
                records.append(record)
                count += 1
                print(f"{count:>4} of {total}  {trial.family} {trial.case}  {_line(record)}", flush=True)
            groups[-1].append(Measured(trial, given.seed, records))
    return groups


def _line(record: dict[str, Any]) -> str:
    accuracies = ", ".join(f"{name} {record[name]:.1%}" for name in METRICS)
    return f"{record['name']:<20} accuracy: {accuracies}"


def _print_trends(group: list[Measured]) -> None:
    print(FAMILIES[group[0].trial.family])
    for trend in trends(group):
        low, high = trend["interval"]
        print(
            f"{trend['fixed']:<9} {trend['metric']:<9} {100 * trend['end']:+6.1f} points at the end, slope "
            f"{100 * trend['slope']:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]: {trend['trend']}"
            + (f", in the paper {trend['paper']}" if trend["paper"] else "")
        )


def _summary(given: argparse.Namespace, groups: list[list[Measured]], started: float) -> dict[str, Any]:
    return {
        "scale": given.scale, "seed": given.seed, "draws": given.draws,
        "wall_seconds": round(time.perf_counter() - started, 1),
        "families": {group[0].trial.family: _of_family(group) for group in groups},
    }  # fmt: skip


def _of_family(group: list[Measured]) -> dict[str, Any]:
    records = [record for each in group for record in each.records]
    found = trends(group)
    said = [trend["agrees"] for trend in found if trend["paper"]]
    return {
        "scenarios": [each.trial.case for each in group], "network": group[0].trial.learner,
        "models": len(records),
        **{name: round(sum(record[name] for record in records)) for name in ("trained", "scored", "seconds")},
        "trends": found,
        "agree": said.count(True), "disagree": said.count(False), "unclear": said.count(None),
    }  # fmt: skip


if __name__ == "__main__":
    main()
