from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest

from unpoison.core.boosting import component_votes
from unpoison.evaluation.theory.exact import Finding
from unpoison.evaluation.theory.linear import LinearAttack, max_margin, poisoned_draw
from unpoison.evaluation.theory.voting import (
    Components,
    all_mistakes,
    check_votes,
    component_sets,
    has_property,
    mistakes_between,
)
from unpoison.types import IndexArray


def over(n_clean: int, n_poisoned: int, *, own: bool = True, lacking: bool = False, most: int = 3) -> Finding:
    sets = list(component_sets(n_clean, n_poisoned, most=most))
    return reduce(add, (check_votes(components, own=own, lacking=lacking) for components in sets))


@pytest.mark.parametrize(("n_clean", "n_poisoned"), [(3, 0), (2, 1), (3, 2), (4, 3), (5, 2), (4, 1)])
def test_the_vote_is_right_whatever_the_voters_say_within_the_property(n_clean: int, n_poisoned: int) -> None:
    assert over(n_clean, n_poisoned).held


def test_without_the_property_it_is_not() -> None:
    found = over(3, 2, lacking=True)
    assert found.failures > found.cases / 2


def test_half_clean_is_too_little() -> None:
    """The proof says "at least half"; the vote asks for more than half, and the threat model gives it."""
    assert over(3, 3).failures > 0
    assert over(2, 2).failures > 0


def test_a_component_must_know_its_own_samples() -> None:
    """The property is about disjoint sets, but a component also votes on itself."""
    assert over(3, 2, own=False).failures > 0
    alone = Components((3,), (True,))
    assert has_property(alone, np.array([[3]]), own=False)
    assert not alone.named_right(np.array([[3]]))


def parts_of(rows: int, parts: int, start: int) -> list[IndexArray]:
    return np.array_split(np.random.default_rng(0).permutation(rows) + start, parts)


@pytest.mark.parametrize("dimensions", [2, 6])
def test_real_classifiers_on_the_linear_attack(dimensions: int) -> None:
    sets = poisoned_draw(LinearAttack(dimensions=dimensions), 24, rng=np.random.default_rng(1))
    rows, labels = sets.both
    n_clean = len(sets.clean[1])
    components = [*parts_of(n_clean, 3, 0), *parts_of(len(labels) - n_clean, 2, n_clean)]
    predictions = [max_margin(rows[part], labels[part]).predict(rows) for part in components]
    mistakes = mistakes_between(predictions, components, labels)
    judged = Components(tuple(map(len, components)), (True, True, True, False, False))
    assert has_property(judged, mistakes)
    assert judged.named_right(mistakes)
    assert component_votes(np.array(predictions), components, labels).tolist() == list(judged.clean)


def test_components_of_one_class_lack_the_property_and_the_vote_fails() -> None:
    """What the property literally asks of "any two disjoint sets of clean data" nobody has: these are two."""
    sets = poisoned_draw(LinearAttack(), 12, rng=np.random.default_rng(1))
    rows, labels = sets.both
    n_clean = len(sets.clean[1])
    components = [np.arange(0, 9), np.arange(9, 18), np.arange(n_clean, len(labels))]
    assert [len(np.unique(labels[part])) for part in components] == [1, 1, 2]
    predictions = [max_margin(rows[part], labels[part]).predict(rows) for part in components]
    mistakes = mistakes_between(predictions, components, labels)
    judged = Components(tuple(map(len, components)), (True, True, False))
    assert not has_property(judged, mistakes)
    assert not judged.named_right(mistakes)
    assert not component_votes(np.array(predictions), components, labels).any()  # all is thrown away


def test_poison_that_clean_models_explain_is_voted_in() -> None:
    components = Components((3, 2), (True, False))
    mistakes = np.array([[0, 0], [3, 0]])
    assert not has_property(components, mistakes)
    assert not components.named_right(mistakes)


def test_a_tie_is_no_vote() -> None:
    """Half of a component wrong is not "better than random guessing"."""
    components = Components((4, 1), (True, False))
    assert has_property(components, np.array([[1, 1], [4, 0]]))
    assert not has_property(components, np.array([[2, 1], [4, 0]]))


def test_what_is_enumerated() -> None:
    assert [c.sizes for c in component_sets(3, 1, most=3)] == [(3, 1), (2, 1, 1)]
    components = Components((3, 2), (True, False))
    assert len(list(all_mistakes(components))) == 2**4
    assert {int(row[0, 0]) for row in all_mistakes(components)} == {1, 2}
    assert {int(row[0, 1]) for row in all_mistakes(components)} == {0, 1}
    assert components.clean_size == 3
