"""Quality on scikit-learn's digits: what is found, what clean data is lost, beside the paper's method.

    python benchmarks/digits_quality.py [--seeds 30] [--ispl-sets 5] [--workers 2]

Each seed draws a split, a source and a target class, and a bright square of 1 or 2 pixels at a random
place; epsilon is the poisoned share of the source class. Seeds start at 100: earlier methods were made with
seeds 0 to 2. An attack counts only where it takes hold: the targeted misclassification rate of an undefended
model is over 50%. The control is the same data unpoisoned. ISPL is slower and gets the first --ispl-sets of
each; ``groups*`` is on those too. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass

import numpy as np

from unpoison.attacks.base import Samples
from unpoison.attacks.dirty_label import DirtyLabel
from unpoison.attacks.triggers import Patch
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import settings_for
from unpoison.core.result import Sanitization
from unpoison.evaluation.demo import split_digits, train_and_attack
from unpoison.learners.defaults import named_estimator
from unpoison.learners.features import as_matrix
from unpoison.learners.sklearn import SklearnFactory
from unpoison.runners.local import LocalRunner
from unpoison.seeds import Seeds
from unpoison.types import BoolArray

FIRST_SEED = 100
EPSILONS = (0.05, 0.1, 0.2, 0.4)
METHODS = {
    "groups": ("groups", "auto", "logistic"),
    "groups*": ("groups", "auto", "logistic"),
    "ispl auto": ("ispl", "auto", "mlp"),
    "ispl paper-gtsrb": ("ispl", "paper-gtsrb", "mlp"),
    "ispl authors": ("ispl", "authors-cifar10", "mlp"),
}


@dataclass
class Tally:
    """Sums over the scenarios of one method at one epsilon."""

    sets: int = 0
    held: int = 0
    detected: int = 0
    planted: int = 0
    found: int = 0
    clean: int = 0
    lost: int = 0
    seconds: float = 0.0
    passes: float = 0.0

    def add(self, truth: BoolArray, result: Sanitization, seconds: float) -> None:
        removed = ~result.keep
        found, planted = int((removed & truth).sum()), int(truth.sum())
        self.planted += planted
        self.found += found
        self.detected += int(planted > 0 and found >= 0.95 * planted)
        self.clean += int((~truth).sum())
        self.lost += int((removed & ~truth).sum())
        self.seconds += seconds
        self.passes += result.cost.trained / len(truth)

    def row(self) -> dict[str, float]:
        return {
            "sets": self.sets,
            "attack_held": self.held,
            "found_95_percent": self.detected,
            "found": round(self.found / max(self.planted, 1), 4),
            "lost": round(self.lost / max(self.clean, 1), 4),
            "epoch_equivalents": round(self.passes / max(self.held, 1), 1),
        }


def scenario(seed: int, epsilon: float) -> DirtyLabel:
    rng = Seeds(seed).stream("scenario")
    source, target = rng.choice(10, size=2, replace=False).tolist()
    size = int(rng.integers(1, 3))
    row, column = rng.integers(0, 9 - size, size=2).tolist()
    return DirtyLabel.one_to_one(source, target, epsilon, Patch(row, column, size))


def judge(poisoned: Samples, method: str, seed: int, workers: int) -> tuple[Sanitization, float]:
    name, preset, learner = METHODS[method]
    labels = poisoned.labels
    factory = SklearnFactory(named_estimator(learner), as_matrix(poisoned.features), labels, 10)
    started = time.perf_counter()
    settings = settings_for(labels, method=name, preset=preset)
    result = sanitize(labels, factory, settings, seed=seed, runner=LocalRunner(workers))
    return result, time.perf_counter() - started


def run(method: str, n_seeds: int, epsilons: tuple[float, ...], limit: int, workers: int) -> dict[str, Tally]:
    """Judge the first ``limit`` sets of each kind whose attack holds."""
    tallies = {f"{epsilon:g}": Tally() for epsilon in epsilons} | {"control": Tally()}
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        split = split_digits(seed)
        nothing = np.zeros(len(split.train_labels), dtype=np.bool_)
        sets = {"control": (split.train, nothing)}
        for epsilon in epsilons:
            attack = scenario(seed, epsilon)
            poisoned, truth = attack.apply(split.train, seed=seed)
            if tallies[f"{epsilon:g}"].held >= limit:
                continue
            tallies[f"{epsilon:g}"].sets += 1
            if train_and_attack(poisoned, ~nothing, split, attack, seed).targeted > 0.5:
                sets[f"{epsilon:g}"] = (poisoned, truth.planted)
        tallies["control"].sets += int(tallies["control"].held < limit)
        for name, (poisoned, planted) in sets.items():
            if tallies[name].held >= limit:
                continue
            result, seconds = judge(poisoned, method, seed, workers)
            tallies[name].held += 1
            tallies[name].add(planted, result, seconds)
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--ispl-sets", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    summary: dict[str, dict[str, dict[str, float]]] = {}
    seconds: dict[str, float] = {}
    print(f"{'method':18} {'epsilon':>8} {'held':>7} {'found':>7} {'lost':>7} {'>=95%':>6} {'epochs':>7}")
    for method in METHODS:
        is_limited = method != "groups"
        epsilons = (0.1, 0.2) if is_limited else EPSILONS
        limit = options.ispl_sets if is_limited else options.seeds
        tallies = run(method, options.seeds, epsilons, limit, options.workers)
        summary[method] = {name: tally.row() for name, tally in tallies.items()}
        seconds[method] = sum(t.seconds for t in tallies.values()) / sum(t.held for t in tallies.values())
        for name, row in summary[method].items():
            held = f"{row['attack_held']:.0f}/{row['sets']:.0f}"
            print(
                f"{method:18} {name:>8} {held:>7} {row['found']:7.1%} {row['lost']:7.2%} "
                f"{row['found_95_percent']:6.0f} {row['epoch_equivalents']:7.1f}",
                flush=True,
            )
    ratio = {method: round(value / seconds["groups*"], 1) for method, value in seconds.items()}
    print(json.dumps({"quality": summary, "time_over_groups": ratio}))


if __name__ == "__main__":
    main()
