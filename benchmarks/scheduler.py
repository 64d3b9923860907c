"""What the harness itself costs: ten thousand tasks that do nothing, with every result kept on disk.

    python benchmarks/scheduler.py [--tasks 10000] [--folder FOLDER]

One in fifty fails. Measured are the seconds that a task costs on one worker beyond its own work, as a
share of a task of ten seconds, and the whole time of ``unpoison bench status`` on what is there then. The
last line is JSON: ``{"overhead_share": ..., "status_seconds": ...}``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from unpoison.errors import InputError
from unpoison.evaluation.bench import BenchTask, plan, run
from unpoison.evaluation.scenarios import of_table
from unpoison.evaluation.store import Store
from unpoison.runners.local import LocalRunner

TASK_SECONDS = 10.0
DEFENSES = ("none", "oracle", "ispl", "spectral")
NUMBERS = ("accuracy", "tmr", "asr", "false_positives", "false_negatives", "seconds")


def nothing(task: BenchTask, *, work: Path) -> dict[str, Any]:
    """As much as an experiment answers, without one."""
    del work
    if task.scenario.endswith("eps5") and task.seed % 16 == 0:
        raise InputError(f"{task.name} fails on purpose")
    return {"took_hold": True, **dict.fromkeys(NUMBERS, 0.123456789)}


def tasks(n: int) -> list[BenchTask]:
    scenarios = of_table("summary")
    seeds = range(-(-n // (len(scenarios) * len(DEFENSES))))
    return plan(scenarios, scale="laptop", defenses=DEFENSES, seeds=seeds)[:n]


def measure_status(folder: Path) -> float:
    """The quickest of three: what else the machine does is not what is asked."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "unpoison", "bench", "status", "--out", str(folder)],
            env=environment,
            check=True,
            capture_output=True,
        )
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where to make the folder for the results")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        store = Store(Path(name))
        chosen = tasks(given.tasks)
        started = time.perf_counter()
        outcome = run(chosen, store, runner=LocalRunner(1), run=nothing)
        seconds = time.perf_counter() - started
        each = seconds / len(chosen)
        print(f"{len(outcome.done):,} tasks done, {len(outcome.failed):,} failed: {seconds:.1f} s")
        print(f"{1000 * each:.2f} ms a task, {each / TASK_SECONDS:.3%} of one of {TASK_SECONDS:g} s")
        started = time.perf_counter()
        run(chosen, store, runner=LocalRunner(1), run=nothing)
        print(f"again, skipping what is done: {time.perf_counter() - started:.1f} s")
        status = measure_status(store.folder)
        print(f"status: {status:.2f} s")
    print(json.dumps({"overhead_share": round(each / TASK_SECONDS, 5), "status_seconds": round(status, 3)}))


if __name__ == "__main__":
    main()
