"""The expansion method: groups that stand apart in what models see, judged by models that never met them.

The paper's two steps, clustering (section 2) and a vote by outsiders (section 3.3), for the price of about
three trainings. Models on halves tell what a little data of its kind does not explain. They go on with
everything, as a victim would train, and show the groups that stand apart in a class; where little is in
dispute, a model on that alone shows what it has in common. Whether a group expands to itself only is then
asked directly: does a model that trained on everyone else give it its label?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.boosting import count_votes, keep_by_groups, suspicion_from_losses
from unpoison.core.comovement import Split
from unpoison.core.composition import calls_by_class, composition
from unpoison.core.config import ExpansionSettings
from unpoison.core.learner import Learner, LearnerFactory, check_finite, embedding_of
from unpoison.core.result import Cost, Group, Sanitization, VoteRecord
from unpoison.core.sampling import class_members, dealt
from unpoison.core.standing_apart import SMALLEST_GROUP, axes_by_class, chance, groups_apart, grown
from unpoison.core.tasks import FitTask, Task, Workshop, cost_array, finished
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, FloatArray, IndexArray, LabelArray

AXES_BY_ROOT = 0.75
"""Axes of a class over the root of its size; see ``samples_per_axis``."""
AXES_TO_GROW = 80
"""Axes on which what belongs to a group is told from the rest of its class."""
USUAL = 0.75
"""The quantile over classes of how sharp natural groups are."""
FEW_ERRORS = 0.1
"""Where models on halves are wrong about more of the data, what they do not know is nothing special."""
HALVES = 2
HALF = 0.5
LARGE = 0.25
"""From this share of a class on, which of two sides was planted is not told by their sizes."""
OTHER_SIDE = "other_side"
"""In the evidence about a side of a class that the judges met nothing of: how sure they are of the other."""
OTHER_SIDE_KNOWN = "other_side_known"
"""How much of the other models on halves know."""
SURE = 0.5
"""Where judges met neither side, one goes if they are as sure of this share of it as of what they know,"""
SURER = 2.0
"""and of so many times the share of the other side, which models on halves know as well or better."""
LESS_KNOWN = 0.75
"""Where they know at most this part of what they know of the other, and know nearly all else, as sure as of
the other will do: of what is merely hard, judges are less sure."""
BELONGING_IF_KNOWN = 0.65
"""``belonging``, where they know nearly all else, of what does not strike and they know half of, or more; in
proportion in between."""


@dataclass(frozen=True)
class HalfThenAllTask:
    """Train a model on one half and keep what it says; go on with everyone and keep what it sees."""

    factory: LearnerFactory
    labels: LabelArray
    half: IndexArray
    settings: ExpansionSettings
    seed: int

    def __call__(self) -> Arrays:
        """One row each of losses, predictions and confidences; ``view``: a row a sample."""
        learner, settings = self.factory(self.seed), self.settings
        embedding_of(learner)  # refused before it is trained
        everyone, floor = np.arange(len(self.labels)), settings.min_steps
        said = finished(learner, self.half, len(everyone), epochs=settings.epochs, min_steps=floor)
        differs = np.delete(said["predictions"] != self.labels, self.half)
        is_known = np.count_nonzero(differs) <= settings.disputed * len(differs)
        epochs = settings.further_epochs_if_known if is_known else settings.further_epochs
        learner.fit(everyone, epochs=epochs, min_steps=floor, final=True)
        return {**said, **_seen_by(learner, everyone)}


@dataclass(frozen=True)
class DisputedTask:
    """Train a model on what outsiders dispute, and keep what it sees in everyone.

    Planted samples are few among all and many among the disputed: what they share is learned first there.
    """

    factory: LearnerFactory
    n_samples: int
    disputed: IndexArray
    epochs: int
    min_steps: int
    seed: int

    def __call__(self) -> Arrays:
        """``view``: a row a sample."""
        learner = self.factory(self.seed)
        learner.fit(self.disputed, epochs=self.epochs, min_steps=self.min_steps, final=True)
        return _seen_by(learner, np.arange(self.n_samples))


def _seen_by(learner: Learner, indices: IndexArray) -> Arrays:
    view = embedding_of(learner)(indices)
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
        """``component``: 0 for the bulk, g for group g, -g for what it takes in; others: a number a group.

        ``rival``: the group that is the other side of the class, 0 where that is in the bulk. ``striking``:
        how sharp one that is known has to be. ``few_errors``: see :class:`Bars`. ``leaning``: how far each
        sample lies towards the first group of its class, or what comes nearest.
        """
        component = np.zeros(len(self.labels), dtype=np.int64)
        leaning = np.zeros(len(self.labels))
        evidence: list[tuple[float, float, int]] = []
        axes = max(AXES_TO_GROW, self.settings.axes)
        view = axes_by_class(np.concatenate(self.views, axis=1), self.labels, axes=axes)
        splits_by_class = self._splits(view)
        calls = calls_by_class(self.called, self.labels, n_classes=int(self.labels.max()) + 1)
        bars = self._bars([splits for _, splits in splits_by_class], calls)
        for members, splits in splits_by_class:
            candidates = self._candidates(splits, members, calls, bars)
            first, has_large = len(evidence), False
            for split, known in candidates:
                group = split.group & (component[members] <= 0)
                if 2 * group.sum() < split.group.sum() or group.sum() < SMALLEST_GROUP:
                    continue  # in the main, one that is there already
                if has_large and _is_large(split):
                    continue  # in the main, the other side of it
                has_large = has_large or _is_large(split)
                evidence.append((split.separation, known, 0))
                component[members[group]] = len(evidence)
                halo = grown(view[members].astype(np.float64), group) & (component[members] == 0)
                component[members[halo]] = -len(evidence)
            if has_large:
                self._try_the_rest(component, members, evidence, first, calls)
            nearest = max((split for split, _ in candidates), key=_separation, default=splits[0])
            leaning[members] = max(nearest.separation, 0.0) * nearest.travelled
        found = np.array(evidence, dtype=np.float64).reshape(-1, 3)
        return {
            "component": component,
            "sharpness": found[:, 0],
            "known": found[:, 1],
            "rival": found[:, 2].astype(np.int64),
            "striking": np.array([bars.striking]),
            "few_errors": np.array([bars.few_errors]),
            "leaning": leaning,
            "cost": cost_array(Cost()),
        }

    def _splits(self, view: NDArray[np.float32]) -> list[tuple[IndexArray, list[Split]]]:
        """The members of each class, and the groups in it, the sharpest first; not of classes without any."""
        found: list[tuple[IndexArray, list[Split]]] = []
        for members in class_members(self.labels):
            hints = _hints(self.called[members], int(self.labels[members[0]]))
            axes = self._axes(len(members))
            part = view[members, : self.settings.axes].astype(np.float64)
            if axes and (splits := groups_apart(part, axes=axes, hints=hints, largest=HALF)):
                found.append((members, splits))
        return found

    def _try_the_rest(
        self,
        component: IndexArray,
        members: IndexArray,
        evidence: list[tuple[float, float, int]],
        first: int,
        calls: FloatArray,
    ) -> None:
        """Make a group of what is in none of those of a class, which come after ``first``: the other side.

        Not where that would leave the judges nothing to train on.
        """
        rest = members[component[members] <= 0]
        elsewhere = int((np.delete(component, members) == 0).sum())
        if min(len(rest), elsewhere) < SMALLEST_GROUP:
            return
        numbers = range(first + 1, len(evidence) + 1)
        largest = max(numbers, key=lambda number: int((component[members] == number).sum()))
        evidence.append((evidence[largest - 1][0], self._known(rest, calls), largest))
        component[rest] = len(evidence)
        for number in numbers:
            evidence[number - 1] = (*evidence[number - 1][:2], len(evidence))

    def _bars(self, splits_by_class: list[list[Split]], calls: FloatArray) -> Bars:
        usual = float(np.quantile([_runner_up(splits) for splits in splits_by_class] or [0.0], USUAL))
        wrong = 1.0 - float(calls.trace() / calls.sum())
        least = self.settings.sharpness + usual * min(wrong / self.settings.errors, 1.0)
        return Bars(least, max(least, usual + self.settings.above_usual), wrong <= FEW_ERRORS)

    def _candidates(
        self, splits: list[Split], members: IndexArray, calls: FloatArray, bars: Bars
    ) -> list[tuple[Split, float]]:
        """Those worth a judge, each with how much of it is known; of two and both together, the two first."""
        ranked: list[tuple[float, Split, float]] = []
        for split in splits:
            if split.separation < bars.least:
                break
            known = self._known(members[split.group], calls)
            if not bars.few_errors:
                well = known / self.settings.known
            elif _is_large(split):
                well = min(known, self._known(members[~split.group], calls))
            else:
                well = known
            margin = split.separation - (bars.least + (bars.striking - bars.least) * min(well, 1.0))
            if margin >= 0.0:
                ranked.append((margin + chance(int(split.group.sum())), split, known))
        together = np.any([split.group for _, split, _ in ranked], axis=0).sum() if ranked else 0
        if together > HALF * len(members):  # models on halves do not know the class
            ranked = [entry for entry in ranked if bars.allow(entry[1])]
        return [(split, known) for _, split, known in sorted(ranked, key=lambda entry: -entry[0])]

    def _known(self, members: IndexArray, calls: FloatArray) -> float:
        """How much of some samples of one class is that class, to models on halves."""
        return float(composition(self.called[members], calls)[self.labels[members[0]]])

    def _axes(self, n: int) -> int:
        return min(self.settings.axes, n // self.settings.samples_per_axis, round(AXES_BY_ROOT * sqrt(n)))


@dataclass(frozen=True)
class Bars:
    """What a group has to reach."""

    least: float
    """Least sharpness of a group that nobody knows."""
    striking: float
    """Of one that is known."""
    few_errors: bool
    """Whether models on halves know so much that what they do not know is something special."""

    def allow(self, split: Split) -> bool:
        """Whether it is worth a judge where most of its class is."""
        return split.separation >= self.striking or (self.few_errors and _is_large(split))


def _is_large(split: Split) -> bool:
    """Whether both sides have to be tried."""
    return bool(split.group.sum() > LARGE * len(split.group))


def _separation(split: Split) -> float:
    return split.separation


def _runner_up(splits: list[Split]) -> float:
    """The sharpness of the next group of a class that is not in the main the sharpest one.

    Planted in every class, the sharpest groups would make themselves usual.
    """
    first = splits[0].group
    return max([0.0, *(split.separation for split in splits if _is_another(split.group, first))])


def _is_another(group: BoolArray, first: BoolArray) -> bool:
    """Whether less than half of the smaller one is in both."""
    return bool(2 * (group & first).sum() < min(group.sum(), first.sum()))


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
    halves = _models(labels, half, factory, settings, seeds, workshop)
    called = np.choose(half, [model["predictions"] for model in halves]).astype(np.int64)
    views = [model["view"] for model in halves]
    disputed = np.flatnonzero(called != labels)
    if 0 < len(disputed) <= settings.disputed * len(labels):
        workshop.begin("what is disputed", 1)
        task = DisputedTask(
            factory,
            len(labels),
            disputed,
            settings.epochs,
            settings.min_steps,
            seeds.integer("disputed"),
        )
        views.append(workshop.run({"disputed": task})["disputed"]["view"])
    workshop.begin("groups that stand apart", 1)
    apart = workshop.run({"apart": ApartTask(tuple(views), labels, called, settings)})["apart"]
    component = apart["component"].astype(np.int64)

    judges: list[Arrays] = []
    if component.any():
        workshop.begin("judges", settings.judges)
        judges = list(workshop.run(_judges(component == 0, half, factory, settings, seeds)).values())
    votes = _votes(halves, judges, half, component)
    predicted = _outside_opinion(votes, labels, seeds)
    usual = _usual_confidence(halves, half, (component == 0) & (predicted == labels))
    groups, keep = _judge_groups(apart, judges, usual, predicted, labels, settings)
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


def _models(
    labels: LabelArray,
    half: IndexArray,
    factory: LearnerFactory,
    settings: ExpansionSettings,
    seeds: Seeds,
    workshop: Workshop,
) -> list[Arrays]:
    """A model for each half that first did not train on it."""
    workshop.begin("models", HALVES)
    tasks: dict[str, Task] = {
        f"model-{h:03d}": HalfThenAllTask(
            factory, labels, np.flatnonzero(half != h), settings, seeds.integer("model", h)
        )
        for h in range(HALVES)
    }
    return list(workshop.run(tasks).values())


def _judges(
    bulk: BoolArray, half: IndexArray, factory: LearnerFactory, settings: ExpansionSettings, seeds: Seeds
) -> dict[str, Task]:
    """Models on those of the bulk that are not in half 0, not in half 1, and so on."""
    return {
        f"judge-{m:03d}": FitTask(
            factory,
            len(half),
            np.flatnonzero(bulk & (half != m % HALVES)),
            settings.epochs,
            settings.min_steps,
            seeds.integer("judge", m),
        )
        for m in range(settings.judges)
    }


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
    usual: float,
    predicted: LabelArray,
    labels: LabelArray,
    settings: ExpansionSettings,
) -> tuple[tuple[Group, ...], BoolArray]:
    """What judges say of a group, beside what models like them say of the samples in no group."""
    component = apart["component"].astype(np.int64)
    bulk = component == 0
    calls = calls_by_class(predicted[bulk], labels[bulk], n_classes=int(labels.max()) + 1)
    striking = float(apart["striking"][0])
    evidence: list[dict[str, float]] = []
    for number, sharpness in enumerate(apart["sharpness"].tolist(), start=1):
        members = np.flatnonzero(component == number)
        label = int(labels[members[0]])
        called = np.stack([judge["predictions"][members] for judge in judges]).astype(np.int64)
        elsewhere = called != label
        confidences = np.stack([judge["confidences"][members] for judge in judges]).astype(np.float64)
        surely = confidences >= usual
        own = float(composition(called.ravel(), calls)[label])
        belonging = int((elsewhere & surely).sum()) / max(int(elsewhere.sum()), 1)
        evidence.append(
            {
                "sharpness": sharpness,
                "striking": striking,
                "known": float(apart["known"][number - 1]),
                "agreement": 1.0 - float(elsewhere.mean()),
                "own": own,
                "belonging": belonging,
            }
        )
    for found, rival in zip(evidence, apart["rival"].tolist(), strict=True):
        if rival:
            found[OTHER_SIDE] = evidence[rival - 1]["belonging"]
            found[OTHER_SIDE_KNOWN] = evidence[rival - 1]["known"]
    removed = [_goes(found, settings, few_errors=bool(apart["few_errors"][0])) for found in evidence]
    groups, keep = keep_by_groups(component, evidence, removed, predicted, labels)
    keep[np.isin(-component, np.flatnonzero(removed) + 1)] = False  # a halo goes whole: it is the same kind
    return tuple(replace(group, undecided=_is_undecided(group, groups)) for group in groups), keep


def _goes(found: Mapping[str, float], settings: ExpansionSettings, *, few_errors: bool) -> bool:
    """Whether a group is removed."""
    known, belonging, enough = found["known"], found["belonging"], settings.belonging
    if few_errors:
        enough += min(known / HALF, 1.0) * max(BELONGING_IF_KNOWN - enough, 0.0)
    if OTHER_SIDE in found:
        other, other_known = found[OTHER_SIDE], found[OTHER_SIDE_KNOWN]
        surer = 1.0 if few_errors and known <= LESS_KNOWN * other_known else SURER
        return known <= other_known and belonging >= max(SURE, enough, surer * other)
    beyond = found["sharpness"] - found["striking"]
    is_foreign = found["own"] <= most_own(beyond, settings)
    return is_foreign and belonging >= (settings.belonging if beyond >= 0.0 else enough)


def _is_undecided(group: Group, groups: Iterable[Group]) -> bool:
    """Whether a side surely is something else, but not so much more than the other, which stays as well."""
    if OTHER_SIDE not in group.evidence or group.evidence["belonging"] < SURE:
        return False
    return not any(other.removed for other in groups if other.label == group.label)


def most_own(beyond: float, settings: ExpansionSettings) -> float:
    """The most of a group that may be what its label says for it to go: more, the further it stands apart.

    Images of a clean-label attack are what their label says, and share a trigger that others do not have.

    >>> [round(most_own(beyond, ExpansionSettings()), 2) for beyond in (-0.3, 0.0, 0.06, 0.5)]
    [0.3, 0.3, 0.6, 0.8]
    """
    far = min(max(beyond, 0.0) / settings.far, 1.0)
    return settings.own + far * max(settings.own_if_far - settings.own, 0.0)


def _usual_confidence(halves: list[Arrays], half: IndexArray, right: BoolArray) -> float:
    """What 90% of the right calls of models on halves exceed, of samples in the other half."""
    confidences = np.choose(half, [row["confidences"] for row in halves])[right]
    return float(np.quantile(confidences, 0.1)) if len(confidences) else 0.0
