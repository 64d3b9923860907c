"""Cost of the core's own work: everything but the learner, at a million samples.

    python benchmarks/core_scale.py [--samples 1000000] [--classes 10] [--rounds 8]

One restart of ISPL over a learner that costs next to nothing (its losses are read off a table), so that what
is measured is sampling, trimming, votes and bookkeeping. The last line is JSON:
``{"seconds": ..., "peak_gb": ..., "growth": ...}``; growth is the time at n over 10 times the time at n / 10,
each measured in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from unpoison.core.config import IsplSettings
from unpoison.core.learner import Assessment
from unpoison.core.pipeline import sanitize
from unpoison.core.result import Cost


class TableLearner:
    """Reads losses and predictions off precomputed arrays."""

    def __init__(self, losses: np.ndarray, predictions: np.ndarray) -> None:
        self._losses, self._predictions = losses, predictions
        self._confidences = np.exp(-losses)

    @property
    def cost(self) -> Cost:
        return Cost()

    def fit(self, indices: np.ndarray, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        del indices, epochs, min_steps, final

    def assess(self, indices: np.ndarray) -> Assessment:
        return Assessment(self._losses[indices], self._predictions[indices], self._confidences[indices])


class TableFactory:
    """Gives out the same tables to every learner."""

    def __init__(self, labels: np.ndarray, n_classes: int) -> None:
        rng = np.random.default_rng(0)
        self._losses = rng.exponential(size=len(labels))
        wrong = rng.random(len(labels)) < 0.2
        self._predictions = np.where(wrong, rng.integers(n_classes, size=len(labels)), labels)

    def __call__(self, seed: int) -> TableLearner:
        del seed
        return TableLearner(self._losses, self._predictions)


def measure(n: int, n_classes: int, rounds: int) -> dict[str, float]:
    labels = np.random.default_rng(1).integers(n_classes, size=n)
    factory = TableFactory(labels, n_classes)
    settings = IsplSettings(rounds=rounds, restarts=1)
    started = time.perf_counter()
    sanitize(labels, factory, settings, seed=0)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024**3 if sys.platform == "darwin" else 1024**2
    )
    return {"seconds": seconds, "peak_gb": peak}


def measure_apart(n: int, options: argparse.Namespace) -> dict[str, float]:
    """In a process of its own, so that the peak is this run's alone."""
    command = [sys.executable, __file__, "--only", str(n), "--classes", str(options.classes)]
    done = subprocess.run(
        [*command, "--rounds", str(options.rounds)], check=True, capture_output=True, text=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.classes, options.rounds)))
        return
    large = measure_apart(options.samples, options)
    small = measure_apart(options.samples // 10, options)
    print(f"{options.samples:,} samples: {large['seconds']:.2f} s, peak {large['peak_gb']:.2f} GB")
    print(f"{options.samples // 10:,} samples: {small['seconds']:.2f} s")
    growth = large["seconds"] / (10 * small["seconds"])
    print(
        json.dumps(
            {
                "seconds": round(large["seconds"], 2),
                "peak_gb": round(large["peak_gb"], 2),
                "growth": round(growth, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
