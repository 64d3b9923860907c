"""What the default method for networks removes where nothing was planted, over datasets and seeds.

    python benchmarks/clean_sets.py [--dataset NAME ...] [--seeds 10 19] [--limit N] [--classes K]
        [--image-size SIDE] [--held-out] [--out FILE]

Each set is a random part of a dataset (``unpoison data fetch``) with the classes in their proportions, 6,000
images as in the laptop scale if no other ``--limit`` is given (0: all of them); ``--classes`` takes so many
classes, drawn by the seed. The network is ``compact``. ``--held-out`` measures the six sets that were listed
for the method of groups before any of them was run. Cost: in passes of training over all the data, a forward
pass counting a third. ``--out`` keeps each line as it is measured and skips what is in the file. The last
line is JSON: for each dataset, the sets, those in which nothing was found, and the largest share removed.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class CleanSet:
    """A part of a dataset with nothing planted."""

    dataset: str
    seed: int
    limit: int = 6_000
    """Images; 0: all."""
    classes: int = 0
    """So many, drawn by the seed; 0: all."""
    image_size: int = 32
    """Of datasets whose images differ in size."""


HELD_OUT = (
    CleanSet("gtsrb", 7100, limit=0),
    CleanSet("cifar10", 7101, limit=0),
    CleanSet("imagenette", 7102, limit=0, image_size=64),
    CleanSet("fashion-mnist", 7103, limit=0),
    CleanSet("imagenette", 7104, limit=0, classes=5, image_size=64),
    CleanSet("fashion-mnist", 7105, limit=0, classes=5),
)


def measure(clean: CleanSet) -> dict[str, Any]:
    """Judge it."""
    size = clean.image_size if clean.dataset == "imagenette" else None
    data = load(clean.dataset, options=LoadOptions(image_size=size))
    seeds = Seeds(clean.seed)
    n_classes = clean.classes or len(data.class_names)
    some = np.sort(seeds.stream("classes").permutation(len(data.class_names))[:n_classes])
    there = np.flatnonzero(np.isin(data.labels, some))
    labels = np.searchsorted(some, data.labels[there])
    counts = shares_of_limit(labels, min(clean.limit or len(labels), len(labels)), n_classes)
    part = stratified(labels, counts, seeds.within("clean-set"))
    features, labels = np.asarray(data.features)[there[part]], labels[part]
    choice = LearnerChoice("compact", training=TrainingOptions(augmentation="none"))
    factory = choose(choice, features, labels, n_classes=n_classes).factory
    settings = settings_for(labels, method="groups", networks=True)
    found = sanitize(labels, factory, settings, seed=seeds.integer("defense"))
    return {
        **asdict(clean),
        "method": "groups",
        "n": len(labels),
        "judged": len(found.groups),
        "undecided": sum(group.undecided for group in found.groups),
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
    parser.add_argument("--limit", type=int, default=6_000)
    parser.add_argument("--classes", type=int, default=0)
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    measured = Measured(given.out, key=("dataset", "seed", "limit", "classes", "image_size", "method"))
    chosen = [
        CleanSet(name, seed, given.limit, given.classes, given.image_size)
        for seed in range(given.seeds[0], given.seeds[1] + 1)
        for name in given.dataset or DATASETS
    ]
    for clean in HELD_OUT if given.held_out else chosen:
        if not measured.has(*asdict(clean).values(), "groups"):
            measured.add(measure(clean))
    print(json.dumps(summary(measured.lines)))


if __name__ == "__main__":
    main()
