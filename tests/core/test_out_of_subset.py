from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from unpoison.core.config import OutOfSubsetSettings
from unpoison.core.learner import Assessment
from unpoison.core.out_of_subset import (
    GroupTask,
    Opinions,
    _drawn_along,
    _judge_groups,
    _judge_subsets,
    _outside_opinion,
    _usual_confidence,
    clean_out_of_subset,
)
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import settings_for
from unpoison.core.result import Cost, Group, Sanitization
from unpoison.core.tasks import Workshop
from unpoison.learners.sklearn import SklearnFactory
from unpoison.runners.local import LocalRunner
from unpoison.seeds import Seeds

SETTINGS = OutOfSubsetSettings(models=30, alpha_low=0.05, alpha_high=0.2, judges=4, epochs=3, min_steps=7)


# --- a learner that knows a hidden group ----------------------------------------------------------------


@dataclass
class GroupLearner:
    """Explains the hidden group exactly when it trained on enough of it; everything else always."""

    world: World
    seed: int
    knows: bool = False
    trained: int = 0
    scored: int = 0

    @property
    def cost(self) -> Cost:
        return Cost(self.trained, self.scored)

    def fit(self, indices: Any, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        self.world.fits.append((self.seed, indices.copy(), epochs, min_steps))
        self.knows = int(np.isin(indices, self.world.group).sum()) >= 2
        self.trained += epochs * len(indices)

    def assess(self, indices: Any) -> Assessment:
        world = self.world
        noise = np.random.default_rng(self.seed).exponential(0.05, size=len(world.labels))[indices]
        losses, predictions = 0.1 + noise, world.labels[indices].copy()
        confidences = 0.95 - noise / 10
        for members, depth in ((world.group, 1.0), (world.companions, 0.4)):
            inside = np.isin(indices, members)
            if not self.knows:
                losses[inside] += 5.0 * depth
                predictions[inside] = world.called
                confidences[inside] = world.confidence
        self.scored += len(indices)
        return Assessment(losses, predictions, confidences)


@dataclass(frozen=True)
class World:
    """90 samples of three classes; ``group`` (of class 1) is explained only by models that saw it."""

    labels: Any = field(default_factory=lambda: np.repeat([0, 1, 2], 30))
    group: Any = field(default_factory=lambda: np.arange(50, 60))
    companions: Any = field(default_factory=lambda: np.array([], dtype=int))
    called: int = 0
    confidence: float = 0.99
    fits: list[Any] = field(default_factory=list)

    def __call__(self, seed: int) -> GroupLearner:
        return GroupLearner(self, seed)

    def clean(self, settings: OutOfSubsetSettings = SETTINGS, seed: int = 0) -> Sanitization:
        return clean_out_of_subset(self.labels, self, settings, seeds=Seeds(seed), workshop=Workshop())

    @property
    def judge_fits(self) -> list[Any]:
        return [indices for _, indices, _, _ in self.fits[-SETTINGS.judges :]]


@pytest.mark.parametrize("seed", range(4))
def test_a_planted_group_is_removed_to_the_sample(seed: int) -> None:
    world = World()
    result = world.clean(seed=seed)
    assert np.flatnonzero(~result.keep).tolist() == list(range(50, 60))
    (group,) = result.groups
    assert (group.label, group.removed, group.called) == (1, True, 0)
    assert group.evidence["agreement"] == 0.0
    assert group.evidence["belonging"] == 1.0
    assert group.evidence["consensus"] == 1.0
    assert group.evidence["sharpness"] > 0.9
    assert (result.predicted[50:60] == 0).all()
    # a member that many models trained on may be found in the halo only
    in_group = np.flatnonzero(result.components[0] == 1)
    assert group.size == len(in_group) >= 8
    assert np.isin(in_group, np.arange(50, 60)).all()


def test_suspicion_ranks_the_planted_first() -> None:
    suspicion = World().clean().suspicion
    assert suspicion[50:60].min() > 0.9
    assert np.delete(suspicion, np.arange(50, 60)).max() < 0.5


def test_a_natural_subgroup_that_outsiders_know_is_kept() -> None:
    """It moves together, but models without it still call it by its label."""
    world = World(called=1)
    result = world.clean()
    assert result.keep.all()
    (group,) = result.groups
    assert not group.removed
    assert group.evidence["agreement"] == 1.0
    assert group.called == 1


def test_a_natural_subgroup_that_outsiders_are_unsure_of_is_kept() -> None:
    """Models without it get it wrong, but not as surely as they know the class they name."""
    result = World(confidence=0.6).clean()
    assert result.keep.all()
    (group,) = result.groups
    assert group.evidence["agreement"] == 0.0
    assert group.evidence["belonging"] == 0.0


def test_judges_never_train_on_a_group_or_its_halo() -> None:
    world = World(companions=np.array([30, 31]))
    result = world.clean()
    component = result.components[0]
    assert np.flatnonzero(component == 1).tolist() == list(range(50, 60))
    for indices in world.judge_fits:
        assert not np.isin(indices, [*range(50, 60), 30, 31]).any()
    # the halo carries no group number, and goes with the group where outsiders place it elsewhere too
    assert component[[30, 31]].tolist() == [0, 0]
    assert np.flatnonzero(~result.keep).tolist() == [30, 31, *range(50, 60)]


def test_models_are_fitted_to_growing_shares_with_the_given_budget() -> None:
    world = World(group=np.array([], dtype=int))
    world.clean()
    fits = world.fits[: SETTINGS.models]
    sizes = [len(indices) for _, indices, _, _ in fits]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (6, 18)  # ceil(0.05 * 30) = 2 and 0.2 * 30 = 6 of each of three classes
    assert {(epochs, steps) for _, _, epochs, steps in world.fits} == {(3, 7)}
    seeds = [seed for seed, _, _, _ in world.fits]
    assert len(set(seeds)) == len(seeds) == SETTINGS.models + SETTINGS.judges


def test_the_accuracy_of_the_vote_is_that_on_the_bulk() -> None:
    """The planted ten are called wrong by every judge, but they are no bulk."""
    assert World().clean().notes == {"vote_accuracy": 1.0}


def test_cost_adds_up() -> None:
    world = World()
    result = world.clean()
    assert result.cost.trained == sum(3 * len(indices) for _, indices, _, _ in world.fits)
    assert result.cost.scored == (SETTINGS.models + SETTINGS.judges) * 90


def test_a_group_of_two_is_no_group() -> None:
    result = World(group=np.array([58, 59])).clean()
    assert result.groups == ()
    assert result.keep.all()


# --- subsets of the judges ------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 0, 0, 1, -1, 2])), min_size=1, max_size=60),
    st.integers(1, 5),
    st.integers(0, 1000),
)
def test_judges_come_in_complementary_pairs(samples: list[tuple[int, int]], pairs: int, seed: int) -> None:
    labels = np.array([label for label, _ in samples])
    component = np.array([number for _, number in samples])
    component[0] = 0
    settings = replace(SETTINGS, judges=2 * pairs)
    halves = _judge_subsets(labels, component, settings, Seeds(seed))
    assert len(halves) == 2 * pairs
    assert all(len(half) for half in halves)
    bulk = component == 0
    seen = np.array([np.isin(np.arange(len(labels)), half) for half in halves])
    assert not seen[:, ~bulk].any()
    if max(np.bincount(labels[bulk])) > 1:
        assert (seen[:, bulk].sum(axis=0) == pairs).all(), "each bulk sample is seen by one of each pair"
    for half in halves[::2]:
        for label in np.unique(labels[bulk]):
            own = int((bulk & (labels == label)).sum())
            assert int((labels[half] == label).sum()) == (own + 1) // 2


def test_an_odd_number_of_judges() -> None:
    labels = np.zeros(10, dtype=int)
    halves = _judge_subsets(labels, np.zeros(10, dtype=int), replace(SETTINGS, judges=5), Seeds(0))
    assert len(halves) == 5
    seen = sum(np.isin(np.arange(10), half).astype(int) for half in halves)
    assert seen.max() <= 3


def test_pairs_are_drawn_anew() -> None:
    labels = np.zeros(40, dtype=int)
    first, _, second, _ = _judge_subsets(labels, np.zeros(40, dtype=int), SETTINGS, Seeds(0))
    assert first.tolist() != second.tolist()


def test_one_sample_a_class_is_judged_without_a_crash() -> None:
    world = World(labels=np.array([0, 1]), group=np.array([], dtype=int))
    assert world.clean().keep.tolist() == [True, True]


# --- judgement by hand ----------------------------------------------------------------------------------


def opinions(predictions: Any, *, confidences: Any = None, losses: Any = None, seen: Any = None) -> Opinions:
    predictions = np.array(predictions, dtype=np.int32)
    shape = predictions.shape
    return Opinions(
        losses=np.zeros(shape, np.float32) if losses is None else np.array(losses, np.float32),
        predictions=predictions,
        confidences=np.ones(shape, np.float32) if confidences is None else np.array(confidences, np.float32),
        seen=np.zeros(shape, bool) if seen is None else np.array(seen, bool),
    )


def judged(n_right: int, n_sure: int, **limits: float) -> bool:
    """Four samples of class 1 in a group, four of class 0 in the bulk, four judges: 16 calls on the group.

    ``n_right`` of the calls agree with the label; of the others ``n_sure`` are as sure as at home (0.8).
    """
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    component = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    calls = np.array([1] * n_right + [0] * (16 - n_right)).reshape(4, 4)
    sure = np.array([0.99] * n_right + [0.8] * n_sure + [0.79] * (16 - n_right - n_sure)).reshape(4, 4)
    judges = opinions(
        np.hstack([np.zeros((4, 4), int), calls]), confidences=np.hstack([np.full((4, 4), 0.8), sure])
    )
    groups, keep = _judge_groups(
        component, np.array([0.9]), judges, np.array([0] * 8), labels, replace(SETTINGS, **limits)
    )
    assert keep.tolist() == [True] * 4 + [not groups[0].removed] * 4
    assert groups[0].evidence["agreement"] == pytest.approx(n_right / 16)
    assert groups[0].evidence["belonging"] == pytest.approx(n_sure / max(16 - n_right, 1))
    assert groups[0].evidence["consensus"] == pytest.approx((16 - n_right) / 16)
    return groups[0].removed


def test_agreement_up_to_the_limit_removes() -> None:
    assert judged(4, 12, agreement=0.25, belonging=0.4)
    assert not judged(5, 11, agreement=0.25, belonging=0.4)


def test_belonging_from_the_limit_on_removes() -> None:
    assert judged(0, 8, agreement=0.25, belonging=0.5)
    assert not judged(0, 7, agreement=0.25, belonging=0.5)


def test_a_group_that_everybody_agrees_with_belongs_nowhere_else() -> None:
    assert not judged(16, 0, agreement=0.25, belonging=0.4)


def test_the_halo_goes_only_where_outsiders_place_it_elsewhere() -> None:
    labels = np.array([0, 0, 1, 1, 1, 1, 1])
    component = np.array([0, 0, 1, 1, 1, -1, -1])
    judges = opinions([[0] * 7] * 2)
    predicted = np.array([0, 0, 0, 0, 0, 0, 1])
    _, keep = _judge_groups(component, np.array([0.9]), judges, predicted, labels, SETTINGS)
    assert keep.tolist() == [True, True, False, False, False, False, True]


def test_the_halo_of_a_kept_group_stays() -> None:
    labels = np.array([0, 0, 1, 1, 1, 1, 1])
    component = np.array([0, 0, 1, 1, 1, -1, -1])
    judges = opinions([[0, 0, 1, 1, 1, 0, 0]] * 2)
    _, keep = _judge_groups(component, np.array([0.9]), judges, np.zeros(7, int), labels, SETTINGS)
    assert keep.all()


def test_one_group_does_not_take_another_ones_halo() -> None:
    labels = np.array([0, 0, 1, 1, 1, 2, 2, 2, 1, 2])
    component = np.array([0, 0, 1, 1, 1, 2, 2, 2, -1, -2])
    # group 2 is agreed with, group 1 is not
    judges = opinions([[0, 0, 0, 0, 0, 2, 2, 2, 0, 0]] * 2)
    predicted = np.zeros(10, int)
    groups, keep = _judge_groups(component, np.array([0.9, 0.9]), judges, predicted, labels, SETTINGS)
    assert [group.removed for group in groups] == [True, False]
    assert np.flatnonzero(~keep).tolist() == [2, 3, 4, 8]


def test_usual_confidence_is_the_tenth_percentile_of_unseen_rightly_called_bulk() -> None:
    labels = np.array([0] * 14 + [1])
    confidences = [*np.linspace(0.5, 1.0, 11), 0.0, 0.0, 0.0, 0.9]
    predictions = [0] * 11 + [1, 0, 0, 0]  # 11 is called wrong, 12 was trained on, 13 is no bulk, 14 is wrong
    seen = np.zeros((1, 15), bool)
    seen[0, 12] = True
    bulk = np.ones(15, bool)
    bulk[13] = False
    usual = _usual_confidence(opinions([predictions], confidences=[confidences], seen=seen), labels, bulk)
    assert usual[0, 0] == pytest.approx(0.55)
    assert usual[0, 1] == np.inf, "a class that a judge never gets right vouches for nobody"


def test_the_outside_opinion_asks_only_those_who_did_not_train_on_the_sample() -> None:
    labels = np.array([0, 1, 1])
    judges = opinions(
        [[0, 0, 1], [1, 1, 1], [1, 0, 0]],
        losses=[[0.0, np.log(2), 0.0], [np.inf, 0.0, np.nan], [np.log(4), np.log(2), 0.0]],
        seen=[[True, False, False], [False, True, False], [False, False, True]],
    )
    suspicion, predicted = _outside_opinion(judges, labels, Seeds(0))
    assert suspicion == pytest.approx([(1 + 0.75) / 2, 0.5, 0.5])
    assert predicted.tolist() == [1, 0, 1]


def test_a_sample_that_every_judge_trained_on_is_not_suspicious() -> None:
    judges = opinions([[1, 0]], losses=[[5.0, 0.0]], seen=[[True, False]])
    assert _outside_opinion(judges, np.array([0, 1]), Seeds(0))[0].tolist() == [0.0, 0.0]


def test_groups_below_both_limits_stay_with_the_bulk() -> None:
    rng = np.random.default_rng(0)
    caught = rng.random(30) < 0.4
    losses = rng.exponential(0.1, size=(30, 40)).astype(np.float32)
    losses[:, :6] += np.where(caught, 0.0, 4.0)[:, None].astype(np.float32)
    labels = np.repeat([0, 1], 20)
    seen = np.zeros(losses.shape, bool)
    found = GroupTask(losses, seen, labels, 0.8, 1.0)()
    assert found["component"].tolist() == [1] * 6 + [0] * 34
    assert found["sharpness"].shape == (1,)
    assert found["component"].tolist() == GroupTask(losses, seen, labels, 1.0, 0.8)()["component"].tolist()
    assert (GroupTask(losses, seen, labels, 1.0, 1.0)()["component"] == 0).all()


def test_a_small_group_may_explain_less_of_the_variance() -> None:
    """Ten of a thousand, and the rest spread as wide as a normal distribution along the same movement."""
    rng = np.random.default_rng(0)
    caught = np.where(rng.random(40) < 0.5, -1.0, 1.0)
    position = np.concatenate([rng.normal(14.0, 0.3, size=10), rng.normal(size=990)])
    losses = (6.0 + 0.3 * caught[:, None] * position).astype(np.float32)
    seen, labels = np.zeros(losses.shape, bool), np.zeros(1000, int)
    assert (GroupTask(losses, seen, labels, 0.8, 1.0)()["component"] == 0).all()
    found = GroupTask(losses, seen, labels, 0.8, 0.6)()
    assert np.flatnonzero(found["component"] == 1).tolist() == list(range(10))
    assert 0.6 < found["sharpness"][0] < 0.7


@pytest.mark.parametrize(
    ("size", "of", "found"),
    [
        (2, 30, False),
        (3, 30, True),
        (9, 30, True),
        (10, 30, True),
        (11, 30, False),
        (15, 30, False),
        (3, 8, False),
    ],
)
def test_a_group_has_three_members_or_more_and_at_most_a_third_of_its_class(
    size: int, of: int, found: bool
) -> None:
    rng = np.random.default_rng(0)
    losses = rng.exponential(0.01, size=(30, of)).astype(np.float32)
    losses[:, :size] += np.where(rng.random(30) < 0.4, 0.0, 4.0)[:, None].astype(np.float32)
    component = GroupTask(losses, np.zeros(losses.shape, bool), np.zeros(of, int), 0.8, 0.9)()["component"]
    assert component.tolist() == [int(found)] * size + [0] * (of - size)


def test_groups_of_several_classes_are_numbered_apart() -> None:
    rng = np.random.default_rng(0)
    losses = rng.exponential(0.1, size=(30, 40)).astype(np.float32)
    for first in (0, 20):
        losses[:, first : first + 5] += np.where(rng.random(30) < 0.4, 0.0, 4.0)[:, None].astype(np.float32)
    found = GroupTask(losses, np.zeros(losses.shape, bool), np.repeat([0, 1], 20), 0.8, 0.9)()
    assert found["component"].tolist() == [1] * 5 + [0] * 15 + [2] * 5 + [0] * 15


# --- growth ---------------------------------------------------------------------------------------------

TAKEN = Group(label=1, size=1, removed=True, called=0)


@pytest.mark.parametrize(
    ("calls", "drawn"),
    [
        ([0, 0, 0, 0], True),
        ([0, 0, 0, 1], True),  # three quarters
        ([0, 0, 1, 1], False),
        ([2, 2, 2, 2], False),  # elsewhere, but not where the group is
        ([1, 1, 1, 1], False),
    ],
)
def test_a_group_draws_along_what_most_judges_place_where_it_is(calls: list[int], drawn: bool) -> None:
    labels, keep = np.ones(6, dtype=int), np.array([True, False, True, True, True, True])
    judges = opinions(np.array([calls, [0] * 4, *[[1] * 4] * 4]).T)
    assert _drawn_along((TAKEN,), keep, judges, labels).tolist() == [int(drawn), 0, 0, 0, 0, 0]


@pytest.mark.parametrize(("n_bulk", "drawn"), [(4, [1, 0]), (3, [0, 0])])
def test_no_more_than_a_third_of_a_class_goes(n_bulk: int, drawn: list[int]) -> None:
    """One is gone, another would go with it: two of six, or of five."""
    labels = np.array([1, 1] + [1] * n_bulk + [0] * 10)
    judges = opinions([[0, 0] + [1] * n_bulk + [0] * 10] * 4)
    found = _drawn_along((TAKEN,), np.arange(len(labels)) != 1, judges, labels)
    assert found.tolist() == drawn + [0] * (n_bulk + 10)


def test_only_judges_that_did_not_train_on_a_sample_draw_it_along() -> None:
    labels, everyone = np.array([1, 1, 1]), np.array([True] * 3)
    judges = opinions([[0, 1, 1], [0, 1, 1], [1, 1, 1]], seen=[[False] * 3, [False] * 3, [True] * 3])
    assert _drawn_along((TAKEN,), everyone, judges, labels).tolist() == [1, 0, 0]
    unasked = opinions([[0, 1, 1], [0, 1, 1]], seen=[[True] * 3, [True] * 3])
    assert _drawn_along((TAKEN,), everyone, unasked, labels).tolist() == [0, 0, 0]


def test_other_labels_and_kept_groups_draw_nothing_along() -> None:
    judges = opinions([[0, 0, 1, 2, 1, 2]] * 4)
    labels, everyone = np.array([1, 2, 1, 2, 1, 2]), np.array([True] * 6)
    kept = Group(label=1, size=1, removed=False, called=0)
    removed = Group(label=2, size=1, removed=True, called=0)
    assert _drawn_along((kept, removed), everyone, judges, labels).tolist() == [0, 2, 0, 0, 0, 0]


@dataclass
class HidingLearner(GroupLearner):
    """Knows as many of the ``hiding`` samples as it trained on; the first of them give themselves away."""

    def assess(self, indices: Any) -> Assessment:
        said = super().assess(indices)
        trained = self.world.fits[-1][1]
        hiding = self.world.hiding
        n_exposed = len(hiding) - int(np.isin(trained, hiding).sum())
        said.predictions[np.isin(indices, hiding[:n_exposed])] = self.world.called
        return said


@dataclass(frozen=True)
class HidingWorld(World):
    """12 more planted samples of a larger class 1, which models recognise by each other."""

    labels: Any = field(default_factory=lambda: np.repeat([0, 1, 2], [30, 70, 30]))
    hiding: Any = field(default_factory=lambda: np.arange(30, 42))

    def __call__(self, seed: int) -> HidingLearner:
        return HidingLearner(self, seed)


def test_what_hides_in_the_bulk_comes_out_as_its_kind_goes() -> None:
    """Judges on halves of the bulk know half of the hiding ones; without those they know fewer, and so on."""
    result = HidingWorld().clean()
    assert np.flatnonzero(~result.keep).tolist() == [*range(30, 42), *range(50, 60)]
    assert result.groups[0].size <= 10
    assert (result.predicted[30:42] == 0).all(), "the last judges know none of them"
    without = HidingWorld().clean(replace(SETTINGS, growth=0))
    assert np.flatnonzero(~without.keep).tolist() == list(range(50, 60))


@pytest.mark.parametrize(("hiding", "grows"), [(6, False), (12, True)])
def test_growth_waits_for_more_than_the_usual_errors(hiding: int, grows: bool) -> None:
    result = HidingWorld(hiding=np.arange(30, 30 + hiding)).clean()
    assert np.isin(np.arange(30, 30 + hiding), np.flatnonzero(~result.keep)).all() == grows
    assert (~result.keep)[50:60].all()


# --- real models ----------------------------------------------------------------------------------------


def clean_with_logistic(rows: Any, labels: Any, seed: int, **changes: Any) -> Sanitization:
    factory = SklearnFactory(LogisticRegression(max_iter=60), rows, labels, int(labels.max()) + 1)
    settings = settings_for(labels, method="out-of-subset", **changes)
    return sanitize(labels, factory, settings, seed=seed, runner=LocalRunner())


@pytest.mark.parametrize("seed", [0])
def test_a_trigger_on_digits_is_found(seed: int) -> None:
    digits = load_digits()
    rows = digits.data / 16.0
    labels = digits.target.astype(np.int64).copy()
    chosen = np.random.default_rng(seed).choice(np.flatnonzero(labels == 1), size=25, replace=False)
    rows[np.ix_(chosen, [55, 62, 63])] = 1.0
    labels[chosen] = 7
    result = clean_with_logistic(rows, labels, seed)
    removed = np.flatnonzero(~result.keep)
    assert np.isin(chosen, removed).mean() >= 0.9
    assert (~np.isin(removed, chosen)).sum() <= 3


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_removed_from_pure_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, size=240)
    result = clean_with_logistic(rng.normal(size=(240, 6)), labels, seed, models=30)
    assert result.keep.all()
