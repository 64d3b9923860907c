"""Peak memory of ``unpoison clean cifar10`` with networks: the whole run, all processes.

    python benchmarks/peak_memory.py [--dataset cifar10] [--workers 2]

Memory does not depend on how long networks are trained, so everything is trained for one pass: 8 rounds of
ISPL would take hours. Looks at the process and its workers twice a second; memory that they share is counted
once (proportional set size). The last line is JSON: ``{"peak_gb": ..., "largest_process_gb": ...}``; the
second is the resident set of the largest single process.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path

from plain_training import EPOCHS, present
from unpoison.cleaning import CleanOptions, clean
from unpoison.learners.choose import LearnerChoice

CHANGES = {"epochs": 1, "judge_epochs": 1, "min_steps": 1}


def family() -> list[int]:
    """This process and all below it."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    members = [os.getpid()]
    for pid in members:
        members += [child for child, parent in parents.items() if parent == pid]
    return members


def resident_kb(pid: int) -> tuple[int, int]:
    """Proportional and whole resident set size of a process."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0, 0
    sizes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines[1:])}
    return sizes["Pss"], sizes["Rss"]


def watch(peaks: list[tuple[int, int]], stop: threading.Event) -> None:
    while not stop.is_set():
        sizes = [resident_kb(pid) for pid in family()]
        peaks.append((sum(pss for pss, _ in sizes), max(rss for _, rss in sizes)))
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=list(EPOCHS), default="cifar10")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    present(given.dataset, given.data)
    peaks: list[tuple[int, int]] = []
    stop = threading.Event()
    watcher = threading.Thread(target=watch, args=(peaks, stop))
    watcher.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            options = CleanOptions(
                method="groups",
                learner=LearnerChoice("compact"),
                workers=given.workers,
                changes=CHANGES,
            )
            record = clean(given.dataset, Path(folder) / "out", options=options)
    finally:
        stop.set()
        watcher.join()
    print(f"{record['data']['n']:,} images, {record['timings']['seconds']:.0f} s, {len(peaks)} looks")
    whole, largest = (max(peak[i] for peak in peaks) / 2**20 for i in range(2))
    print(json.dumps({"peak_gb": round(whole, 3), "largest_process_gb": round(largest, 3)}))


if __name__ == "__main__":
    main()
