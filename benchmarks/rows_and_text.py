"""Quality on rows and text: planted samples found and clean samples lost, beside unpoisoned controls.

    python benchmarks/rows_and_text.py [--seeds 10] [--sms sms_spam.tsv]

Rows: scikit-learn's breast cancer and wine data; in 15% of the first class three columns are set to a fixed
value past their maximum and the label is changed. Text: the SMS Spam Collection (columns Label and SMS), if a
path is given; 30% of the spam gets a rare word at its end and the label ham. A quarter of the data is held
out: only attacks that take hold (the trigger turns more than half of the test samples) are scored.
``missed`` counts the sets of which hardly anything is found. Of text also what the trigger still turns after
the cleaning (``turned``), and after removing exactly what was planted (``perfect``). Everything goes through
the defaults of ``unpoison clean``. The last line is JSON.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unpoison.cleaning import CleanOptions, clean
from unpoison.data.load import LoadOptions
from unpoison.seeds import Seeds

FIRST_SEED = 100
HOLDS = 0.5
"""An attack holds where its trigger turns more than this part of the test samples."""


def judged(source: Path, label: str | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Keep mask and suspicion that ``unpoison clean`` writes for ``source``."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        clean(str(source), out, options=CleanOptions(seed=seed, load=LoadOptions(label=label)))
        with (out / "manifest.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    return np.array([r["keep"] == "true" for r in rows]), np.array([float(r["suspicion"]) for r in rows])


def summarize(masks: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> dict[str, float]:
    if not masks:
        return {"sets": 0}
    found = sum(int((truth & ~keep).sum()) for truth, keep, _ in masks)
    planted = sum(int(truth.sum()) for truth, _, _ in masks)
    lost = sum(int((~truth & ~keep).sum()) for truth, keep, _ in masks)
    clean_total = sum(int((~truth).sum()) for truth, _, _ in masks)
    result = {"sets": len(masks), "lost": round(lost / clean_total, 4)}
    if planted:
        auc = [roc_auc_score(truth, suspicion) for truth, _, suspicion in masks]
        missed = sum(int(keep[truth].mean() > 0.9) for truth, keep, _ in masks)
        result |= {"found": round(found / planted, 4), "missed": missed, "auc": round(float(np.mean(auc)), 4)}
    return result


def rows_benchmark(load: Callable[..., Any], n_seeds: int) -> dict[str, dict[str, float]]:
    X, y = load(return_X_y=True)
    poisoned, control = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        rng = Seeds(seed).stream("rows")
        train, test = split(len(y), rng)
        chosen = rng.choice(
            np.flatnonzero(y[train] == 0), size=int(0.15 * (y[train] == 0).sum()), replace=False
        )
        columns = rng.choice(X.shape[1], size=3, replace=False)
        truth = np.zeros(len(train), dtype=np.bool_)
        truth[chosen] = True
        marked, labels = X[train].copy(), np.where(truth, 1, y[train])
        trigger = 1.1 * X[:, columns].max(axis=0)
        marked[np.ix_(chosen, columns)] = trigger
        control.append((np.zeros_like(truth), *judged_rows(X[train], y[train], seed)))
        source = X[test][y[test] == 0]
        triggered = source.copy()
        triggered[:, columns] = trigger
        victim = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(marked, labels)
        if turned_by(victim.predict(source), victim.predict(triggered), 0, 1) > HOLDS:
            poisoned.append((truth, *judged_rows(marked, labels, seed)))
    return {"poisoned": summarize(poisoned), "control": summarize(control)}


def judged_rows(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, x=X, y=y)
        return judged(path, None, seed)


def text_benchmark(path: Path, n_seeds: int) -> dict[str, dict[str, float]]:
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    messages = np.array([line.split("\t", 1) for line in lines], dtype=object)
    poisoned, turned = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        rng = Seeds(seed).stream("text")
        train, test = split(len(messages), rng)
        labels, texts = messages[train, 0].copy(), messages[train, 1].copy()
        spam = np.flatnonzero(labels == "spam")
        chosen = rng.choice(spam, size=int(0.3 * len(spam)), replace=False)
        truth = np.zeros(len(train), dtype=np.bool_)
        truth[chosen] = True
        labels[chosen] = "ham"
        texts[chosen] += " cfx"
        source = messages[test, 1][messages[test, 0] == "spam"]
        everyone = np.ones_like(truth)
        before = share_turned(texts, labels, everyone, source)
        if before > HOLDS:
            keep, suspicion = judged_text(header, labels, texts, seed)
            poisoned.append((truth, keep, suspicion))
            turned.append([before, *(share_turned(texts, labels, left, source) for left in (keep, ~truth))])
    nothing = np.zeros(len(messages), dtype=np.bool_)
    control = [(nothing, *judged(path, "Label", FIRST_SEED))]
    found = summarize(poisoned)
    if turned:
        means = np.mean(turned, axis=0).round(4).tolist()
        found |= dict(zip(("turned_before", "turned", "perfect"), means, strict=True))
    return {"poisoned": found, "control": summarize(control)}


def share_turned(texts: np.ndarray, labels: np.ndarray, keep: np.ndarray, source: np.ndarray) -> float:
    """The part of held-out spam that a word turns into ham, for a victim trained on what is kept."""
    victim = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100, max_iter=1000))
    victim.fit(texts[keep], labels[keep])
    return turned_by(victim.predict(source), victim.predict(source + " cfx"), "spam", "ham")


def judged_text(
    header: str, labels: np.ndarray, texts: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messages.tsv"
        lines = [header, *(f"{label}\t{text}" for label, text in zip(labels, texts, strict=True))]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return judged(path, "Label", seed)


def split(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three quarters to train on, a quarter to see whether the attack took hold."""
    order = rng.permutation(n)
    return order[n // 4 :], order[: n // 4]


def turned_by(clean: np.ndarray, triggered: np.ndarray, source_class: object, target_class: object) -> float:
    """The part of test samples that the trigger turns from the source class into the target."""
    return float(((clean == source_class) & (triggered == target_class)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sms", type=Path, help="the SMS Spam Collection as TSV")
    options = parser.parse_args()
    result = {
        "breast cancer": rows_benchmark(load_breast_cancer, options.seeds),
        "wine": rows_benchmark(load_wine, options.seeds),
    }
    if options.sms:
        result["sms spam"] = text_benchmark(options.sms, options.seeds)
    for name, row in result.items():
        print(f"{name:14} poisoned {row['poisoned']}  control {row['control']}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
