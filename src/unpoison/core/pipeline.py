"""From labels and a learner to a decision: dispatches on the settings, runs restarts and rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.boosting import (
    component_votes,
    count_votes,
    keep_by_mode_or_lower_half,
    keep_by_two_votes,
    suspicion_from_losses,
)
from unpoison.core.checkpoint import Checkpoints, NoCheckpoints
from unpoison.core.config import GroupSettings, IsplSettings, Settings
from unpoison.core.groups.method import clean_by_groups
from unpoison.core.ispl import find_component
from unpoison.core.learner import LearnerFactory
from unpoison.core.result import Group, Sanitization, VoteRecord
from unpoison.core.self_training import recover
from unpoison.core.tasks import FitTask, Runner, Task, Workshop, cost_array, finished, run_serially
from unpoison.errors import InputError
from unpoison.events import Listener, ignore
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, IndexArray, LabelArray


def sanitize(
    labels: LabelArray,
    factory: LearnerFactory,
    settings: Settings,
    *,
    seed: int,
    runner: Runner = run_serially,
    checkpoints: Checkpoints | None = None,
    listener: Listener = ignore,
) -> Sanitization:
    """Decide which samples to keep. The same arguments give the same result, bit for bit.

    ``runner`` and ``checkpoints`` change where and when work happens, never its outcome.
    """
    workshop = Workshop(runner=runner, checkpoints=checkpoints or NoCheckpoints(), listener=listener)
    seeds = Seeds(seed).within(settings.method)
    if isinstance(settings, GroupSettings):
        if np.bincount(labels).max() < 2:
            raise InputError(
                "Every class has one sample, so no half of the data is left for a judge to train on. Give at "
                "least 2 samples of a class, or use method 'ispl'."
            )
        return clean_by_groups(labels, factory, settings, seeds=seeds, workshop=workshop)
    return clean_by_ispl(labels, factory, settings, seeds=seeds, workshop=workshop)


@dataclass(frozen=True)
class RoundTask:
    """Algorithm 1 on what is still active: finds one component, and may make its weak learner too."""

    factory: LearnerFactory
    labels: LabelArray
    active: IndexArray
    settings: IsplSettings
    round_number: int
    seeds: Seeds

    def __call__(self) -> Arrays:
        """The component's samples; what the model says of everyone, if it goes on to be the weak learner."""
        learner = self.factory(self.seeds.integer("learner"))
        component = find_component(
            learner,
            self.active,
            self.labels,
            settings=self.settings,
            round_number=self.round_number,
            seeds=self.seeds,
        )
        votes: Arrays = {}
        if self.settings.weak_start == "component" and len(component):
            votes = finished(
                learner, component, len(self.labels), epochs=self.settings.weak_epochs,
                min_steps=self.settings.weak_min_steps, annealing=self.settings.weak_annealing,
            )  # fmt: skip
        return {**votes, "component": component, "cost": cost_array(learner.cost)}


@dataclass(frozen=True)
class SelfTrainingTask:
    """Take back clean samples that the vote lost."""

    factory: LearnerFactory
    labels: LabelArray
    keep: BoolArray
    settings: IsplSettings
    seeds: Seeds

    def __call__(self) -> Arrays:
        """The keep mask after self-training."""
        learner = self.factory(self.seeds.integer("learner"))
        keep = recover(learner, self.keep, self.labels, settings=self.settings)
        return {"keep": keep, "cost": cost_array(learner.cost)}


@dataclass(frozen=True)
class Votes:
    """The weak learners' rows, and the component each was fitted to."""

    predictions: NDArray[np.int32]
    losses: NDArray[np.float32]
    fitted_to: list[IndexArray]
    names: tuple[str, ...] = ()

    def asked(self, voters: str) -> BoolArray:
        """Voters by samples: who votes on what. A sample that has trained every voter is put to all."""
        asked = np.ones(self.predictions.shape, dtype=np.bool_)
        if voters == "outsiders":
            for row, component in zip(asked, self.fitted_to, strict=True):
                row[component] = False
            asked[:, ~asked.any(axis=0)] = True
        return asked


def clean_by_ispl(
    labels: LabelArray,
    factory: LearnerFactory,
    settings: IsplSettings,
    *,
    seeds: Seeds,
    workshop: Workshop,
) -> Sanitization:
    """The paper's defense: components by ISPL, weak learners, votes, self-training."""
    components, votes = _components_and_votes(labels, factory, settings, seeds, workshop)
    n_classes = int(labels.max()) + 1
    asked = votes.asked(settings.voters)
    modal, support, voted = _vote_on_samples(votes, labels, settings, seeds, n_classes)
    keep = voted
    if settings.self_training:
        workshop.begin("self-training", 1)
        task = SelfTrainingTask(factory, labels, keep, settings, seeds.within("self-training"))
        keep = workshop.run({"self-training": task})["self-training"]["keep"].astype(np.bool_)
    return Sanitization(
        keep=keep,
        suspicion=suspicion_from_losses(votes.losses, asked=asked),
        predicted=modal,
        components=components,
        cost=workshop.cost,
        groups=_removed_by_class(keep, modal, support, labels, n_classes),
        notes={"vote_accuracy": float((modal == labels).mean())},
        votes=VoteRecord(votes.names, votes.predictions, votes.losses, asked),
        voted=voted,
    )


def _components_and_votes(
    labels: LabelArray, factory: LearnerFactory, settings: IsplSettings, seeds: Seeds, workshop: Workshop
) -> tuple[NDArray[np.int64], Votes]:
    """Rounds of one restart are a chain; restarts, and the voters of finished rounds, run beside it."""
    restarts, rounds = settings.restarts, settings.rounds
    components = np.full((restarts, len(labels)), -1, dtype=np.int64)
    found: dict[tuple[int, int], IndexArray] = {}
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    tasks_a_round = 1 if settings.weak_start == "component" else 2
    workshop.begin("components and voters", tasks_a_round * restarts * rounds)
    for number in range(rounds + 1):
        tasks: dict[tuple[str, int, int], Task] = {}
        for r in range(restarts):
            last = number - 1
            if (r, last) in found and (r, last) not in rows:
                seed = seeds.within("restart", r, "round", last).integer("voter")
                tasks["voter", r, last] = FitTask(
                    factory, len(labels), found[r, last], settings.weak_epochs, settings.weak_min_steps, seed,
                    annealing=settings.weak_annealing,
                )  # fmt: skip
            active = np.flatnonzero(components[r] == -1)
            if number < rounds and len(active):
                tasks["round", r, number] = RoundTask(
                    factory, labels, active, settings, number, seeds.within("restart", r, "round", number)
                )
        done = workshop.run({f"restart-{r}-{kind}-{i}": task for (kind, r, i), task in tasks.items()})
        for (kind, r, i), result in zip(tasks, done.values(), strict=True):
            if kind == "voter":
                rows[r, i] = result
            elif len(component := result["component"].astype(np.int64)):
                components[r, component] = i
                found[r, i] = component
                if settings.weak_start == "component":
                    rows[r, i] = result
    if not rows:
        raise InputError("Every loss was NaN or infinite: the learner cannot be trained on this data.")
    order = sorted(rows)  # not by arrival: ties and sums must not depend on who finished first
    return components, Votes(
        predictions=np.stack([rows[key]["predictions"] for key in order]),
        losses=np.stack([rows[key]["losses"] for key in order]),
        fitted_to=[found[key] for key in order],
        names=tuple(f"restart {r + 1}, round {i + 1}" for r, i in order),
    )


def _vote_on_samples(
    votes: Votes, labels: LabelArray, settings: IsplSettings, seeds: Seeds, n_classes: int
) -> tuple[LabelArray, NDArray[np.float32], BoolArray]:
    """Modal label, share of votes for the own label, and the keep mask."""
    asked = votes.asked(settings.voters)
    modal, own_votes = count_votes(
        votes.predictions, labels, n_classes=n_classes, rng=seeds.stream("ties"), asked=asked
    )
    if settings.keep_rule == "component":
        keep = _keep_by_component(votes, labels, restarts=settings.restarts)
    elif settings.keep_rule == "two-votes":
        keep = keep_by_two_votes(modal, own_votes, labels)
    else:
        mean_losses = votes.losses.mean(axis=0, dtype=np.float64, where=asked)
        keep = keep_by_mode_or_lower_half(modal, mean_losses, labels, rng=seeds.stream("halves"))
    return modal, (own_votes / asked.sum(axis=0)).astype(np.float32), keep


def _keep_by_component(votes: Votes, labels: LabelArray, *, restarts: int) -> BoolArray:
    """Algorithm 2: keep what more than half of the restarts find in an accepted component."""
    accepted = component_votes(votes.predictions, votes.fitted_to, labels)
    support = np.zeros(len(labels), dtype=np.int64)
    for component, is_accepted in zip(votes.fitted_to, accepted, strict=True):
        support[component] += int(is_accepted)
    result: BoolArray = 2 * support > restarts
    return result


def _removed_by_class(
    keep: BoolArray,
    modal: LabelArray,
    support: NDArray[np.float32],
    labels: LabelArray,
    n_classes: int,
) -> tuple[Group, ...]:
    groups: list[Group] = []
    for label in range(n_classes):
        members = np.flatnonzero(~keep & (labels == label))
        if len(members):
            called = int(np.bincount(modal[members], minlength=n_classes).argmax())
            evidence = {"agreement": float(support[members].mean())}
            groups.append(Group(label, len(members), True, called, evidence))
    return tuple(groups)
