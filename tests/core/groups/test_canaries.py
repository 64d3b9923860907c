from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from unpoison.core.config import GroupSettings
from unpoison.core.groups.canaries import Canaries, Canary, with_canaries
from unpoison.core.groups.method import clean_by_groups
from unpoison.core.tasks import Workshop
from unpoison.seeds import Seeds

from .worlds import World


@dataclass(frozen=True)
class Marking(World):
    """A world whose samples can be copied with a mark: those who met the copies see them apart."""

    are_seen: bool = True

    def with_marked_copies(self, indices: Any, labels: Any, groups: Any, *, seed: int) -> Marking:
        ours = np.arange(len(self.labels), len(self.labels) + len(indices))
        marked = (*self.several, *(ours[groups == k] for k in np.unique(groups))) if self.are_seen else ()
        return replace(self, labels=np.concatenate([self.labels, labels]), several=marked)


LABELS = np.repeat([0, 1, 2], 400)


def test_three_groups_with_labels_of_their_own_are_copied_from_other_classes() -> None:
    given: dict[str, Any] = {}

    class Factory:
        def with_marked_copies(self, indices: Any, labels: Any, groups: Any, *, seed: int) -> str:
            given.update(indices=indices, labels=labels, groups=groups)
            return "marked"

    labels = np.repeat([0, 1, 2, 3], 1000)
    made = with_canaries(labels, Factory(), Seeds(0))  # type: ignore[arg-type]
    assert made.factory == "marked"
    assert np.bincount(made.number[4000:]).tolist() == [0, 100, 30, 10]
    assert made.own.sum() == 4000
    assert made.labels[:4000].tolist() == labels.tolist()
    assert (labels[given["indices"]] != given["labels"]).all()
    own = [set(given["labels"][given["groups"] == k].tolist()) for k in (1, 2, 3)]
    assert [len(each) for each in own] == [1, 1, 1]
    assert len(set.union(*own)) == 3
    again = with_canaries(labels, Factory(), Seeds(0))  # type: ignore[arg-type]
    assert again.labels.tolist() == made.labels.tolist()


def test_without_a_mark_or_another_class_there_are_none() -> None:
    assert with_canaries(LABELS, World(), Seeds(0)).own.all()
    assert with_canaries(
        np.zeros(500, dtype=int), Marking(labels=np.zeros(500, dtype=int)), Seeds(0)
    ).own.all()
    small = np.repeat([0, 1], 20)
    assert with_canaries(small, Marking(labels=small), Seeds(0)).own.all()


def test_how_many_were_found() -> None:
    canaries = Canaries(None, np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 2]))  # type: ignore[arg-type]
    keep = np.array([False, True, False, False, True])
    assert canaries.found(keep) == (Canary(0, 3, 2), Canary(2, 1, 0))


@pytest.mark.parametrize("are_seen", [True, False])
def test_they_tell_what_could_have_been_found_and_leave_no_trace(are_seen: bool) -> None:
    world = Marking(planted=np.arange(400, 440), are_seen=are_seen)
    result = world.clean()
    assert len(result.keep) == len(result.suspicion) == result.components.shape[1] == 1200
    assert result.votes is not None
    assert result.votes.predictions.shape[1] == 1200
    assert np.flatnonzero(~result.keep).tolist() == list(range(400, 440))
    assert [group.label for group in result.groups] == [1]
    told = result.notes["canaries"]
    assert [canary["size"] for canary in told] == [40, 12]
    assert [canary["found"] == canary["size"] for canary in told] == [are_seen, are_seen]


def test_they_do_not_change_what_is_found() -> None:
    world = Marking(planted=np.arange(400, 440), natural=np.arange(800, 840))
    with_them, without = world.clean(), world.clean(GroupSettings(canaries=False))
    assert (with_them.keep == without.keep).all()
    assert without.notes["canaries"] == []
    assert [group.size for group in with_them.groups] == [group.size for group in without.groups]


def test_a_sample_of_the_users_in_a_group_of_ours_is_kept() -> None:
    """And a group of theirs that one of ours fell into is still theirs."""

    @dataclass(frozen=True)
    class Mixed(Marking):
        def with_marked_copies(self, indices: Any, labels: Any, groups: Any, *, seed: int) -> Marking:
            made = super().with_marked_copies(indices, labels, groups, seed=seed)
            label = labels[groups == 1][0]
            stray = np.flatnonzero(self.labels == label)[:3]
            first, *others = made.several
            return replace(made, several=(np.concatenate([stray, first]), *others))

    result = clean_by_groups(LABELS, Mixed(), GroupSettings(), seeds=Seeds(0), workshop=Workshop())
    assert result.keep.all()
    assert result.groups == ()
    assert result.notes["canaries"][0]["found"] == 40
