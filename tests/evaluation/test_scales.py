from __future__ import annotations

import numpy as np
import pytest

from unpoison.core.config import IsplSettings
from unpoison.core.presets import settings_for
from unpoison.data.named.catalog import CATALOG
from unpoison.errors import InputError
from unpoison.evaluation.scales import LAPTOP, PAPER, SCALES, Scale, Setup, scale_named
from unpoison.evaluation.scenarios import by_name, catalog, of_table

LABELS = np.repeat(np.arange(10), 200)


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
def test_every_scenario_has_valid_settings_at_every_scale(scale: Scale) -> None:
    for scenario in catalog():
        setup = scale.setup_for(scenario)
        settings = settings_for(LABELS, preset=setup.preset, networks=True, **setup.changes)
        assert isinstance(settings, IsplSettings)
        assert {name: getattr(settings, name) for name in scenario.defense} == scenario.defense


def test_the_papers_scale_is_all_data_and_each_scenarios_network_and_epochs() -> None:
    for scenario in catalog():
        setup = PAPER.setup_for(scenario)
        assert (setup.limit, setup.network, setup.epochs) == (None, scenario.network, scenario.epochs)
    presets = {table: PAPER.setup_for(of_table(table)[0]).preset for table in ("summary", "gtsrb-watermark")}
    assert presets == {"summary": "paper-cifar10", "gtsrb-watermark": "paper-gtsrb"}
    imagenette = PAPER.setup_for(of_table("imagenette-dirty-label")[0])
    assert (imagenette.image_size, imagenette.preset) == (224, "paper-cifar10")


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


def test_changes_of_the_scale_and_of_the_scenario_come_together() -> None:
    scale = Scale("small", {"cifar10": Setup("compact", 5, changes={"restarts": 1})}, own_networks=False)
    scenario = by_name("cifar10-dirty-label-0-2-eps10-alpha-1-beta-1-8")
    assert scale.setup_for(scenario).changes == {
        "restarts": 1,
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
