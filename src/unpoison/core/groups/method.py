"""The method of groups: outsiders, propose, withhold, judge, decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.core.boosting import count_votes, suspicion_from_losses
from unpoison.core.config import GroupSettings
from unpoison.core.groups.decide import Evidence, Thresholds, Verdict, decide
from unpoison.core.groups.propose import ProposeTask, standardized
from unpoison.core.groups.separation import Separation, alike, separation
from unpoison.core.learner import Learner, LearnerFactory, check_finite, embedding_of
from unpoison.core.result import Group, Sanitization, VoteRecord
from unpoison.core.sampling import dealt
from unpoison.core.tasks import Task, Workshop, cost_array, finished
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, FloatArray, IndexArray, LabelArray

HALVES = 2
PARTS = 8
"""Tasks that classes are dealt into: more than workers, and the same whatever their number."""


@dataclass(frozen=True)
class OutsiderTask:
    """Train a model on one half and keep what it says; go on with everyone and keep what it sees."""

    factory: LearnerFactory
    n_samples: int
    half: IndexArray
    settings: GroupSettings
    seed: int

    def __call__(self) -> Arrays:
        """One row each of losses, predictions and confidences; ``view``: a row a sample."""
        learner, settings = self.factory(self.seed), self.settings
        embedding_of(learner)  # refused before it is trained
        floor, everyone = settings.min_steps, np.arange(self.n_samples)
        said = finished(learner, self.half, self.n_samples, epochs=settings.epochs, min_steps=floor)
        learner.fit(everyone, epochs=settings.further_epochs, min_steps=floor, final=True)
        return {**said, **_seen_by(learner, everyone)}


@dataclass(frozen=True)
class JudgeTask:
    """Train a model on some samples; keep what it says and sees of everyone."""

    factory: LearnerFactory
    n_samples: int
    indices: IndexArray
    settings: GroupSettings
    seed: int

    def __call__(self) -> Arrays:
        """As an outsider's."""
        learner, settings = self.factory(self.seed), self.settings
        said = finished(
            learner, self.indices, self.n_samples,
            epochs=settings.judge_epochs, min_steps=settings.min_steps,
        )  # fmt: skip
        return {**said, **_seen_by(learner, np.arange(self.n_samples))}


def _seen_by(learner: Learner, indices: IndexArray) -> Arrays:
    view = embedding_of(learner)(indices)
    check_finite(view, "What the trained model sees is")
    return {"view": view.astype(np.float32), "cost": cost_array(learner.cost)}


@dataclass(frozen=True)
class _Proposed:
    component: IndexArray
    """0 where a sample is in no group, g in group g."""
    met: tuple[Separation, ...]


def clean_by_groups(
    labels: LabelArray, factory: LearnerFactory, settings: GroupSettings, *, seeds: Seeds, workshop: Workshop
) -> Sanitization:
    """Run the whole method on the samples behind ``labels``."""
    half = dealt(labels, HALVES, rng=seeds.stream("halves"))
    workshop.begin("models", HALVES)
    outsiders = _outsiders(labels, half, factory, settings, seeds, workshop)
    called = np.choose(half, [model["predictions"] for model in outsiders]).astype(np.int64)
    proposed = _proposed(outsiders, labels, called, settings, seeds, workshop)
    judges: list[Arrays] = []
    if proposed.met:
        workshop.begin("judges", HALVES)
        judges = _judges(proposed.component == 0, half, factory, settings, seeds, workshop)
    evidence = _evidence(proposed, judges, half, labels, seeds)
    thresholds = Thresholds(settings.met, settings.unmet)
    verdicts = [decide(each, thresholds) for each in evidence]
    return _result(labels, half, outsiders, judges, proposed.component, evidence, verdicts, seeds, workshop)


def _outsiders(
    labels: LabelArray,
    half: IndexArray,
    factory: LearnerFactory,
    settings: GroupSettings,
    seeds: Seeds,
    workshop: Workshop,
) -> list[Arrays]:
    """A model for each half that first did not train on it."""
    tasks: dict[str, Task] = {
        f"model-{h}": OutsiderTask(
            factory, len(labels), np.flatnonzero(half != h), settings, seeds.integer("model", h)
        )
        for h in range(HALVES)
    }
    return list(workshop.run(tasks).values())


def _proposed(
    outsiders: list[Arrays],
    labels: LabelArray,
    called: LabelArray,
    settings: GroupSettings,
    seeds: Seeds,
    workshop: Workshop,
) -> _Proposed:
    """The groups of all classes that stand apart, numbered from 1 by class."""
    views = tuple(model["view"] for model in outsiders)
    classes = np.unique(labels)
    parts = [classes[part::PARTS] for part in range(min(PARTS, len(classes)))]
    workshop.begin("groups that stand apart", len(parts))
    tasks: dict[str, Task] = {
        f"groups-{number}": ProposeTask(views, labels, called, tuple(part.tolist()), settings.met, seeds)
        for number, part in enumerate(parts)
    }
    component = np.zeros(len(labels), dtype=np.int64)
    met: list[Separation] = []
    for found in workshop.run(tasks).values():
        ends = np.cumsum(found["sizes"]).astype(np.int64)
        groups = np.split(found["members"].astype(np.int64), ends[:-1]) if len(ends) else []
        for group, z, error in zip(groups, found["z"].tolist(), found["error"].tolist(), strict=True):
            met.append(Separation(z, error))
            component[group] = len(met)
    return _Proposed(component, tuple(met))


def _judges(
    rest: BoolArray,
    half: IndexArray,
    factory: LearnerFactory,
    settings: GroupSettings,
    seeds: Seeds,
    workshop: Workshop,
) -> list[Arrays]:
    """Models on a half each of what is in no group."""
    tasks: dict[str, Task] = {
        f"judge-{h}": JudgeTask(
            factory, len(half), np.flatnonzero(rest & (half != h)), settings, seeds.integer("judge", h)
        )
        for h in range(HALVES)
    }
    return list(workshop.run(tasks).values())


def _evidence(
    proposed: _Proposed, judges: list[Arrays], half: IndexArray, labels: LabelArray, seeds: Seeds
) -> list[Evidence]:
    """What is measured of each group."""
    views = [standardized((judge["view"],)) for judge in judges]
    rest = proposed.component == 0
    evidence: list[Evidence] = []
    for number, met in enumerate(proposed.met, start=1):
        members = np.flatnonzero(proposed.component == number)
        label = int(labels[members[0]])
        calls = np.stack([judge["predictions"] for judge in judges]).astype(np.int64)
        apart = []
        for h, view in enumerate(views):
            rng = seeds.stream("unmet", number, h)
            like = alike(calls[h], members, rest & (half == h), 3 * len(members) + 300, rng=rng)
            apart.append(separation(view[members], view[like], rng=rng))
        of_members = calls[:, members]
        evidence.append(
            Evidence(
                label=label,
                size=len(members),
                met=met,
                unmet=Separation.mean(apart),
                agreement=float((of_members == label).mean()),
                called=int(np.bincount(of_members.ravel()).argmax()),
            )
        )
    return evidence


def _result(
    labels: LabelArray,
    half: IndexArray,
    outsiders: list[Arrays],
    judges: list[Arrays],
    component: IndexArray,
    evidence: list[Evidence],
    verdicts: list[Verdict],
    seeds: Seeds,
    workshop: Workshop,
) -> Sanitization:
    goes = np.array([False, *(verdict == "planted" for verdict in verdicts)])
    keep = ~goes[component]
    votes = _votes(outsiders, judges, half, component)
    predicted, _ = count_votes(
        votes.predictions, labels,
        n_classes=int(labels.max()) + 1, rng=seeds.stream("ties"), asked=votes.asked,
    )  # fmt: skip
    doubt = suspicion_from_losses(votes.losses.astype(np.float64), asked=votes.asked)
    return Sanitization(
        keep=keep,
        suspicion=_suspicion(doubt, keep),
        predicted=predicted,
        components=component[None, :],
        cost=workshop.cost,
        groups=tuple(map(_group, evidence, verdicts)),
        notes={"vote_accuracy": float((predicted == labels)[component == 0].mean())},
        votes=votes,
    )


def _suspicion(doubt: FloatArray, keep: BoolArray) -> FloatArray:
    """What is removed comes before all else."""
    return np.asarray(np.where(keep, doubt / 2.0, (1.0 + doubt) / 2.0))


def _group(evidence: Evidence, verdict: Verdict) -> Group:
    numbers: dict[str, Any] = {
        "met": evidence.met.z,
        "met_error": evidence.met.error,
        "unmet": evidence.unmet.z,
        "unmet_error": evidence.unmet.error,
        "agreement": evidence.agreement,
    }
    return Group(
        evidence.label, evidence.size, verdict == "planted", evidence.called, numbers,
        undecided=verdict == "undecided",
    )  # fmt: skip


def _votes(
    outsiders: list[Arrays], judges: list[Arrays], half: IndexArray, component: IndexArray
) -> VoteRecord:
    """Of groups the judges speak, of the others the model on the half that they are not in."""
    rows, rest = outsiders + judges, component == 0
    asked = [rest & (half == h) for h in range(HALVES)] + [~rest] * len(judges)
    return VoteRecord(
        tuple(f"model {h + 1}" for h in range(HALVES)) + tuple(f"judge {j + 1}" for j in range(len(judges))),
        np.stack([row["predictions"] for row in rows]).astype(np.int32),
        np.stack([row["losses"] for row in rows]).astype(np.float32),
        np.stack(asked),
    )
