"""Does `unpoison measure` tell poison from clean data on traffic signs, and what does the answer cost?

    python benchmarks/measure_gtsrb.py [--seeds 5] [--attack watermark] [--learner logistic] [--repeats 8]
        [--epsilon 0.2] [--limit 8000] [--epochs N] [--augment none] [--workers 1] [--out FILE.jsonl]

For each seed, `unpoison poison` plants a watermark on a fifth of class 1 (30 km/h) of 8,000 images and calls
them class 2 (50 km/h). Then `unpoison measure` is asked twice, with a file of sets each time: clean and
poisoned images of the two classes, and two random halves of the clean ones. Poison should be incompatible
with clean data, a half not with the other half. ``--out`` keeps each line as it is measured, and skips what
is in the file under the same settings. The last line is JSON.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unpoison.evaluation.poisoning import PoisonOptions, poison
from unpoison.learners.choose import LearnerChoice
from unpoison.measuring import MeasureOptions, measure, measuring_for
from unpoison.seeds import Seeds

TRIGGERS = {"watermark": "peace", "dirty-label": "square"}
SOURCE, TARGET = "1", "2"
SETTINGS = ("attack", "learner", "augment", "epsilon", "limit", "repeats", "epochs")
COST = ("models", "trained", "scored", "seconds")


def question(seed: int, given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Poison with this seed, and measure both pairs of sets."""
    settings = {
        "source": SOURCE, "target": TARGET, "epsilon": str(given.epsilon), "trigger": TRIGGERS[given.attack],
    }  # fmt: skip
    options = PoisonOptions(given.attack, settings, seed=seed, limit=given.limit, test_share=0.0)
    out = folder / str(seed)
    poison("gtsrb", out, options=options)
    with (out / "truth.csv").open(newline="", encoding="utf-8") as file:
        truth = list(csv.DictReader(file))
    planted = [row["id"] for row in truth if row["planted"] == "true"]
    clean = [row["id"] for row in truth if row["planted"] == "false" and row["label"] in names(truth)]
    shuffled = Seeds(seed).stream("halves").permutation(clean).tolist()
    half = len(shuffled) // 2
    asked = {
        "poison": {"clean": clean, "poisoned": planted},
        "halves": {"first": shuffled[:half], "second": shuffled[half:]},
    }
    answers = {name: answer(sets, seed, given, out) for name, sets in asked.items()}
    return {"seed": seed, "settings": settings_of(given), **answers}


def settings_of(given: argparse.Namespace) -> dict[str, Any]:
    """What decides about the numbers of a seed."""
    return {name: getattr(given, name) for name in SETTINGS}


def names(truth: list[dict[str, str]]) -> set[str]:
    """The names of the source and the target class, from what was planted."""
    moves = [(row["original_label"], row["label"]) for row in truth if row["planted"] == "true"]
    return set(moves[0])


def answer(sets: Mapping[str, list[str]], seed: int, given: argparse.Namespace, out: Path) -> dict[str, Any]:
    """What `unpoison measure` says of a file of sets."""
    path = out / "sets.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "set"])
        writer.writerows([sample, name] for name, samples in sets.items() for sample in samples)
    options = MeasureOptions(
        how=measuring_for(epochs=given.epochs, repeats=given.repeats),
        learner=LearnerChoice(given.learner), augment=given.augment, seed=seed, workers=given.workers,
    )  # fmt: skip
    record = measure(str(out / "train.npz"), path, options=options)
    return {
        "sets": {name: found["n"] for name, found in record["sets"].items()},
        "alone": {name: round(found["error"]["mean"], 5) for name, found in record["sets"].items()},
        "pairs": {
            f"{pair['of']} with {pair['given']}": {
                "decision": pair["decision"],
                "change": round(pair["change"]["mean"], 5),
                "interval": [round(bound, 5) for bound in pair["change"]["interval"]],
                "repeats_needed": pair["repeats_needed"],
            }
            for pair in record["pairs"]
        },
        "cost": {name: record["cost"][name] for name in COST},
    }


def told(row: Mapping[str, Any]) -> str:
    """One line a pair of sets."""
    lines = []
    for name in ("poison", "halves"):
        for pair, found in row[name]["pairs"].items():
            low, high = (100 * bound for bound in found["interval"])
            lines.append(
                f"seed {row['seed']}  {pair:<22} {100 * found['change']:+6.2f} [{low:+.2f}, {high:+.2f}]  "
                f"{found['decision']}"
            )
    return "\n".join(lines)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    decisions = {
        pair: [row[name]["pairs"][pair]["decision"] for row in rows]
        for name in ("poison", "halves")
        for pair in rows[0][name]["pairs"]
    }
    cost = {
        name: {what: round(sum(row[name]["cost"][what] for row in rows) / len(rows), 1) for what in COST}
        for name in ("poison", "halves")
    }
    return {
        "seeds": len(rows),
        "incompatible": {pair: found.count("incompatible") for pair, found in decisions.items()},
        "compatible": {pair: found.count("compatible") for pair, found in decisions.items()},
        "cost_of_an_answer": cost,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--attack", choices=list(TRIGGERS), default="watermark")
    parser.add_argument("--learner", default="logistic")
    parser.add_argument("--augment")
    parser.add_argument("--epsilon", type=float, default=0.2)
    parser.add_argument("--limit", type=int, default=8_000)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out and given.out.exists() else []
    known = [row for row in map(json.loads, lines) if row["settings"] == settings_of(given)]
    done = {row["seed"]: row for row in known}
    rows = []
    for seed in range(given.seeds):
        if seed not in done:
            with tempfile.TemporaryDirectory() as folder:
                done[seed] = question(seed, given, Path(folder))
            if given.out:
                with given.out.open("a") as file:
                    file.write(json.dumps(done[seed]) + "\n")
        rows.append(done[seed])
        print(told(done[seed]), flush=True)
    print(json.dumps(summary(rows)))


if __name__ == "__main__":
    main()
