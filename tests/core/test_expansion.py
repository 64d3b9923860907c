from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest

from unpoison.core.expansion import (
    ErrorTask,
    Estimate,
    Measuring,
    compatibility,
    compatibility_matrix,
    expansion_error,
    student_quantile,
)
from unpoison.core.learner import Assessment
from unpoison.core.result import Cost
from unpoison.core.sampling import ceil_share
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import IndexArray

from .fakes import CentroidFactory, CountingRunner, two_blobs

HOW = Measuring(repeats=6, epochs=1)


def conflicting() -> tuple[CentroidFactory, np.ndarray, dict[str, np.ndarray]]:
    """Two classes far apart, and a third, larger set with the labels the other way round."""
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 2
    rows = rng.normal(size=(240, 3)) + 4.0 * labels[:, None]
    shown = np.where(np.arange(240) < 120, labels, 1 - labels).astype(np.int64)
    sets = {"first": np.arange(60), "second": np.arange(60, 120), "flipped": np.arange(120, 240)}
    return CentroidFactory(rows, shown), shown, sets


class NearestMean:
    """Deterministic, on one number a sample: what it learns follows from its training set alone."""

    def __init__(self, values: np.ndarray, labels: np.ndarray) -> None:
        self.values, self.labels, self.means = values, labels, np.zeros(2)
        self.cost = Cost()

    def fit(self, indices: IndexArray, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        self.means = np.array([self.values[indices][self.labels[indices] == c].mean() for c in (0, 1)])

    def assess(self, indices: IndexArray) -> Assessment:
        away = np.abs(self.values[indices, None] - self.means)
        return Assessment(away.min(axis=1), away.argmin(axis=1), np.ones(len(indices)))


@dataclass(frozen=True)
class NearestMeanFactory:
    values: np.ndarray
    labels: np.ndarray

    def __call__(self, seed: int) -> NearestMean:
        return NearestMean(self.values, self.labels)


def exact_error(factory: NearestMeanFactory, of: np.ndarray, given: np.ndarray, alpha: float) -> float:
    """The definition: the mean error on all of ``of`` over every alpha share, per class, of the union."""
    union = np.union1d(of, given)
    by_class = [union[factory.labels[union] == c] for c in (0, 1)]
    shares = [combinations(members, ceil_share(alpha, len(members))) for members in by_class]
    errors = []
    for first, second in product(*shares):
        learner = factory(0)
        learner.fit(np.array([*first, *second]), epochs=1)
        errors.append((learner.assess(of).predictions != factory.labels[of]).mean())
    return float(np.mean(errors))


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("alone", [True, False])
def test_the_estimate_is_that_of_the_definition(alpha: float, alone: bool) -> None:
    values = np.array([0.0, 1.0, 2.2, 4.0, 3.0, 5.0, 6.1, 1.5, 6.0, 2.5, 0.4])
    factory = NearestMeanFactory(values, np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1]))
    of, given = np.arange(8), np.arange(0 if alone else 8, 0 if alone else 11)
    found = expansion_error(
        factory.labels, factory, of, given=None if alone else given, how=Measuring(alpha=alpha, repeats=600)
    )
    exact = exact_error(factory, of, given, alpha)
    assert found.mean == pytest.approx(exact, abs=4 * found.standard_error + 1e-12)
    assert found.standard_error < 0.01
    assert 0.05 < exact < 0.6


def test_a_set_that_explains_itself_has_no_error() -> None:
    factory, labels, sets = conflicting()
    alone = expansion_error(labels, factory, sets["first"], how=HOW)
    given = expansion_error(labels, factory, sets["first"], given=sets["flipped"], how=HOW)
    assert alone.mean < 0.01
    assert given.mean > alone.mean + 0.1


def test_flipped_labels_are_incompatible_and_halves_are_not() -> None:
    factory, labels, sets = conflicting()
    bad = compatibility(labels, factory, sets["first"], sets["flipped"], how=HOW)
    assert bad.decision == "incompatible"
    assert bad.difference.mean == pytest.approx(bad.given.mean - bad.alone.mean)
    fine = compatibility(labels, factory, sets["first"], sets["second"], how=HOW)
    assert fine.decision != "incompatible"
    assert bad.cost.trained > 0


def test_help_is_compatible() -> None:
    """A few samples of hard classes gain from many more of the same."""
    rng = np.random.default_rng(1)
    labels = (np.arange(1004) % 2).astype(np.int64)
    rows = rng.normal(size=(1004, 30)) + 0.5 * labels[:, None]
    found = compatibility(
        labels, CentroidFactory(rows, labels), np.arange(1000, 1004), np.arange(1000),
        how=Measuring(alpha=0.5, repeats=40, epochs=1, confidence=0.9),
    )  # fmt: skip
    assert found.difference.mean < 0


def test_a_matrix_has_every_ordered_pair_and_measures_each_set_once() -> None:
    factory, labels, sets = conflicting()
    runner = CountingRunner()
    matrix = compatibility_matrix(labels, factory, sets, how=HOW, runner=runner)
    assert set(matrix) == {(a, b) for a in sets for b in sets if a != b}
    assert len(runner.ran) == HOW.repeats * (3 + 3), "one model serves both directions of a pair"
    assert matrix["first", "flipped"].decision == matrix["second", "flipped"].decision == "incompatible"
    assert matrix["first", "second"].decision != "incompatible"
    assert matrix["first", "second"].alone == matrix["first", "flipped"].alone


def test_a_pair_is_the_same_by_itself_and_in_a_matrix() -> None:
    factory, labels, sets = conflicting()
    matrix = compatibility_matrix(labels, factory, sets, how=HOW, seed=2)
    for (of, given), found in matrix.items():
        pair = compatibility(labels, factory, sets[of], sets[given], how=HOW, seed=2)
        assert (pair.decision, pair.alone, pair.given, pair.difference) == (
            found.decision, found.alone, found.given, found.difference,
        )  # fmt: skip
        assert pair.alone == expansion_error(labels, factory, sets[of], how=HOW, seed=2)


def test_the_errors_of_two_sets_make_up_that_of_their_union() -> None:
    """The paper's decomposition lemma, for the very models that were trained."""
    rows, labels = two_blobs(90)
    factory, parts = CentroidFactory(rows, labels), {"A": np.arange(30), "B": np.arange(30, 90)}
    matrix = compatibility_matrix(labels, factory, parts, how=HOW)
    whole = expansion_error(labels, factory, np.arange(90), how=HOW)
    assert 90 * whole.mean == pytest.approx(
        30 * matrix["A", "B"].given.mean + 60 * matrix["B", "A"].given.mean
    )
    assert whole.mean > 0


def test_a_set_and_a_larger_one_draw_mostly_the_same() -> None:
    """Which takes chance out of the difference; each draw by itself is uniform."""
    labels = (np.arange(400) % 2).astype(np.int64)
    small, large = np.arange(200), np.arange(400)
    drawn = np.zeros(400)
    for repeat in range(200):
        alone, together = (
            ErrorTask(
                CentroidFactory(np.zeros((400, 1)), labels), labels, trained, (), HOW, Seeds(repeat)
            ).sample()
            for trained in (small, large)
        )
        assert (len(alone), len(together)) == (100, 200)
        assert np.isin(alone, together).mean() > 0.75
        drawn[alone] += 1
    assert drawn[200:].sum() == 0
    assert 60 < drawn[:200].min() <= drawn[:200].max() < 140


def test_pairing_narrows_the_interval() -> None:
    rows, labels = two_blobs(200, seed=5)
    halves = np.arange(100), np.arange(100, 200)
    found = compatibility(labels, CentroidFactory(rows, labels), *halves, how=Measuring(repeats=60))
    apart = np.hypot(found.alone.standard_error, found.given.standard_error)
    assert found.difference.standard_error < 0.9 * apart


def test_the_order_of_work_changes_nothing_and_the_seed_does() -> None:
    rows, labels = two_blobs(120)
    factory, halves = CentroidFactory(rows, labels), (np.arange(60), np.arange(60, 120))
    first, second = (
        compatibility(labels, factory, *halves, how=HOW, seed=3, runner=CountingRunner(order))
        for order in (list, lambda names: names[::-1])
    )
    assert first == second
    other = compatibility(labels, factory, *halves, how=HOW, seed=4)
    assert other.given != first.given


def test_how_many_repeats_a_decision_takes() -> None:
    """As many as there are or fewer where it is decided, more where it is not."""
    rows, labels = two_blobs(60, seed=3)
    sets = {"a": np.arange(0, 60, 3), "b": np.arange(1, 60, 3), "c": np.arange(2, 60, 3)}
    decided = []
    for seed in range(8):
        for found in compatibility_matrix(
            labels, CentroidFactory(rows, labels), sets, how=HOW, seed=seed
        ).values():
            if found.difference.mean != 0:
                assert found.repeats_needed is not None
                decided.append(found.decision != "undecided")
                assert decided[-1] == (found.repeats_needed <= HOW.repeats)
    assert any(decided)
    assert not all(decided)


def test_more_repeats_are_needed_to_be_surer() -> None:
    rows, labels = two_blobs(60, seed=3)
    parts = np.arange(0, 60, 3), np.arange(1, 60, 3)
    few, many = (
        compatibility(labels, CentroidFactory(rows, labels), *parts, how=Measuring(repeats=6, confidence=c))
        for c in (0.6, 0.9999)
    )
    assert few.repeats_needed is not None
    assert many.repeats_needed is not None
    assert 2 <= few.repeats_needed < many.repeats_needed


def test_no_change_at_all_is_both_and_decides_nothing() -> None:
    factory, labels, sets = conflicting()
    same = compatibility(labels, factory, sets["first"], sets["first"], how=HOW)
    assert (same.decision, same.difference.mean, same.repeats_needed) == ("undecided", 0.0, None)
    assert same.alone == same.given


@pytest.mark.parametrize("freedom", [1.0, 2.5, 7.0, 30.0, 299.0])
@pytest.mark.parametrize("probability", [0.75, 0.95, 0.995])
def test_quantiles_are_those_of_scipy(probability: float, freedom: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert student_quantile(probability, freedom) == pytest.approx(
        stats.t.ppf(probability, freedom), rel=1e-3
    )


def test_an_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(2000, 5))
    estimates = [Estimate(d.mean(), d.std(ddof=1) / np.sqrt(5), 4.0) for d in draws]
    inside = np.mean([low <= 0 <= high for low, high in (e.interval(0.9) for e in estimates)])
    assert 0.88 < inside < 0.92


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, "'alpha' parameter must be a share"),
        ({"alpha": 1.1}, "Got 1.1"),
        ({"repeats": 1}, "one model has no spread"),
        ({"confidence": 1.0}, "'confidence' parameter"),
        ({"epochs": 0}, "'epochs' parameter"),
        ({"min_steps": -1}, "'min_steps' parameter"),
    ],
)
def test_bad_settings(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Measuring(**settings)  # type: ignore[arg-type]


def test_an_empty_set_has_no_error() -> None:
    factory, labels, _ = conflicting()
    with pytest.raises(InputError, match="'S' is empty"):
        expansion_error(labels, factory, np.empty(0, dtype=np.int64))
