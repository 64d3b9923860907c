"""Does our ISPL do what the authors' public code does? The same traffic signs through both.

    python benchmarks/authors_agreement.py --theirs authors_gtsrb_peace.npz --png peace.png
        [--settings authors-gtsrb] [--seed 0] [--restarts 1] [--out FILE.jsonl]

All 26,640 signs of GTSRB (``unpoison data fetch gtsrb``); the picture on a tenth of class 1, labelled 2.
``--theirs`` holds what the authors' code made of it: ``planted`` (indices), ``component`` (-1: none) and
``keep`` (after the vote, one restart, no self-training; ``compact``, batches of 128, SGD 0.05, momentum 0.9,
weight decay 5e-4, crop by 4). Ours trains the same way, with the settings of that code, or those of the
text. The last line is JSON: for both, the planted signs by component (the last: in none), false positives and
negatives; and how far the two agree about what to remove.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from measured import Measured
from unpoison.attacks.triggers import Watermark
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import PRESETS, settings_for
from unpoison.data.named.load import load_split
from unpoison.evaluation.comparison import epoch_equivalents
from unpoison.evaluation.metrics import by_component
from unpoison.learners.networks import NETWORKS
from unpoison.learners.recipes import Recipe, TrainingOptions
from unpoison.learners.torch import TorchFactory

SOURCE, TARGET = 1, 2
TRAINING = Recipe(0.05, momentum=0.9, weight_decay=5e-4, batch_size=128, schedule="constant")
"""How the network was trained in the run that we are compared with."""


def outcome(keep: np.ndarray, components: np.ndarray, planted: np.ndarray, rounds: int) -> dict[str, Any]:
    """What one of the two codes made of the set."""
    return {
        "planted_by_component": by_component(components, planted, n_components=rounds),
        "false_positives": int((~keep & ~planted).sum()),
        "false_negatives": int((keep & planted).sum()),
    }


def measure(theirs: Path, png: Path, *, preset: str, seed: int, restarts: int) -> dict[str, Any]:
    """Plant, clean, compare."""
    signs = load_split("gtsrb", "train")
    with np.load(theirs, allow_pickle=False) as stored:
        chosen, their_component, their_keep = (stored[name] for name in ("planted", "component", "keep"))
    if set(signs.labels[chosen].tolist()) != {SOURCE}:
        raise SystemExit(
            f"{theirs}: the planted signs are not of class {SOURCE}; the cache holds another order"
        )
    planted = np.isin(np.arange(len(signs.labels)), chosen)
    features, labels = np.array(signs.features), signs.labels.copy()
    features[chosen], labels[chosen] = Watermark.from_png(png)(features[chosen]), TARGET
    options = TrainingOptions(recipe=TRAINING, augmentation="crop")
    factory = TorchFactory(NETWORKS["compact"], features, labels, len(signs.class_names), options)
    settings = settings_for(labels, preset=preset, restarts=restarts)
    started = time.perf_counter()
    found = sanitize(labels, factory, settings, seed=seed)
    removed, their_removed = ~found.keep, ~their_keep.astype(bool)
    rounds = int(settings.as_dict()["rounds"])
    cost = {"trained": found.cost.trained, "scored": found.cost.scored}
    return {
        "settings": preset,
        "seed": seed,
        "restarts": restarts,
        "nesterov": TRAINING.nesterov,
        "theirs": outcome(~their_removed, their_component, planted, rounds),
        "ours": outcome(found.keep, found.components[0], planted, rounds),
        "same_decision": round(float((removed == their_removed).mean()), 4),
        "removed_by_both": int((removed & their_removed).sum()),
        "cost": round(epoch_equivalents(cost, len(labels)), 1),
        "seconds": round(time.perf_counter() - started),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--theirs", type=Path, required=True)
    parser.add_argument("--png", type=Path, required=True)
    parser.add_argument("--settings", choices=PRESETS, default="authors-gtsrb")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    measured = Measured(given.out, key=("settings", "seed", "restarts", "nesterov"))
    if not measured.has(given.settings, given.seed, given.restarts, TRAINING.nesterov):
        measured.add(
            measure(given.theirs, given.png, preset=given.settings, seed=given.seed, restarts=given.restarts)
        )
    print(json.dumps(measured.lines))


if __name__ == "__main__":
    main()
