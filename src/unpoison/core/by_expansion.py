"""The expansion method: groups that stand apart in what models see, judged by a model that never met them.

The paper's two steps, clustering (section 1) and a vote by outsiders (section 2.3), for the price of about
three trainings. Models are trained on almost everything, as a victim would be. What they see of a class, side
by side, shows the groups that stand apart; where there are none, nothing more is done. Whether such a group
expands to itself only is then asked directly: does a model that trained on everyone else give it its label?
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.boosting import count_votes, keep_by_groups, suspicion_from_losses
from unpoison.core.config import ExpansionSettings
from unpoison.core.learner import LearnerFactory, check_finite, embedding_of
from unpoison.core.result import Cost, Group, Sanitization, VoteRecord
from unpoison.core.standing_apart import axes_by_class, sharpest_split
from unpoison.core.tasks import FitTask, Task, Workshop, cost_array
from unpoison.core.trimming import class_members
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, FloatArray, IndexArray, LabelArray

AXES_BY_ROOT = 0.75
"""Axes of a class over the root of its size; see ``samples_per_axis``."""
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
        check_finite(view, "What the trained model sees is")
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
        """``component``: 0 for the bulk, g for group g, -g for its halo; ``sharpness``: a number a group.

        ``leaning``: how far each sample lies towards the group that stands apart most in its class.
        """
        component = np.zeros(len(self.labels), dtype=np.int64)
        leaning = np.zeros(len(self.labels))
        sharpness: list[float] = []
        for members in class_members(self.labels):
            axes = self._axes(len(members))
            if axes == 0:
                continue  # too few to tell a group from chance
            side_by_side = np.concatenate([_level(view[members]) for view in self.views], axis=1)
            split = sharpest_split(side_by_side, axes=axes)
            leaning[members] = split.separation * split.travelled
            if split.separation >= self.settings.sharpness:
                sharpness.append(split.separation)
                component[members[split.group]] = len(sharpness)
                component[members[split.halo]] = -len(sharpness)
        return {
            "component": component,
            "sharpness": np.array(sharpness, dtype=np.float64),
            "leaning": leaning,
            "cost": cost_array(Cost()),
        }

    def _axes(self, n: int) -> int:
        return min(self.settings.axes, n // self.settings.samples_per_axis, round(AXES_BY_ROOT * sqrt(n)))


def clean_by_expansion(
    labels: LabelArray,
    factory: LearnerFactory,
    settings: ExpansionSettings,
    *,
    seeds: Seeds,
    workshop: Workshop,
) -> Sanitization:
    """Run the whole method on the samples behind ``labels``."""
    parts = parts_left_out(labels, settings.models, settings.left_out, rng=seeds.stream("parts"))
    workshop.begin("models on almost everything", settings.models)
    models = list(workshop.run(_view_tasks(parts, labels, factory, settings, seeds)).values())
    workshop.begin("groups that stand apart", 1)
    apart = workshop.run({"apart": ApartTask(tuple(m["view"] for m in models), labels, settings)})["apart"]
    component, sharpness = apart["component"].astype(np.int64), apart["sharpness"].astype(np.float64)

    judges: list[Arrays] = []
    if len(sharpness):
        workshop.begin("judges", settings.judges)
        tasks = _judge_tasks(component == 0, parts, labels, factory, settings, seeds)
        judges = list(workshop.run(tasks).values())
    votes = _votes(models, judges, parts, component)
    predicted = _outside_opinion(votes, labels, seeds)
    usual = [_usual_confidence(j, row, parts, component, labels, settings) for j, row in enumerate(judges)]
    groups, keep = _judge_groups(component, sharpness, judges, usual, predicted, labels, settings)
    doubt = suspicion_from_losses(votes.losses.astype(np.float64), asked=votes.asked)
    left_out = (component == 0) & votes.asked.any(axis=0)
    return Sanitization(
        keep=keep,
        suspicion=np.where(keep, apart["leaning"].astype(np.float64) / 2, (1.0 + doubt) / 2),
        predicted=predicted,
        components=np.maximum(component, 0)[None, :],
        cost=workshop.cost,
        groups=groups,
        notes={"vote_accuracy": float((predicted == labels)[left_out].mean())} if left_out.any() else {},
        votes=votes,
    )


def parts_left_out(
    labels: LabelArray, parts: int, share: float, *, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The part that each sample is in, from 0 on, with ``share`` of every class in each; -1 for none.

    >>> sorted(parts_left_out(np.zeros(10, dtype=int), 2, 0.1, rng=np.random.default_rng(0)).tolist())
    [-1, -1, -1, -1, -1, -1, -1, -1, 0, 1]
    """
    part = np.full(len(labels), -1, dtype=np.int64)
    for members in class_members(labels):
        shuffled = rng.permutation(members)
        size = int(share * len(members))  # nobody, of a class with few samples
        for p in range(parts):
            part[shuffled[p * size : (p + 1) * size]] = p
    return part


def _view_tasks(
    parts: IndexArray, labels: LabelArray, factory: LearnerFactory, settings: ExpansionSettings, seeds: Seeds
) -> dict[str, Task]:
    return {
        f"model-{m:03d}": ViewTask(
            factory,
            labels,
            np.flatnonzero(parts != m),
            settings.epochs,
            settings.min_steps,
            seeds.integer("model", m),
        )
        for m in range(settings.models)
    }


def _judge_tasks(
    bulk: BoolArray,
    parts: IndexArray,
    labels: LabelArray,
    factory: LearnerFactory,
    settings: ExpansionSettings,
    seeds: Seeds,
) -> dict[str, Task]:
    """A judge leaves out a part too: what it says of that is how it speaks of what it knows."""
    return {
        f"judge-{j:03d}": FitTask(
            factory,
            len(labels),
            np.flatnonzero(bulk & (parts != j % settings.models)),
            settings.epochs,
            settings.min_steps,
            seeds.integer("judge", j),
        )
        for j in range(settings.judges)
    }


def _usual_confidence(
    j: int,
    judge: Arrays,
    parts: IndexArray,
    component: IndexArray,
    labels: LabelArray,
    settings: ExpansionSettings,
) -> float:
    """What 90% of a judge's right calls exceed, of the part that it left out; 0 where there is none."""
    right = (component == 0) & (parts == j % settings.models) & (judge["predictions"] == labels)
    return float(np.quantile(judge["confidences"][right], 0.1)) if right.any() else 0.0


def _votes(
    models: list[Arrays], judges: list[Arrays], parts: IndexArray, component: IndexArray
) -> VoteRecord:
    """Of groups and halos the judges speak, of the others the model that left them out, if there is one."""
    rows, bulk = models + judges, component == 0
    asked = [bulk & (parts == m) for m in range(len(models))] + [~bulk] * len(judges)
    return VoteRecord(
        tuple(f"model {m + 1}" for m in range(len(models)))
        + tuple(f"judge {j + 1}" for j in range(len(judges))),
        np.stack([row["predictions"] for row in rows]).astype(np.int32),
        np.stack([row["losses"] for row in rows]).astype(np.float32),
        np.stack(asked),
    )


def _outside_opinion(votes: VoteRecord, labels: LabelArray, seeds: Seeds) -> LabelArray:
    """What those say that did not train on a sample; its own label where there is nobody to ask."""
    called, _ = count_votes(
        votes.predictions,
        labels,
        n_classes=int(labels.max()) + 1,
        rng=seeds.stream("ties"),
        asked=votes.asked,
    )
    opinion: LabelArray = np.where(votes.asked.any(axis=0), called, labels)
    return opinion


def _judge_groups(
    component: IndexArray,
    sharpness: FloatArray,
    judges: list[Arrays],
    usual: list[float],
    predicted: LabelArray,
    labels: LabelArray,
    settings: ExpansionSettings,
) -> tuple[tuple[Group, ...], BoolArray]:
    evidence: list[dict[str, float]] = []
    for number, sharp in enumerate(sharpness.tolist(), start=1):
        members = np.flatnonzero(component == number)
        elsewhere = np.stack([judge["predictions"][members] != labels[members[0]] for judge in judges])
        confidence = np.stack([judge["confidences"][members] for judge in judges]).astype(np.float64)
        sure_elsewhere = elsewhere & (confidence >= np.array(usual)[:, None])
        evidence.append(
            {
                "sharpness": sharp,
                "agreement": 1.0 - float(elsewhere.mean()),
                "belonging": int(sure_elsewhere.sum()) / max(int(elsewhere.sum()), 1),
            }
        )
    return keep_by_groups(
        component, evidence, predicted, labels, agreement=settings.agreement, belonging=settings.belonging
    )


def _level(view: NDArray[Any]) -> FloatArray:
    """Coordinates of a class in one model's view, at a scale that is the same for every model."""
    centred: FloatArray = view.astype(np.float64) - view.mean(axis=0)
    length = float(np.sqrt((centred**2).sum(axis=1).mean()))
    return centred / max(length, np.finfo(np.float64).tiny)
