"""The out-of-subset method: groups by co-movement, judged by models that trained without them.

The paper's two steps, clustering (section 2) and a vote by outsiders (section 3.3), with the expansion error
measured directly: many models on small random subsets, each looked at only where it did not train.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.boosting import count_votes, keep_by_groups, suspicion_from_losses
from unpoison.core.comovement import LARGEST_SHARE, movements, split_in_two
from unpoison.core.config import OutOfSubsetSettings
from unpoison.core.learner import LearnerFactory
from unpoison.core.result import Cost, Group, Sanitization, VoteRecord
from unpoison.core.sampling import class_members, sample_per_class
from unpoison.core.standing_apart import sharpness
from unpoison.core.tasks import FitTask, Workshop, cost_array
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, FloatArray, IndexArray, LabelArray

SMALLEST_GROUP = 3
"""Fewer samples than this are not a group: one odd sample always moves with itself."""
DRAWN_ALONG = 0.75
"""A removed group draws a sample along if that share of the judges who did not train on it place it where
they place the group."""
MORE_OF_A_KIND = 0.1
"""Growth begins if it adds that part of what was removed, and ``FEW`` at least."""
FEW = 5
"""Fewer are what judges usually get wrong."""
STILL_GROWING = 0.02
"""Growth ends once a round adds less than that part."""


@dataclass(frozen=True)
class GroupTask:
    """Split every class in two along the common movement of its samples."""

    losses: NDArray[np.float32]
    seen: NDArray[np.bool_]
    labels: LabelArray
    least_separation: float
    least_sharpness: float

    def __call__(self) -> Arrays:
        """``component``: 0 for the bulk, g for group g, -g for its halo; ``sharpness``: a number a group."""
        component = np.zeros(len(self.labels), dtype=np.int64)
        found: list[float] = []
        for members in class_members(self.labels):
            split = split_in_two(movements(self.losses[:, members], self.seen[:, members]))
            size = int(split.group.sum())
            # a group that could not be removed anyhow stays with the bulk, for the judges to learn from
            if not SMALLEST_GROUP <= size <= LARGEST_SHARE * len(members):
                continue
            sharp = sharpness(split.separation, size / len(members))
            if split.separation >= self.least_separation or sharp >= self.least_sharpness:
                found.append(sharp)
                component[members[split.group]] = len(found)
                component[members[split.halo]] = -len(found)
        return {
            "component": component,
            "sharpness": np.array(found, dtype=np.float64),
            "cost": cost_array(Cost()),
        }


@dataclass(frozen=True)
class Opinions:
    """What models say of all samples (models by samples), and which samples each trained on."""

    losses: NDArray[np.float32]
    predictions: NDArray[np.int32]
    confidences: NDArray[np.float32]
    seen: NDArray[np.bool_]


def clean_out_of_subset(
    labels: LabelArray,
    factory: LearnerFactory,
    settings: OutOfSubsetSettings,
    *,
    seeds: Seeds,
    workshop: Workshop,
) -> Sanitization:
    """Run the whole method on the samples behind ``labels``."""
    workshop.begin("models on random subsets", settings.models)
    subsets = _random_subsets(labels, settings, seeds)
    models = _fit_all("subset", subsets, labels, factory, settings, seeds, workshop)
    workshop.begin("groups", 1)
    task = GroupTask(models.losses, models.seen, labels, settings.separation, settings.sharpness)
    grouping = workshop.run({"groups": task})["groups"]
    component = grouping["component"].astype(np.int64)

    workshop.begin("judges", settings.judges)
    halves = _judge_subsets(labels, component, settings, seeds)
    judges = _fit_all("judge", halves, labels, factory, settings, seeds, workshop)
    suspicion, predicted = _outside_opinion(judges, labels, seeds)
    groups, keep = _judge_groups(
        component, grouping["sharpness"].astype(np.float64), judges, predicted, labels, settings
    )
    for number in range(2, settings.growth + 2):
        drawn = _drawn_along(groups, keep, judges, labels)
        few, part = (FEW, MORE_OF_A_KIND) if number == 2 else (1, STILL_GROWING)
        if np.count_nonzero(drawn) < max(few, part * np.count_nonzero(~keep)):
            break
        keep &= drawn == 0
        component = np.where(drawn > 0, -drawn, component)
        workshop.begin(f"judges, round {number}", settings.judges)
        within, kind = seeds.within("growth", number), f"judge-{number}"
        halves = _judge_subsets(labels, component, settings, within)
        judges = _fit_all(kind, halves, labels, factory, settings, within, workshop)
        suspicion, predicted = _outside_opinion(judges, labels, within)
    return Sanitization(
        keep=keep,
        suspicion=suspicion,
        predicted=predicted,
        components=np.maximum(component, 0)[None, :],
        cost=workshop.cost,
        groups=groups,
        notes={"vote_accuracy": float((predicted == labels)[component == 0].mean())},
        votes=VoteRecord(
            tuple(f"judge {j + 1}" for j in range(len(judges.losses))),
            judges.predictions,
            judges.losses,
            ~judges.seen,
        ),
    )


def _random_subsets(labels: LabelArray, settings: OutOfSubsetSettings, seeds: Seeds) -> list[IndexArray]:
    everyone = np.arange(len(labels))
    shares = np.geomspace(settings.alpha_low, settings.alpha_high, settings.models)
    return [
        sample_per_class(everyone, labels, alpha=float(alpha), rng=seeds.stream("subset", m))
        for m, alpha in enumerate(shares)
    ]


def _judge_subsets(
    labels: LabelArray, component: IndexArray, settings: OutOfSubsetSettings, seeds: Seeds
) -> list[IndexArray]:
    """Halves of the bulk, in complementary pairs: every sample is unseen by one judge of each pair.

    The last of an odd number of judges has no counterpart.
    """
    bulk = np.flatnonzero(component == 0)
    halves: list[IndexArray] = []
    for pair in range((settings.judges + 1) // 2):
        half = sample_per_class(bulk, labels, alpha=0.5, rng=seeds.stream("judges", pair))
        rest = np.setdiff1d(bulk, half, assume_unique=True)
        # where every class is down to one sample there is no second half
        halves += [half, rest if len(rest) else half]
    return halves[: settings.judges]


def _fit_all(
    kind: str,
    subsets: list[IndexArray],
    labels: LabelArray,
    factory: LearnerFactory,
    settings: OutOfSubsetSettings,
    seeds: Seeds,
    workshop: Workshop,
) -> Opinions:
    tasks = {
        f"{kind}-{m:03d}": FitTask(
            factory, len(labels), indices, settings.epochs, settings.min_steps, seeds.integer(kind, m)
        )
        for m, indices in enumerate(subsets)
    }
    results: list[dict[str, Any]] = list(workshop.run(tasks).values())
    seen = np.zeros((len(subsets), len(labels)), dtype=np.bool_)
    for m, indices in enumerate(subsets):
        seen[m, indices] = True
    return Opinions(
        losses=np.stack([result["losses"] for result in results]),
        predictions=np.stack([result["predictions"] for result in results]),
        confidences=np.stack([result["confidences"] for result in results]),
        seen=seen,
    )


def _outside_opinion(judges: Opinions, labels: LabelArray, seeds: Seeds) -> tuple[FloatArray, LabelArray]:
    """Suspicion and voted label of each sample, by the judges that did not train on it."""
    asked = ~judges.seen
    suspicion = suspicion_from_losses(judges.losses.astype(np.float64), asked=asked)
    n_classes = int(labels.max()) + 1
    predicted, _ = count_votes(
        judges.predictions, labels, n_classes=n_classes, rng=seeds.stream("ties"), asked=asked
    )
    return suspicion, predicted


def _judge_groups(
    component: IndexArray,
    sharpnesses: FloatArray,
    judges: Opinions,
    predicted: LabelArray,
    labels: LabelArray,
    settings: OutOfSubsetSettings,
) -> tuple[tuple[Group, ...], NDArray[np.bool_]]:
    at_home = _usual_confidence(judges, labels, component == 0)
    evidence: list[dict[str, float]] = []
    for number, sharp in enumerate(sharpnesses.tolist(), start=1):
        members = np.flatnonzero(component == number)
        testimony = _testimony(judges, members, int(labels[members[0]]), at_home)
        evidence.append({"sharpness": sharp, **testimony})
    removed = [
        found["agreement"] <= settings.agreement and found["belonging"] >= settings.belonging
        for found in evidence
    ]
    return keep_by_groups(component, evidence, removed, predicted, labels)


def _drawn_along(
    groups: tuple[Group, ...], keep: BoolArray, judges: Opinions, labels: LabelArray
) -> IndexArray:
    """The number of the removed group that each kept sample belongs with, 0 for none.

    A few planted samples among the bulk can teach a judge the trigger, and so hide themselves; the more of
    their kind are out, the less it knows. Once it would be more than a third of the class, judges rather
    have forgotten the class.
    """
    asked = ~judges.seen
    n_asked = np.maximum(asked.sum(axis=0), 1)
    drawn = np.zeros(len(labels), dtype=np.int64)
    for number, group in enumerate(groups, start=1):
        if not group.removed or group.called == group.label:
            continue
        members = labels == group.label
        share = (asked & (judges.predictions == group.called)).sum(axis=0) / n_asked
        along = keep & members & (share >= DRAWN_ALONG)
        if np.count_nonzero(members & (along | ~keep)) <= LARGEST_SHARE * np.count_nonzero(members):
            drawn[along] = number
    return drawn


def _usual_confidence(judges: Opinions, labels: LabelArray, bulk: NDArray[np.bool_]) -> FloatArray:
    """Judges by classes: the confidence that 90% of a class's own unseen, rightly called samples exceed."""
    n_classes = int(labels.max()) + 1
    usual = np.full((len(judges.losses), n_classes), np.inf)
    for j in range(len(usual)):
        right = np.flatnonzero(bulk & ~judges.seen[j] & (judges.predictions[j] == labels))
        for members in class_members(labels[right]):
            own = right[members]
            usual[j, labels[own[0]]] = np.quantile(judges.confidences[j, own], 0.1)
    return usual


def _testimony(judges: Opinions, members: IndexArray, label: int, at_home: FloatArray) -> dict[str, float]:
    """How far the judges agree with a group's label, and how surely they place its members elsewhere."""
    calls = judges.predictions[:, members]
    elsewhere = calls != label
    n_elsewhere = int(elsewhere.sum())
    usual = np.take_along_axis(at_home, calls, axis=1)
    sure = elsewhere & (judges.confidences[:, members] >= usual)
    most_called = int(np.bincount(calls[elsewhere]).max()) if n_elsewhere else 0
    return {
        "agreement": 1.0 - n_elsewhere / calls.size,
        "belonging": int(sure.sum()) / max(n_elsewhere, 1),
        "consensus": most_called / calls.size,
    }
