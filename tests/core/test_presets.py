from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison.core.config import IsplSettings, OutOfSubsetSettings
from unpoison.core.presets import auto_ispl, auto_out_of_subset, settings_for
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
    changed = settings_for(LABELS, method="out-of-subset", models=7)
    assert isinstance(changed, OutOfSubsetSettings)
    assert changed.models == 7


def test_changes_are_checked() -> None:
    with pytest.raises(InputError, match="'alpha' parameter of IsplSettings must be"):
        settings_for(LABELS, alpha=2)
    with pytest.raises(InputError, match="method 'ispl' has no setting 'models'; it has alpha, annealing"):
        settings_for(LABELS, models=4)
    with pytest.raises(InputError, match="method 'out-of-subset' has no setting 'rounds'"):
        settings_for(LABELS, method="out-of-subset", rounds=4)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        settings_for(LABELS, method="magic")
    assert str(caught.value) == (
        "The 'method' parameter must be one of ispl, groups, expansion, out-of-subset. Got 'magic' instead."
    )
    with pytest.raises(InputError) as caught:
        settings_for(LABELS, preset="best")
    assert str(caught.value) == (
        "The 'settings' parameter must be one of auto, paper-cifar10, paper-gtsrb, authors-cifar10, "
        "authors-gtsrb. Got 'best' instead."
    )


@pytest.mark.parametrize("preset", list(NAMED))
def test_the_papers_settings_are_for_the_papers_method(preset: str) -> None:
    with pytest.raises(InputError, match=f"The settings '{preset}' belong to the method 'ispl'"):
        settings_for(LABELS, method="out-of-subset", preset=preset)


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
    assert auto_out_of_subset(np.repeat([0, 3], 5000)) == auto_out_of_subset(LABELS)


@pytest.mark.parametrize(
    ("typical", "low"), [(140, 0.04), (56, 0.1), (10, 0.15), (1, 0.15), (560, 0.01), (10_000, 0.01)]
)
def test_auto_subsets_hold_about_five_to_fourteen_of_a_class(typical: int, low: float) -> None:
    settings = auto_out_of_subset(sized(typical, typical, 3 * typical))
    assert settings.alpha_low == pytest.approx(low)
    assert settings.alpha_high == pytest.approx(2.5 * low)
    assert settings_for(sized(typical, typical, 3 * typical), method="out-of-subset") == settings


@pytest.mark.parametrize(("smallest", "low"), [(400, 0.04), (160, 0.1), (20, 0.15), (10_000, 0.01)])
def test_texts_come_in_larger_subsets_of_the_smallest_class(smallest: int, low: float) -> None:
    labels = sized(10 * smallest, smallest)
    settings = settings_for(labels, method="out-of-subset", wide=True)
    assert settings == auto_out_of_subset(labels, wide=True)
    assert (settings.alpha_low, settings.alpha_high) == pytest.approx((low, 2.5 * low))


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


def test_networks_get_larger_subsets() -> None:
    few = settings_for(LABELS, method="out-of-subset", networks=True)
    many = settings_for(LABELS, method="out-of-subset")
    assert isinstance(few, OutOfSubsetSettings)
    assert isinstance(many, OutOfSubsetSettings)
    assert few.models < many.models
    assert few.alpha_low > many.alpha_high


@pytest.mark.parametrize("preset", list(NAMED))
def test_named_settings_do_not_depend_on_the_learner(preset: str) -> None:
    assert settings_for(LABELS, preset=preset, networks=True) == settings_for(LABELS, preset=preset)


def test_groups_of_plain_classifiers_have_the_same_two_numbers() -> None:
    plain, usual = (settings_for(LABELS, method="groups", networks=each).as_dict() for each in (False, True))
    assert (plain["met"], plain["kept"]) == (usual["met"], usual["kept"])
    assert (plain["right_labels"], usual["right_labels"]) == (False, True)
