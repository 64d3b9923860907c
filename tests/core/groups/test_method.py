from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from unpoison.core.checkpoint import FolderCheckpoints
from unpoison.core.config import GroupSettings
from unpoison.core.groups.method import (
    _agreement,
    _Candidate,
    _Panel,
    _votes,
    _withheld,
    clean_by_groups,
)
from unpoison.core.groups.propose import ProposeTask, _sets
from unpoison.core.groups.separation import Separation
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import settings_for
from unpoison.core.result import Sanitization
from unpoison.core.tasks import Workshop
from unpoison.errors import InputError
from unpoison.learners.sklearn import SklearnFactory
from unpoison.runners.local import LocalRunner
from unpoison.seeds import Seeds
from unpoison.types import Arrays

from ..fakes import same_bits
from .worlds import PER_CLASS, SeeingLearner, World


def removed(result: Sanitization) -> list[int]:
    found: list[int] = np.flatnonzero(~result.keep).tolist()
    return found


@pytest.mark.parametrize("size", [12, 40, 130])
def test_what_stands_apart_for_those_who_met_it_alone_is_removed(size: int) -> None:
    planted = np.arange(400, 400 + size)
    result = World(planted=planted).clean()
    assert removed(result) == planted.tolist()
    (group,) = [group for group in result.groups if group.removed]
    assert (group.label, group.called, group.size) == (1, 0, size)
    assert group.evidence["met"] > 10.0 > 2.0 > group.evidence["unmet"]
    assert group.evidence["agreement"] == 0.0
    assert (result.predicted[planted] == 0).all()
    assert result.suspicion[planted].min() > np.delete(result.suspicion, planted).max()


@pytest.mark.parametrize("size", [12, 40, 130])
def test_what_stands_apart_for_everybody_is_natural(size: int) -> None:
    result = World(natural=np.arange(800, 800 + size)).clean()
    assert removed(result) == []
    group = next(group for group in result.groups if group.size == size)
    assert (group.label, group.undecided) == (2, False)
    assert group.evidence["unmet"] > 5.0
    assert len(result.groups) == (2 if size > 100 else 1), "of a large cut both sides are judged"


def test_a_mark_on_right_labels_is_removed() -> None:
    """Judges call it what it is labelled, and do not see it apart."""
    result = World(marked=np.arange(800, 860)).clean()
    assert removed(result) == list(range(800, 860))
    (group,) = result.groups
    assert (group.called, group.evidence["agreement"]) == (2, 1.0)


@pytest.mark.parametrize("size", [150, 280])
def test_what_is_planted_in_most_of_a_class_is_told_from_the_rest(size: int) -> None:
    """Each judge met one side of it, and judges the other."""
    planted = np.arange(400, 400 + size)
    world = World(planted=planted)
    result = world.clean()
    assert removed(result) == planted.tolist()
    whole = np.arange(400, 800)
    met = [np.isin(indices, planted).any() for indices, *_ in world.fits[1:]]
    met_others = [np.isin(indices, np.setdiff1d(whole, planted)).any() for indices, *_ in world.fits[1:]]
    assert sorted(met) == [False, True]
    assert met_others == [not each for each in met]
    assert len(result.groups) == 2
    assert result.votes is not None
    assert result.votes.asked[:, whole].sum(axis=0).tolist() == [1] * len(whole)


@pytest.mark.parametrize("size", [150, 280])
def test_never_are_both_sides_of_a_class_removed(size: int) -> None:
    """Each side is a mark on right labels to the judge that met the other: one may be planted, not both."""
    result = World(marked=np.arange(400, 400 + size)).clean(GroupSettings(canaries=False))
    sides = [group for group in result.groups if group.label == 1]
    assert len(sides) == 2
    assert sum(group.removed for group in sides) < 2
    assert (result.keep[400:800]).any()


def test_no_judge_meets_in_another_class_what_is_like_a_group() -> None:
    natural = np.concatenate([np.arange(400, 440), np.arange(800, 840)])
    world = World(natural=natural)
    result = world.clean(GroupSettings(canaries=False, pairs=2))
    assert removed(result) == []
    judges = world.fits[1:]
    assert len(judges) == 4
    assert not any(np.isin(natural, indices).any() for indices, *_ in judges)


def test_like_one_group_and_on_a_side_of_another_is_judged_by_all() -> None:
    none = np.zeros(0, dtype=np.int64)
    apart = Separation(10.0, 0.5)
    group = _Candidate(np.array([0, 1]), apart, 0, none, np.array([5]))
    sides = [_Candidate(np.array(who), apart, side, none, none) for side, who in ((1, [5, 6]), (2, [7, 8]))]
    assert _withheld([group, *sides], 2, 10).astype(int).tolist() == [
        [1, 1, 0, 0, 0, 1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0, 1, 0, 1, 1, 0],
    ]


def test_marks_on_right_labels_stay_where_it_is_said() -> None:
    settings = GroupSettings(right_labels=False)
    assert removed(World(marked=np.arange(800, 860)).clean(settings)) == []
    planted = np.arange(400, 440)
    assert removed(World(planted=planted).clean(settings)) == planted.tolist()


def test_each_is_judged_for_itself() -> None:
    everything = World(
        planted=np.arange(400, 440), natural=np.arange(800, 840), marked=np.arange(100, 160)
    ).clean()
    assert removed(everything) == [*range(100, 160), *range(400, 440)]


def test_what_a_planted_group_hid_is_found_on_a_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody withheld it, so each judge judges the half that it did not meet."""
    first, hidden = np.arange(800, 840), np.arange(840, 880)

    class OneAtATime(ProposeTask):
        def __call__(self) -> Arrays:
            found = super().__call__()
            shown = first if self.among[first].all() else hidden
            there = [shown] if 2 in self.classes else []
            numbers = {"z": [20.0], "error": [0.5], "side": [0]}
            given = {key: np.array(value[: len(there)]) for key, value in numbers.items()}
            nobody = [np.zeros(0, dtype=np.int64) for _ in there]
            return {**found, **given, **_sets(samples=there, near=nobody, like=nobody)}

    monkeypatch.setattr("unpoison.core.groups.method.ProposeTask", OneAtATime)
    world = World(several=(first, hidden), few=True)
    result = world.clean(GroupSettings(canaries=False))
    assert removed(result) == list(range(800, 880))
    assert [group.size for group in result.groups] == [40, 40]
    assert result.votes is not None
    assert (result.votes.asked[:, hidden].sum(axis=0) == 1).all()
    assert len(world.fits) == 3, "no judges are trained anew"


def test_where_nothing_stands_apart_judges_tell_who_is_suspicious() -> None:
    """Each sample is judged by the one that did not train on it."""
    world = World()
    result = world.clean(GroupSettings(canaries=False))
    assert (removed(result), result.groups) == ([], ())
    everything, *judges = [indices for indices, *_ in world.fits]
    assert everything.tolist() == list(range(1200))
    assert sorted(np.concatenate(judges).tolist()) == list(range(1200))
    assert result.votes is not None
    assert (result.votes.asked.sum(axis=0) == 1).all()
    assert not result.votes.asked[0, judges[0]].any()


def test_judges_meet_no_group_that_was_proposed() -> None:
    groups = [np.arange(400, 440), np.arange(800, 840)]
    world = World(planted=groups[0], natural=groups[1])
    world.clean()
    judges = [indices for indices, *_ in world.fits[1:]]
    assert len(judges) == 2
    assert not np.isin(np.concatenate(judges), np.concatenate(groups)).any()
    assert len(np.intersect1d(*judges)) == 0


def test_the_settings_are_used() -> None:
    world = World(planted=np.arange(400, 440))
    world.clean(GroupSettings(epochs=2, judge_epochs=5, pairs=2, min_steps=11))
    assert [epochs for _, epochs, *_ in world.fits] == [2, 5, 5, 5, 5]
    assert {min_steps for *_, min_steps, _ in world.fits} == {11}
    assert all(final for *_, final in world.fits)


def test_the_two_numbers_decide() -> None:
    world = World(planted=np.arange(400, 440))
    z = next(group.evidence["met"] for group in world.clean().groups if group.removed)
    assert removed(world.clean(GroupSettings(met=z + 5.0))) == []
    marked = World(marked=np.arange(400, 440))
    assert len(removed(marked.clean())) == 40
    assert removed(marked.clean(GroupSettings(kept=-1.0))) == []
    near = world.clean(GroupSettings(met=z))
    assert removed(near) == []
    assert [group.undecided for group in near.groups if group.label == 1] == [True]


def test_the_same_seed_gives_the_same_bits_with_any_number_of_workers() -> None:
    world, settings = World(planted=np.arange(400, 440)), GroupSettings()
    runs = [sanitize(world.labels, world, settings, seed=3, runner=LocalRunner(n)) for n in (1, 2)]
    assert same_bits(*runs)
    assert removed(world.clean(seed=1)) == removed(world.clean(seed=2))


def test_a_run_goes_on_from_what_was_kept_of_it(tmp_path: Path) -> None:
    world, settings = World(planted=np.arange(400, 440)), GroupSettings()
    kept = FolderCheckpoints(tmp_path, identity={})
    first = sanitize(world.labels, world, settings, seed=3, checkpoints=kept)
    n_fits = len(world.fits)
    again = sanitize(world.labels, world, settings, seed=3, checkpoints=kept)
    assert same_bits(first, again)
    assert len(world.fits) == n_fits, "nothing is trained again"


def test_learners_that_show_nothing_are_refused_before_they_are_trained() -> None:
    class Blind:
        def fit(self, *_: object, **__: object) -> None:
            raise AssertionError

    with pytest.raises(InputError, match="looks at what models see"):
        clean_by_groups(
            np.repeat([0, 1], 50), lambda _seed: Blind(), GroupSettings(),  # type: ignore[arg-type,return-value]
            seeds=Seeds(0), workshop=Workshop(),
        )  # fmt: skip


def test_judges_that_hardly_know_a_class_leave_it_undecided() -> None:
    """Of a class of 34, 21 lie together: the judge of these met six of the others."""
    labels = np.concatenate([np.repeat([0, 1, 2], PER_CLASS), np.full(34, 3)])
    planted = np.arange(1200, 1221)
    few = World(labels=labels, planted=planted).clean(GroupSettings(canaries=False))
    assert removed(few) == []
    assert [group.undecided for group in few.groups if group.size == 21] == [True]
    labels = np.concatenate([np.repeat([0, 1, 2], PER_CLASS), np.full(54, 3)])
    more = World(labels=labels, planted=planted).clean(GroupSettings(canaries=False))
    assert removed(more) == planted.tolist()


def test_what_a_model_sees_must_be_finite() -> None:
    class Diverged(SeeingLearner):
        def embed(self, indices: Any) -> Any:
            return np.full((len(indices), 3), np.nan)

    world = World()
    with pytest.raises(InputError, match="What the trained model sees is not finite: its training diverged"):
        sanitize(world.labels, lambda seed: Diverged(world, seed), GroupSettings(), seed=0)


def digits(*, planted: bool) -> tuple[SklearnFactory, np.ndarray, np.ndarray]:
    """Digits; a fifth of the ones with two bright pixels in a corner, labelled 7."""
    images, labels = load_digits(return_X_y=True)
    images, given = images / 16.0, labels.astype(np.int64)
    marked = np.flatnonzero(labels == 1)[::5]
    if planted:
        images[np.ix_(marked, [0, 8])] = 1.0
        given[marked] = 7
    return SklearnFactory(LogisticRegression(max_iter=200), images, given, 10), given, marked


def test_a_trigger_on_digits_is_found() -> None:
    factory, labels, marked = digits(planted=True)
    result = sanitize(labels, factory, settings_for(labels, method="groups"), seed=0)
    assert (~result.keep[marked]).mean() > 0.9
    assert (~np.delete(result.keep, marked)).sum() <= 5


def test_nothing_is_removed_from_digits_without_one() -> None:
    factory, labels, _ = digits(planted=False)
    assert removed(sanitize(labels, factory, settings_for(labels, method="groups"), seed=0)) == []


def test_nothing_is_removed_from_pure_noise() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=300)
    factory = SklearnFactory(LogisticRegression(), rng.normal(size=(300, 8)), labels, 3)
    assert removed(sanitize(labels, factory, settings_for(labels, method="groups"), seed=0)) == []


def test_what_is_near_a_planted_group_goes_along_if_it_is_disputed() -> None:
    apart, none = Separation(10.0, 0.5), np.zeros(0, dtype=np.int64)
    group = _Candidate(np.array([0, 1]), apart, 0, np.array([2, 3]), none)
    disputed = np.array([False, False, False, True, True])
    assert group.with_followers(disputed).members.tolist() == [0, 1, 3]


def test_where_everything_is_in_a_group_votes_are_compared_with_all_labels() -> None:
    right = np.array([True, True, False, True])
    assert _agreement(right, np.array([False, False, True, True])) == 0.5
    assert _agreement(right, np.zeros(4, dtype=np.bool_)) == 0.75


def test_who_was_withheld_from_nobody_is_judged_by_whoever_did_not_train_on_it() -> None:
    """So is what follows a planted group: somebody has a word about every sample."""
    unseen = np.array([[True, False, True, True], [False, True, True, True]])
    heard = np.array([[False, False, True, True], [False, False, True, False]])
    numbers = np.zeros((2, 4))
    panel = _Panel(
        unseen, numbers.astype(np.int32), numbers.astype(np.float32), numbers.astype(np.float32), []
    )
    assert _votes(panel, heard).asked.tolist() == [[True, False, True, True], [False, True, True, False]]
