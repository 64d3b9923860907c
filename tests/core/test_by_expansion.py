from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from unpoison.core.by_expansion import ApartTask, _goes, clean_by_expansion
from unpoison.core.config import ExpansionSettings
from unpoison.core.learner import Assessment
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import settings_for
from unpoison.core.result import Cost, Sanitization
from unpoison.core.tasks import Workshop
from unpoison.errors import InputError
from unpoison.learners.sklearn import SklearnFactory
from unpoison.runners.local import LocalRunner
from unpoison.seeds import Seeds

SETTINGS = ExpansionSettings(epochs=3, further_epochs=4, further_epochs_if_known=2, min_steps=7)


# --- a learner that sees a hidden group -----------------------------------------------------------------


@dataclass
class SeeingLearner:
    """Sees ``marked`` samples apart; gives the ``planted`` ones their label if it trained on enough."""

    world: World
    seed: int
    knows: bool = False
    sees: bool = False
    trained: int = 0
    scored: int = 0

    @property
    def cost(self) -> Cost:
        return Cost(self.trained, self.scored)

    def fit(self, indices: Any, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        self.world.fits.append((indices.copy(), epochs, min_steps, final))
        self.knows = int(np.isin(indices, self.world.planted).sum()) >= self.world.needed
        self.sees = bool(np.isin(indices, self.world.planted).all())
        self.trained += epochs * len(indices)

    def assess(self, indices: Any) -> Assessment:
        world = self.world
        losses, predictions = np.full(len(indices), 0.1), world.labels[indices].copy()
        inside = np.isin(indices, world.planted)
        confidences = np.full(len(indices), 0.9)
        if not self.knows:
            losses[inside], predictions[inside], confidences[inside] = 5.0, world.called, world.confidence
        self.scored += len(indices)
        return Assessment(losses, predictions, confidences)

    def embed(self, indices: Any) -> Any:
        view = np.random.default_rng(self.seed).normal(size=(len(self.world.labels), 5))
        if self.sees or not self.world.only_disputed:
            view[self.world.marked, 3] += self.world.distance
        view[self.world.second, 1] -= self.world.distance
        view[self.world.halo, 3] += 0.4 * self.world.distance
        self.scored += len(indices)
        return view[indices]


@dataclass(frozen=True)
class World:
    """300 samples of two classes; 30 of class 1 look different, and outsiders call them 0."""

    labels: Any = field(default_factory=lambda: np.repeat([0, 1], 150))
    marked: Any = field(default_factory=lambda: np.arange(200, 230))
    planted: Any = field(default_factory=lambda: np.arange(200, 230))
    halo: Any = field(default_factory=lambda: np.array([], dtype=int))
    needed: int = 2
    second: Any = field(default_factory=lambda: np.array([], dtype=int))
    called: int = 0
    confidence: float = 0.95
    distance: float = 20.0
    only_disputed: bool = False
    """Only a model that trained on nothing but the planted samples sees them apart."""
    fits: list[Any] = field(default_factory=list)

    def __call__(self, seed: int) -> SeeingLearner:
        return SeeingLearner(self, seed)

    def clean(self, settings: ExpansionSettings = SETTINGS, seed: int = 0) -> Sanitization:
        return clean_by_expansion(self.labels, self, settings, seeds=Seeds(seed), workshop=Workshop())


def removed(result: Sanitization) -> list[int]:
    found: list[int] = np.flatnonzero(~result.keep).tolist()
    return found


def test_a_group_that_outsiders_call_by_another_name_is_removed() -> None:
    result = World().clean()
    assert removed(result) == list(range(200, 230))
    (group,) = result.groups
    assert (group.label, group.called, group.size, group.removed) == (1, 0, 30, True)
    assert group.evidence["agreement"] == 0.0
    assert group.evidence["sharpness"] > 0.5
    assert group.evidence["sharpness"] > group.evidence["striking"] > 0.2
    assert (result.predicted[200:230] == 0).all()
    assert result.suspicion[200:230].min() > 0.5 > np.delete(result.suspicion, range(200, 230)).max()
    assert result.components[0][200:230].tolist() == [1] * 30


def test_a_group_that_outsiders_recognise_is_kept() -> None:
    result = World(planted=np.array([], dtype=int)).clean()
    assert result.n_removed == 0
    (group,) = result.groups
    assert not group.removed
    assert group.evidence["agreement"] == 1.0


@pytest.mark.parametrize(
    ("recognised", "far", "is_removed"), [(18, 0.15, True), (18, 1.0, False), (27, 0.15, False)]
)
def test_a_group_that_outsiders_partly_recognise_goes_if_it_stands_far_apart(
    recognised: int, far: float, is_removed: bool
) -> None:
    """As images of a clean-label attack do, which are what their label says and have the trigger besides."""
    result = World(planted=np.arange(200 + recognised, 230)).clean(replace(SETTINGS, far=far))
    (group,) = result.groups
    assert group.evidence["own"] == pytest.approx(recognised / 30, abs=0.02)
    assert group.removed == is_removed
    assert removed(result) == (list(range(200, 230)) if is_removed else [])


def test_a_group_that_outsiders_are_unsure_about_is_kept() -> None:
    result = World(confidence=0.4).clean()
    assert result.n_removed == 0
    (group,) = result.groups
    assert group.evidence["agreement"] == 0.0
    assert group.evidence["belonging"] == 0.0


def test_where_nothing_stands_apart_nobody_is_judged() -> None:
    world = World(distance=0.0)
    result = world.clean()
    assert result.n_removed == 0
    assert result.groups == ()
    assert len(world.fits) == 2 * 2, "no judges"
    assert result.cost == Cost(trained=2 * (3 * 150 + 2 * 300), scored=2 * (300 + 300))
    assert result.notes == {"vote_accuracy": 1.0}


@pytest.mark.parametrize(("needed", "removed_samples"), [(2, 0), (25, 30)])
def test_a_group_that_is_not_striking_is_judged_if_halves_do_not_know_it(
    needed: int, removed_samples: int
) -> None:
    """15 of the planted samples are in each half."""
    result = World(needed=needed).clean(replace(SETTINGS, above_usual=1.0))
    assert result.n_removed == removed_samples
    assert len(result.groups) == bool(removed_samples)


@pytest.mark.parametrize(("second", "judged"), [(15, 2), (25, 0)])
def test_unknown_groups_that_are_more_than_a_third_of_a_class_must_be_striking(
    second: int, judged: int
) -> None:
    """Then models on halves do not know the class, and that they do not know its groups says nothing."""
    others = np.arange(230, 230 + second)
    both = np.arange(200, 230 + second)
    world = World(needed=25, planted=both, second=others, distance=20.0)
    result = world.clean(replace(SETTINGS, above_usual=0.9))
    assert len(result.groups) == judged
    assert result.n_removed == (len(both) if judged else 0)


def test_what_outsiders_dispute_is_looked_at_by_a_model_of_its_own() -> None:
    """Thirty of 300 are disputed; only a model that trained on nothing else sees them apart."""
    world = World(needed=25, only_disputed=True)
    result = world.clean()
    indices, epochs, min_steps, final = world.fits[4]
    assert indices.tolist() == list(range(200, 230))
    assert (epochs, min_steps, final) == (3, 7, True)
    assert removed(result) == list(range(200, 230))


@pytest.mark.parametrize("share", [0.05, 0.0])
def test_where_much_is_disputed_no_model_trains_on_it_alone(share: float) -> None:
    world = World(needed=25, only_disputed=True)
    result = world.clean(replace(SETTINGS, disputed=share))
    assert result.n_removed == 0
    assert [(len(indices), epochs) for indices, epochs, _, _ in world.fits] == [(150, 3), (300, 4)] * 2


def test_a_group_of_a_class_that_outsiders_confuse_anyhow_is_kept() -> None:
    """They give the group its label as often as the rest of its class: in six of ten cases."""
    confused = np.arange(150, 300)[np.arange(150) % 5 < 2]
    world = World(planted=confused, needed=10_000)
    result = world.clean()
    (group,) = result.groups
    assert group.evidence["agreement"] == pytest.approx(0.6)
    assert group.evidence["own"] > 0.9
    assert result.n_removed == 0


def test_one_of_two_groups_in_a_class_may_go() -> None:
    world = World(marked=np.arange(200, 230), planted=np.arange(240, 260), second=np.arange(240, 260))
    result = world.clean()
    assert removed(result) == list(range(240, 260))
    assert sorted((group.size, group.removed) for group in result.groups) == [(20, True), (30, False)]


def test_nobody_speaks_of_what_it_trained_on() -> None:
    world = World(halo=np.array([240, 241]))
    result = world.clean(replace(SETTINGS, judges=2))
    assert result.votes is not None
    assert result.votes.voters == ("model 1", "model 2", "judge 1", "judge 2")
    (first, second), outside = world.fits[1:4:2], world.fits[0:4:2] + world.fits[4:]
    assert [(len(indices), epochs) for indices, epochs, _, _ in (first, second)] == [(300, 2)] * 2
    for asked, (indices, epochs, min_steps, final) in zip(result.votes.asked, outside, strict=True):
        assert not asked[indices].any()
        assert (epochs, min_steps, final) == (3, 7, True)
    judged = result.votes.asked[2:].all(axis=0)
    assert judged[200:230].all()
    assert judged[[240, 241]].all()
    assert result.votes.asked.any(axis=0).all(), "somebody speaks of everyone"


def test_what_is_some_of_the_way_goes_with_the_group_whatever_it_is_called() -> None:
    """Images of a clean-label attack are called what their label says."""
    world = World(planted=np.append(np.arange(200, 230), 240), halo=np.array([240, 241]))
    result = world.clean()
    assert (result.predicted[[240, 241]] == [0, 1]).all()
    assert removed(result) == [*range(200, 230), 240, 241]
    assert result.groups[0].size == 30
    assert (result.components[0] > 0).sum() == 30, "only what was judged is in the group"


def test_one_group_does_not_take_what_is_near_another() -> None:
    """The group of the halo, whose mark it has some of, is kept; the other goes."""
    second = np.arange(240, 260)
    world = World(planted=second, second=second, halo=np.array([270, 271]))
    assert removed(world.clean()) == second.tolist()


def test_the_halo_of_a_kept_group_stays() -> None:
    world = World(planted=np.array([240, 242, 243]), halo=np.array([240, 241]))
    assert world.clean().n_removed == 0


# --- where the planted may be the larger side of their class ------------------------------------------------


@dataclass(frozen=True)
class TwoSides(World):
    """Class 1 falls into ``marked`` and the rest; a model that met neither side is sure of some of each."""

    sure: tuple[float, float] = (0.1, 0.9)
    """Of the shares of the marked and of the rest that it calls 0 as surely as it calls others."""

    def __call__(self, seed: int) -> SeeingLearner:
        return TwoSidedLearner(self, seed)


class TwoSidedLearner(SeeingLearner):
    """Knows class 1 as soon as it has trained on any of it."""

    def fit(self, indices: Any, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        super().fit(indices, epochs=epochs, min_steps=min_steps, final=final)
        self.knows = bool((self.world.labels[indices] == 1).any())

    def assess(self, indices: Any) -> Assessment:
        world = self.world
        assert isinstance(world, TwoSides)
        said = super().assess(indices)
        if not self.knows:
            said.predictions[world.labels[indices] == 1] = 0
            ones = np.flatnonzero(world.labels == 1)
            sides = np.intersect1d(ones, world.marked), np.setdiff1d(ones, world.marked)
            for side, share in zip(sides, world.sure, strict=True):
                unsure = side[round(share * len(side)) :]
                said.confidences[np.isin(indices, unsure)] = 0.3
        return said


MARKED, REST = list(range(200, 250)), [*range(150, 200), *range(250, 300)]


@pytest.mark.parametrize(
    ("sure", "goes"),
    [((0.1, 0.9), REST), ((0.9, 0.1), MARKED), ((0.9, 0.8), []), ((0.4, 0.1), []), ((0.0, 0.0), [])],
)
def test_of_two_sides_of_a_class_the_one_goes_that_surely_is_another(
    sure: tuple[float, float], goes: list[int]
) -> None:
    world = TwoSides(marked=np.array(MARKED), planted=np.array([], dtype=int), sure=sure)
    result = world.clean()
    assert removed(result) == goes
    assert sorted((group.size, group.removed) for group in result.groups) == [
        (50, goes == MARKED),
        (100, goes == REST),
    ]
    judge = world.fits[-1][0]
    assert (world.labels[judge] == 0).all(), "the judge met nothing of the class"
    marked, rest = result.groups
    assert marked.evidence["other_side"] == rest.evidence["belonging"] == pytest.approx(sure[1])
    assert rest.evidence["other_side"] == marked.evidence["belonging"] == pytest.approx(sure[0])
    assert [marked.undecided, rest.undecided] == [not goes and share >= 0.5 for share in sure]


def test_up_to_half_of_a_class_may_be_a_side() -> None:
    half = np.arange(200, 270)
    world = TwoSides(marked=half, planted=np.array([], dtype=int), sure=(0.9, 0.1))
    assert removed(world.clean()) == half.tolist()


def test_what_is_less_than_a_quarter_of_its_class_is_judged_by_those_who_know_the_rest() -> None:
    world = World()
    (group,) = world.clean().groups
    assert (group.size, group.removed) == (30, True)
    assert "other_side" not in group.evidence
    assert (world.labels[world.fits[-1][0]] == 1).any()


def test_a_small_group_beside_a_large_one_must_be_surer_than_the_rest_too() -> None:
    small = np.arange(250, 270)
    for sure, goes in (((0.1, 0.9), [*range(150, 200), *range(270, 300)]), ((0.9, 0.1), MARKED)):
        world = TwoSides(marked=np.array(MARKED), planted=np.array([], dtype=int), second=small, sure=sure)
        result = world.clean()
        assert [group.size for group in result.groups] == [50, 20, 80]
        assert removed(result) == goes


@pytest.mark.parametrize(("groups_a_class", "judged"), [(1, 4), (2, 0)])
def test_how_sharp_is_usual_is_told_by_the_second_group_of_a_class(groups_a_class: int, judged: int) -> None:
    """What is planted in every class does not pass for usual; what falls into kinds everywhere does."""
    labels = np.repeat(np.arange(4), 200)
    view = np.random.default_rng(0).normal(size=(800, 6))
    for label in range(4):
        for k in range(groups_a_class):
            view[200 * label + 50 * k + np.arange(50), k + 1] += 20.0
    found = ApartTask((view,), labels, labels, ExpansionSettings())()
    assert len(found["sharpness"]) == judged


def test_where_every_class_falls_into_two_sides_something_is_left_for_judges_to_train_on() -> None:
    labels = np.repeat(np.arange(3), 200)
    view = np.random.default_rng(0).normal(size=(600, 6))
    for label in range(3):
        view[200 * label + np.arange(80), label + 1] += 20.0
    found = ApartTask((view,), labels, labels, ExpansionSettings())()
    assert len(found["sharpness"]) == 5
    assert np.count_nonzero(found["rival"]) == 4
    assert np.unique(labels[found["component"] == 0]).tolist() == [2]


@pytest.mark.parametrize(("size", "judged"), [(45, 1), (60, 0)])
def test_candidates_that_are_together_half_of_a_class_need_not_be_striking(size: int, judged: int) -> None:
    """Beyond, models on halves do not know the class, and nothing here is sharp enough to be striking."""
    labels, called = np.repeat(np.arange(4), 200), np.repeat(np.arange(4), 200)
    view = np.random.default_rng(0).normal(size=(800, 6))
    for k in range(2):
        group = 200 + size * k + np.arange(size)
        view[group, k + 1] += 20.0
        called[group] = 0
    found = ApartTask((view,), labels, called, replace(ExpansionSettings(), above_usual=0.9))()
    assert (len(found["sharpness"]) > 0) == judged


def half_apart(unknown: slice, errors_elsewhere: int) -> ApartTask:
    """A class of which 80 of 200 stand apart, not strikingly; ``unknown``, and some others, are called 0."""
    labels, called = np.repeat(np.arange(8), 200), np.repeat(np.arange(8), 200)
    view = np.random.default_rng(0).normal(size=(1600, 6))
    view[1200 + np.arange(80), 1] += 20.0
    called[1200:1400][unknown] = 0
    called[200 : 200 + errors_elsewhere] = 0
    return ApartTask((view,), labels, called, replace(ExpansionSettings(), above_usual=0.9))


@pytest.mark.parametrize(
    ("unknown", "errors_elsewhere", "judged"),
    [
        (slice(0, 0), 0, 0),
        (slice(0, 40), 0, 2),  # of the side that stands apart
        (slice(80, 180), 0, 2),  # of the rest, and of more than half of the class
        (slice(80, 180), 80, 0),  # where models on halves are wrong anyhow
    ],
)
def test_where_errors_are_few_either_side_may_be_the_one_that_nobody_knows(
    unknown: slice, errors_elsewhere: int, judged: int
) -> None:
    found = half_apart(unknown, errors_elsewhere)()
    assert bool(found["few_errors"][0]) == (errors_elsewhere == 0)
    assert np.count_nonzero(found["rival"]) == len(found["rival"]) == judged
    if judged:
        assert np.bincount(found["component"])[1:].tolist() == [80, 120]


def test_of_two_large_groups_in_a_class_only_the_first_is_tried_against_the_rest() -> None:
    labels = np.repeat(np.arange(4), 200)
    view = np.random.default_rng(0).normal(size=(800, 6))
    view[np.arange(80), 1] += 20.0
    view[80 + np.arange(60), 2] += 20.0
    found = ApartTask((view,), labels, labels, replace(ExpansionSettings(), above_usual=0.1))()
    sizes = np.bincount(found["component"][:200])[1:].tolist()
    assert len(sizes) == 2
    assert sum(sizes) == 200
    assert found["rival"].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("known", "belonging", "striking", "goes", "goes_if_errors_are_few"),
    [
        (0.0, 0.3, 0.5, True, True),
        (0.2, 0.33, 0.5, True, False),
        (0.2, 0.45, 0.5, True, True),
        (0.8, 0.6, 0.5, True, False),
        (0.8, 0.7, 0.5, True, True),
        (0.8, 0.3, 0.3, True, True),  # it is striking
        (0.0, 0.2, 0.5, False, False),
    ],
)
def test_what_is_known_and_not_striking_must_surely_be_another_where_errors_are_few(
    known: float, belonging: float, striking: float, goes: bool, goes_if_errors_are_few: bool
) -> None:
    found = {"sharpness": 0.4, "striking": striking, "known": known, "own": 0.1, "belonging": belonging}
    for few_errors, expected in ((False, goes), (True, goes_if_errors_are_few)):
        assert _goes(found, ExpansionSettings(), few_errors=few_errors) is expected


@pytest.mark.parametrize(
    ("side", "other", "goes", "goes_if_errors_are_few"),
    [
        ((0.9, 1.0), (0.3, 1.0), True, True),
        ((0.9, 1.0), (0.6, 1.0), False, False),
        ((0.9, 0.7), (0.6, 1.0), False, True),  # known less, and surer
        ((0.6, 0.7), (0.7, 1.0), False, False),  # known less, and less sure: merely hard
        ((0.9, 0.8), (0.6, 1.0), False, False),  # hardly known less
        ((0.9, 1.0), (0.1, 0.9), False, False),  # known better than the other
        ((0.6, 0.7), (0.1, 1.0), True, False),  # not sure enough for what is known
        ((0.4, 0.0), (0.1, 1.0), False, False),
    ],
)
def test_which_of_two_sides_goes(
    side: tuple[float, float], other: tuple[float, float], goes: bool, goes_if_errors_are_few: bool
) -> None:
    """Of each: how sure the judges are of it, and how much models on halves know."""
    found = {"belonging": side[0], "known": side[1], "other_side": other[0], "other_side_known": other[1]}
    for few_errors, expected in ((False, goes), (True, goes_if_errors_are_few)):
        assert _goes(found, ExpansionSettings(), few_errors=few_errors) is expected


def test_a_class_with_few_samples_is_left_alone() -> None:
    labels = np.repeat([0, 1, 2], [200, 90, 10])
    world = World(labels=labels, marked=np.arange(290, 297), planted=np.arange(290, 297))
    result = world.clean()
    assert result.n_removed == 0
    assert all(group.label != 2 for group in result.groups)


def test_an_embedding_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError, match="diverged"):
        World(distance=np.inf).clean()


def test_a_learner_without_embedding_is_refused_before_it_is_trained() -> None:
    class Blind:
        cost = Cost()

    with pytest.raises(InputError, match=r"'expansion'.*Blind has no method 'embed'"):
        clean_by_expansion(
            np.repeat([0, 1], 50), lambda _seed: Blind(), SETTINGS, seeds=Seeds(0), workshop=Workshop()
        )  # type: ignore[arg-type, return-value]


# --- on real data ---------------------------------------------------------------------------------------


def digits_with_a_patch(seed: int) -> tuple[Any, Any, Any]:
    """A fifth of the ones get a bright corner and are called sevens."""
    images, labels = load_digits(return_X_y=True)
    images, labels = images / 16.0, labels.copy()
    ones = np.flatnonzero(labels == 1)
    planted = np.random.default_rng(seed).choice(ones, len(ones) // 5, replace=False)
    grid = images.reshape(-1, 8, 8)
    grid[planted, :2, :2] = 1.0
    labels[planted] = 7
    return grid.reshape(-1, 64), labels, planted


MLP = MLPClassifier((64,), max_iter=30, learning_rate_init=0.005)


@pytest.mark.filterwarnings("ignore:.*Stochastic Optimizer")
@pytest.mark.parametrize("seed", [1, 3])
def test_of_all_groups_in_digits_the_planted_stand_apart_most(seed: int) -> None:
    images, labels, planted = digits_with_a_patch(seed)
    settings = settings_for(labels, method="expansion", epochs=30, belonging=0.0)
    result = sanitize(labels, SklearnFactory(MLP, images, labels, n_classes=10), settings, seed=seed)
    sharpest = max(range(len(result.groups)), key=lambda k: result.groups[k].evidence["sharpness"])
    assert np.flatnonzero(result.components[0] == sharpest + 1).tolist() == sorted(planted.tolist())
    assert result.groups[sharpest].removed
    assert not result.keep[planted].any()


def test_workers_do_not_change_the_result() -> None:
    images, labels, _ = digits_with_a_patch(0)
    factory = SklearnFactory(LogisticRegression(max_iter=200), images, labels, n_classes=10)
    settings = settings_for(labels, method="expansion")
    alone = sanitize(labels, factory, settings, seed=3, runner=LocalRunner(1))
    together = sanitize(labels, factory, settings, seed=3, runner=LocalRunner(2))
    np.testing.assert_array_equal(alone.keep, together.keep)
    np.testing.assert_array_equal(alone.suspicion, together.suspicion)
    assert alone.groups == together.groups
