"""The paper's incompatibility experiment at the scale of a laptop: does each trend have the paper's sign?

    python benchmarks/incompatibility.py --attack dirty-label|watermark|clean-label --out FILE.jsonl
        [--figure FILE.png] [--seed 0] [--workers 1] [--draws 5]

C is an eighth of each class, P as many poisoned images as C has of the source class. Poison is added to C, in
a growing share, and clean data to P; `compact` is trained on half of both, one thread, without augmentation.
A trend is the slope of the change in accuracy over the share that is added, with its 95% interval over the
draws of what is fixed. `--out` keeps a line a model as it is measured: a killed run goes on with the same
command. `--figure` draws the paper's figure from it. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

from unpoison.evaluation.incompatibility import TRIALS, draw_incompatibility, points_of, run_into, trends
from unpoison.report.plots import check_target
from unpoison.runners.local import LocalRunner


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attack", choices=list(TRIALS), required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--draws", type=int, default=5)
    given = parser.parse_args()
    if given.figure:
        check_target(given.figure)
    trial = replace(TRIALS[given.attack], draws=given.draws)
    total, started, records = len(points_of(trial)), time.perf_counter(), []
    for record in run_into(given.out, trial, seed=given.seed, runner=LocalRunner(given.workers)):
        records.append(record)
        print(
            f"{len(records):>4} of {total}  {record['name']:<20} accuracy: clean {record['clean']:.1%}, "
            f"source {record['source']:.1%}, other {record['other']:.1%}, poisoned {record['poisoned']:.1%}",
            flush=True,
        )
    found = trends(records)
    for trend in found:
        low, high = trend["interval"]
        print(
            f"{trend['fixed']:<9} {trend['metric']:<9} {100 * trend['end']:+6.1f} points at the end, slope "
            f"{100 * trend['slope']:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]: {trend['trend']}"
            + (f", in the paper {trend['paper']}" if trend["paper"] else "")
        )
    if given.figure:
        draw_incompatibility(records, given.figure)
    sums = {name: round(sum(record[name] for record in records)) for name in ("trained", "scored", "seconds")}
    said = [trend for trend in found if trend["paper"]]
    print(
        json.dumps(
            {
                "attack": given.attack, "seed": given.seed, "models": len(records), **sums,
                "wall_seconds": round(time.perf_counter() - started, 1), "trends": found,
                **{
                    word: [trend["agrees"] for trend in said].count(value)
                    for word, value in (("agree", True), ("disagree", False), ("unclear", None))
                },
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
