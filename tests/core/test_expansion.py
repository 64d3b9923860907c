from __future__ import annotations

import numpy as np
import pytest

from unpoison.core.expansion import (
    Estimate,
    Measuring,
    compatibility,
    compatibility_matrix,
    expansion_error,
    student_quantile,
)
from unpoison.errors import InputError

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
    assert len(runner.ran) == HOW.repeats * (3 + 6)
    assert matrix["first", "flipped"].decision == matrix["second", "flipped"].decision == "incompatible"
    assert matrix["first", "second"].decision != "incompatible"
    assert matrix["first", "second"].alone == matrix["first", "flipped"].alone


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
    factory, labels, sets = conflicting()
    found = compatibility(labels, factory, sets["first"], sets["flipped"], how=HOW)
    assert found.repeats_needed is not None
    assert 2 <= found.repeats_needed <= HOW.repeats
    same = compatibility(labels, factory, sets["first"], sets["first"], how=Measuring(alpha=1.0, repeats=3))
    assert same.decision == "undecided"


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
    ],
)
def test_bad_settings(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Measuring(**settings)  # type: ignore[arg-type]


def test_an_empty_set_has_no_error() -> None:
    factory, labels, _ = conflicting()
    with pytest.raises(InputError, match="'S' is empty"):
        expansion_error(labels, factory, np.empty(0, dtype=np.int64))
