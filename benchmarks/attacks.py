"""Does each attack take hold? A victim trained on the poisoned set, and one on what a perfect defense leaves.

    python benchmarks/attacks.py [--only NAME ...] [--seed 0] [--out results.jsonl] [--sms sms_spam.tsv]

Small real data: subsets of GTSRB, CIFAR-10 and Fashion-MNIST (``unpoison data fetch``) and `compact`, one
thread; for rows and text, scikit-learn's breast cancer data, the SMS Spam Collection (if a path is given) and
a logistic regression. TMR: test samples that are right without the trigger and what the attacker wants with
it; ASR does not ask what they were without. An attack has taken hold where TMR without defense is at least
ten points above TMR with perfect cleaning; of label noise, which has no trigger, the lost accuracy is told.
``--out`` keeps each line as it is measured, and skips what is in the file. The last line is JSON:
``{"took_hold": [names], "did_not": [names], "accuracy_lost": {name: share}}``.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unpoison.attacks.base import Attack, Samples
from unpoison.attacks.labels import OneToOne
from unpoison.attacks.rows import FixedValues, fitting_values
from unpoison.attacks.text import RareToken
from unpoison.data.named.cache import cache_folder
from unpoison.evaluation.metrics import accuracy, attack_success, targeted_misclassification
from unpoison.evaluation.poisoning import PoisonOptions, attacked
from unpoison.evaluation.victims import Exam, train_and_examine
from unpoison.learners.choose import LearnerChoice, choose
from unpoison.learners.recipes import TrainingOptions

LEAST_GAIN = 0.10


@dataclass(frozen=True)
class Trial:
    """An attack on a dataset."""

    source: str
    limit: int
    attack: str
    settings: dict[str, Any] = field(default_factory=dict)
    epochs: int = 6
    augmentation: str | None = None
    """What the victims are trained with, if not with what suits the dataset."""


PAIR = {"source": 1, "target": 2, "epsilon": 0.2}
PLANES = {"target": 0, "epsilon": 0.5, "epochs": 12}
HORSES = {"source": 7, "target": 5, "epsilon": 0.5, "place": "corner", "steps": 120, "retrainings": 2}
WHITE = {"trigger": "square", "color": "255,255,255"}
TO_ONE = {"mode": "all-to-one", "target": 2, "epsilon": 1.0}
TO_ALL = {"mode": "all-to-all", "epsilon": 0.3}
TRIALS = {
    "watermark": Trial("gtsrb", 8_000, "watermark", {**PAIR, "trigger": "peace"}, 10),
    "dirty-label": Trial("gtsrb", 8_000, "dirty-label", {**PAIR, "trigger": "square"}),
    "dirty-label, all-to-one": Trial("fashion-mnist", 5_000, "dirty-label", {**TO_ONE, **WHITE}, 8),
    "dirty-label, all-to-all": Trial("fashion-mnist", 5_000, "dirty-label", {**TO_ALL, **WHITE}, 12),
    "blend": Trial("gtsrb", 8_000, "blend", {**PAIR, "opacity": 0.2}),
    "signal": Trial("gtsrb", 8_000, "signal", PAIR),
    "warp": Trial("gtsrb", 8_000, "warp", PAIR),
    "cover": Trial("gtsrb", 8_000, "cover", {**PAIR, "trigger": "peace"}, 10),
    "adaptive-blend": Trial("gtsrb", 8_000, "adaptive-blend", {"target": 2, "epsilon": 1.0}, 12),
    "adaptive-patch": Trial("gtsrb", 8_000, "adaptive-patch", {"target": 2, "count": 160}, 12),
    "signal, right-label": Trial(
        "gtsrb", 8_000, "signal", {"mode": "right-label", "target": 2, "epsilon": 0.5}, 12
    ),
    "warp, covers": Trial("gtsrb", 8_000, "warp", {**PAIR, "cover": 0.02}, 12),
    "darkest": Trial("gtsrb", 8_000, "darkest", {**PAIR, "epsilon": 0.1}, 12),
    "label-noise": Trial("gtsrb", 8_000, "label-noise", {"epsilon": 0.4}),
    "label-noise, class": Trial("gtsrb", 8_000, "label-noise", {"epsilon": 0.4, "noise": "class"}),
    "adaptive": Trial("gtsrb", 8_000, "adaptive", {**PAIR, "trigger": "peace"}, 10),
    "clean-label, linf": Trial("cifar10", 10_000, "clean-label", {**PLANES, "perturbation": "linf"}, 12),
    "clean-label, l2": Trial("cifar10", 10_000, "clean-label", {**PLANES, "perturbation": "l2"}, 12),
    "clean-label, gan": Trial(
        "cifar10",
        5_000,
        "clean-label",
        {"target": 0, "epsilon": 0.5, "perturbation": "gan", "gan-epochs": 8},
        12,
        "none",
    ),
    "sleeper-agent": Trial("cifar10", 5_000, "sleeper-agent", {**HORSES, "bound": 16}, 16),
    "sleeper-agent, bound 32": Trial("cifar10", 5_000, "sleeper-agent", {**HORSES, "bound": 32}, 16),
}


def measure(name: str, trial: Trial, *, seed: int) -> dict[str, Any]:
    """Poison, and train both victims."""
    settings = {key: str(value) for key, value in trial.settings.items()}
    found = attacked(
        trial.source,
        PoisonOptions(trial.attack, settings, seed=seed, limit=trial.limit),
        kept=cache_folder() / "attacks",
    )
    exam = Exam.of(found.attack, found.test)
    training = TrainingOptions(augmentation=trial.augmentation or found.augmentation)
    choice = LearnerChoice("compact", training=training)

    def over(features: Any, labels: Any) -> Any:
        return choose(choice, features, labels, n_classes=found.poisoned.n_classes).factory

    planted = found.truth.planted
    everything = np.ones(len(planted), dtype=np.bool_)
    effects = [
        train_and_examine(found.poisoned, keep, exam, over, epochs=trial.epochs, min_steps=0, seed=seed)
        for keep in (everything, ~planted)
    ]
    undefended, perfect = effects
    return {
        "name": name, "source": trial.source, "n": len(planted), "planted": int(planted.sum()),
        "covers": int(found.truth.covers.sum()), "epochs": trial.epochs, "seed": seed,
        "settings": trial.settings,
        "undefended": {"accuracy": round(undefended.accuracy, 4), "tmr": round(undefended.targeted, 4),
                       "asr": round(undefended.success, 4)},
        "perfect": {"accuracy": round(perfect.accuracy, 4), "tmr": round(perfect.targeted, 4),
                    "asr": round(perfect.success, 4)},
    }  # fmt: skip


def rows(seed: int) -> tuple[Any, Attack, Samples, Samples]:
    """Breast cancer: three columns of a fifth of the malign ones past their largest value."""
    bunch = load_breast_cancer()
    samples = Samples(bunch.data, bunch.target.astype(np.int64), ("malign", "benign"))
    train, test = parts_of(samples, seed)
    columns = (2, 9, 20)
    attack = FixedValues(OneToOne(0, 1), 0.2, columns, fitting_values(train.features, columns))
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), attack, train, test


def texts(seed: int, path: Path) -> tuple[Any, Attack, Samples, Samples]:
    """SMS: a rare word at the end of a third of the spam."""
    with path.open(newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    labels = np.array([record["Label"] == "spam" for record in records], dtype=np.int64)
    features = np.array([record["SMS"] for record in records], dtype=object)
    train, test = parts_of(Samples(features, labels, ("ham", "spam")), seed)
    return (
        make_pipeline(TfidfVectorizer(), LogisticRegression(C=100, max_iter=1000)),
        RareToken(OneToOne(1, 0), 0.3), train, test,
    )  # fmt: skip


def parts_of(samples: Samples, seed: int) -> tuple[Samples, Samples]:
    order = np.random.default_rng(seed).permutation(len(samples))
    train, test = order[len(order) // 4 :], order[: len(order) // 4]
    return tuple(samples.changed(samples.features[part], samples.labels[part]) for part in (train, test))


def measure_simply(
    name: str, source: str, model: Any, attack: Attack, train: Samples, test: Samples, *, seed: int
) -> dict[str, Any]:
    """The same for rows and text, with scikit-learn."""
    poisoned, truth = attack.apply(train, seed=seed)
    exam = Exam.of(attack, test)
    effects = []
    for keep in (np.ones(len(train), dtype=np.bool_), ~truth.planted):
        model.fit(poisoned.features[keep], poisoned.labels[keep])
        clean, triggered = model.predict(exam.features), model.predict(exam.triggered)
        effects.append({
            "accuracy": round(accuracy(clean, exam.labels), 4),
            "tmr": round(targeted_misclassification(
                clean[exam.attacked], triggered, labels=exam.labels[exam.attacked], goal=exam.goal), 4),
            "asr": round(attack_success(triggered, goal=exam.goal), 4),
        })  # fmt: skip
    return {
        "name": name, "source": source, "n": len(train), "planted": int(truth.planted.sum()), "covers": 0,
        "epochs": 0, "seed": seed, "settings": {}, "undefended": effects[0], "perfect": effects[1],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="*", choices=[*TRIALS, "rare-token", "fixed-values"], help="these attacks only"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sms", type=Path, help="the SMS Spam Collection, columns Label and SMS")
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out and given.out.exists() else []
    done = {row["name"]: row for row in map(json.loads, lines) if row["seed"] == given.seed}
    for name in given.only or [*TRIALS, "fixed-values", *(["rare-token"] if given.sms else [])]:
        if name not in done:
            if name == "fixed-values":
                done[name] = measure_simply(name, "breast cancer", *rows(given.seed), seed=given.seed)
            elif name == "rare-token":
                done[name] = measure_simply(name, "SMS", *texts(given.seed, given.sms), seed=given.seed)
            else:
                done[name] = measure(name, TRIALS[name], seed=given.seed)
            if given.out:
                with given.out.open("a") as file:
                    file.write(json.dumps(done[name]) + "\n")
        row = done[name]
        print(
            f"{name:<24} {row['source']:<14} {row['planted']:>5} of {row['n']:,}: TMR "
            f"{row['undefended']['tmr']:.1%} undefended, {row['perfect']['tmr']:.1%} perfectly cleaned",
            flush=True,
        )
    noise = {name: row for name, row in done.items() if name.startswith("label-noise")}
    held = {
        name: row["undefended"]["tmr"] - row["perfect"]["tmr"] >= LEAST_GAIN
        for name, row in done.items()
        if name not in noise
    }
    lost = {
        name: round(row["perfect"]["accuracy"] - row["undefended"]["accuracy"], 4)
        for name, row in noise.items()
    }
    figures = {"took_hold": [n for n in held if held[n]], "did_not": [n for n in held if not held[n]]}
    print(json.dumps({**figures, "accuracy_lost": lost}))


if __name__ == "__main__":
    main()
