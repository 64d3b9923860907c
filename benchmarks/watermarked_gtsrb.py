"""The whole job on traffic signs: plant a watermark, clean with a network, train before and after.

    python benchmarks/watermarked_gtsrb.py [--limit 16000] [--method groups|ispl] [--settings auto]
        [--source 1] [--target 2] [--epsilon 0.1] [--seed 0] [--out DIR] [--set NAME=VALUE ...]

A peace sign is blended into the upper left corner of a share epsilon of the source class, which is then
labelled as the target. ``unpoison clean`` gets the file and nothing else; the truth is used to score it
afterwards. The victim is a fresh ``compact``, trained for 8 epochs on everything, on what was kept, and on
what a perfect filter would keep. TMR: the share of the source's test images that are right without the mark
and called the target with it. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet

from plain_training import present
from unpoison.attacks.base import NOT_ATTACKED, Attack, Samples
from unpoison.attacks.dirty_label import DirtyLabel
from unpoison.attacks.triggers import Watermark
from unpoison.cleaning import CleanOptions, clean
from unpoison.data.named.load import load_split
from unpoison.learners.choose import LearnerChoice
from unpoison.learners.networks import NETWORKS
from unpoison.learners.recipes import TrainingOptions
from unpoison.learners.torch import TorchFactory

VICTIM_EPOCHS = 8


def some(labels: np.ndarray, limit: int, seed: int) -> np.ndarray:
    """At most ``limit`` positions, the same share of every class."""
    rng = np.random.default_rng(seed)
    share = min(1.0, limit / len(labels))
    drawn = [
        rng.choice(members, max(2, round(share * len(members))), replace=False)
        for members in (np.flatnonzero(labels == label) for label in np.unique(labels))
    ]
    return np.sort(np.concatenate(drawn))


def attacked(poisoned: Samples, keep: np.ndarray, attack: Attack, *, seed: int) -> dict[str, float]:
    """Train the victim on ``keep``; its accuracy on clean test images and the TMR."""
    test = load_split("gtsrb", "test")
    wanted = attack.goal(test.labels)
    is_source = wanted != NOT_ATTACKED
    n, m = len(poisoned), len(test)
    samples = np.concatenate([poisoned.features, test.features, attack.trigger(test.features[is_source])])
    labels = np.concatenate([poisoned.labels, test.labels, test.labels[is_source]])
    options = TrainingOptions(augmentation="crop", threads=os.cpu_count() or 1)
    learner = TorchFactory(NETWORKS["compact"], samples, labels, len(test.class_names), options)(seed)
    learner.fit(np.flatnonzero(keep), epochs=VICTIM_EPOCHS, final=True)
    called = learner.assess(np.arange(n, len(labels))).predictions
    clean_calls, marked_calls = called[:m], called[m:]
    right = (clean_calls == test.labels)[is_source]
    return {
        "accuracy": round(float((clean_calls == test.labels).mean()), 4),
        "tmr": round(float((right & (marked_calls == wanted[is_source])).mean()), 4),
    }


def values(pairs: list[str]) -> dict[str, Any]:
    return {name: json.loads(value) for name, value in (pair.split("=", 1) for pair in pairs)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", type=int, default=16_000)
    parser.add_argument("--method", default="groups")
    parser.add_argument("--settings", default="auto")
    parser.add_argument("--source", type=int, default=1)
    parser.add_argument("--target", type=int, default=2)
    parser.add_argument("--epsilon", type=float, default=0.1, help="0 plants nothing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--no-victim", action="store_true", help="do not train before and after")
    given = parser.parse_args()
    present("gtsrb", given.data)
    whole = load_split("gtsrb", "train")
    chosen = some(whole.labels, given.limit, given.seed)
    poisoned = Samples(whole.features[chosen], whole.labels[chosen], whole.class_names)
    truth = np.zeros(len(poisoned), dtype=bool)
    mark = Watermark.named("peace")
    attack = DirtyLabel.one_to_one(given.source, given.target, given.epsilon or 1.0, mark)
    if given.epsilon > 0:
        poisoned, report = attack.apply(poisoned, seed=given.seed)
        truth = report.planted
    out = given.out or Path(tempfile.mkdtemp(prefix="watermarked-gtsrb-"))
    out.mkdir(parents=True, exist_ok=True)
    np.savez(out / "train.npz", x=poisoned.features, y=poisoned.labels)
    options = CleanOptions(
        method=given.method, preset=given.settings, learner=LearnerChoice("compact"), seed=given.seed,
        workers=given.workers, changes=values(given.set), resume=(out / "cleaned").exists(),
    )  # fmt: skip
    started = time.perf_counter()
    record = clean(str(out / "train.npz"), out / "cleaned", options=options)
    minutes = (time.perf_counter() - started) / 60
    print(f"{record['result']['verdict']}\nreport: {out / 'cleaned' / 'report.html'}", flush=True)
    manifest = parquet.read_table(out / "cleaned" / "manifest.parquet")
    keep, component = manifest["keep"].to_numpy(), manifest["component_1"].to_numpy()
    figures: dict[str, Any] = {
        "n": len(truth),
        "planted": int(truth.sum()),
        "found": int((truth & ~keep).sum()),
        "clean_removed": int((~truth & ~keep).sum()),
        "planted_by_component": np.bincount(component[truth & (component >= 0)]).tolist(),
        "minutes": round(minutes, 1),
        "epochs": round(record["cost"]["trained"] / len(truth), 1),
        "matmul_share": record["cost"]["matmul_share"],
    }
    if given.epsilon > 0 and not given.no_victim:
        figures["before"] = attacked(poisoned, np.ones(len(truth), dtype=bool), attack, seed=given.seed)
        figures["after"] = attacked(poisoned, keep, attack, seed=given.seed)
        figures["perfect"] = attacked(poisoned, ~truth, attack, seed=given.seed)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
