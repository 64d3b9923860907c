"""Where does ISPL put the planted samples? One change at a time, without voters.

    python benchmarks/ispl_variants.py [--scenario gtsrb-watermark-1-2-eps10] [--seed 0] [--restart 0 ...]
        [--variant NAME ...] [--png peace.png] [--limit N] [--out FILE.jsonl]

All of the data (``unpoison data fetch``), ``compact``, the rounds of ISPL alone. Each variant differs from
the paper's text in one thing, but for the rates (which have plain momentum too) and the authors' code (four
things). ``--png`` puts another picture in place of the scenario's. A voter that met a few planted samples may
learn the trigger, so what matters is how many components have a few; restarts vary, so run several.
``purity``: of the planted samples in components, the share in the one that has most. One line per restart;
the last line is JSON: by variant, how many components have more than five, and the planted by component.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from measured import Measured
from unpoison.core.config import IsplSettings
from unpoison.core.ispl import find_component
from unpoison.core.presets import AUTHORS_CIFAR10, AUTHORS_GTSRB, PAPER_CIFAR10, PAPER_GTSRB
from unpoison.evaluation.experiment import Arena, set_up
from unpoison.evaluation.metrics import by_component
from unpoison.evaluation.scales import FULL
from unpoison.evaluation.scenarios import Scenario, by_name
from unpoison.learners.networks import NETWORKS
from unpoison.learners.recipes import COMPACT, Recipe, TrainingOptions
from unpoison.learners.torch import TorchFactory
from unpoison.seeds import Seeds

MET = 5
"""A voter that met more planted samples than this is taken to have learned the trigger."""
SETTINGS: dict[str, dict[str, Any]] = {
    "text": {},
    "half, then all": {"first_training": "half-then-all"},
    "floor of beta": {"class_floor_of": "current"},
    "binomial": {"sampling": "binomial"},
    "beta that fits": {"beta_from": "fits"},
    "no floor": {"class_floor": 0.0},
    "no smoothing": {"momentum": 0.0},
}
"""What each changes in the text's settings."""
PLAIN = replace(COMPACT, nesterov=False)
RECIPES: dict[str, Recipe] = {
    "plain momentum": PLAIN,
    "rate 0.1": replace(PLAIN, continued_rate=0.1),
    "rate 0.02": replace(PLAIN, continued_rate=0.02),
}
"""Other trainings of the network, with the text's settings."""
AUTHORS = "authors"
VARIANTS = (*SETTINGS, AUTHORS, *RECIPES)


def settings_of(variant: str, dataset: str) -> IsplSettings:
    """The settings of ISPL of a variant."""
    text, authors = (PAPER_GTSRB, AUTHORS_GTSRB) if dataset == "gtsrb" else (PAPER_CIFAR10, AUTHORS_CIFAR10)
    return authors if variant == AUTHORS else replace(text, **SETTINGS.get(variant, {}))


def measure(arena: Arena, scenario: Scenario, variant: str, restart: int) -> dict[str, Any]:
    """The rounds of one restart."""
    settings, data, planted = settings_of(variant, scenario.dataset), arena.poisoned, arena.truth.planted
    options = TrainingOptions(recipe=RECIPES.get(variant, COMPACT), augmentation=arena.augmentation)
    factory = TorchFactory(NETWORKS["compact"], data.features, data.labels, data.n_classes, options)
    component = np.full(len(data), -1)
    started = time.perf_counter()
    for number in range(settings.rounds):
        seeds = Seeds(restart).within("variants", "round", number)
        active = np.flatnonzero(component < 0)
        found = find_component(
            factory(seeds.integer("learner")), active, data.labels,
            settings=settings, round_number=number, seeds=seeds,
        )  # fmt: skip
        component[found] = number
    counts = np.array(by_component(component, planted, n_components=settings.rounds))
    return {
        "variant": variant,
        "restart": restart,
        "planted_by_component": counts.tolist(),
        "purity": round(float(counts[:-1].max() / max(1, counts[:-1].sum())), 3),
        "voters_that_met_it": int((counts[:-1] > MET).sum()),
        "seconds": round(time.perf_counter() - started),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="gtsrb-watermark-1-2-eps10")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--restart", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--variant", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--png", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    scenario = by_name(given.scenario)
    if given.png:
        plain = {name: value for name, value in scenario.options.items() if name != "trigger"}
        scenario = replace(scenario, options={**plain, "png": str(given.png)})
    arena = set_up(scenario, replace(FULL.setup_for(scenario), limit=given.limit), seed=given.seed)
    about = {
        "scenario": given.scenario, "picture": given.png.name if given.png else "ours",
        "seed": given.seed, "n": len(arena.poisoned),
    }  # fmt: skip
    measured = Measured(given.out, key=(*about, "variant", "restart"))
    for restart in given.restart:
        for variant in given.variant:
            if not measured.has(*about.values(), variant, restart):
                measured.add({**about, **measure(arena, scenario, variant, restart)})
    summary = defaultdict(list)
    for line in measured.lines:
        if all(line[name] == value for name, value in about.items()):
            summary[line["variant"]].append([line["voters_that_met_it"], line["planted_by_component"]])
    print(json.dumps({**about, "variants": summary}))


if __name__ == "__main__":
    main()
