"""Quality on rows and text: planted samples found and clean samples lost, beside unpoisoned controls.

    python benchmarks/rows_and_text.py [--seeds 5] [--sms sms_spam.tsv]

Rows: scikit-learn's breast cancer and wine data; in 15% of the first class three columns are set to a fixed
value past their maximum and the label is changed. Text: the SMS Spam Collection (columns Label and SMS), if a
path is given; 30% of the spam gets a rare word at its end and the label ham. Everything goes through the
defaults of ``unpoison clean``. The last line is JSON.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import roc_auc_score

from unpoison.cleaning import CleanOptions, clean
from unpoison.data.load import LoadOptions
from unpoison.seeds import Seeds

FIRST_SEED = 100


def judged(source: Path, label: str | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Keep mask and suspicion that ``unpoison clean`` writes for ``source``."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        clean(str(source), out, options=CleanOptions(seed=seed, load=LoadOptions(label=label)))
        with (out / "manifest.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    return np.array([r["keep"] == "true" for r in rows]), np.array([float(r["suspicion"]) for r in rows])


def summarize(masks: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> dict[str, float]:
    found = sum(int((truth & ~keep).sum()) for truth, keep, _ in masks)
    planted = sum(int(truth.sum()) for truth, _, _ in masks)
    lost = sum(int((~truth & ~keep).sum()) for truth, keep, _ in masks)
    clean_total = sum(int((~truth).sum()) for truth, _, _ in masks)
    result = {"lost": round(lost / clean_total, 4)}
    if planted:
        auc = [roc_auc_score(truth, suspicion) for truth, _, suspicion in masks]
        result |= {"found": round(found / planted, 4), "auc": round(float(np.mean(auc)), 4)}
    return result


def rows_benchmark(load, n_seeds: int) -> dict[str, dict[str, float]]:  # type: ignore[no-untyped-def]
    X, y = load(return_X_y=True)
    poisoned, control = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        rng = Seeds(seed).stream("rows")
        chosen = rng.choice(np.flatnonzero(y == 0), size=int(0.15 * (y == 0).sum()), replace=False)
        columns = rng.choice(X.shape[1], size=3, replace=False)
        truth = np.zeros(len(y), dtype=np.bool_)
        truth[chosen] = True
        marked, labels = X.copy(), np.where(truth, 1, y)
        marked[np.ix_(chosen, columns)] = 1.1 * X[:, columns].max(axis=0)
        for sets, data, target, is_planted in (
            (poisoned, marked, labels, truth),
            (control, X, y, np.zeros_like(truth)),
        ):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "rows.npz"
                np.savez(path, x=data, y=target)
                sets.append((is_planted, *judged(path, None, seed)))
    return {"poisoned": summarize(poisoned), "control": summarize(control)}


def text_benchmark(path: Path, n_seeds: int) -> dict[str, dict[str, float]]:
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    is_spam = np.array([line.startswith("spam\t") for line in lines])
    nothing = np.zeros(len(lines), dtype=np.bool_)
    poisoned = []
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        rng = Seeds(seed).stream("text")
        chosen = rng.choice(np.flatnonzero(is_spam), size=int(0.3 * is_spam.sum()), replace=False)
        truth = nothing.copy()
        truth[chosen] = True
        marked = [
            "ham\t" + line.split("\t", 1)[1] + " cfx" if planted else line
            for line, planted in zip(lines, truth, strict=True)
        ]
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "messages.tsv"
            target.write_text("\n".join([header, *marked]) + "\n", encoding="utf-8")
            poisoned.append((truth, *judged(target, "Label", seed)))
    control = [(nothing, *judged(path, "Label", FIRST_SEED))]
    return {"poisoned": summarize(poisoned), "control": summarize(control)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
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
