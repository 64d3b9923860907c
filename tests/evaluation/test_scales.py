from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison.core.presets import settings_for
from unpoison.data.named.catalog import CATALOG
from unpoison.defenses.incompatibility import Incompatibility
from unpoison.errors import InputError
from unpoison.evaluation.experiment import defense_for
from unpoison.evaluation.scales import FULL, LAPTOP, PAPER, SCALES, Scale, Setup, scale_named
from unpoison.evaluation.scenarios import Scenario, by_name, catalog, of_table
from unpoison.learners.recipes import recipe_for

LABELS = np.repeat(np.arange(10), 200)


def settings_of(name: str, scale: Scale, scenario: Scenario) -> dict[str, Any]:
    """What a defense of that name is run with."""
    setup = scale.setup_for(scenario)
    defense = defense_for(name, scenario, setup, np.zeros(len(LABELS), dtype=np.bool_))
    assert isinstance(defense, Incompatibility)
    found = settings_for(LABELS, method=defense.method, preset=defense.preset, **defense.changes)
    return found.as_dict()


def papers(dataset: str, whose: str = "paper") -> dict[str, Any]:
    """Imagenette has "the same defense hyperparameters as the main experiments for CIFAR-10"."""
    return settings_for(LABELS, preset=f"{whose}-{'gtsrb' if dataset == 'gtsrb' else 'cifar10'}").as_dict()


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
@pytest.mark.parametrize("whose", ["paper", "authors"])
def test_the_papers_defense_has_the_papers_settings_at_every_scale(scale: Scale, whose: str) -> None:
    """Nothing is overridden but what a cell of the ablation varies."""
    pytest.importorskip("torch")
    for scenario in catalog():
        expected = papers(scenario.dataset, whose) | dict(scenario.defense)
        assert settings_of(f"ispl-{whose}", scale, scenario) == expected


def test_a_reduced_run_is_called_so() -> None:
    pytest.importorskip("torch")
    scenario = by_name("gtsrb-watermark-1-2-eps10")
    reduced = settings_of("ispl-reduced", LAPTOP, scenario)
    assert reduced != papers("gtsrb")
    assert (reduced["restarts"], reduced["weak_epochs"]) == (1, 10)
    authors = settings_of("ispl-authors-reduced", LAPTOP, scenario)
    assert (authors["weak_epochs"], authors["keep_rule"]) == (10, "two-votes")
    for scale in (PAPER, FULL):
        with pytest.raises(InputError, match="no reduced settings of ISPL; use ispl-paper or ispl-authors"):
            settings_of("ispl-reduced", scale, scenario)


def test_the_papers_scale_is_all_data_and_each_scenarios_network_and_epochs() -> None:
    for scenario in catalog():
        setup = PAPER.setup_for(scenario)
        assert (setup.limit, setup.network, setup.epochs) == (None, scenario.network, scenario.epochs)
    assert PAPER.setup_for(of_table("imagenette-dirty-label")[0]).image_size == 224


def test_the_full_scale_is_all_data_with_one_network() -> None:
    """Augmentation is left to the dataset."""
    for scenario in catalog():
        setup = FULL.setup_for(scenario)
        assert (setup.limit, setup.network, setup.augmentation) == (None, "compact", None)


@pytest.mark.parametrize(
    ("scenario", "rate", "decay"),
    [
        ("gtsrb-watermark-1-2-eps10", 0.1, 1e-4),
        ("cifar10-watermark-1-3-eps10", 0.02, 5e-4),
        ("imagenette-dirty-label-0-2-eps10", 0.05, 5e-4),
    ],
)
def test_at_full_scale_ispl_trains_as_the_paper_trains_the_network_that_compact_stands_in_for(
    scenario: str, rate: float, decay: float
) -> None:
    """Vanilla SGD, the rate constant; with Nesterov's momentum the planted samples spread over components."""
    setup = FULL.setup_for(by_name(scenario))
    recipe = recipe_for(setup.network, setup.ispl_recipe)
    assert (recipe.continued(), recipe.momentum, recipe.weight_decay) == (rate, 0.9, decay)
    assert (recipe.batch_size, recipe.nesterov, recipe.label_smoothing) == (128, False, 0.0)
    assert scale_named("full-resnet32").setup_for(by_name(scenario)).ispl_recipe is None
    assert LAPTOP.setup_for(by_name(scenario)).ispl_recipe is None


@pytest.mark.parametrize("network", ["preactresnet18", "resnet32", "resnet56"])
def test_the_full_scale_takes_the_papers_networks(network: str) -> None:
    scale = scale_named(f"full-{network}")
    assert scale.name == f"full-{network}"
    setup = scale.setup_for(by_name("gtsrb-watermark-1-2-eps10"))
    assert (setup.network, setup.epochs, setup.limit) == (network, 100, None)


def test_the_laptops_scale_is_a_part_of_the_data_and_one_network() -> None:
    for scenario in catalog():
        setup = LAPTOP.setup_for(scenario)
        assert setup.network == "compact"
        assert setup.limit is not None
        assert setup.limit < CATALOG[scenario.dataset].n_train


def test_more_epochs_in_the_paper_are_more_at_every_scale() -> None:
    usual = LAPTOP.setup_for(by_name("cifar10-dirty-label-0-2-eps5"))
    longer = LAPTOP.setup_for(by_name("cifar10-dirty-label-0-2-eps5-resnet32-200"))
    assert longer.epochs == 2 * usual.epochs


def test_victims_of_200_epochs_have_the_recipe_for_them_if_the_network_is_the_papers() -> None:
    for scenario in catalog():
        expected = "paper-200" if scenario.epochs == 200 else None
        assert PAPER.setup_for(scenario).victim_recipe == expected
        assert scale_named("full-resnet32").setup_for(scenario).victim_recipe == expected
        assert LAPTOP.setup_for(scenario).victim_recipe is None
    assert {scenario.epochs for scenario in catalog()} == {100, 200}


def test_changes_of_the_scenario_are_not_those_of_the_scale() -> None:
    scale = Scale("small", {"cifar10": Setup("compact", 5, reduced={"restarts": 1})}, own_networks=False)
    scenario = by_name("cifar10-dirty-label-0-2-eps10-alpha-1-beta-1-8")
    assert scale.setup_for(scenario).reduced == {"restarts": 1}
    assert scale.setup_for(scenario).changes == {
        "alpha": 1.0,
        "rounds": 8,
        "self_training": False,
    }
    with pytest.raises(InputError, match="'small' has no setup for 'gtsrb', only for cifar10"):
        scale.setup_for(by_name("gtsrb-watermark-1-2-eps5"))


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    assert scale_named("laptop") is LAPTOP
    with pytest.raises(InputError, match="no scale is called 'labtop'; did you mean laptop"):
        scale_named("labtop")


@pytest.mark.parametrize("values", [{"epochs": 0}, {"limit": 0}, {"image_size": -1}])
def test_impossible_setups_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(values))!r} parameter of Setup must be at least 1"):
        Setup(**{"network": "compact", "epochs": 1, **values})
