from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from unpoison.errors import InputError
from unpoison.evaluation.metrics import targeted_misclassification
from unpoison.evaluation.theory.exact import Expansion, Samples, mutually_incompatible, subsets
from unpoison.evaluation.theory.linear import (
    LinearAttack,
    Separator,
    draw_linear_classifier,
    margin_learner,
    max_margin,
    poisoned_draw,
)
from unpoison.evaluation.theory.separation import minimizers, smallest_minimizers
from unpoison.types import FloatArray, LabelArray

PAPERS = LinearAttack()
CORNERS = (
    np.array([[10.0, 0.0], [-10.0, 0.0], [10.0, 10.0], [-10.0, -10.0]]),
    np.array([1, -1, -1, 1]),
)
"""The centres of the clean balls, and of what they become."""


def small(
    attack: LinearAttack, n_clean: int, n_poisoned: int, *, seed: int = 0
) -> tuple[FloatArray, LabelArray, Samples, Samples]:
    """So many clean and poisoned samples a class, and which are which."""
    rng = np.random.default_rng(seed)
    clean, poisoned = attack.draw(n_clean, rng=rng), attack.poison(*attack.draw(n_poisoned, rng=rng))
    rows, labels = (np.concatenate(pair) for pair in zip(clean, poisoned, strict=True))
    return rows, labels, frozenset(range(2 * n_clean)), frozenset(range(2 * n_clean, len(labels)))


def test_the_classifier_has_the_largest_margin() -> None:
    separator = max_margin(*CORNERS)
    np.testing.assert_allclose(separator.weights, [0.1, -0.2], atol=1e-6)  # the paper's (1, -2)
    assert separator.offset == pytest.approx(0.0, abs=1e-6)
    rows, labels = PAPERS.draw(20, rng=np.random.default_rng(0))
    separator = max_margin(rows, labels)
    margins = labels * (rows @ separator.weights + separator.offset)
    assert margins.min() == pytest.approx(1.0, abs=1e-4)
    for angle in np.linspace(-0.2, 0.2, 81):  # no other direction has a wider gap
        turned = np.array([np.cos(angle), np.sin(angle)])
        gap = (rows[labels == 1] @ turned).min() - (rows[labels == -1] @ turned).max()
        assert gap <= 2 / np.linalg.norm(separator.weights) + 1e-3


def test_of_one_class_it_says_that_class() -> None:
    separator = max_margin(np.ones((2, 3)), np.array([-1, -1]))
    assert separator.weights.tolist() == [0, 0, 0]
    assert separator.predict(np.zeros((1, 3))).tolist() == [-1]


@pytest.mark.parametrize("dimensions", [2, 3, 20])
def test_risk_0_clean_and_tmr_1_poisoned(dimensions: int) -> None:
    attack = LinearAttack(dimensions=dimensions)
    for seed in range(5):
        sets = poisoned_draw(attack, 8, rng=np.random.default_rng(seed))
        clean, victim = max_margin(*sets.clean), max_margin(*sets.both)
        assert clean.never_wrong(attack)
        assert clean.unmoved(attack)
        assert victim.always_fooled(attack)
        assert (victim.predict(sets.both[0]) == sets.both[1]).all()
        fresh, labels = attack.draw(200, rng=np.random.default_rng(100 + seed))
        answers = victim.predict(fresh), victim.predict(attack.trigger(fresh))
        assert targeted_misclassification(*answers, labels=labels, goal=-labels) == 1.0


def test_not_only_with_high_probability() -> None:
    """One sample of each kind is enough, even where it lies worst: on the border of its ball."""
    angles = np.linspace(0, 2 * np.pi, 6, endpoint=False)
    border = np.column_stack([np.cos(angles), np.sin(angles)])
    rows, labels = CORNERS
    for first, second in product(border, border):
        for third, fourth in product((-1.0, 1.0), repeat=2):
            moved = rows + np.array([first, second, [third, 0.0], [fourth, 0.0]])
            assert max_margin(moved, labels).always_fooled(PAPERS)
            assert max_margin(moved[:2], labels[:2]).never_wrong(PAPERS)


@pytest.mark.parametrize(
    "attack",
    [LinearAttack(one_signal=True), LinearAttack(signal=0.5)],
    ids=["one signal for both classes", "a signal within the noise"],
)
def test_where_the_attack_is_another_tmr_is_not_1(attack: LinearAttack) -> None:
    sets = poisoned_draw(attack, 12, rng=np.random.default_rng(0))
    victim = max_margin(*sets.both)
    assert not victim.always_fooled(attack)
    assert (victim.predict(sets.both[0]) != sets.both[1]).any()  # nothing separates this set
    assert max_margin(*sets.clean).never_wrong(attack)


def test_where_the_noise_is_wide_the_risk_is_not_0() -> None:
    attack = LinearAttack(radius=9.0)
    assert not max_margin(*attack.draw(3, rng=np.random.default_rng(0))).never_wrong(attack)


def test_the_whole_extent_of_the_balls_counts() -> None:
    assert Separator(np.array([1.0, 0.0]), 8.9).never_wrong(PAPERS)
    assert not Separator(np.array([1.0, 0.0]), 9.1).never_wrong(PAPERS)
    assert not Separator(np.array([1.0, 0.0]), 8.9).always_fooled(PAPERS)


@pytest.mark.parametrize("alpha", [Fraction(1, 4), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("dimensions", [2, 5])
def test_clean_and_poisoned_are_mutually_completely_incompatible(dimensions: int, alpha: Fraction) -> None:
    rows, labels, clean, poisoned = small(LinearAttack(dimensions=dimensions), 2, 1)
    expansion = Expansion(labels.tolist(), margin_learner(rows, labels), alpha=alpha)
    assert mutually_incompatible(expansion, clean, poisoned)


def test_where_the_noise_is_wide_they_are_not() -> None:
    rows, labels, clean, poisoned = small(LinearAttack(dimensions=5, radius=20.0), 2, 2, seed=1)
    expansion = Expansion(labels.tolist(), margin_learner(rows, labels), alpha=Fraction(1, 2))
    assert not mutually_incompatible(expansion, clean, poisoned)


def test_but_so_are_two_halves_of_the_clean_data() -> None:
    """Every part of the clean data has error 0 already, so nothing can help it: the property is weak here."""
    rows, labels, clean, _ = small(PAPERS, 4, 1)
    expansion = Expansion(labels.tolist(), margin_learner(rows, labels), alpha=Fraction(1, 2))
    first = frozenset({0, 1, 4, 5})
    assert all(expansion.error(part) == 0 for part in subsets(clean))
    assert mutually_incompatible(expansion, first, clean - first)


def test_and_the_mixture_is_a_minimizer_at_alpha_1() -> None:
    """The incompatibility is not strict, so the minimal-expansion theorem leaves it at single samples."""
    rows, labels, clean, poisoned = small(PAPERS, 2, 1)
    expansion = Expansion(labels.tolist(), margin_learner(rows, labels), alpha=Fraction(1))
    assert clean | poisoned in minimizers(expansion, clean | poisoned)
    assert {len(part) for part in smallest_minimizers(expansion, clean | poisoned)} == {1}


def test_the_figure(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from PIL import Image

    draw_linear_classifier(tmp_path / "linear.png")
    colors = {
        tuple(color) for color in np.asarray(Image.open(tmp_path / "linear.png"))[..., :3].reshape(-1, 3)
    }
    assert {(31, 119, 180), (214, 39, 40)} <= colors  # blue for clean, red for poisoned
    with pytest.raises(InputError, match="a figure is a file that ends in"):
        draw_linear_classifier(tmp_path / "linear.txt")


def test_what_makes_no_sense() -> None:
    with pytest.raises(InputError, match="'dimensions' parameter must be at least 2"):
        LinearAttack(dimensions=1)
    with pytest.raises(InputError, match=r"'n_per_class' parameter must be at least 4\. Got 3"):
        poisoned_draw(PAPERS, 3, rng=np.random.default_rng(0))
