from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unpoison.core import boosting, pipeline
from unpoison.core.boosting import component_votes, modal_votes, suspicion_from_losses, tally
from unpoison.core.checkpoint import FolderCheckpoints
from unpoison.core.config import GroupSettings, IsplSettings, Settings
from unpoison.core.learner import Assessment
from unpoison.core.pipeline import Votes, sanitize
from unpoison.core.result import Cost, Sanitization
from unpoison.errors import InputError
from unpoison.events import Progress
from unpoison.seeds import Seeds

from .fakes import CentroidFactory, CountingRunner, ScriptedLearner, StoppedError, same_bits, two_blobs
from .groups.worlds import World

ISPL = IsplSettings(rounds=2, restarts=2, self_training_updates=2)
CHEAPER = replace(ISPL, weak_start="component", voters="outsiders")
METHODS: dict[str, tuple[Settings, int]] = {
    "ispl": (ISPL, 9), "ispl-cheaper": (CHEAPER, 5), "groups": (GroupSettings(), 7),
}  # fmt: skip
"""Small settings, and how many tasks they make: 4 rounds + 4 voters + 1, without voters of their own, and
a model + 3 classes + 2 judges + a second look at the class of the planted."""

EVERY_POINT = [
    pytest.param(method, k, id=f"{method}-{k}") for method, (_, n) in METHODS.items() for k in range(n + 1)
]


def run(method: str, *, seed: int = 0, **more: Any) -> Sanitization:
    settings = METHODS[method][0]
    if method == "groups":
        world = World(labels=np.repeat([0, 1, 2], 120), planted=np.arange(120, 150))
        return sanitize(world.labels, world, settings, seed=seed, **more)
    rows, labels = two_blobs()
    return sanitize(labels, CentroidFactory(rows, labels), settings, seed=seed, **more)


@cache
def uninterrupted(method: str) -> Sanitization:
    return run(method)


def test_the_small_runs_have_something_to_decide() -> None:
    assert 0 < uninterrupted("ispl").n_removed < 40
    assert uninterrupted("groups").n_removed == 30


# --- determinism ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(method: str) -> None:
    assert same_bits(uninterrupted(method), run(method))
    assert not same_bits(uninterrupted(method), run(method, seed=1))
    if method != "groups":  # the losses of that world are of two kinds only
        assert not np.array_equal(uninterrupted(method).suspicion, run(method, seed=1).suspicion)


def shuffled(seed: int) -> Callable[[list[str]], list[str]]:
    generator = np.random.default_rng(seed)
    return lambda names: [names[i] for i in generator.permutation(len(names))]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", [lambda names: names[::-1], shuffled(1), shuffled(2)])
def test_the_order_of_execution_changes_no_bit(method: str, order: Any) -> None:
    runner = CountingRunner(order=order)
    assert same_bits(uninterrupted(method), run(method, runner=runner))
    assert len(runner.ran) == METHODS[method][1]


def test_more_restarts_do_not_change_the_first_ones() -> None:
    rows, labels = two_blobs()
    more = sanitize(labels, CentroidFactory(rows, labels), replace(ISPL, restarts=3), seed=0)
    assert np.array_equal(more.components[:2], uninterrupted("ispl").components)


# --- interruption ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "k"), EVERY_POINT)
def test_a_run_stopped_after_k_tasks_goes_on_to_the_same_bits(method: str, k: int, tmp_path: Path) -> None:
    total = METHODS[method][1]
    stopped = CountingRunner(stop_after=k)
    if k < total:
        with pytest.raises(StoppedError):
            run(method, runner=stopped, checkpoints=FolderCheckpoints(tmp_path, identity={}))
    else:
        run(method, runner=stopped, checkpoints=FolderCheckpoints(tmp_path, identity={}))
    assert len(stopped.ran) == k

    resumed = CountingRunner()
    result = run(method, runner=resumed, checkpoints=FolderCheckpoints(tmp_path, identity={}))
    assert same_bits(result, uninterrupted(method))
    assert len(resumed.ran) == total - k
    assert not set(resumed.ran) & set(stopped.ran), "what was finished is not done again"


@pytest.mark.parametrize("method", METHODS)
def test_a_run_stopped_again_and_again_arrives(method: str, tmp_path: Path) -> None:
    for _ in range(METHODS[method][1] - 1):
        with pytest.raises(StoppedError):
            run(
                method,
                runner=CountingRunner(order=lambda names: names[::-1], stop_after=1),
                checkpoints=FolderCheckpoints(tmp_path, identity={}),
            )
    last = CountingRunner()
    result = run(method, runner=last, checkpoints=FolderCheckpoints(tmp_path, identity={}))
    assert same_bits(result, uninterrupted(method))
    assert len(last.ran) == 1


@pytest.mark.parametrize("method", METHODS)
def test_damaged_checkpoints_are_computed_again(method: str, tmp_path: Path) -> None:
    run(method, checkpoints=FolderCheckpoints(tmp_path, identity={}))
    files = sorted(tmp_path.glob("*.npz"))
    assert len(files) == METHODS[method][1]
    for path in files[::2]:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    runner = CountingRunner()
    result = run(method, runner=runner, checkpoints=FolderCheckpoints(tmp_path, identity={}))
    assert same_bits(result, uninterrupted(method))
    assert set(runner.ran) == {path.stem for path in files[::2]}


@pytest.mark.parametrize(
    ("method", "stages"),
    [
        ("ispl", {"components and voters": 8, "self-training": 1}),
        ("ispl-cheaper", {"components and voters": 4, "self-training": 1}),
    ],
)
def test_progress_of_every_stage_runs_to_its_total(method: str, stages: dict[str, int]) -> None:
    heard: list[Progress] = []
    run(method, listener=heard.append)
    for stage, total in stages.items():
        assert [event.done for event in heard if event.stage == stage] == list(range(total + 1))
        assert {event.total for event in heard if event.stage == stage} == {total}
    assert {event.stage for event in heard} == set(stages)


def test_progress_of_groups_tells_of_a_second_look() -> None:
    heard: list[Progress] = []
    run("groups", listener=heard.append)
    assert [(event.stage, event.done, event.total) for event in heard] == [
        *((stage, done, total)
          for stage, total in (
              ("a model on everything", 1), ("groups that stand apart", 3), ("judges", 2),
              ("groups that stand apart", 1),
          )
          for done in range(total + 1))
    ]  # fmt: skip


# --- components -----------------------------------------------------------------------------------------


def test_components_of_a_restart_are_disjoint_and_cover_about_all() -> None:
    rows, labels = two_blobs(1000)
    settings = IsplSettings(restarts=2, self_training=False, class_floor=0.0)
    result = sanitize(labels, CentroidFactory(rows, labels), settings, seed=0)
    assert result.components.shape == (2, 1000)
    for row in result.components:
        assert np.bincount(row[row >= 0]).tolist() == [120] * 8
        assert (row == -1).sum() == 40


def test_four_rounds_make_components_of_a_quarter() -> None:
    rows, labels = two_blobs(1000)
    settings = IsplSettings(rounds=4, restarts=1, self_training=False)
    row = sanitize(labels, CentroidFactory(rows, labels), settings, seed=0).components[0]
    # the class floor may add up to p/8 of each class
    assert all(240 <= size <= 275 for size in np.bincount(row[row >= 0])[:3])


def test_fewer_samples_than_rounds() -> None:
    rows, labels = two_blobs(5)
    result = sanitize(labels, CentroidFactory(rows, labels), IsplSettings(restarts=1), seed=0)
    assert (result.components >= 0).all()
    assert result.keep.shape == (5,)


class NanLearner(ScriptedLearner):
    def assess(self, indices: Any) -> Assessment:
        n = len(indices)
        return Assessment(np.full(n, np.nan), np.zeros(n, dtype=np.int64), np.full(n, np.nan))


def test_a_learner_that_only_says_nan_is_an_error_for_ispl() -> None:
    with pytest.raises(InputError, match="Every loss was NaN or infinite"):
        sanitize(np.array([0, 0, 1, 1]), lambda _: NanLearner(), ISPL, seed=0)


# --- votes ----------------------------------------------------------------------------------------------


class Voter(ScriptedLearner):
    """Assesses the same way whatever it was trained on."""

    def __init__(self, losses: list[float], predictions: list[int]) -> None:
        super().__init__(losses=[losses], predictions=[predictions])


LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1])
SAID = [0, 0, 1, 1, 1, 1, 0, 0]
LOSSES = [1.0, 2.0, 3.0, 4.0, 4.0, 3.0, 2.0, 1.0]
ONE = IsplSettings(rounds=1, restarts=3, self_training=False)


def vote(settings: IsplSettings) -> Sanitization:
    return sanitize(LABELS, lambda _: Voter(LOSSES, SAID), settings, seed=0)


def test_the_papers_rule_end_to_end() -> None:
    """Kept: by mode 0, 1, 4, 5; by lower half 0, 1 and 6, 7."""
    result = vote(ONE)
    assert result.keep.tolist() == [True, True, False, False, True, True, True, True]
    assert result.predicted.tolist() == SAID
    assert result.suspicion == pytest.approx(1 - np.exp(-np.array(LOSSES)))
    assert result.notes == {"vote_accuracy": 0.5}
    (group,) = result.groups
    assert (group.label, group.size, group.removed, group.called) == (0, 2, True, 1)
    assert group.evidence == {"agreement": 0.0}


def test_the_authors_rule_end_to_end() -> None:
    assert np.flatnonzero(vote(replace(ONE, keep_rule="two-votes")).keep).tolist() == [0, 1, 4, 5]
    assert not vote(replace(ONE, keep_rule="two-votes", restarts=1)).keep.any(), "one vote is not two"


def test_algorithm_2_end_to_end() -> None:
    """Half wrong is not support: the only component of each restart is refused."""
    assert not vote(replace(ONE, keep_rule="component", coverage=1.0)).keep.any()
    right = sanitize(
        LABELS,
        lambda _: Voter(LOSSES, [0, 0, 0, 1, 1, 1, 0, 0]),
        replace(ONE, keep_rule="component", coverage=1.0),
        seed=0,
    )
    assert right.keep.all()


@pytest.mark.parametrize(("n_accepted", "kept"), [(0, False), (1, False), (2, False), (3, True), (4, True)])
def test_a_sample_needs_an_accepted_component_in_more_than_half_of_the_restarts(
    n_accepted: int, kept: bool
) -> None:
    """Four restarts, two samples each in a component of its own; voters are right about sample 0 only."""
    fitted_to = [np.array([0])] * n_accepted + [np.array([1])] * 10
    predictions = np.tile(np.array([[0, 1]], dtype=np.int32), (len(fitted_to), 1))
    votes = Votes(predictions, np.zeros((len(fitted_to), 2), np.float32), fitted_to)
    keep = pipeline._keep_by_component(votes, np.array([0, 0]), restarts=4)
    assert keep.tolist() == [kept, False]


def test_each_row_of_votes_stays_with_its_component(monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm 2 over two restarts of eleven rounds, done again by hand from the components found."""
    rows, labels = two_blobs(200)
    factory = CentroidFactory(rows, labels)
    settings = IsplSettings(rounds=11, restarts=2, self_training=False, keep_rule="component")
    asked: list[Any] = []
    monkeypatch.setattr(
        pipeline, "component_votes", lambda *args: asked.append(args) or component_votes(*args)
    )
    result = sanitize(labels, factory, settings, seed=0)
    components, losses, predictions = [], [], []
    for restart, number in product(range(2), range(11)):
        learner = factory(Seeds(0).within("ispl", "restart", restart, "round", number).integer("voter"))
        components.append(np.flatnonzero(result.components[restart] == number))
        learner.fit(components[-1], epochs=40)
        told = learner.assess(np.arange(200))
        losses.append(told.losses.astype(np.float32))
        predictions.append(told.predictions)
    ((rows_of_votes, fitted_to, _),) = asked
    assert np.array_equal(rows_of_votes, np.stack(predictions))
    assert [one.tolist() for one in fitted_to] == [one.tolist() for one in components]
    accepted = component_votes(np.stack(predictions), components, labels)
    assert 0 < accepted.sum() < len(accepted)
    support = sum(np.isin(np.arange(200), components[k]).astype(int) for k in np.flatnonzero(accepted))
    assert np.array_equal(result.keep, support == 2)
    assert np.array_equal(result.suspicion, suspicion_from_losses(np.stack(losses)))


def tied_votes(n: int = 200) -> tuple[Votes, Any]:
    predictions = np.array([[0] * n, [1] * n], dtype=np.int32)
    return Votes(predictions, np.ones((2, n), np.float32), []), np.zeros(n, dtype=np.int64)


def test_ties_come_from_the_stream_of_their_name() -> None:
    votes, labels = tied_votes()
    modal, support, _ = pipeline._vote_on_samples(votes, labels, ISPL, Seeds(5), 2)
    expected = modal_votes(tally(votes.predictions, n_classes=2), rng=Seeds(5).stream("ties"))
    assert modal.tolist() == expected.tolist()
    assert set(support.tolist()) == {0.5}
    assert 60 < modal.sum() < 140


def test_counting_in_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    votes, labels = tied_votes()
    at_once = pipeline._vote_on_samples(votes, labels, ISPL, Seeds(5), 2)
    monkeypatch.setattr(boosting, "TALLY_CELLS", 14)
    in_blocks = pipeline._vote_on_samples(votes, labels, ISPL, Seeds(5), 2)
    for left, right in zip(at_once, in_blocks, strict=True):
        assert np.array_equal(left, right)


def test_the_lower_half_is_by_the_mean_loss_of_all_voters() -> None:
    losses = np.array([[0.0, 1.0, 2.0, 9.0], [9.0, 1.0, 2.0, 0.0]], dtype=np.float32)
    votes = Votes(np.ones((2, 4), dtype=np.int32), losses, [])
    keep = pipeline._vote_on_samples(votes, np.zeros(4, dtype=np.int64), ISPL, Seeds(0), 2)[2]
    assert keep.tolist() == [False, True, True, False]


def test_outsiders_are_those_that_did_not_train_on_a_sample() -> None:
    """Two of three voters are wrong about the first sample, one of them trained on it."""
    predictions = np.array([[1, 0], [1, 0], [0, 0]], dtype=np.int32)
    votes = Votes(predictions, np.zeros((3, 2), np.float32), [np.array([0]), np.array([1]), np.array([0, 1])])
    assert votes.asked("all").all()
    assert votes.asked("outsiders").tolist() == [[False, True], [True, False], [False, False]]


def test_a_sample_that_trained_every_voter_is_put_to_all() -> None:
    votes = Votes(np.zeros((2, 1), dtype=np.int32), np.zeros((2, 1), np.float32), [np.array([0])] * 2)
    assert votes.asked("outsiders").tolist() == [[True], [True]]


def test_votes_of_outsiders_decide() -> None:
    """Sample 0 is what voter 0 trained on, and what voters 1 and 2 call another name."""
    predictions = np.array([[0, 0], [1, 0], [1, 0]], dtype=np.int32)
    losses = np.array([[0.1, 0.1], [4.0, 0.1], [4.0, 0.1]], dtype=np.float32)
    votes = Votes(predictions, losses, [np.array([0]), np.array([1]), np.array([], dtype=int)])
    settings = replace(ISPL, voters="outsiders")
    modal, support, _ = pipeline._vote_on_samples(votes, np.zeros(2, dtype=np.int64), settings, Seeds(0), 2)
    assert modal.tolist() == [1, 0]
    assert support.tolist() == [0.0, 1.0]


def test_a_weak_learner_may_go_on_from_its_component() -> None:
    made: list[ScriptedLearner] = []

    def factory(seed: int) -> ScriptedLearner:
        made.append(Voter(LOSSES, SAID))
        return made[-1]

    settings = replace(ONE, restarts=1, weak_start="component", weak_epochs=6, weak_min_steps=22)
    result = sanitize(LABELS, factory, settings, seed=0)
    (learner,) = made
    assert [(fit.epochs, fit.min_steps) for fit in learner.fits] == [(8, 0), (4, 0), (4, 0), (6, 22)]
    assert learner.fits[-1].indices == np.flatnonzero(result.components[0] == 0).tolist()
    assert result.predicted.tolist() == SAID


@pytest.mark.parametrize("weak_start", ["fresh", "component"])
def test_a_weak_learner_may_bring_its_rate_to_an_end(weak_start: Any) -> None:
    made: list[ScriptedLearner] = []

    def factory(seed: int) -> ScriptedLearner:
        made.append(Voter(LOSSES, SAID))
        return made[-1]

    settings = replace(ONE, restarts=1, weak_start=weak_start, weak_annealing=True)
    sanitize(LABELS, factory, settings, seed=0)
    assert [fit.final for learner in made for fit in learner.fits] == [False, False, False, True]


def test_one_voter_has_no_outsiders() -> None:
    with pytest.raises(InputError, match="'voters' parameter of IsplSettings must be 'all'"):
        IsplSettings(rounds=1, restarts=1, voters="outsiders")


def test_self_training_starts_from_the_vote_and_has_the_last_word() -> None:
    result = vote(replace(ONE, self_training=True))
    assert result.voted is not None
    assert result.voted.tolist() == vote(ONE).keep.tolist()
    assert result.keep.tolist() == [said == label for said, label in zip(SAID, LABELS.tolist(), strict=True)]


def test_a_learner_is_told_the_budget_of_each_step() -> None:
    made: list[ScriptedLearner] = []

    def factory(seed: int) -> ScriptedLearner:
        made.append(Voter(LOSSES, SAID))
        return made[-1]

    settings = IsplSettings(rounds=1, restarts=1, min_steps=11, weak_min_steps=22, self_training_updates=2)
    result = sanitize(LABELS, factory, settings, seed=0)
    budgets = [[(fit.epochs, fit.min_steps) for fit in learner.fits] for learner in made]
    assert budgets == [[(8, 22), (4, 11), (4, 11)], [(40, 22)], [(5, 0), (5, 0)]]
    assert not any(fit.final for learner in made for fit in learner.fits), "the rate is constant throughout"
    assert result.cost == sum((learner.cost for learner in made), Cost())
    assert made[1].fits[0].indices == np.flatnonzero(result.components[0] == 0).tolist()
