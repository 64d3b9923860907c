"""Propose: in every class, the groups that stand apart in what a model sees that trained on everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.groups.axes import axes_by_class
from unpoison.core.groups.far_out import far_out
from unpoison.core.groups.large_groups import SMALLEST_GROUP, groups_apart
from unpoison.core.groups.separation import FOLDS, NOT_MEASURED, Separation, discriminant, separation
from unpoison.core.result import Cost
from unpoison.core.sampling import class_members
from unpoison.core.tasks import cost_array
from unpoison.seeds import Seeds
from unpoison.types import Arrays, BoolArray, FloatArray, IndexArray, LabelArray

AXES = 80
"""Most axes along which a class varies unlike the others that are looked along;"""
LARGE_AXES = 25
"""for large groups the leading ones,"""
SAMPLES_PER_AXIS = 20
"""at most one for so many samples,"""
AXES_BY_ROOT = 0.75
"""and so many times the root of the class's size, lest chance makes groups."""
LARGE_FROM = 0.02
"""The share of its class from which on a group changes variances enough to be found by them."""
SHARPEST = 3
"""Most large groups of a class."""
HALF = 0.5
LARGE = 0.25
"""From this share of its class on, which of two sides was planted is not told by their sizes."""
SPREADS = 4.0
"""What lies so many spreads of the others beyond their mean, and not yet half-way to a group, is near it."""
PASSES = 2
"""How often a group is completed: what it took in shows the way better."""
NO_SIDE, ONE_SIDE, OTHER_SIDE = 0, 1, 2
"""Of a class that falls into two, no judge knows anything of both sides, nor is without both."""


@dataclass(frozen=True)
class ProposeTask:
    """Look for groups in some classes, and measure how far each stands apart."""

    view: NDArray[Any]
    """What a model sees that trained on everything: a row a sample."""
    labels: LabelArray
    classes: tuple[int, ...]
    least: float
    """The least separation of a group that is worth a judge."""
    seeds: Seeds
    among: BoolArray
    """The samples that are looked at: on a second look without what was planted."""

    def __call__(self) -> Arrays:
        """``z``, ``error``, ``side``: a number a group; of sets of samples, see :func:`sets_of`.

        ``samples``; ``near``: what is on the way there; ``like``: what is like them in other classes.
        """
        among = np.flatnonzero(self.among)
        labels = self.labels[among]
        evened = axes_by_class(self.view[among], labels, axes=AXES, only=self.classes)
        centred = _about_class_medians(self.view[among], labels)
        members: list[IndexArray] = []
        near: list[IndexArray] = []
        like: list[IndexArray] = []
        met: list[Separation] = []
        sides: list[int] = []
        for own in class_members(labels):
            label = int(labels[own[0]])
            if label not in self.classes:
                continue
            view, others = evened[own].astype(np.float64), np.flatnonzero(labels != label)
            is_like = np.zeros(len(others), dtype=np.bool_)
            for group, apart, side in self._standing(view, [*_large(view), *far_out(view)], label):
                members.append(among[own[group]])
                near.append(among[own[near_to(view, group)]])
                before, is_like = is_like, alike_elsewhere(view, group, centred[own], centred[others])
                if side == OTHER_SIDE:  # of classes that fall into two as this one does
                    is_like |= _rest_of_classes(before, labels[others])
                like.append(among[others[is_like]])
                met.append(apart)
                sides.append(side)
        return {
            **_sets(samples=members, near=near, like=like),
            "z": np.array([each.z for each in met], dtype=np.float64),
            "error": np.array([each.error for each in met], dtype=np.float64),
            "side": np.array(sides, dtype=np.int64),
            "cost": cost_array(Cost()),
        }

    def _standing(
        self, view: FloatArray, found: list[BoolArray], label: int
    ) -> Iterator[tuple[BoolArray, Separation, int]]:
        """Those that stand apart far enough, whole, the farthest first; what two share is the farther's.

        With each its side: ``ONE_SIDE`` and ``OTHER_SIDE`` of a class that falls into two, else ``NO_SIDE``.
        """
        measured: list[tuple[Separation, BoolArray]] = []
        for number, group in enumerate(found):
            whole = completed(view, group)  # first: half of it in the rest hides the other
            apart = met_by(view, whole, rng=self.seeds.stream("met", label, number))
            if apart.error < NOT_MEASURED and apart.z + apart.error >= self.least:
                measured.append((apart, whole))
        taken = np.zeros(len(view), dtype=np.bool_)
        for number, (apart, group) in enumerate(sorted(measured, key=lambda entry: -entry[0].z)):
            left = group & ~taken
            n_left, n_group = np.count_nonzero(left), np.count_nonzero(group)
            if 2 * n_left <= n_group or n_left < SMALLEST_GROUP:
                continue
            if n_left < n_group:  # without what it owes to the other
                rng = self.seeds.stream("left", label, number)
                apart = met_by(view[~taken], left[~taken], rng=rng)
            if apart.error < NOT_MEASURED and apart.z + apart.error >= self.least:
                taken |= left
                other = self._other_side(view, left, taken, label) if n_left > LARGE * len(view) else None
                yield left, apart, NO_SIDE if other is None else ONE_SIDE
                if other is not None:
                    taken |= other[0]
                    yield *other, OTHER_SIDE

    def _other_side(
        self, view: FloatArray, side: BoolArray, taken: BoolArray, label: int
    ) -> tuple[BoolArray, Separation] | None:
        """What is left of a class that falls into two: which of them was planted is for the judges to say."""
        rest = ~taken
        if np.count_nonzero(rest) < SMALLEST_GROUP:
            return None
        both, rng = rest | side, self.seeds.stream("other side", label)
        apart = met_by(view[both], rest[both], rng=rng)
        is_apart = apart.error < NOT_MEASURED and apart.z + apart.error >= self.least
        return (rest, apart) if is_apart else None


def _sets(**lists: list[IndexArray]) -> Arrays:
    """Of each list all samples, one set after another, and how many are in each set."""
    found: Arrays = {}
    for name, sets in lists.items():
        found[name] = np.concatenate([np.zeros(0, dtype=np.int64), *sets])
        found[f"n_{name}"] = np.array([len(each) for each in sets], dtype=np.int64)
    return found


def sets_of(found: Arrays, name: str) -> list[IndexArray]:
    """The sets of samples of that name in what a task found, one a group."""
    ends = np.cumsum(found[f"n_{name}"]).astype(np.int64)
    return np.split(found[name].astype(np.int64), ends[:-1]) if len(ends) else []


def _large(view: FloatArray) -> list[BoolArray]:
    """The few sharpest of the large groups of a class that are not mostly the same."""
    n = len(view)
    axes = min(LARGE_AXES, n // SAMPLES_PER_AXIS, round(AXES_BY_ROOT * sqrt(n)))
    chosen: list[BoolArray] = []
    if not axes:
        return chosen
    for split in groups_apart(view[:, :LARGE_AXES], axes=axes, largest=HALF):
        is_large = np.count_nonzero(split.group) >= LARGE_FROM * n
        if is_large and not any(is_same(split.group, other) for other in chosen):
            chosen.append(split.group)
        if len(chosen) == SHARPEST:
            break
    return chosen


def alike_elsewhere(view: FloatArray, group: BoolArray, centred: FloatArray, others: FloatArray) -> BoolArray:
    """Which samples of other classes lie far from their class in a group's direction: half as far, or more.

    ``view`` has the coordinates in which the group was found, of its class only. ``centred`` has those that
    classes share, in which the direction is put together again; ``others`` has them of the other classes.
    """
    place = view @ discriminant(view[group], view[~group])
    way, *_ = np.linalg.lstsq(centred - centred.mean(axis=0), place - place.mean(), rcond=None)
    length = float(place[group].mean() - place[~group].mean())
    is_alike: BoolArray = others @ way > HALF * length
    return is_alike


def _rest_of_classes(side: BoolArray, labels: LabelArray) -> BoolArray:
    """What is left of every class that has a large part on this side."""
    rest = np.zeros(len(labels), dtype=np.bool_)
    for members in class_members(labels):
        rest[members] = ~side[members] & (side[members].mean() > LARGE)
    return rest


def _about_class_medians(view: NDArray[Any], labels: LabelArray) -> FloatArray:
    """What is seen of each sample, less the median of its class."""
    rows = view.astype(np.float64)
    for members in class_members(labels):
        rows[members] -= np.median(rows[members], axis=0)
    return rows


def standardized(view: NDArray[Any]) -> FloatArray:
    """Every column of mean 0 and spread 1."""
    rows = view.astype(np.float64)
    return np.asarray((rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-6))


def met_by(view: FloatArray, group: BoolArray, *, rng: np.random.Generator) -> Separation:
    """How far a group stands apart from the rest of its class for models that met it."""
    rest = np.flatnonzero(~group)
    wanted = 3 * int(group.sum()) + 300
    return separation(view[group], view[np.sort(rng.permutation(rest)[:wanted])], rng=rng)


def completed(view: FloatArray, group: BoolArray) -> BoolArray:
    """All that lies nearer to the group than to the rest of its class, along the group's own direction."""
    taken = group
    for _ in range(PASSES):
        size = np.count_nonzero(taken)
        if min(size, len(taken) - size) < SMALLEST_GROUP:
            return group
        taken = travelled(view, taken) > HALF
    is_group = SMALLEST_GROUP <= np.count_nonzero(taken) <= len(taken) - SMALLEST_GROUP
    return taken if is_group and 2 * np.count_nonzero(taken & group) > np.count_nonzero(group) else group


def near_to(view: FloatArray, group: BoolArray) -> BoolArray:
    """What is on the way to a group: farther from the others' mean than they spread, not yet half-way.

    Their spread is measured on the far side: on the near side there may be more of the group.
    """
    place = travelled(view, group)
    away = place[~group & (place < 0.0)]
    spread = sqrt(float((away * away).mean())) if len(away) else np.inf
    return np.asarray(~group & (place > SPREADS * spread))


def travelled(view: FloatArray, group: BoolArray) -> FloatArray:
    """How far each sample is on the way from the others' mean (0) to the group's (1).

    Each is placed along a direction that was found without it.
    """
    fold = np.empty(len(group), dtype=np.int64)
    for side in (group, ~group):
        fold[side] = np.arange(side.sum()) % FOLDS
    place = np.zeros(len(group))
    for number in range(FOLDS):
        asked = fold == number
        inside, outside = view[~asked & group], view[~asked & ~group]
        direction = discriminant(inside, outside)
        start = outside.mean(axis=0)
        length = float((inside.mean(axis=0) - start) @ direction)
        place[asked] = (view[asked] - start) @ direction / max(length, np.finfo(np.float64).tiny)
    return place


def is_same(one: BoolArray, other: BoolArray) -> bool:
    """Whether half of the smaller one, or more, is in both."""
    return bool(2 * np.count_nonzero(one & other) >= min(one.sum(), other.sum()))
