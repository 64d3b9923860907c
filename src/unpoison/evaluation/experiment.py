"""One experiment: attack a dataset, defend it, train a victim on what is kept, and measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import Samples, Truth
from unpoison.core.checkpoint import FolderCheckpoints
from unpoison.core.config import GroupSettings, IsplSettings
from unpoison.core.learner import LearnerFactory
from unpoison.core.presets import settings_for
from unpoison.core.result import Cost
from unpoison.core.trimming import beta_schedule
from unpoison.data.named.cache import cache_folder
from unpoison.data.options import LoadOptions
from unpoison.defenses.activation_clustering import ActivationClustering
from unpoison.defenses.base import Decision, Defense
from unpoison.defenses.confident_learning import ConfidentLearning
from unpoison.defenses.controls import Given, Nothing, RandomFilter
from unpoison.defenses.incompatibility import Incompatibility
from unpoison.defenses.spectral import LEAST_SHARE, LEAST_SHARE_200_EPOCHS, SpectralSignatures
from unpoison.defenses.trimmed_loss import TrimmedLoss
from unpoison.errors import InputError
from unpoison.evaluation.bench import ON_CLEAN, RANDOM_PERCENT, UNDEFENDED, BenchTask, check_defense
from unpoison.evaluation.evidence import identity_of, keeping, told_groups
from unpoison.evaluation.metrics import auc, by_component
from unpoison.evaluation.poisoning import PoisonOptions, attacked
from unpoison.evaluation.scales import LONG_EPOCHS, Setup, scale_named
from unpoison.evaluation.scenarios import PAPER_EPOCHS, Scenario, by_name, with_images
from unpoison.evaluation.victims import Effect, Exam, FactoryOver, train_and_examine
from unpoison.learners.choose import LearnerChoice, choose
from unpoison.learners.recipes import (
    SLEEPER_AGENT_CRAFTING_EPOCHS,
    SLEEPER_AGENT_EPOCHS,
    TrainingOptions,
    recipe_for,
)
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, LabelArray

NOTHING, ORACLE, RANDOM = UNDEFENDED, "oracle", "random"
CRAFTING_EPOCHS = 15
"""Fewest of a network that Sleeper Agent crafts on: what ``unpoison poison`` takes. Poison that is crafted on
a network that has learned little does nothing to one that has."""
RANDOM_SHARE = 0.075
"""What ``random`` removes: the share of the clean data that the paper's defense does. At the laptop scale
that defense removes half of CIFAR-10, as ``random-50`` does."""


@dataclass(frozen=True)
class Arena:
    """A poisoned training set with the truth about it, and an examination."""

    clean: Samples
    poisoned: Samples
    truth: Truth
    exam: Exam
    augmentation: str
    attack_number: NDArray[np.int64] | None = None
    """Of each sample, whose it is where several attacks share the set; -1: nobody's."""

    def factory_over(self, setup: Setup, *, recipe: str | None = None) -> FactoryOver:
        """Networks of this setup over any features of this kind, with their usual recipe if none is named."""
        training = TrainingOptions(augmentation=self.augmentation)
        choice = LearnerChoice(setup.network, recipe, training)

        def over(features: NDArray[Any], labels: LabelArray) -> LearnerFactory:
            return choose(choice, features, labels, n_classes=self.poisoned.n_classes).factory

        return over


def run_task(task: BenchTask, *, work: Path) -> dict[str, Any]:  # noqa: ARG001 - nothing is written
    """Attack, defend, train the victim and measure; plain values."""
    scenario = by_name(task.scenario)
    setup = scale_named(task.scale).setup_for(scenario)
    arena = set_up(scenario, setup, seed=task.seed, arrays=task.arrays, watermarks=task.watermarks)
    on_clean = task.defense.endswith(ON_CLEAN)
    if on_clean:
        nobody = np.zeros(len(arena.clean), dtype=np.bool_)
        truth = Truth(nobody, nobody, arena.clean.labels)
        arena = Arena(arena.clean, arena.clean, truth, arena.exam, arena.augmentation)
    defense = _resumable(
        defense_for(task.defense.removesuffix(ON_CLEAN), scenario, setup, arena.truth.planted), task, arena
    )
    seeds = Seeds(task.seed).within("experiment")
    labels = arena.poisoned.labels
    recipe = setup.ispl_recipe if _is_ispl(defense) else None
    factory = arena.factory_over(setup, recipe=recipe)(arena.poisoned.features, labels)
    decision = defense.judge(labels, factory, seed=seeds.integer("defense"))
    effect = train_and_examine(
        arena.poisoned, decision.keep, arena.exam, arena.factory_over(setup, recipe=setup.victim_recipe),
        epochs=setup.epochs, min_steps=0, seed=seeds.integer("victim"),
    )  # fmt: skip
    return {
        "scenario": task.scenario,
        "scale": task.scale,
        "seed": task.seed,
        "defense": task.defense,
        **({} if task.images is None else {"images": task.images}),
        **_measured(decision, effect, arena.truth),
        **_of_each(scenario, decision, effect, arena),
        **_second_victim(scenario, setup, arena, decision.keep, seed=seeds.integer("second victim")),
    }


def _of_each(scenario: Scenario, decision: Decision, effect: Effect, arena: Arena) -> dict[str, Any]:
    """Where several attacks share the set: what of each was found, and what it still does."""
    if arena.attack_number is None or not effect.of_each:
        return {}
    planted, removed = arena.truth.planted, ~decision.keep
    found = []
    for number, (each, (tmr, asr)) in enumerate(zip(scenario.attacks, effect.of_each, strict=True)):
        own = planted & (arena.attack_number == number)
        found.append(
            {
                "attack": each.name,
                "family": each.family,
                "planted": int(own.sum()),
                "found": int((own & removed).sum()),
                "tmr": tmr,
                "asr": asr,
            }
        )
    return {"attacks": found}


def _second_victim(
    scenario: Scenario, setup: Setup, arena: Arena, keep: BoolArray, *, seed: int
) -> dict[str, Any]:
    """Of a victim trained in the attacker's way on what the defense kept, where the paper has one."""
    if scenario.second_recipe is None:
        return {}
    epochs = _of_papers(SLEEPER_AGENT_EPOCHS, scenario, setup)
    over = arena.factory_over(setup, recipe=scenario.second_recipe)
    effect = train_and_examine(arena.poisoned, keep, arena.exam, over, epochs=epochs, min_steps=0, seed=seed)
    return {
        "attacker_accuracy": effect.accuracy,
        "attacker_tmr": effect.targeted,
        "attacker_asr": effect.success,
        "attacker_cost": _plain(effect.cost),
        "attacker_training": {
            "network": setup.network,
            "epochs": epochs,
            "augmentation": arena.augmentation,
            "recipe": recipe_for(setup.network, scenario.second_recipe).as_dict(),
        },
    }


def _is_ispl(defense: Defense) -> TypeGuard[Incompatibility]:
    return isinstance(defense, Incompatibility) and defense.method == "ispl"


def _resumable(defense: Defense, task: BenchTask, arena: Arena) -> Defense:
    """Keeps what each model said: as evidence where that is asked for; of ISPL, which trains many, always.

    A run of it that was killed goes on from the cache.
    """
    if not isinstance(defense, Incompatibility):
        return defense
    features, labels = arena.poisoned.features, arena.poisoned.labels
    if task.evidence:
        kept = keeping(Path(task.evidence), task, features=features, labels=labels, truth=arena.truth)
        return replace(defense, checkpoints=kept)
    if not _is_ispl(defense):
        return defense
    identity = {
        "task": task.name,
        **identity_of(features, labels, "attacks", "core", "defenses", "learners"),
    }
    kept = FolderCheckpoints.named_after(identity, parent=cache_folder() / "bench")
    return replace(defense, checkpoints=kept)


def _measured(decision: Decision, effect: Effect, truth: Truth) -> dict[str, Any]:
    removed, planted, clean = ~decision.keep, truth.planted, ~truth.planted & ~truth.covers
    found, lost = int((removed & planted).sum()), int((removed & clean).sum())
    return {
        "n": len(planted),
        "planted": int(planted.sum()),
        "accuracy": effect.accuracy,
        "tmr": effect.targeted,
        "asr": effect.success,
        "false_positives": lost,
        "false_negatives": int(planted.sum()) - found,
        "true_positive_rate": found / int(planted.sum()) if planted.any() else None,
        "false_positive_rate": lost / max(1, int(clean.sum())),
        **({"covers_removed": int((removed & truth.covers).sum())} if truth.covers.any() else {}),
        "auc": auc(decision.suspicion, planted),
        "defense_cost": _plain(decision.cost),
        "victim_cost": _plain(effect.cost),
        "groups": told_groups(decision, truth),
        **({"canaries": list(decision.canaries)} if decision.canaries else {}),
        **_by_component(decision, planted),
    }


def _by_component(decision: Decision, planted: BoolArray) -> dict[str, Any]:
    """Of ISPL: how many samples, and planted ones, each component of each restart holds; the last: none.

    And what would be lost and missed without self-training.
    """
    if decision.voted is None or decision.components is None:
        return {}
    removed = ~decision.voted
    n_rounds = int(decision.components.max()) + 1
    everybody = np.ones(len(planted), dtype=np.bool_)
    return {
        **{
            name: [by_component(row, whom, n_components=n_rounds) for row in decision.components]
            for name, whom in (("components", everybody), ("planted_by_component", planted))
        },
        "voted_false_positives": int((removed & ~planted).sum()),
        "voted_false_negatives": int((~removed & planted).sum()),
    }


def _plain(cost: Cost) -> dict[str, float]:
    return {"trained": cost.trained, "scored": cost.scored, "seconds": round(cost.seconds, 2)}


def set_up(scenario: Scenario, setup: Setup, *, seed: int, arrays: str = "", watermarks: str = "") -> Arena:
    """Poison the data of a scenario, as large as the setup says; with official images where given."""
    if scenario.attacks:
        return _shared(
            [
                set_up(each, setup, seed=each.seeds[0], arrays=arrays, watermarks=watermarks)
                for each in scenario.attacks
            ]
        )
    options = poison_options(scenario, setup, seed=seed, arrays=arrays, watermarks=watermarks)
    found = attacked(scenario.dataset, options, kept=cache_folder() / "attacks")
    if found.test is None:
        raise InputError(f"{scenario.dataset} has no test set; an experiment needs one")
    exam = Exam.of(found.attack, found.test)
    augmentation = setup.augmentation or found.augmentation
    return Arena(found.clean, found.poisoned, found.truth, exam, augmentation)


def _shared(arenas: list[Arena]) -> Arena:
    """Several attacks on one training set. What two of them chose is the first one's."""
    clean = arenas[0].clean
    features, labels = clean.features.copy(), clean.labels.copy()
    number = np.full(len(labels), -1)
    planted, covers = np.zeros(len(labels), dtype=np.bool_), np.zeros(len(labels), dtype=np.bool_)
    for k, arena in enumerate(arenas):
        own = (arena.truth.planted | arena.truth.covers) & (number < 0)
        features[own], labels[own] = arena.poisoned.features[own], arena.poisoned.labels[own]
        planted[own], covers[own], number[own] = arena.truth.planted[own], arena.truth.covers[own], k
    truth = Truth(planted, covers, clean.labels.copy())
    exam = Exam.joined([arena.exam for arena in arenas])
    return Arena(clean, clean.changed(features, labels), truth, exam, arenas[0].augmentation, number)


def poison_options(
    scenario: Scenario, setup: Setup, *, seed: int, arrays: str = "", watermarks: str = ""
) -> PoisonOptions:
    """What the attacker of a scenario does, at the size of the setup."""
    chosen = with_images(scenario.options_for(seed), arrays=arrays, watermarks=watermarks)
    options = PoisonOptions(
        attack=scenario.attack,
        settings={name: str(value) for name, value in chosen.items()},
        seed=seed,
        limit=setup.limit,
        load=LoadOptions(image_size=setup.image_size),
    )
    if scenario.attack == "sleeper-agent":
        return _crafted(options, scenario, setup)
    return _informed(options, scenario, setup) if scenario.attack == "adaptive" else options


def _crafted(options: PoisonOptions, scenario: Scenario, setup: Setup) -> PoisonOptions:
    """On the victim's own network, as in the paper; for as long as there, but never less than usual."""
    epochs = max(CRAFTING_EPOCHS, _of_papers(SLEEPER_AGENT_CRAFTING_EPOCHS, scenario, setup))
    crafting = {"network": setup.network, "epochs": str(epochs)}
    return replace(options, settings={**options.settings, **crafting}, augmentation=setup.augmentation)


def _informed(options: PoisonOptions, scenario: Scenario, setup: Setup) -> PoisonOptions:
    """The attacker runs ISPL "using the same parameters": preset, network and augmentation are the defense's.

    Where the scale reduces ISPL, it is the reduced one that is attacked.
    """
    defense = _ispl("paper", scenario, {**setup.reduced, **setup.changes})
    known = {"learner": setup.network, "settings": defense.preset}
    return replace(
        options,
        settings={**options.settings, **known},
        augmentation=setup.augmentation,
        ispl_changes=defense.changes,
        ispl_recipe=setup.ispl_recipe,
    )


Maker: TypeAlias = Callable[[Scenario, Setup, BoolArray], Defense]
"""From the scenario, its size, and (for the perfect filter alone) what was planted, to a defense."""

FOLDS = 3
"""Of confident learning: two trainings in all."""
DEFENSES: dict[str, Maker] = {
    NOTHING: lambda _scenario, _setup, _planted: Nothing(),
    ORACLE: lambda _scenario, _setup, planted: Given(~planted),
    RANDOM: lambda _scenario, _setup, planted: RandomFilter(round(RANDOM_SHARE * len(planted))),
    "ispl-paper": lambda scenario, setup, _: _ispl("paper", scenario, setup.changes),
    "ispl-authors": lambda scenario, setup, _: _ispl("authors", scenario, setup.changes),
    "ispl-reduced": lambda scenario, setup, _: _ispl("paper", scenario, {**_reduced(setup), **setup.changes}),
    "ispl-authors-reduced": lambda scenario, setup, _: _ispl(
        "authors", scenario, {**_reduced(setup), **setup.changes}
    ),
    "groups": lambda _scenario, _setup, _planted: Incompatibility("groups"),
    SpectralSignatures.name: lambda scenario, setup, _: SpectralSignatures.for_epsilon(
        scenario.epsilon / 100,
        least_share=LEAST_SHARE_200_EPOCHS if scenario.epochs == LONG_EPOCHS else LEAST_SHARE,
        epochs=_of_papers(PAPER_EPOCHS, scenario, setup),
    ),
    ActivationClustering.name: lambda scenario, setup, _: ActivationClustering(
        epochs=_of_papers(PAPER_EPOCHS, scenario, setup)
    ),
    ConfidentLearning.name: lambda scenario, setup, _: ConfidentLearning(
        FOLDS, epochs=_of_papers(PAPER_EPOCHS, scenario, setup)
    ),
    TrimmedLoss.name: lambda scenario, setup, _: TrimmedLoss.for_epsilon(
        scenario.epsilon / 100,
        first_epochs=_of_papers(80, scenario, setup),
        later_epochs=_of_papers(40, scenario, setup),
    ),
}
"""By name, with the settings that the paper gives each. Baselines are told epsilon, as there; ours is not.

In the tables of 200 epochs it is "the final model" that is trained for 200. The text does not say whether the
model that Spectral Signatures and Activation Clustering look into is too; here it has 100, as elsewhere.
"""


CONTROLS = (NOTHING, ORACLE, RANDOM, f"{RANDOM}-50")
COMPARED = (
    *CONTROLS, "groups", "ispl-authors-reduced", "ispl-reduced",
    SpectralSignatures.name, ActivationClustering.name, TrimmedLoss.name, ConfidentLearning.name,
)  # fmt: skip
"""The defenses that are recorded. Recorded before, and read still: those of ``core.presets.REPLACED``."""


def _ispl(whose: str, scenario: Scenario, changes: Mapping[str, Any]) -> Incompatibility:
    """The paper's settings or its authors' code's, for the dataset; Imagenette has those of CIFAR-10."""
    dataset = "gtsrb" if scenario.dataset == "gtsrb" else "cifar10"
    return Incompatibility("ispl", f"{whose}-{dataset}", changes=changes)


def _reduced(setup: Setup) -> Mapping[str, Any]:
    if not setup.reduced:
        raise InputError("this scale has no reduced settings of ISPL; use ispl-paper or ispl-authors")
    return setup.reduced


def defense_for(name: str, scenario: Scenario, setup: Setup, planted: BoolArray) -> Defense:
    """The defense of that name for a scenario; ``oracle`` alone looks at what was planted."""
    check_defense(name, DEFENSES)
    percent = RANDOM_PERCENT.fullmatch(name)
    if percent is not None:
        return RandomFilter(round(int(percent[1]) / 100 * len(planted)))
    return DEFENSES[name](scenario, setup, planted)


def estimate_seconds(task: BenchTask) -> float:
    """About how long a task takes on one CPU core, from what it trains: a rough guess."""
    scenario = by_name(task.scenario)
    setup = scale_named(task.scale).setup_for(scenario)
    name = task.defense.removesuffix(ON_CLEAN)
    percent = RANDOM_PERCENT.fullmatch(name)
    work = WORK[NOTHING] - int(percent[1]) / 100 if percent else WORK[name]
    epochs = work * setup.epochs
    if name in ("ispl-paper", "ispl-authors"):
        defense = _ispl(name.removeprefix("ispl-"), scenario, setup.changes)
        nobody: LabelArray = np.zeros(0, dtype=np.int64)  # named settings do not ask
        settings = settings_for(nobody, preset=defense.preset, **defense.changes)
        epochs += ispl_passes(settings) if isinstance(settings, IsplSettings) else 0.0
    n = setup.limit or SIZES[scenario.dataset]
    if name == "groups":
        ours = settings_for(np.zeros(n, dtype=np.int64), method="groups", networks=True)
        epochs += group_passes(ours) if isinstance(ours, GroupSettings) else 0.0
    if scenario.second_recipe is not None:
        epochs += WORK[NOTHING] * _of_papers(SLEEPER_AGENT_EPOCHS, scenario, setup)
    return epochs * n / RATES[setup.network]


WORK = {
    NOTHING: 1.1, ORACLE: 1.1, RANDOM: 1.0, "groups": 1.1, "ispl-reduced": 4.3,
    "ispl-authors-reduced": 4.7, "ispl-paper": 1.1, "ispl-authors": 1.1, SpectralSignatures.name: 1.9,
    ActivationClustering.name: 1.7, TrimmedLoss.name: 3.4, ConfidentLearning.name: 2.9,
}  # fmt: skip
"""In trainings of an undefended victim, with the victim's own and a third for forward passes: as counted in
the recorded results, or by the settings for those that are not among them. Of ``groups``, ``ispl-paper`` and
``ispl-authors`` the victim alone: see :func:`group_passes` and :func:`ispl_passes`."""
TAKEN_BACK = 0.85
"""About the share of the data that self-training trains on."""
SIZES = {"cifar10": 50_000, "gtsrb": 26_640, "imagenette": 9_469}
RATES = {"compact": 590.0, "preactresnet18": 9.0, "resnet32": 92.0, "resnet56": 2.3}
"""Images a second on one core: of compact as recorded, on two cores with other work to do (380 to 1,060 from
one defense to the next, by what else ran); of the others by their operations."""


def group_passes(settings: GroupSettings) -> float:
    """About how often the method of groups passes over all data, a forward pass counting a third.

    >>> round(group_passes(GroupSettings()), 1)
    16.7
    """
    return settings.epochs + settings.pairs * settings.judge_epochs + (1 + settings.pairs) / 3


def ispl_passes(settings: IsplSettings) -> float:
    """About how often ISPL passes over all data, a forward pass counting a third.

    By its settings alone: without the floor of each class, and without fewest steps.

    >>> from unpoison.core.presets import PAPER_GTSRB
    >>> round(ispl_passes(PAPER_GTSRB))
    193
    """
    passes, left = 0.0, 1.0
    for _ in range(settings.rounds):
        p = min(1.0, settings.coverage / settings.rounds / left)
        betas = beta_schedule(p, start=settings.beta_from)
        passes += settings.first_epochs * settings.alpha * left
        passes += settings.epochs * settings.alpha * sum(betas[:-1]) * left
        passes += len(betas) * left / 3
        passes += settings.weak_epochs * p * left + 1 / 3
        left -= p * left
    passes *= settings.restarts
    if settings.self_training:
        passes += settings.self_training_updates * (settings.self_training_interval * TAKEN_BACK + 1 / 3)
    return passes


def _of_papers(epochs: int, scenario: Scenario, setup: Setup) -> int:
    """What ``epochs`` of the paper are at this scale, where the victim has ``setup.epochs`` of its own."""
    return max(1, round(epochs * setup.epochs / scenario.epochs))
