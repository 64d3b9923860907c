"""The method of groups: outsiders, propose, withhold, judge, decide."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from unpoison.core.boosting import count_votes, suspicion_from_losses
from unpoison.core.config import GroupSettings
from unpoison.core.groups.canaries import Canaries, with_canaries
from unpoison.core.groups.decide import Evidence, Thresholds, Verdict, decide
from unpoison.core.groups.propose import NO_SIDE, ProposeTask, standardized
from unpoison.core.groups.separation import NOT_MEASURED, Separation, alike, separation
from unpoison.core.learner import Learner, LearnerFactory, check_finite, embedding_of
from unpoison.core.result import Cost, Group, Sanitization, VoteRecord
from unpoison.core.sampling import dealt
from unpoison.core.tasks import Task, Workshop, cost_array, finished
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, FloatArray, IndexArray, LabelArray

PARTS = 8
"""Tasks that classes are dealt into: more than workers, and the same whatever their number."""


@dataclass(frozen=True)
class ModelTask:
    """Train a model on some samples and keep what it says of everyone; then keep what it sees.

    With ``further_epochs`` it goes on with everyone before it is looked at, as a victim would train.
    """

    factory: LearnerFactory
    n_samples: int
    indices: IndexArray
    epochs: int
    further_epochs: int
    min_steps: int
    seed: int

    def __call__(self) -> Arrays:
        """One row each of losses, predictions and confidences; ``view``: a row a sample."""
        learner, everyone = self.factory(self.seed), np.arange(self.n_samples)
        embedding_of(learner)  # refused before it is trained
        said = finished(learner, self.indices, self.n_samples, epochs=self.epochs, min_steps=self.min_steps)
        if self.further_epochs:
            learner.fit(everyone, epochs=self.further_epochs, min_steps=self.min_steps, final=True)
        return {**said, **_seen_by(learner, everyone)}


def _seen_by(learner: Learner, indices: IndexArray) -> Arrays:
    view = embedding_of(learner)(indices)
    check_finite(view, "What the trained model sees is")
    return {"view": view.astype(np.float32), "cost": cost_array(learner.cost)}


@dataclass(frozen=True)
class _Panel:
    """Models, each trained on one half of some samples before it was asked."""

    models: list[Arrays]
    unseen: BoolArray
    """Models by samples: who had not trained on what."""

    def called(self, labels: LabelArray, seeds: Seeds) -> LabelArray:
        """What each sample is called by those that had not trained on it."""
        predictions = np.stack([model["predictions"] for model in self.models]).astype(np.int32)
        called, _ = count_votes(
            predictions, labels,
            n_classes=int(labels.max()) + 1, rng=seeds.stream("ties"), asked=self.unseen,
        )  # fmt: skip
        return called


@dataclass(frozen=True)
class _Proposed:
    component: IndexArray
    """0 where a sample is in no group, g in group g."""
    met: tuple[Separation, ...]
    sides: IndexArray
    """Of each group, from 1 on: which side it is of a class that falls into two; 0 if it does not."""

    @property
    def rest(self) -> BoolArray:
        """The samples that are in no group."""
        is_rest: BoolArray = self.component == 0
        return is_rest

    def withheld(self, n_judges: int) -> BoolArray:
        """Judges by samples: who is judged by whom, and therefore not met.

        All groups by all, but of a class that falls into two each side by every second judge: a judge that
        knows neither does not know the class.
        """
        side = np.concatenate([[-1], self.sides])[self.component]
        turn = 1 + np.arange(n_judges) % 2
        is_withheld: BoolArray = (side == NO_SIDE) | (side == turn[:, None])
        return is_withheld


def clean_by_groups(
    labels: LabelArray, factory: LearnerFactory, settings: GroupSettings, *, seeds: Seeds, workshop: Workshop
) -> Sanitization:
    """Run the whole method on the samples behind ``labels``."""
    canaries = Canaries.none(labels, factory)
    if settings.canaries:
        canaries = with_canaries(labels, factory, seeds)
    labels, factory = canaries.labels, canaries.factory
    everyone = np.ones(len(labels), dtype=np.bool_)
    n_models = 2 * settings.pairs
    everyone = np.ones((n_models, len(labels)), dtype=np.bool_)
    outsiders = _trained("model", everyone, labels, factory, settings, seeds, workshop)
    proposed = _proposed(outsiders, labels, settings, seeds, workshop)
    judges = _Panel([], np.zeros((0, len(labels)), dtype=np.bool_))
    withheld = proposed.withheld(n_models if proposed.met else 0)
    if proposed.met:
        judges = _trained("judge", ~withheld, labels, factory, settings, seeds, workshop)
    evidence = _evidence(proposed, withheld, judges, labels, seeds)
    thresholds = Thresholds(settings.met, settings.kept)
    verdicts = [decide(each, thresholds) for each in evidence]
    votes = _votes(outsiders, judges, proposed.rest, withheld)
    return _result(labels, votes, proposed.component, evidence, verdicts, canaries, seeds, workshop.cost)


def _trained(
    kind: str,
    some: BoolArray,
    labels: LabelArray,
    factory: LearnerFactory,
    settings: GroupSettings,
    seeds: Seeds,
    workshop: Workshop,
) -> _Panel:
    """Models, each on a half of what it may meet (``some``, a row a model); two halves a pair of models."""
    epochs = (settings.judge_epochs, 0) if kind == "judge" else (settings.epochs, settings.further_epochs)
    half = np.stack([dealt(labels, 2, rng=seeds.stream("halves", pair)) for pair in range(settings.pairs)])
    inside = some & np.concatenate([half != 0, half != 1])
    workshop.begin(f"{kind}s", len(inside))
    tasks: dict[str, Task] = {
        _name(kind, m, indices, (*epochs, settings.min_steps)): ModelTask(
            factory, len(labels), np.flatnonzero(indices), *epochs,
            min_steps=settings.min_steps, seed=seeds.integer(kind, m),
        )
        for m, indices in enumerate(inside)
    }  # fmt: skip
    return _Panel(list(workshop.run(tasks).values()), ~inside)


def _name(kind: str, number: int, inside: BoolArray, passes: tuple[int, ...]) -> str:
    """Of a task; it tells whom the model trains on and for how long, so that no other is taken for it."""
    digest = hashlib.sha256(np.packbits(inside).tobytes() + repr(passes).encode())
    return f"{kind}-{number:03d}-{digest.hexdigest()[:8]}"


def _proposed(
    outsiders: _Panel, labels: LabelArray, settings: GroupSettings, seeds: Seeds, workshop: Workshop
) -> _Proposed:
    """The groups of all classes that stand apart, numbered from 1 by class."""
    views = tuple(model["view"] for model in outsiders.models)
    called = outsiders.called(labels, seeds)
    classes = np.unique(labels)
    parts = [classes[part::PARTS] for part in range(min(PARTS, len(classes)))]
    workshop.begin("groups that stand apart", len(parts))
    tasks: dict[str, Task] = {
        f"groups-{number}": ProposeTask(views, labels, called, tuple(part.tolist()), settings.met, seeds)
        for number, part in enumerate(parts)
    }
    component = np.zeros(len(labels), dtype=np.int64)
    met: list[Separation] = []
    sides: list[int] = []
    for found in workshop.run(tasks).values():
        sides += found["side"].astype(np.int64).tolist()
        ends = np.cumsum(found["sizes"]).astype(np.int64)
        groups = np.split(found["members"].astype(np.int64), ends[:-1]) if len(ends) else []
        for group, z, error in zip(groups, found["z"].tolist(), found["error"].tolist(), strict=True):
            met.append(Separation(z, error))
            component[group] = len(met)
    return _Proposed(component, tuple(met), np.array(sides, dtype=np.int64))


def _evidence(
    proposed: _Proposed, withheld: BoolArray, judges: _Panel, labels: LabelArray, seeds: Seeds
) -> list[Evidence]:
    """What is measured of each group, by the judges that it was withheld from."""
    views = [standardized((judge["view"],)) for judge in judges.models]
    calls = [judge["predictions"].astype(np.int64) for judge in judges.models]
    evidence: list[Evidence] = []
    for number, met in enumerate(proposed.met, start=1):
        members = np.flatnonzero(proposed.component == number)
        label = int(labels[members[0]])
        asked = np.flatnonzero(withheld[:, members[0]]).tolist()
        apart = []
        for j in asked:
            view, called = views[j], calls[j]
            rng = seeds.stream("unmet", number, j)
            unmet = judges.unseen[j] & ~withheld[j]
            like = alike(called, members, unmet, 3 * len(members) + 300, rng=rng)
            apart.append(separation(view[members], view[like], rng=rng))
        of_members = np.stack([calls[j][members] for j in asked])
        evidence.append(
            Evidence(
                label=label,
                size=len(members),
                met=met,
                unmet=Separation.mean([each for each in apart if each.error < NOT_MEASURED]),
                agreement=float((of_members == label).mean()),
                called=int(np.bincount(of_members.ravel()).argmax()),
            )
        )
    return evidence


def _result(
    labels: LabelArray,
    votes: VoteRecord,
    component: IndexArray,
    evidence: list[Evidence],
    verdicts: list[Verdict],
    canaries: Canaries,
    seeds: Seeds,
    cost: Cost,
) -> Sanitization:
    """The decision about the user's samples. A group of canaries for the most part is none of theirs."""
    goes = np.array([False, *(verdict == "planted" for verdict in verdicts)])
    found = canaries.found(~goes[component])
    own = np.flatnonzero(canaries.own)
    component, labels = component[own], labels[own]
    sizes = np.bincount(component, minlength=len(goes))
    theirs = [k for k, each in enumerate(evidence, start=1) if 2 * sizes[k] >= each.size]
    number = np.zeros(len(goes), dtype=np.int64)
    number[theirs] = np.arange(1, len(theirs) + 1)
    keep = ~(goes & (number > 0))[component]
    votes = replace(
        votes, predictions=votes.predictions[:, own], losses=votes.losses[:, own], asked=votes.asked[:, own]
    )
    predicted, _ = count_votes(
        votes.predictions, labels,
        n_classes=int(labels.max()) + 1, rng=seeds.stream("ties"), asked=votes.asked,
    )  # fmt: skip
    doubt = suspicion_from_losses(votes.losses.astype(np.float64), asked=votes.asked)
    return Sanitization(
        keep=keep,
        suspicion=_suspicion(doubt, keep),
        predicted=predicted,
        components=number[component][None, :],
        cost=cost,
        groups=tuple(_group(replace(evidence[k - 1], size=int(sizes[k])), verdicts[k - 1]) for k in theirs),
        notes={
            "vote_accuracy": float((predicted == labels)[component == 0].mean()),
            "canaries": [asdict(canary) for canary in found],
        },
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
        "kept": evidence.kept,
        "kept_error": evidence.kept_error,
        "agreement": evidence.agreement,
    }
    return Group(
        evidence.label, evidence.size, verdict == "planted", evidence.called, numbers,
        undecided=verdict == "undecided", reason=evidence.reason(verdict),
    )  # fmt: skip


def _votes(outsiders: _Panel, judges: _Panel, rest: BoolArray, withheld: BoolArray) -> VoteRecord:
    """Of groups the judges that did not meet them, of others the models that had not trained on them."""
    models = outsiders.models + judges.models
    return VoteRecord(
        (
            *(f"model {m + 1}" for m in range(len(outsiders.models))),
            *(f"judge {j + 1}" for j in range(len(judges.models))),
        ),
        np.stack([model["predictions"] for model in models]).astype(np.int32),
        np.stack([model["losses"] for model in models]).astype(np.float32),
        np.concatenate([outsiders.unseen & rest, withheld]),
    )
