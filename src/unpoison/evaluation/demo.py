"""The demonstration: poison real data in the open, clean it, and see what a model learns before and after."""

from __future__ import annotations

import csv
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import NOT_ATTACKED, Attack, Samples, Truth
from unpoison.attacks.dirty_label import DirtyLabel
from unpoison.attacks.triggers import Patch
from unpoison.cleaning import CleanOptions, clean
from unpoison.errors import OutputError
from unpoison.evaluation.metrics import accuracy, found_share, lost_share, targeted_misclassification
from unpoison.events import Listener, ignore
from unpoison.learners.features import as_matrix
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, LabelArray

TEST_SHARE = 0.25
DIGITS_ATTACK = DirtyLabel.one_to_one(source=1, target=7, epsilon=0.2, mark=Patch())
"""A bright two-by-two patch in the corner of a fifth of the ones, which are then labelled seven."""


@dataclass(frozen=True)
class Effect:
    """How a model trained on one version of the data behaves on the test set."""

    accuracy: float
    targeted: float
    """Targeted misclassification rate: of the attacked images (here ones), the share that is right and that
    the trigger turns into what the attacker wants (sevens)."""


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

    @property
    def train(self) -> Samples:
        """What an attacker gets."""
        return Samples.numbered(self.train_images, self.train_labels)


def run_demo(
    out: Path,
    *,
    seed: int = 0,
    attack: Attack = DIGITS_ATTACK,
    listener: Listener = ignore,
) -> DemoResult:
    """Poison scikit-learn's digits, clean them with the defaults of ``unpoison clean``, compare models.

    Everything is left in ``out``: ``poisoned.npz`` (what ``clean`` is given), ``truth.csv`` (which it never
    reads) and ``cleaned/`` with the report.
    """
    split = split_digits(seed)
    poisoned, truth = attack.apply(split.train, seed=seed)
    _write_inputs(out, poisoned, truth)
    record = clean(
        str(out / "poisoned.npz"), out / "cleaned", options=CleanOptions(seed=seed), listener=listener,
        command="unpoison clean poisoned.npz --out cleaned" + (f" --seed {seed}" if seed else ""),
    )  # fmt: skip
    keep = _read_keep(out / "cleaned" / "manifest.csv")
    planted, everything = truth.planted, np.ones(len(keep), dtype=np.bool_)
    return DemoResult(
        n_train=len(keep),
        n_poisoned=int(planted.sum()),
        n_found=int((planted & ~keep).sum()),
        n_clean_removed=int((~planted & ~keep).sum()),
        found=found_share(keep, planted),
        lost=lost_share(keep, planted),
        undefended=train_and_attack(poisoned, everything, split, attack, seed),
        cleaned=train_and_attack(poisoned, keep, split, attack, seed),
        perfect=train_and_attack(poisoned, ~planted, split, attack, seed),
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


def _write_inputs(out: Path, poisoned: Samples, truth: Truth) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise OutputError(f"{out} is not empty; choose an empty or new folder with --out")
        np.savez_compressed(out / "poisoned.npz", x=poisoned.features, y=poisoned.labels)
        with (out / "truth.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["row", "poisoned"])
            writer.writerows(enumerate(truth.planted.astype(int).tolist()))
    except OSError as error:
        raise OutputError(
            f"{out} cannot be used for the results ({error.strerror}); choose another folder with --out"
        ) from error


def _read_keep(manifest: Path) -> BoolArray:
    with manifest.open(newline="", encoding="utf-8") as file:
        return np.array([row["keep"] == "true" for row in csv.DictReader(file)], dtype=np.bool_)


def train_and_attack(poisoned: Samples, keep: BoolArray, split: Split, attack: Attack, seed: int) -> Effect:
    """Train the victim, a small neural network (not the model that cleaned), on what is kept."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    model = _victim(seed)
    # one thread: faster for a network this small, and the same figures on any machine's number of cores
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the budget is meant
        model.fit(as_matrix(poisoned.features[keep]), poisoned.labels[keep])
    predicted = model.predict(as_matrix(split.test_images))
    wanted = attack.goal(split.test_labels)
    attacked = wanted != NOT_ATTACKED
    triggered = model.predict(as_matrix(attack.trigger(split.test_images[attacked])))
    return Effect(
        accuracy=accuracy(predicted, split.test_labels),
        targeted=targeted_misclassification(
            predicted[attacked], triggered, labels=split.test_labels[attacked], goal=wanted[attacked]
        ),
    )


def _victim(seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(hidden_layer_sizes=(64,), max_iter=100, random_state=Seeds(seed).integer("victim"))
