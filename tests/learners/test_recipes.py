from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unpoison.errors import InputError
from unpoison.learners.recipes import (
    COMPACT,
    FAST,
    PAPER,
    SLEEPER_AGENT_CRAFTING_EPOCHS,
    SLEEPER_AGENT_EPOCHS,
    Recipe,
    TrainingOptions,
    recipe_for,
)


@pytest.mark.parametrize(
    ("network", "rate", "decay", "drops"),
    [
        ("preactresnet18", 0.02, 5e-4, (50, 75, 90)),
        ("resnet32", 0.1, 1e-4, (75, 90)),
        ("resnet56", 0.05, 5e-4, (75, 90, 95, 98)),
    ],
)
def test_the_appendix_models(network: str, rate: float, decay: float, drops: tuple[int, ...]) -> None:
    """Over the paper's 100 epochs the rate falls to a tenth at the epochs it says, and only there."""
    recipe = PAPER[network]
    assert (recipe.momentum, recipe.weight_decay, recipe.nesterov) == (0.9, decay, False)
    for epoch in range(100):
        passed = sum(epoch >= drop for drop in drops)
        assert recipe.rate_at((epoch + 0.5) / 100) == pytest.approx(rate / 10**passed)


@pytest.mark.parametrize(
    ("network", "drops"), [("preactresnet18", (100, 150, 180)), ("resnet32", (100, 150))]
)
def test_final_models_of_200_epochs(network: str, drops: tuple[int, ...]) -> None:
    """As in the authors' code; all else is as for 100 epochs."""
    recipe, usual = recipe_for(network, "paper-200"), PAPER[network]
    assert replace(recipe, milestones=usual.milestones) == usual
    for epoch in range(200):
        passed = sum(epoch >= drop for drop in drops)
        assert recipe.rate_at((epoch + 0.5) / 200) == pytest.approx(usual.learning_rate / 10**passed)


def test_the_attackers_setup() -> None:
    """The defaults of Sleeper Agent's code: drops planned for 40 epochs, in a training of 80."""
    assert SLEEPER_AGENT_EPOCHS == 80
    assert SLEEPER_AGENT_CRAFTING_EPOCHS == 40
    recipe = recipe_for("resnet32", "sleeper-agent")
    assert (recipe.momentum, recipe.nesterov, recipe.weight_decay, recipe.batch_size) == (
        0.9,
        True,
        5e-4,
        128,
    )
    drops = [40 // 2.667, 40 // 1.6, 40 // 1.142]  # as their code has it
    for epoch in range(80):
        passed = sum(epoch >= drop for drop in drops)
        assert recipe.rate_at((epoch + 0.5) / 80) == pytest.approx(0.1 / 10**passed)
    assert recipe_for("compact", "sleeper-agent") is recipe
    assert recipe.rate_at(0.9) != PAPER["resnet32"].rate_at(0.9)


def test_one_cycle_rises_and_falls_to_nothing() -> None:
    recipe = Recipe(0.4, schedule="one-cycle", warm_up=0.25)
    rates = [recipe.rate_at(step / 100) for step in range(101)]
    assert max(rates) == pytest.approx(0.4) == rates[25]
    assert rates[0] == 0 == rates[-1]
    assert rates[:26] == sorted(rates[:26])
    assert rates[25:] == sorted(rates[25:], reverse=True)


def test_one_cycle_without_warm_up() -> None:
    assert Recipe(0.4, schedule="one-cycle", warm_up=0.0).rate_at(0.0) == 0.4


def test_constant() -> None:
    assert {Recipe(0.1, schedule="constant").rate_at(part) for part in (0.0, 0.5, 1.0)} == {0.1}


def test_the_rate_of_a_network_that_will_be_trained_on() -> None:
    assert Recipe(0.3).continued() == 0.3
    assert Recipe(0.3, continued_rate=0.1).continued() == 0.1


def test_ranking_wants_no_label_smoothing() -> None:
    assert {recipe.label_smoothing for recipe in (COMPACT, FAST, *PAPER.values())} == {0.0}


def test_by_name() -> None:
    assert recipe_for("compact") is COMPACT
    assert recipe_for("resnet32") is PAPER["resnet32"]
    assert recipe_for("resnet32", "fast") is FAST
    assert recipe_for("mine:net") is FAST
    for name in ("paper", "paper-200"):
        with pytest.raises(
            InputError, match="no recipe for 'compact', only for preactresnet18, resnet32, resnet56"
        ):
            recipe_for("compact", name)
    with pytest.raises(InputError, match="unknown recipe 'slow'; choose one of fast, paper, paper-200"):
        recipe_for("compact", "slow")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"schedule": "cosine"}, "schedule must be one of constant, steps, one-cycle, got 'cosine'"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"momentum": 1.0}, "momentum is 1.0"),
        ({"weight_decay": -1e-4}, "weight_decay is -0.0001"),
        ({"label_smoothing": 1.5}, "label_smoothing is 1.5"),
        ({"batch_size": 1}, "batch_size must be at least 2, got 1"),
    ],
)
def test_bad_values(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Recipe(**{"learning_rate": 0.1, **values})


def test_threads() -> None:
    with pytest.raises(InputError, match="threads must be at least 1, got 0"):
        TrainingOptions(threads=0)


def test_as_dict_is_plain() -> None:
    values = PAPER["resnet32"].as_dict()
    assert values["milestones"] == [0.75, 0.9]
    assert Recipe(**{**values, "milestones": tuple(values["milestones"])}) == PAPER["resnet32"]  # type: ignore[arg-type]
