"""One experiment: attack a dataset, defend it, train a victim on what is kept, and measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import Samples, Truth
from unpoison.core.learner import LearnerFactory
from unpoison.core.result import Cost
from unpoison.data.options import LoadOptions
from unpoison.defenses.activation_clustering import ActivationClustering
from unpoison.defenses.base import Decision, Defense
from unpoison.defenses.controls import Given, Nothing, RandomFilter
from unpoison.defenses.incompatibility import Incompatibility
from unpoison.defenses.spectral import SpectralSignatures
from unpoison.defenses.trimmed_loss import TrimmedLoss
from unpoison.errors import InputError
from unpoison.evaluation.bench import BenchTask
from unpoison.evaluation.metrics import auc
from unpoison.evaluation.poisoning import PoisonOptions, attacked
from unpoison.evaluation.scales import Setup, scale_named
from unpoison.evaluation.scenarios import Scenario, by_name
from unpoison.evaluation.victims import Effect, Exam, train_and_examine
from unpoison.learners.choose import LearnerChoice, choose
from unpoison.learners.recipes import TrainingOptions
from unpoison.seeds import Seeds
from unpoison.types import LabelArray

NOTHING, ORACLE, RANDOM = "nothing", "oracle", "random"
ON_CLEAN = "+clean"
"""After the name of a defense: the same on the data before the attack. What does it remove?"""
RANDOM_SHARE = 0.075
"""What ``random`` removes: the share of the clean data that the paper's defense does."""


@dataclass(frozen=True)
class Arena:
    """A poisoned training set with the truth about it, and an examination."""

    clean: Samples
    poisoned: Samples
    truth: Truth
    exam: Exam
    augmentation: str

    def factory_over(self, setup: Setup) -> Callable[[NDArray[Any], LabelArray], LearnerFactory]:
        """Networks of this setup over any features of this kind."""
        training = TrainingOptions(augmentation=self.augmentation)
        choice = LearnerChoice(setup.network, training=training)

        def over(features: NDArray[Any], labels: LabelArray) -> LearnerFactory:
            return choose(choice, features, labels, n_classes=self.poisoned.n_classes).factory

        return over


def run_task(task: BenchTask, *, work: Path) -> dict[str, Any]:  # noqa: ARG001 - nothing is written
    """Attack, defend, train the victim and measure; plain values."""
    scenario = by_name(task.scenario)
    setup = scale_named(task.scale).setup_for(scenario)
    arena = set_up(scenario, setup, seed=task.seed)
    on_clean = task.defense.endswith(ON_CLEAN)
    if on_clean:
        nobody = np.zeros(len(arena.clean), dtype=np.bool_)
        truth = Truth(nobody, nobody, arena.clean.labels)
        arena = Arena(arena.clean, arena.clean, truth, arena.exam, arena.augmentation)
    defense = defense_for(task.defense.removesuffix(ON_CLEAN), scenario, setup, arena.truth)
    seeds = Seeds(task.seed).within("experiment")
    over = arena.factory_over(setup)
    labels = arena.poisoned.labels
    decision = defense.judge(labels, over(arena.poisoned.features, labels), seed=seeds.integer("defense"))
    effect = train_and_examine(
        arena.poisoned, decision.keep, arena.exam, over,
        epochs=setup.epochs, min_steps=0, seed=seeds.integer("victim"),
    )  # fmt: skip
    return {
        "scenario": task.scenario,
        "scale": task.scale,
        "seed": task.seed,
        "defense": task.defense,
        **_measured(decision, effect, arena.truth),
    }


def _measured(decision: Decision, effect: Effect, truth: Truth) -> dict[str, Any]:
    removed, planted = ~decision.keep, truth.planted
    found, lost = int((removed & planted).sum()), int((removed & ~planted).sum())
    return {
        "n": len(planted),
        "planted": int(planted.sum()),
        "accuracy": effect.accuracy,
        "tmr": effect.targeted,
        "asr": effect.success,
        "false_positives": lost,
        "false_negatives": int(planted.sum()) - found,
        "true_positive_rate": found / int(planted.sum()) if planted.any() else None,
        "false_positive_rate": lost / max(1, int((~planted).sum())),
        "auc": auc(decision.suspicion, planted),
        "defense_cost": _plain(decision.cost),
        "victim_cost": _plain(effect.cost),
    }


def _plain(cost: Cost) -> dict[str, float]:
    return {"trained": cost.trained, "scored": cost.scored, "seconds": round(cost.seconds, 2)}


def set_up(scenario: Scenario, setup: Setup, *, seed: int) -> Arena:
    """Poison the data of a scenario, as large as the setup says."""
    options = PoisonOptions(
        attack=scenario.attack,
        settings={name: str(value) for name, value in scenario.options_for(seed).items()},
        seed=seed,
        limit=setup.limit,
        load=LoadOptions(image_size=setup.image_size),
    )
    found = attacked(scenario.dataset, options)
    if found.test is None:
        raise InputError(f"{scenario.dataset} has no test set; an experiment needs one")
    exam = Exam.of(found.attack, found.test)
    return Arena(found.clean, found.poisoned, found.truth, exam, found.augmentation)


def defense_for(name: str, scenario: Scenario, setup: Setup, truth: Truth) -> Defense:
    """A defense by name, with the settings that the paper gives it for this scenario.

    Baselines are told epsilon, as in the paper; ours never is. ``oracle`` alone is told the truth.
    """
    epsilon = scenario.epsilon / 100
    share = setup.epochs / 100
    """Of the epochs that the paper trains for."""
    makers: dict[str, Callable[[], Defense]] = {
        NOTHING: Nothing,
        ORACLE: lambda: Given(~truth.planted),
        RANDOM: lambda: RandomFilter(round(RANDOM_SHARE * len(truth.planted))),
        "ispl": lambda: Incompatibility("ispl", setup.preset, changes=setup.changes),
        "ispl-paper": lambda: Incompatibility("ispl", _papers(scenario), changes=setup.changes),
        "ispl-authors": lambda: Incompatibility("ispl", "authors", changes=setup.changes),
        "out-of-subset": lambda: Incompatibility("out-of-subset"),
        SpectralSignatures.name: lambda: SpectralSignatures.for_epsilon(epsilon, epochs=setup.epochs),
        ActivationClustering.name: lambda: ActivationClustering(epochs=setup.epochs),
        TrimmedLoss.name: lambda: TrimmedLoss.for_epsilon(
            epsilon, first_epochs=max(1, round(80 * share)), later_epochs=max(1, round(40 * share))
        ),
    }
    if name not in makers:
        raise InputError(f"no defense is called {name!r}; the defenses are: {', '.join(makers)}")
    return makers[name]()


def _papers(scenario: Scenario) -> str:
    return "paper-gtsrb" if scenario.dataset == "gtsrb" else "paper-cifar10"
