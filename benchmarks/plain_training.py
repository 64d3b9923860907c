"""Plain training of a network on a clean dataset: the accuracy it reaches, and the time that takes.

    python benchmarks/plain_training.py --dataset gtsrb|cifar10 [--network compact] [--epochs N] [--seed 0]
                                        [--threads 2] [--validate]

One-cycle schedule, crop (and flip where the dataset allows it), all cores; the test set is looked at once, at
the end. ``--validate`` is for choosing: a fifth of the training set is held out and judged, whole tracks of
GTSRB (pictures of one sign), and the test set is not touched. Datasets come from the cache (``unpoison data
fetch NAME``); one that is not there is fetched first, from ``--data`` if given. The minutes are those of
training, without loading and scoring. The last line is JSON: ``{"accuracy": ..., "minutes": ...}``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from unpoison.data.named.cache import cache_folder
from unpoison.data.named.fetch import fetch
from unpoison.data.named.load import load_split
from unpoison.learners.networks import NETWORKS
from unpoison.learners.recipes import RECIPES, TrainingOptions, recipe_for
from unpoison.learners.torch import TorchFactory

EPOCHS = {"gtsrb": 17, "cifar10": 22, "fashion-mnist": 12}
BESIDE = {"gtsrb": Path(__file__).resolve().parents[2] / "shared" / "data" / "gtsrb_32.npz"}
"""A copy beside the repository is used where there is one."""


def present(name: str, data: Path | None) -> None:
    """Make sure that the dataset is in the cache."""
    beside = BESIDE.get(name)
    fetch(name, source=data or (beside if beside is not None and beside.exists() else None))


def held_out(name: str, n: int) -> np.ndarray:
    """A fifth of the training set: whole tracks where there are any."""
    with np.load(cache_folder() / name / "train.npz", allow_pickle=False) as arrays:
        groups = np.arange(n)
        if "track" in arrays:
            groups = np.unique(np.stack([arrays["y"], arrays["track"]]), axis=1, return_inverse=True)[1]
    order = np.random.default_rng(1).permutation(groups.max() + 1)
    return np.isin(groups.ravel(), order[: len(order) // 5])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=list(EPOCHS), required=True)
    parser.add_argument("--data", type=Path, help="the original files, if the dataset is not in the cache")
    parser.add_argument("--network", choices=list(NETWORKS), default="compact")
    parser.add_argument("--recipe", choices=RECIPES, default="fast")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--validate", action="store_true")
    options = parser.parse_args()
    present(options.dataset, options.data)
    train, test = (load_split(options.dataset, split) for split in ("train", "test"))
    n, threads, epochs = len(train), options.threads, options.epochs or EPOCHS[options.dataset]
    training = TrainingOptions(
        recipe=recipe_for(options.network, options.recipe), augmentation=train.augmentation, threads=threads
    )
    # one resident array: training addresses the first part of it, scoring the rest
    factory = TorchFactory(
        NETWORKS[options.network],
        np.concatenate([train.features, test.features]),
        np.concatenate([train.labels, test.labels]),
        len(train.class_names),
        training,
    )
    trained, judged = np.arange(n), np.arange(n, n + len(test))
    if options.validate:
        held = held_out(options.dataset, n)
        trained, judged = np.flatnonzero(~held), np.flatnonzero(held)
    learner = factory(options.seed)
    print(f"{options.network} on {len(trained):,} images of {train.name}: {epochs} epochs, {threads} threads")
    started, cpu = time.perf_counter(), time.process_time()
    learner.fit(trained, epochs=epochs, final=True)
    minutes, cpu_minutes = (time.perf_counter() - started) / 60, (time.process_time() - cpu) / 60
    accuracy = float((learner.assess(judged).predictions == factory.labels[judged]).mean())
    what = "held-out training images" if options.validate else "test images"
    print(f"{len(judged):,} {what}; {cpu_minutes:.1f} minutes of CPU time")
    print(json.dumps({"accuracy": round(accuracy, 4), "minutes": round(minutes, 2)}))


if __name__ == "__main__":
    main()
