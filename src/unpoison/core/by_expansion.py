"""The expansion method: groups that stand apart in what models see, judged by a model that never met them.

The paper's two steps, clustering (section 1) and a vote by outsiders (section 2.3), for the price of about
three trainings. A few models train on all parts of the data but one. What they see of a class, side by side,
shows the groups that stand apart; where there are none, nothing more is done. Whether such a group expands to
itself only is then asked directly: does a model that trained on everyone else give it its labels?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.boosting import count_votes, suspicion_from_losses
from unpoison.core.config import ExpansionSettings
from unpoison.core.learner import LearnerFactory, embedding_of
from unpoison.core.result import Cost, Group, Sanitization, VoteRecord
from unpoison.core.standing_apart import axes_by_class, sharpest_split
from unpoison.core.tasks import FitTask, Workshop, cost_array
from unpoison.core.trimming import class_members
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, FloatArray, IndexArray, LabelArray

KEPT_AXES = 32
"""Of what one model sees of a class; the rest is noise, and would have to be stored."""


@dataclass(frozen=True)
class ViewTask:
    """Train a model on ``indices``; keep what it says of all samples, and what it sees in them."""

    factory: LearnerFactory
    labels: LabelArray
    indices: IndexArray
    epochs: int
    min_steps: int
    seed: int

    def __call__(self) -> Arrays:
        """A row each of losses and predictions, and ``view``, a row a sample."""
        learner = self.factory(self.seed)
        embed = embedding_of(learner)
        learner.fit(self.indices, epochs=self.epochs, min_steps=self.min_steps, final=True)
        everyone = np.arange(len(self.labels))
        assessment, view = learner.assess(everyone), embed(everyone)
        if not np.isfinite(view).all():
            raise InputError(
                "What the trained model sees is not finite: its training diverged. "
                "Use a lower learning rate or another recipe."
            )
        return {
            "losses": assessment.losses.astype(np.float32),
            "predictions": assessment.predictions.astype(np.int32),
            "view": axes_by_class(view, self.labels, axes=KEPT_AXES),
            "cost": cost_array(learner.cost),
        }


@dataclass(frozen=True)
class ApartTask:
    """Look in every class for a group that stands apart."""

    views: tuple[NDArray[Any], ...]
    labels: LabelArray
    settings: ExpansionSettings

    def __call__(self) -> Arrays:
        """``component``: 0 for the bulk, g for group g, -g for its halo; ``sharpness``: a number a group."""
        component = np.zeros(len(self.labels), dtype=np.int64)
        sharpness: list[float] = []
        for members in class_members(self.labels):
            axes = min(self.settings.axes, len(members) // self.settings.samples_per_axis)
            if axes == 0:
                continue  # too few to tell a group from chance
            side_by_side = np.concatenate([_level(view[members]) for view in self.views], axis=1)
            split = sharpest_split(side_by_side, axes=axes)
            if split.separation >= self.settings.sharpness:
                sharpness.append(split.separation)
                component[members[split.group]] = len(sharpness)
                component[members[split.halo]] = -len(sharpness)
        return {
            "component": component,
            "sharpness": np.array(sharpness, dtype=np.float64),
            "cost": cost_array(Cost()),
        }


@dataclass(frozen=True)
class Voters:
    """What models say of all samples (models by samples), and of which of them their word counts."""

    names: tuple[str, ...]
    losses: NDArray[np.float32]
    predictions: NDArray[np.int32]
    asked: BoolArray

    def only(self, rows: slice) -> Voters:
        """Some of them."""
        return Voters(self.names[rows], self.losses[rows], self.predictions[rows], self.asked[rows])


def clean_by_expansion(
    labels: LabelArray,
    factory: LearnerFactory,
    settings: ExpansionSettings,
    *,
    seeds: Seeds,
    workshop: Workshop,
) -> Sanitization:
    """Run the whole method on the samples behind ``labels``."""
    part = parts_by_class(labels, settings.parts, rng=seeds.stream("parts"))
    workshop.begin("models on all parts but one", settings.parts)
    trained = _fit_to_parts(part, labels, factory, settings, seeds, workshop)
    workshop.begin("groups that stand apart", 1)
    apart = workshop.run({"apart": ApartTask(tuple(row["view"] for row in trained), labels, settings)})[
        "apart"
    ]
    component, sharpness = apart["component"].astype(np.int64), apart["sharpness"].astype(np.float64)

    judged: list[Arrays] = []
    if len(sharpness):
        workshop.begin("judges", settings.judges)
        judged = _fit_judges(np.flatnonzero(component == 0), labels, factory, settings, seeds, workshop)
    voters = _voters(trained, judged, part, component)
    predicted, _ = count_votes(
        voters.predictions,
        labels,
        n_classes=int(labels.max()) + 1,
        rng=seeds.stream("ties"),
        asked=voters.asked,
    )
    groups, keep = _judge_groups(component, sharpness, voters, predicted, labels, settings)
    doubt = suspicion_from_losses(voters.losses.astype(np.float64), asked=voters.asked)
    return Sanitization(
        keep=keep,
        suspicion=np.where(keep, doubt / 2, (1.0 + doubt) / 2),
        predicted=predicted,
        components=np.maximum(component, 0)[None, :],
        cost=workshop.cost,
        groups=groups,
        notes={"vote_accuracy": float((predicted == labels)[component == 0].mean())},
        votes=VoteRecord(voters.names, voters.predictions, voters.losses, voters.asked),
    )


def parts_by_class(labels: LabelArray, parts: int, *, rng: np.random.Generator) -> IndexArray:
    """A random part for every sample, each with the same share of every class.

    >>> sorted(parts_by_class(np.array([5, 5, 5, 5]), 2, rng=np.random.default_rng(0)).tolist())
    [0, 0, 1, 1]
    """
    part = np.empty(len(labels), dtype=np.int64)
    start = 0
    for members in class_members(labels):
        # one class goes on where the last one stopped, so that small classes do not all fill the first parts
        part[rng.permutation(members)] = (start + np.arange(len(members))) % parts
        start += len(members)
    return part


def _fit_to_parts(
    part: IndexArray,
    labels: LabelArray,
    factory: LearnerFactory,
    settings: ExpansionSettings,
    seeds: Seeds,
    workshop: Workshop,
) -> list[Arrays]:
    tasks: dict[str, Any] = {}
    for p in range(settings.parts):
        rest = np.flatnonzero(part != p)
        seed = seeds.integer("part", p)
        tasks[f"part-{p:03d}"] = ViewTask(factory, labels, rest, settings.epochs, settings.min_steps, seed)
    return list(workshop.run(tasks).values())


def _fit_judges(
    bulk: IndexArray,
    labels: LabelArray,
    factory: LearnerFactory,
    settings: ExpansionSettings,
    seeds: Seeds,
    workshop: Workshop,
) -> list[Arrays]:
    tasks: dict[str, Any] = {
        f"judge-{j:03d}": FitTask(
            factory, len(labels), bulk, settings.epochs, settings.min_steps, seeds.integer("judge", j)
        )
        for j in range(settings.judges)
    }
    return list(workshop.run(tasks).values())


def _voters(trained: list[Arrays], judged: list[Arrays], part: IndexArray, component: IndexArray) -> Voters:
    """Of the bulk the model that trained without the sample's part speaks, of the others the judges."""
    rows = trained + judged
    bulk = component == 0
    asked = [bulk & (part == p) for p in range(len(trained))] + [~bulk] * len(judged)
    return Voters(
        names=tuple(f"part {p + 1} left out" for p in range(len(trained)))
        + tuple(f"judge {j + 1}" for j in range(len(judged))),
        losses=np.stack([row["losses"] for row in rows]).astype(np.float32),
        predictions=np.stack([row["predictions"] for row in rows]).astype(np.int32),
        asked=np.stack(asked),
    )


def _judge_groups(
    component: IndexArray,
    sharpness: FloatArray,
    voters: Voters,
    predicted: LabelArray,
    labels: LabelArray,
    settings: ExpansionSettings,
) -> tuple[tuple[Group, ...], BoolArray]:
    """Algorithm 2 for groups: remove those whose labels outsiders do not give.

    A group's halo goes with it, but only those samples that the outsiders place elsewhere too.
    """
    keep = np.ones(len(labels), dtype=np.bool_)
    judges = voters.only(slice(settings.parts, None))
    groups: list[Group] = []
    for number, sharp in enumerate(sharpness.tolist(), start=1):
        members = np.flatnonzero(component == number)
        label = int(labels[members[0]])
        agreement = float((judges.predictions[:, members] == label).mean())
        removed = agreement <= settings.agreement
        if removed:
            keep[members] = False
            halo = np.flatnonzero(component == -number)
            keep[halo[predicted[halo] != label]] = False
        called = int(np.bincount(predicted[members]).argmax())
        evidence = {"sharpness": sharp, "agreement": agreement}
        groups.append(Group(label, len(members), removed, called, evidence))
    return tuple(groups), keep


def _level(view: NDArray[Any]) -> FloatArray:
    """Coordinates of a class in one model's view, at a scale that is the same for every model."""
    centred: FloatArray = view.astype(np.float64) - view.mean(axis=0)
    length = float(np.sqrt((centred**2).sum(axis=1).mean()))
    return centred / max(length, np.finfo(np.float64).tiny)
