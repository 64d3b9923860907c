from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from unpoison.core.config import GroupSettings, IsplSettings
from unpoison.core.presets import REPLACED, REPLACED_SETTINGS, auto_ispl, settings_for, usual_method
from unpoison.errors import InputError

LABELS = np.repeat([0, 1], 5000)

PAPER_CIFAR10: dict[str, Any] = {
    "method": "ispl",
    "rounds": 8,
    "restarts": 3,
    "alpha": 0.25,
    "momentum": 0.9,
    "coverage": 0.96,
    "class_floor": 0.125,
    "class_floor_of": "target",
    "sampling": "per-class",
    "first_training": "sample",
    "first_epochs": 8,
    "epochs": 4,
    "weak_epochs": 40,
    "annealing": False,
    "weak_annealing": False,
    "beta_from": "3p",
    "min_steps": 0,
    "weak_min_steps": 0,
    "weak_start": "fresh",
    "voters": "all",
    "keep_rule": "mode-or-lower-half",
    "self_training": True,
    "self_training_updates": 20,
    "self_training_interval": 5,
    "self_training_momentum": 0.8,
    "self_training_returns": "trained",
}
"""Written out from the paper's appendix on hyperparameters, not from the code."""

PAPER_GTSRB = PAPER_CIFAR10 | {"rounds": 4, "alpha": 0.5, "self_training": False}

AUTHORS_CIFAR10 = PAPER_CIFAR10 | {
    "class_floor_of": "current",
    "sampling": "binomial",
    "first_training": "half-then-all",
    "beta_from": "fits",
    "keep_rule": "two-votes",
    "self_training_returns": "updated",
}
"""Where the authors' public code departs from the text."""

AUTHORS_GTSRB = AUTHORS_CIFAR10 | {"rounds": 4, "alpha": 0.5, "self_training": False}

NAMED = {
    "paper-cifar10": PAPER_CIFAR10,
    "paper-gtsrb": PAPER_GTSRB,
    "authors-cifar10": AUTHORS_CIFAR10,
    "authors-gtsrb": AUTHORS_GTSRB,
}


def sized(*counts: int) -> Any:
    return np.repeat(np.arange(len(counts)), counts)


@pytest.mark.parametrize(("preset", "expected"), NAMED.items())
def test_presets_follow_the_table(preset: str, expected: dict[str, Any]) -> None:
    assert settings_for(LABELS, preset=preset).as_dict() == expected
    assert settings_for(sized(3, 4), preset=preset).as_dict() == expected, "whatever the data"


def test_single_values_can_be_changed() -> None:
    changed = settings_for(LABELS, preset="paper-gtsrb", restarts=1, alpha=0.3)
    assert changed.as_dict() == PAPER_GTSRB | {"restarts": 1, "alpha": 0.3}
    changed = settings_for(LABELS, method="groups", pairs=7)
    assert isinstance(changed, GroupSettings)
    assert changed.pairs == 7


def test_changes_are_checked() -> None:
    with pytest.raises(InputError, match="'alpha' parameter of IsplSettings must be"):
        settings_for(LABELS, alpha=2)
    with pytest.raises(InputError, match="method 'ispl' has no setting 'pairs'; it has alpha, annealing"):
        settings_for(LABELS, pairs=4)
    with pytest.raises(InputError, match="method 'groups' has no setting 'rounds'"):
        settings_for(LABELS, method="groups", rounds=4)


@pytest.mark.parametrize("method", REPLACED)
def test_of_a_method_that_was_replaced_the_error_says_by_what(method: str) -> None:
    with pytest.raises(InputError) as caught:
        settings_for(LABELS, method=method)
    assert str(caught.value) == f"The method '{method}' was replaced by 'groups'. Use method 'groups'."


def test_of_a_setting_that_only_those_had_too() -> None:
    for name in REPLACED_SETTINGS:
        with pytest.raises(InputError, match=f"The setting '{name}' went with .* replaced by 'groups'"):
            settings_for(LABELS, method="groups", **{name: 4})
    kept = {field.name for kind in (GroupSettings, IsplSettings) for field in fields(kind)}
    assert not kept & set(REPLACED_SETTINGS)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        settings_for(LABELS, method="magic")
    assert str(caught.value) == ("The 'method' parameter must be one of ispl, groups. Got 'magic' instead.")
    with pytest.raises(InputError) as caught:
        settings_for(LABELS, preset="best")
    assert str(caught.value) == (
        "The 'settings' parameter must be one of auto, paper-cifar10, paper-gtsrb, authors-cifar10, "
        "authors-gtsrb. Got 'best' instead."
    )


@pytest.mark.parametrize("preset", list(NAMED))
def test_the_papers_settings_are_for_the_papers_method(preset: str) -> None:
    with pytest.raises(InputError, match=f"The settings '{preset}' belong to the method 'ispl'"):
        settings_for(LABELS, method="groups", preset=preset)
    assert usual_method(preset) == "ispl"


def test_ours_is_the_usual_one() -> None:
    assert usual_method() == "groups"


@pytest.mark.parametrize(
    ("smallest", "rounds", "alpha"),
    [(1, 2, 0.5), (107, 2, 0.5), (108, 3, 0.5), (150, 4, 0.5), (288, 8, 0.5), (999, 8, 0.5), (1000, 8, 0.25)],
)
def test_auto_follows_the_smallest_class(smallest: int, rounds: int, alpha: float) -> None:
    settings = auto_ispl(sized(5000, smallest, 2000))
    assert (settings.rounds, settings.alpha) == (rounds, alpha)
    assert (settings.min_steps, settings.weak_min_steps) == (100, 800)
    assert settings_for(sized(5000, smallest, 2000)) == settings


def test_auto_ignores_class_numbers_that_do_not_occur() -> None:
    assert auto_ispl(np.repeat([0, 3], 5000)) == auto_ispl(LABELS)


def test_auto_keeps_the_papers_values_for_everything_else() -> None:
    auto = settings_for(LABELS)
    assert isinstance(auto, IsplSettings)
    differs = {key for key, value in auto.as_dict().items() if value != PAPER_CIFAR10[key]}
    assert differs == {"min_steps", "weak_min_steps"}


@pytest.mark.parametrize(
    ("smallest", "paper"), [(45, PAPER_GTSRB), (150, PAPER_GTSRB), (499, PAPER_GTSRB), (500, PAPER_CIFAR10)]
)
def test_networks_get_the_papers_settings_with_a_floor_under_the_steps(
    smallest: int, paper: dict[str, Any]
) -> None:
    """GTSRB's smallest class has 150, Imagenette's 858, CIFAR-10's 5,000."""
    settings = settings_for(sized(5000, smallest, 2000), networks=True)
    assert settings.as_dict() == paper | {"min_steps": 40, "weak_min_steps": 400}
    assert settings_for(LABELS, networks=True, restarts=2).as_dict()["restarts"] == 2


@pytest.mark.parametrize(("n", "smallest"), [(26_640, 150), (50_000, 5_000)])
def test_the_floor_changes_nothing_at_the_papers_sizes(n: int, smallest: int) -> None:
    """In batches of 128; the shortest trainings are on an alpha share of a component, or of what is left."""
    settings: Any = settings_for(sized(n - smallest, smallest), networks=True)
    component = settings.coverage / settings.rounds * n
    left = n - (settings.rounds - 1) * component
    assert settings.epochs * settings.alpha * component / 128 > settings.min_steps
    assert settings.first_epochs * settings.alpha * left / 128 > 2 * settings.min_steps
    assert settings.weak_epochs * component / 128 > settings.weak_min_steps


@pytest.mark.parametrize("preset", list(NAMED))
def test_named_settings_do_not_depend_on_the_learner(preset: str) -> None:
    assert settings_for(LABELS, preset=preset, networks=True) == settings_for(LABELS, preset=preset)


def test_groups_of_plain_classifiers_have_the_same_two_numbers() -> None:
    plain, usual = (settings_for(LABELS, method="groups", networks=each).as_dict() for each in (False, True))
    assert (plain["met"], plain["kept"]) == (usual["met"], usual["kept"])
    assert (plain["right_labels"], usual["right_labels"]) == (False, True)


def by_effort(n: int, effort: str | None) -> GroupSettings:
    found = settings_for(sized(n // 2, n - n // 2), method="groups", networks=True, effort=effort)
    assert isinstance(found, GroupSettings)
    return found


@pytest.mark.parametrize(
    ("n", "effort", "epochs", "judge_epochs", "pairs"),
    [
        (50_000, None, 12, 4, 1), (50_000, "standard", 12, 4, 1), (25_000, "quick", 6, 2, 1),
        (26_640, "thorough", 24, 8, 2), (6_250, None, 24, 8, 1), (6_250, "quick", 12, 4, 1),
        (1_562, "thorough", 96, 32, 2), (100, None, 48, 16, 1),
    ],
)  # fmt: skip
def test_passes_follow_effort_and_size(
    n: int, effort: str | None, epochs: int, judge_epochs: int, pairs: int
) -> None:
    """Four times fewer samples: twice as many passes, as many as half of what the same steps would take."""
    found = by_effort(n, effort)
    assert (found.epochs, found.judge_epochs, found.pairs) == (epochs, judge_epochs, pairs)


def test_effort_changes_nothing_for_plain_classifiers() -> None:
    usual = settings_for(LABELS, method="groups")
    assert settings_for(LABELS, method="groups", effort="thorough") == usual
    assert settings_for(LABELS[::100], method="groups", effort="quick") == usual


def test_effort_is_for_groups_alone() -> None:
    with pytest.raises(InputError, match="effort 'quick' belongs to the method 'groups': 'ispl' trains as"):
        settings_for(LABELS, method="ispl", networks=True, effort="quick")
    with pytest.raises(InputError, match=r"must be one of quick, standard, thorough\. Got 'much' instead"):
        settings_for(LABELS, method="groups", effort="much")


def test_single_values_go_before_effort() -> None:
    changed = settings_for(LABELS, method="groups", networks=True, effort="thorough", epochs=3)
    assert isinstance(changed, GroupSettings)
    assert (changed.epochs, changed.pairs) == (3, 2)
