"""The paper's method made cheaper: what each change costs and does, on scenarios that are not recorded.

    python benchmarks/ispl_ablation.py [--scenario NAME:SEED ...] [--variant NAME ...] [--out FILE]

CIFAR-10 and GTSRB (``unpoison data fetch``) at the laptop scale: 6,000 images, ``compact``, the authors'
settings with one restart. ``paper-epochs`` has the epochs of the paper, ``recorded`` those of the laptop
scale, and the others change that in one thing or two; ``undefended`` tells whether the attack takes hold.
Cost: of the defense, in passes of training over all the data, a forward pass counting a third.
``components``: how many planted samples each has, in the order in which they are found. ``--out`` keeps each
line as it is measured and skips what is in the file. The last line is JSON: medians by variant.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

from measured import Measured
from unpoison.defenses.base import Decision, Defense
from unpoison.defenses.controls import Nothing
from unpoison.defenses.incompatibility import Incompatibility
from unpoison.evaluation.comparison import FORWARD
from unpoison.evaluation.experiment import set_up
from unpoison.evaluation.metrics import by_component
from unpoison.evaluation.scales import LAPTOP
from unpoison.evaluation.scenarios import by_name
from unpoison.evaluation.victims import train_and_examine
from unpoison.seeds import Seeds
from unpoison.types import BoolArray

SCENARIOS = (
    "gtsrb-watermark-2-13-eps10:100",
    "gtsrb-watermark-2-13-eps20:100",
    "cifar10-watermark-3-5-eps10:102",
)
UNDEFENDED = "undefended"
WARM = {"weak_start": "component", "weak_epochs": 4, "weak_min_steps": 60}
PAPER_EPOCHS = {
    "first_epochs": 8, "epochs": 4, "weak_epochs": 40, "self_training_updates": 20,
    "self_training_interval": 5,
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "recorded": {},
    "outsiders vote": {"voters": "outsiders"},
    "steps": {"first_epochs": 2, "epochs": 1, "min_steps": 24},
    "annealing": {"annealing": True},
    "warm voters": WARM,
    "warm voters, outsiders vote": {**WARM, "voters": "outsiders"},
    "paper-epochs": PAPER_EPOCHS,
    "paper-epochs, no self-training": {**PAPER_EPOCHS, "self_training": False},
}
"""What each changes in the settings of the laptop scale."""


def measure(name: str, seed: int, variant: str) -> dict[str, Any]:
    """Defend, and train the victim on what is kept."""
    scenario = by_name(name)
    setup = LAPTOP.setup_for(scenario)
    arena = set_up(scenario, setup, seed=seed)
    over, seeds = arena.factory_over(setup), Seeds(seed).within("ablation")
    data, planted = arena.poisoned, arena.truth.planted
    changes = {**setup.reduced, **setup.changes, **VARIANTS.get(variant, {})}
    defense: Defense = (
        Nothing() if variant == UNDEFENDED else Incompatibility("ispl", "authors-cifar10", changes=changes)
    )
    decision: Decision = defense.judge(
        data.labels, over(data.features, data.labels), seed=seeds.integer("defense")
    )
    effect = train_and_examine(
        data, decision.keep, arena.exam, over, epochs=setup.epochs, min_steps=0, seed=seeds.integer("victim")
    )
    removed = ~decision.keep
    return {
        "scenario": name,
        "seed": seed,
        "variant": variant,
        "found": round(float(removed[planted].mean()), 4),
        "clean_removed": round(float(removed[~planted].mean()), 4),
        "tmr": round(effect.targeted, 4),
        "accuracy": round(effect.accuracy, 4),
        "cost": round((decision.cost.trained + FORWARD * decision.cost.scored) / len(planted), 1),
        "components": planted_by_component(decision, planted),
    }


def planted_by_component(decision: Decision, planted: BoolArray) -> list[int]:
    """How many of ``planted`` are in each component, of the first restart."""
    if decision.components is None:
        return []
    first = decision.components[0]
    return by_component(first, planted, n_components=int(first.max()) + 1)[:-1]


def medians(lines: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Of each variant, over scenarios."""
    by_variant: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        by_variant.setdefault(line["variant"], []).append(line)
    measures = ("found", "clean_removed", "tmr", "accuracy", "cost")
    return {
        variant: {name: round(median(line[name] for line in some), 4) for name in measures}
        for variant, some in by_variant.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", action="append", metavar="NAME:SEED")
    parser.add_argument("--variant", action="append", choices=[UNDEFENDED, *VARIANTS])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    measured = Measured(arguments.out, key=("scenario", "seed", "variant"))
    for variant in arguments.variant or (UNDEFENDED, *VARIANTS):
        for text in arguments.scenario or SCENARIOS:
            name, _, seed = text.partition(":")
            if not measured.has(name, int(seed or 0), variant):
                measured.add(measure(name, int(seed or 0), variant))
    print(json.dumps(medians(measured.lines)))


if __name__ == "__main__":
    main()
