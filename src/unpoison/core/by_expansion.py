"""The expansion method: groups that stand apart in what models see, judged by models that never met them.

The paper's two steps, clustering (section 1) and a vote by outsiders (section 2.3), for the price of about
three trainings. Models that train on everything, as a victim would, show the groups that stand apart in a
class. Models on halves tell which of them a little data of their kind does not explain. Whether what is left
expands to itself only is then asked directly: does a model that trained on everyone else give it its label?
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.boosting import count_votes, keep_by_groups, suspicion_from_losses
from unpoison.core.comovement import Split
from unpoison.core.composition import calls_by_class, composition
from unpoison.core.config import ExpansionSettings
from unpoison.core.learner import LearnerFactory, check_finite, embedding_of
from unpoison.core.result import Cost, Group, Sanitization, VoteRecord
from unpoison.core.standing_apart import SMALLEST_GROUP, axes_by_class, chance, groups_apart
from unpoison.core.tasks import FitTask, Task, Workshop, cost_array
from unpoison.core.trimming import class_members
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, FloatArray, IndexArray, LabelArray

AXES_BY_ROOT = 0.75
"""Axes of a class over the root of its size; see ``samples_per_axis``."""
HALVES = 2


@dataclass(frozen=True)
class ViewTask:
    """Train a model on everything and keep what it sees in each sample."""

    factory: LearnerFactory
    n_samples: int
    epochs: int
    min_steps: int
    seed: int

    def __call__(self) -> Arrays:
        """``view``: a row a sample."""
        learner = self.factory(self.seed)
        embed = embedding_of(learner)
        everyone = np.arange(self.n_samples)
        learner.fit(everyone, epochs=self.epochs, min_steps=self.min_steps, final=True)
        view = embed(everyone)
        check_finite(view, "What the trained model sees is")
        return {"view": view.astype(np.float32), "cost": cost_array(learner.cost)}


@dataclass(frozen=True)
class ApartTask:
    """Look in every class for groups that stand apart and are worth a judge."""

    views: tuple[NDArray[Any], ...]
    labels: LabelArray
    called: LabelArray
    """What each sample is called by a model on the half that it is not in."""
    settings: ExpansionSettings

    def __call__(self) -> Arrays:
        """``component``: 0 for the bulk, g for group g, -g for its halo; a number a group of the others.

        ``leaning``: how far each sample lies towards the first group of its class, or what comes nearest.
        """
        component = np.zeros(len(self.labels), dtype=np.int64)
        leaning = np.zeros(len(self.labels))
        evidence: list[tuple[float, float]] = []
        calls = calls_by_class(self.called, self.labels, n_classes=int(self.labels.max()) + 1)
        view = axes_by_class(np.concatenate(self.views, axis=1), self.labels, axes=self.settings.axes)
        for members in class_members(self.labels):
            axes = self._axes(len(members))
            if axes == 0:
                continue  # too few to tell a group from chance
            called, label = self.called[members], int(self.labels[members[0]])
            splits = groups_apart(view[members].astype(np.float64), axes=axes, hints=_hints(called, label))
            candidates = self._candidates(splits, called, label, calls)
            for split, known in candidates:
                group = split.group & (component[members] <= 0)
                if 2 * group.sum() < split.group.sum() or group.sum() < SMALLEST_GROUP:
                    continue  # in the main, one that is there already
                evidence.append((split.separation, known))
                component[members[group]] = len(evidence)
                component[members[split.halo & (component[members] == 0)]] = -len(evidence)
            nearest = max((split for split, _ in candidates), key=_separation, default=None)
            nearest = nearest or (splits[0] if splits else Split.nobody(len(members)))
            leaning[members] = max(nearest.separation, 0.0) * nearest.travelled
        found = np.array(evidence, dtype=np.float64).reshape(-1, 2)
        return {
            "component": component,
            "sharpness": found[:, 0],
            "known": found[:, 1],
            "leaning": leaning,
            "cost": cost_array(Cost()),
        }

    def _candidates(
        self, splits: list[Split], called: LabelArray, label: int, calls: FloatArray
    ) -> list[tuple[Split, float]]:
        """Those worth a judge, each with how much of it is known; of two and both together, the two first."""
        least, striking = self.settings.sharpness, self.settings.striking
        ranked: list[tuple[float, Split, float]] = []
        for split in splits:
            if split.separation < least:
                break
            known = float(composition(called[split.group], calls)[label])
            margin = split.separation - (least + (striking - least) * known)
            if margin >= 0.0:
                ranked.append((margin + chance(int(split.group.sum())), split, known))
        return [(split, known) for _, split, known in sorted(ranked, key=lambda entry: -entry[0])]

    def _axes(self, n: int) -> int:
        return min(self.settings.axes, n // self.settings.samples_per_axis, round(AXES_BY_ROOT * sqrt(n)))


def _separation(split: Split) -> float:
    return split.separation


def _hints(called: LabelArray, label: int) -> Iterator[BoolArray]:
    """Where to look besides: those called one other class, and those called any."""
    for other in np.unique(called[called != label]).tolist():
        yield from _large_enough(called == other)
    yield from _large_enough(called != label)


def _large_enough(group: BoolArray) -> Iterator[BoolArray]:
    if SMALLEST_GROUP <= group.sum() < len(group):
        yield group


def clean_by_expansion(
    labels: LabelArray,
    factory: LearnerFactory,
    settings: ExpansionSettings,
    *,
    seeds: Seeds,
    workshop: Workshop,
) -> Sanitization:
    """Run the whole method on the samples behind ``labels``."""
    half = dealt(labels, HALVES, rng=seeds.stream("halves"))
    workshop.begin("models", settings.models + HALVES)
    found = workshop.run(_model_tasks(half, labels, factory, settings, seeds))
    halves = [found[name] for name in found if name.startswith("half")]
    called = np.choose(half, [halves[h]["predictions"] for h in range(HALVES)]).astype(np.int64)
    workshop.begin("groups that stand apart", 1)
    views = tuple(found[name]["view"] for name in found if name.startswith("model"))
    apart = workshop.run({"apart": ApartTask(views, labels, called, settings)})["apart"]
    component = apart["component"].astype(np.int64)

    judges: list[Arrays] = []
    left_out = dealt(labels, settings.parts, rng=seeds.stream("left out")) == 0
    if component.any():
        workshop.begin("judges", settings.judges)
        known = np.flatnonzero((component == 0) & ~left_out)
        tasks: dict[str, Task] = {
            f"judge-{j:03d}": _outsider(known, labels, factory, settings, seeds, HALVES + j)
            for j in range(settings.judges)
        }
        judges = list(workshop.run(tasks).values())
    votes = _votes(halves, judges, half, component)
    predicted = _outside_opinion(votes, labels, seeds)
    groups, keep = _judge_groups(apart, judges, left_out, called, predicted, labels, settings)
    doubt = suspicion_from_losses(votes.losses.astype(np.float64), asked=votes.asked)
    return Sanitization(
        keep=keep,
        suspicion=np.where(keep, apart["leaning"].astype(np.float64) / 2, (1.0 + doubt) / 2),
        predicted=predicted,
        components=np.maximum(component, 0)[None, :],
        cost=workshop.cost,
        groups=groups,
        notes={"vote_accuracy": float((predicted == labels)[component == 0].mean())},
        votes=votes,
    )


def dealt(labels: LabelArray, parts: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
    """The part that each sample is in, 0 .. parts - 1: every class in equal parts, as far as it goes.

    >>> sorted(dealt(np.zeros(5, dtype=int), 2, rng=np.random.default_rng(0)).tolist())
    [0, 0, 1, 1, 1]
    """
    part = np.zeros(len(labels), dtype=np.int64)
    for members in class_members(labels):
        # the last parts are the larger ones: part 0 is what a judge can spare
        part[rng.permutation(members)] = parts - 1 - np.arange(len(members)) % parts
    return part


def _model_tasks(
    half: IndexArray, labels: LabelArray, factory: LearnerFactory, settings: ExpansionSettings, seeds: Seeds
) -> dict[str, Task]:
    """Models on everything, which are looked at, and one for each half, on the other."""
    tasks: dict[str, Task] = {}
    for m in range(settings.models):
        seed = seeds.integer("model", m)
        tasks[f"model-{m:03d}"] = ViewTask(factory, len(labels), settings.epochs, settings.min_steps, seed)
    for h in range(HALVES):
        tasks[f"half-{h:03d}"] = _outsider(np.flatnonzero(half != h), labels, factory, settings, seeds, h)
    return tasks


def _judge_tasks(
    indices: IndexArray,
    labels: LabelArray,
    factory: LearnerFactory,
    settings: ExpansionSettings,
    seeds: Seeds,
) -> dict[str, Task]:
    return {
        f"judge-{j:03d}": _outsider(indices, labels, factory, settings, seeds, HALVES + j)
        for j in range(settings.judges)
    }


def _outsider(
    indices: IndexArray,
    labels: LabelArray,
    factory: LearnerFactory,
    settings: ExpansionSettings,
    seeds: Seeds,
    number: int,
) -> FitTask:
    epochs, seed = settings.outsider_epochs, seeds.integer("outsider", number)
    return FitTask(factory, len(labels), indices, epochs, settings.min_steps, seed)


def _votes(halves: list[Arrays], judges: list[Arrays], half: IndexArray, component: IndexArray) -> VoteRecord:
    """Of groups and halos the judges speak, of the others the model on the half that they are not in."""
    rows, bulk = halves + judges, component == 0
    asked = [bulk & (half == h) for h in range(HALVES)] + [~bulk] * len(judges)
    return VoteRecord(
        tuple(f"model {h + 1}" for h in range(HALVES)) + tuple(f"judge {j + 1}" for j in range(len(judges))),
        np.stack([row["predictions"] for row in rows]).astype(np.int32),
        np.stack([row["losses"] for row in rows]).astype(np.float32),
        np.stack(asked),
    )


def _outside_opinion(votes: VoteRecord, labels: LabelArray, seeds: Seeds) -> LabelArray:
    """What those say that did not train on a sample."""
    called, _ = count_votes(
        votes.predictions,
        labels,
        n_classes=int(labels.max()) + 1,
        rng=seeds.stream("ties"),
        asked=votes.asked,
    )
    return called


def _judge_groups(
    apart: Arrays,
    judges: list[Arrays],
    left_out: BoolArray,
    called: LabelArray,
    predicted: LabelArray,
    labels: LabelArray,
    settings: ExpansionSettings,
) -> tuple[tuple[Group, ...], BoolArray]:
    component = apart["component"].astype(np.int64)
    bulk = component == 0
    calls = calls_by_class(called[bulk], labels[bulk], n_classes=int(labels.max()) + 1)
    usual = [_usual_confidence(judge, bulk & left_out, labels) for judge in judges]
    evidence: list[dict[str, float]] = []
    removed: list[bool] = []
    for number in range(1, len(apart["sharpness"]) + 1):
        members = np.flatnonzero(component == number)
        label = int(labels[members[0]])
        calls_of_it = np.stack([judge["predictions"][members] for judge in judges]).astype(np.int64)
        elsewhere = calls_of_it != label
        confidence = np.stack([judge["confidences"][members] for judge in judges])
        sure_elsewhere = elsewhere & (confidence >= np.array(usual)[:, None])
        own = float(composition(calls_of_it.ravel(), calls)[label])
        belonging = int(sure_elsewhere.sum()) / max(int(elsewhere.sum()), 1)
        evidence.append(
            {
                "sharpness": float(apart["sharpness"][number - 1]),
                "known": float(apart["known"][number - 1]),
                "agreement": 1.0 - float(elsewhere.mean()),
                "own": own,
                "belonging": belonging,
            }
        )
        removed.append(own <= settings.own and belonging >= settings.belonging)
    return keep_by_groups(component, evidence, removed, predicted, labels)


def _usual_confidence(judge: Arrays, left_out: BoolArray, labels: LabelArray) -> float:
    """What 90% of a judge's right calls exceed, of those that it left out; 0 where there are none."""
    right = left_out & (judge["predictions"] == labels)
    return float(np.quantile(judge["confidences"][right], 0.1)) if right.any() else 0.0
