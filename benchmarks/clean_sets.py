"""What the default method for networks removes where nothing was planted, over datasets and seeds.

    python benchmarks/clean_sets.py [--dataset NAME ...] [--seeds 10 19] [--out FILE]

Each set is a random part of a dataset (``unpoison data fetch``), 6,000 images with the classes in their
proportions, as in the laptop scale; the network is ``compact``. Cost: in passes of training over all the
data, a forward pass counting a third. ``--out`` keeps each line as it is measured and skips what is in the
file. The last line is JSON: for each dataset, the sets, those in which nothing was found, and the largest
share removed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from measured import Measured
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import settings_for
from unpoison.data.load import load
from unpoison.data.options import LoadOptions
from unpoison.evaluation.comparison import FORWARD
from unpoison.evaluation.subsets import shares_of_limit, stratified
from unpoison.learners.choose import LearnerChoice, choose
from unpoison.learners.recipes import TrainingOptions
from unpoison.seeds import Seeds

DATASETS = ("cifar10", "gtsrb", "fashion-mnist", "imagenette")
LIMIT, IMAGE_SIZE = 6_000, 32


def measure(name: str, seed: int) -> dict[str, Any]:
    """Judge one part of a dataset."""
    data = load(name, options=LoadOptions(image_size=IMAGE_SIZE if name == "imagenette" else None))
    n_classes = len(data.class_names)
    counts = shares_of_limit(data.labels, min(LIMIT, len(data.labels)), n_classes)
    part = stratified(data.labels, counts, Seeds(seed).within("clean-set"))
    features, labels = np.asarray(data.features)[part], data.labels[part]
    choice = LearnerChoice("compact", training=TrainingOptions(augmentation="none"))
    factory = choose(choice, features, labels, n_classes=n_classes).factory
    settings = settings_for(labels, method="groups", networks=True)
    found = sanitize(labels, factory, settings, seed=Seeds(seed).integer("defense"))
    return {
        "dataset": name,
        "seed": seed,
        "n": len(labels),
        "judged": len(found.groups),
        "removed": found.n_removed,
        "cost": round((found.cost.trained + FORWARD * found.cost.scored) / len(labels), 1),
    }


def summary(lines: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of each dataset."""
    datasets = sorted({line["dataset"] for line in lines})
    sets = {name: [line for line in lines if line["dataset"] == name] for name in datasets}
    return {
        name: {
            "sets": len(some),
            "nothing_found": sum(line["removed"] == 0 for line in some),
            "most_removed": round(max(line["removed"] / line["n"] for line in some), 4),
        }
        for name, some in sets.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", action="append", choices=DATASETS)
    parser.add_argument("--seeds", nargs=2, type=int, default=(10, 19), metavar=("FIRST", "LAST"))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    measured = Measured(arguments.out, key=("dataset", "seed"))
    for seed in range(arguments.seeds[0], arguments.seeds[1] + 1):
        for name in arguments.dataset or DATASETS:
            if not measured.has(name, seed):
                measured.add(measure(name, seed))
    print(json.dumps(summary(measured.lines)))


if __name__ == "__main__":
    main()
