from __future__ import annotations

import hashlib
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from unpoison.attacks.base import Samples, Truth
from unpoison.attacks.catalog import check_options
from unpoison.core.learner import Assessment
from unpoison.core.result import Cost
from unpoison.evaluation.attack_sets import (
    FIELD,
    HELD_OUT_OF_TABLES,
    attack_sets,
    field_attack,
    held_out_attacks,
    held_out_sets,
)
from unpoison.evaluation.experiment import Arena, _shared
from unpoison.evaluation.scales import FULL
from unpoison.evaluation.scenarios import Scenario, by_name, of_table
from unpoison.evaluation.victims import Exam, train_and_examine

SETS = attack_sets()


@pytest.mark.parametrize("scenario", SETS, ids=lambda scenario: scenario.name)
def test_attacks_that_share_a_set_have_targets_of_their_own(scenario: Scenario) -> None:
    assert by_name(scenario.name) == scenario
    targets = [each.options["target"] for each in scenario.attacks]
    sources = [each.options["source"] for each in scenario.attacks if "source" in each.options]
    assert len(set(targets)) == len(targets)
    assert len(set(sources)) == len(sources)
    assert len({each.name for each in scenario.attacks}) == len(scenario.attacks)
    assert len({each.seeds for each in scenario.attacks}) == len(scenario.attacks)
    for each in scenario.attacks:
        check_options(each.attack, each.options)
        assert each.dataset == scenario.dataset


def test_every_family_of_the_field_is_there() -> None:
    there = {each.family for scenario in SETS for each in scenario.attacks}
    assert there >= {family for family, *_ in FIELD.values()}
    assert {scenario.dataset for scenario in SETS} == {"cifar10", "gtsrb"}


def test_the_authors_parameters() -> None:
    def options(kind: str) -> dict[str, object]:
        return dict(field_attack("cifar10", kind, target=0, seed=0).options)

    assert options("adaptive-blend")["count"] == options("adaptive-blend")["cover-count"] == 150
    assert (options("adaptive-patch")["count"], options("adaptive-patch")["cover-count"]) == (150, 300)
    assert (options("sig")["delta"], options("sig")["frequency"], options("sig")["mode"]) == (
        30,
        6,
        "right-label",
    )
    assert (options("wanet")["strength"], options("wanet")["grid"]) == (0.5, 4)
    assert [options(f"badnets-{count}")["count"] for count in (25, 50, 150, 500)] == [25, 50, 150, 500]


CLEAN = Samples.numbered(np.zeros((8, 4, 4, 1), np.uint8), np.repeat([0, 1], 4))


def arena(planted: list[int], label: int, shade: int, covers: tuple[int, ...] = ()) -> Arena:
    features, labels = CLEAN.features.copy(), CLEAN.labels.copy()
    features[[*planted, *covers]] = shade
    labels[planted] = label
    masks = [np.isin(np.arange(8), some) for some in (planted, covers)]
    exam = Exam(
        CLEAN.features,
        CLEAN.labels,
        np.array([0, 1]),
        np.full((2, 4, 4, 1), shade, np.uint8),
        np.full(2, label),
    )
    return Arena(CLEAN, CLEAN.changed(features, labels), Truth(*masks, CLEAN.labels), exam, "none")


def test_attacks_are_joined_and_what_two_chose_is_the_first_ones() -> None:
    both = _shared([arena([0, 1], 1, 10), arena([1, 4], 0, 20, covers=(5,))])
    assert both.attack_number is not None
    assert both.attack_number.tolist() == [0, 0, -1, -1, 1, 1, -1, -1]
    assert both.truth.planted.tolist() == [True, True, False, False, True, False, False, False]
    assert both.truth.covers.tolist() == [False] * 5 + [True, False, False]
    assert both.poisoned.features[:, 0, 0, 0].tolist() == [10, 10, 0, 0, 20, 20, 0, 0]
    assert both.poisoned.labels.tolist() == [1, 1, 0, 0, 0, 1, 1, 1]
    assert both.exam.attack_number is not None
    assert both.exam.attack_number.tolist() == [0, 0, 1, 1]
    assert (CLEAN.features == 0).all()


class FallsForTheFirst:
    """Calls what is of shade 10 a 1, and is right otherwise."""

    def __init__(self, features: np.ndarray, labels: np.ndarray) -> None:
        self.features, self.labels, self.cost = features, labels, Cost()

    def fit(self, *_: object, **__: object) -> None: ...

    def assess(self, indices: np.ndarray) -> Assessment:
        called = np.where(self.features[indices, 0, 0, 0] == 10, 1, self.labels[indices])
        return Assessment(np.zeros(len(indices)), called, np.ones(len(indices)))


def test_each_attack_is_examined_for_itself() -> None:
    both = _shared([arena([0], 1, 10), arena([4], 1, 20)])
    effect = train_and_examine(
        both.poisoned, np.ones(8, dtype=np.bool_), both.exam,
        lambda features, labels: lambda _seed: FallsForTheFirst(features, labels),  # type: ignore[arg-type,return-value]
        epochs=1, min_steps=0, seed=0,
    )  # fmt: skip
    assert effect.of_each == ((1.0, 1.0), (0.0, 0.0))
    assert (effect.targeted, effect.success) == (0.5, 0.5)


def test_no_two_sets_share_an_attack() -> None:
    for one, other in combinations(SETS, 2):
        same = {(each.name, each.seeds) for each in one.attacks} & {
            (each.name, each.seeds) for each in other.attacks
        }
        assert not same


DRAWN = held_out_attacks()


def test_what_is_held_out_was_drawn_in_proportion() -> None:
    tables = [table for each in DRAWN for table in each.tables if table in HELD_OUT_OF_TABLES]
    assert Counter(tables) == HELD_OUT_OF_TABLES
    assert len(tables) == 28
    of_paper = Counter(table for each in of_table("summary") for table in each.tables)
    for table, count in HELD_OUT_OF_TABLES.items():
        assert abs(count - 28 * of_paper[table] / 165) < 0.6
    assert len({each.name for each in DRAWN}) == len(DRAWN) == 40


def test_every_attack_of_the_field_is_held_out_once() -> None:
    of_field = [each for each in DRAWN if not each.tables]
    assert [each.name.split("-", 1)[1].rsplit("-", 1)[0] for each in of_field] == list(FIELD)
    assert Counter(each.dataset for each in of_field) == {"cifar10": 6, "gtsrb": 6}
    for each in of_field:
        check_options(each.attack, each.options)


def test_the_held_out_sets_hold_every_attack_once_and_none_meets_another() -> None:
    sets = held_out_sets()
    assert sorted(each.name for scenario in sets for each in scenario.attacks) == sorted(
        each.name for each in DRAWN
    )
    assert sorted(each.seeds[0] for scenario in sets for each in scenario.attacks) == list(range(7000, 7040))
    for scenario in sets:
        classes = [
            each.options[name]
            for each in scenario.attacks
            for name in ("source", "target")
            if name in each.options
        ]
        assert len(set(classes)) == len(classes)
        assert len(scenario.attacks) == 1 or classes
        assert by_name(scenario.name) == scenario
    assert FULL.held_out == tuple((scenario.name, 0) for scenario in sets)


def test_the_draw_is_the_one_that_was_committed() -> None:
    """Another order of the catalog or another generator would draw others."""
    told = [(each.name, [attack.name for attack in each.attacks]) for each in held_out_sets()]
    digest = hashlib.sha256(repr(told).encode()).hexdigest()
    assert digest[:16] == "c61ffa5bba3f3a3b"
