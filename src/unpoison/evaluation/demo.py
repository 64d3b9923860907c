"""The demonstration: poison real data in the open, clean it, and see what a model learns before and after."""

from __future__ import annotations

import csv
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.dirty_label import DirtyLabel, Poisoned
from unpoison.cleaning import CleanOptions, clean
from unpoison.errors import OutputError
from unpoison.evaluation.metrics import accuracy, found_share, lost_share, targeted_misclassification
from unpoison.events import Listener, ignore
from unpoison.learners.features import as_matrix
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, LabelArray

TEST_SHARE = 0.25
DIGITS_ATTACK = DirtyLabel(source=1, target=7, epsilon=0.2)
"""A bright two-by-two patch in the corner of a fifth of the ones, which are then labelled seven."""


@dataclass(frozen=True)
class Effect:
    """How a model trained on one version of the data behaves on the test set."""

    accuracy: float
    targeted: float
    """Targeted misclassification rate: ones that the trigger turns into sevens."""


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration shows."""

    n_train: int
    n_poisoned: int
    n_found: int
    n_clean_removed: int
    found: float
    """Share of the planted samples that were removed."""
    lost: float
    """Share of the clean samples that were removed."""
    undefended: Effect
    cleaned: Effect
    perfect: Effect
    verdict: str
    """What ``unpoison clean`` says, which does not know the truth."""
    report: Path


@dataclass(frozen=True)
class Split:
    """Images and labels, to train on and to test on."""

    train_images: NDArray[np.uint8]
    train_labels: LabelArray
    test_images: NDArray[np.uint8]
    test_labels: LabelArray


def run_demo(
    out: Path,
    *,
    seed: int = 0,
    attack: DirtyLabel = DIGITS_ATTACK,
    listener: Listener = ignore,
) -> DemoResult:
    """Poison scikit-learn's digits, clean them with the defaults of ``unpoison clean``, compare models.

    Everything is left in ``out``: ``poisoned.npz`` (what ``clean`` is given), ``truth.csv`` (which it never
    reads) and ``cleaned/`` with the report.
    """
    split = split_digits(seed)
    poisoned = attack.apply(split.train_images, split.train_labels, seed=seed)
    _write_inputs(out, poisoned)
    record = clean(
        str(out / "poisoned.npz"), out / "cleaned", options=CleanOptions(seed=seed), listener=listener,
        command="unpoison clean poisoned.npz --out cleaned" + (f" --seed {seed}" if seed else ""),
    )  # fmt: skip
    keep = _read_keep(out / "cleaned" / "manifest.csv")
    everything = np.ones(len(keep), dtype=np.bool_)
    return DemoResult(
        n_train=len(keep),
        n_poisoned=int(poisoned.truth.sum()),
        n_found=int((poisoned.truth & ~keep).sum()),
        n_clean_removed=int((~poisoned.truth & ~keep).sum()),
        found=found_share(keep, poisoned.truth),
        lost=lost_share(keep, poisoned.truth),
        undefended=train_and_attack(poisoned, everything, split, attack, seed),
        cleaned=train_and_attack(poisoned, keep, split, attack, seed),
        perfect=train_and_attack(poisoned, ~poisoned.truth, split, attack, seed),
        verdict=record["result"]["verdict"],
        report=out / "cleaned" / "report.html",
    )


def split_digits(seed: int) -> Split:
    """scikit-learn's digits, shuffled, with a quarter held out."""
    from unpoison.data.load import load

    dataset = load("digits")
    order = Seeds(seed).stream("split").permutation(len(dataset))
    n_test = int(TEST_SHARE * len(dataset))
    test, train = order[:n_test], order[n_test:]
    images, labels = dataset.features, dataset.labels
    return Split(images[train], labels[train], images[test], labels[test])


def _write_inputs(out: Path, poisoned: Poisoned) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise OutputError(f"{out} is not empty; choose an empty or new folder with --out")
        np.savez_compressed(out / "poisoned.npz", x=poisoned.images, y=poisoned.labels)
        with (out / "truth.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["row", "poisoned"])
            writer.writerows(enumerate(poisoned.truth.astype(int).tolist()))
    except OSError as error:
        raise OutputError(
            f"{out} cannot be used for the results ({error.strerror}); choose another folder with --out"
        ) from error


def _read_keep(manifest: Path) -> BoolArray:
    with manifest.open(newline="", encoding="utf-8") as file:
        return np.array([row["keep"] == "true" for row in csv.DictReader(file)], dtype=np.bool_)


def train_and_attack(
    poisoned: Poisoned, keep: BoolArray, split: Split, attack: DirtyLabel, seed: int
) -> Effect:
    """Train the victim, a small neural network (not the model that cleaned), on what is kept."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    model = _victim(seed)
    # one thread: faster for a network this small, and the same figures on any machine's number of cores
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the budget is meant
        model.fit(as_matrix(poisoned.images[keep]), poisoned.labels[keep])
    predicted = model.predict(as_matrix(split.test_images))
    of_source = split.test_labels == attack.source
    triggered = model.predict(as_matrix(attack.trigger(split.test_images[of_source])))
    return Effect(
        accuracy=accuracy(predicted, split.test_labels),
        targeted=targeted_misclassification(
            predicted[of_source], triggered, source=attack.source, target=attack.target
        ),
    )


def _victim(seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(hidden_layer_sizes=(64,), max_iter=100, random_state=Seeds(seed).integer("victim"))
