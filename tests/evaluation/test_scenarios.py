from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from unpoison.attacks.base import Samples
from unpoison.attacks.catalog import build, resolve
from unpoison.attacks.making import DRAWINGS
from unpoison.attacks.official import PAIRS
from unpoison.data.named.catalog import CATALOG
from unpoison.errors import InputError
from unpoison.evaluation.published import PER_SCENARIO, SUMMARIZED, read_rows
from unpoison.evaluation.scenarios import (
    ABLATION_BASES,
    CIFAR10_PAIRS,
    SEEDS,
    WATERMARK_FILES,
    Scenario,
    ablation_name,
    by_name,
    catalog,
    of_table,
    tables,
    with_images,
)
from unpoison.learners.recipes import PAPER

COUNTS = {
    "summary": 165,
    "cifar10-dirty-label": 24,
    "cifar10-all-to-one": 12,
    "cifar10-all-to-all": 12,
    "cifar10-watermark": 24,
    "cifar10-clean-label": 45,
    "gtsrb-dirty-label": 24,
    "gtsrb-watermark": 24,
    "cifar10-sleeper-agent": 24,
    "imagenette-dirty-label": 24,
    "cifar10-adaptive": 24,
    "preactresnet18-200-epochs": 24,
    "resnet32-200-epochs": 24,
    "ablation-accuracy": 75,
    "ablation-tmr": 75,
    "gtsrb-ablation-accuracy": 25,
    "gtsrb-ablation-tmr": 25,
}


def test_every_table_has_its_scenarios() -> None:
    assert {table: len(of_table(table)) for table in tables()} == COUNTS
    assert len(catalog()) == 165 + 24 + 24 + 24 + 2 * 24 + 75 + 25
    assert len({scenario.name for scenario in catalog()}) == len(catalog())


@pytest.mark.parametrize("table", PER_SCENARIO)
def test_names_and_order_are_those_of_the_published_rows(table: str) -> None:
    scenarios = of_table(table)
    assert [row.scenario for row in read_rows(table)] == [scenario.name for scenario in scenarios]
    assert [row.epsilon for row in read_rows(table)] == [scenario.epsilon for scenario in scenarios]
    for row, scenario in zip(read_rows(table), scenarios, strict=True):
        assert {name: str(scenario.options[name]) for name in row.case} == row.case


def test_the_summary_is_made_of_its_seven_tables_and_evenly_of_each_epsilon() -> None:
    assert Counter(scenario.tables for scenario in of_table("summary")) == {
        (table, "summary"): COUNTS[table] for table in SUMMARIZED
    }
    assert Counter(scenario.epsilon for scenario in of_table("summary")) == {5: 55, 10: 55, 20: 55}


@pytest.mark.parametrize("scenario", catalog(), ids=lambda scenario: scenario.name)
def test_the_options_are_those_of_the_poison_command(scenario: Scenario) -> None:
    names = CATALOG[scenario.dataset].class_names
    samples = Samples(np.zeros((len(names), 32, 32, 3), np.uint8), np.arange(len(names)), names)
    for seed in scenario.seeds:
        options = scenario.options_for(seed)
        settings = resolve(scenario.attack, options, samples)
        assert {name: settings[name] for name in options} == options
    assert scenario.network in PAPER


def test_one_scenario_in_full() -> None:
    assert by_name("cifar10-clean-label-linf-2-eps20") == Scenario(
        name="cifar10-clean-label-linf-2-eps20",
        dataset="cifar10",
        family="clean-label",
        attack="clean-label",
        options={"target": 2, "perturbation": "linf", "epsilon": 0.2},
        tables=("cifar10-clean-label", "summary"),
        network="preactresnet18",
        epochs=100,
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cifar10-all-to-one-7-eps5", {"mode": "all-to-one", "target": 7, "epsilon": 0.05}),
        ("cifar10-all-to-all-3-eps10", {"mode": "all-to-all", "offset": 3, "epsilon": 0.1}),
        (
            "imagenette-dirty-label-9-2-eps20",
            {"mode": "one-to-one", "source": 9, "target": 2, "trigger": "square", "epsilon": 0.2},
        ),
        ("cifar10-adaptive-3-7-eps5", {"mode": "one-to-one", "source": 3, "target": 7, "epsilon": 0.05}),
        ("cifar10-sleeper-agent-7-5", {"source": 7, "target": 5, "epsilon": 0.1}),
    ],
)
def test_options(name: str, options: dict[str, object]) -> None:
    assert by_name(name).options == options


def test_networks_and_epochs_are_the_papers() -> None:
    found = {(s.dataset, s.family, s.network, s.epochs) for s in catalog()}
    assert {(dataset, network) for dataset, family, network, epochs in found if epochs == 100} == {
        ("cifar10", "preactresnet18"),
        ("cifar10", "resnet32"),  # Sleeper Agent
        ("gtsrb", "resnet32"),
        ("imagenette", "resnet56"),
    }
    assert {each for each in found if each[3] != 100} == {
        ("cifar10", "dirty-label", "preactresnet18", 200),
        ("cifar10", "dirty-label", "resnet32", 200),
    }


def test_the_authors_own_marks_serve_the_first_three_seeds() -> None:
    assert set(CIFAR10_PAIRS) == set(PAIRS)
    scenario = by_name("cifar10-dirty-label-3-5-eps10")
    assert [scenario.options_for(seed).get("official-seed") for seed in (*SEEDS, 3)] == [
        100,
        1000,
        10000,
        None,
    ]
    assert "official-seed" not in scenario.options
    assert "official-seed" not in by_name("gtsrb-dirty-label-1-2-eps5").options_for(0)


def test_official_images_take_the_place_of_ours() -> None:
    """Which picture goes with which pair is written down once: the drawing's."""
    for table in ("cifar10-watermark", "gtsrb-watermark"):
        for scenario in of_table(table):
            options = with_images(scenario.options, arrays="a", watermarks="w")
            assert options == {
                **{name: value for name, value in scenario.options.items() if name != "trigger"},
                "png": f"w/{WATERMARK_FILES[scenario.options['trigger']]}",
            }
            assert with_images(scenario.options, arrays="a", watermarks="") == scenario.options
    changed = by_name("cifar10-clean-label-l2-4-eps10").options
    assert with_images(changed, arrays="a", watermarks="w") == {**changed, "arrays": "a"}
    assert with_images(changed, arrays="", watermarks="w") == changed
    plain = by_name("gtsrb-dirty-label-1-0-eps10").options
    assert with_images(plain, arrays="a", watermarks="w") == plain


def test_which_watermark_goes_with_which_pair() -> None:
    """Ours; the paper does not say. docs/paper.md has it in a table."""
    assert [s.options["trigger"] for s in of_table("gtsrb-watermark") if s.epsilon == 10] == 2 * list(
        DRAWINGS
    )
    assert [s.options["trigger"] for s in of_table("cifar10-watermark") if s.epsilon == 10] == 2 * list(
        DRAWINGS
    )


def mark_of(scenario: Scenario, *, seed: int) -> object:
    names = CATALOG[scenario.dataset].class_names
    samples = Samples(np.zeros((len(names), 32, 32, 3), np.uint8), np.arange(len(names)), names)
    attack: Any = build(scenario.attack, scenario.options_for(seed), samples, seed=seed)
    return attack.mark


@pytest.mark.parametrize("table", ["gtsrb-dirty-label", "imagenette-dirty-label"])
def test_each_pair_and_seed_has_a_mark_of_its_own_for_every_epsilon(table: str) -> None:
    """As in the authors' generator: one mark serves the three strengths."""
    found = {
        (each.options["source"], each.options["target"], seed, mark_of(each, seed=seed))
        for each in of_table(table)
        for seed in SEEDS
    }
    assert len(found) == len({mark for *_, mark in found}) == 8 * len(SEEDS)


def test_every_watermark_is_used_as_often() -> None:
    for table in ("cifar10-watermark", "gtsrb-watermark"):
        used = Counter(scenario.options["trigger"] for scenario in of_table(table))
        assert used == dict.fromkeys(DRAWINGS, 6)


def test_sleeper_agent_has_a_seed_and_a_pair_for_each_run() -> None:
    runs = of_table("cifar10-sleeper-agent")
    assert [run.seeds for run in runs] == [(i,) for i in range(24)]
    assert all(run.options["source"] != run.options["target"] for run in runs)


def test_sleeper_agent_alone_has_a_second_victim() -> None:
    assert {each.family for each in catalog() if each.second_recipe} == {"sleeper-agent"}
    assert {each.second_recipe for each in of_table("cifar10-sleeper-agent")} == {"sleeper-agent"}
    assert {each.network for each in of_table("cifar10-sleeper-agent")} == {"resnet32"}


def test_the_ablation_changes_alpha_and_beta_without_self_training() -> None:
    scenario = by_name("cifar10-clean-label-l2-2-eps10-alpha-1-2-beta-1-16")
    assert scenario.defense == {"alpha": 0.5, "rounds": 16, "self_training": False}
    assert scenario.options == by_name("cifar10-clean-label-l2-2-eps10").options
    assert ablation_name(ABLATION_BASES[0], 1, 1) in {each.name for each in of_table("ablation-tmr")}
    assert all(not each.defense for each in of_table("summary"))


def test_the_ablation_on_gtsrb_is_the_same_grid_with_one_restart() -> None:
    grid = of_table("gtsrb-ablation-tmr")
    assert len(grid) == 25
    assert {scenario.victim for scenario in grid} == {by_name("gtsrb-watermark-1-2-eps10").victim}
    settings = by_name("gtsrb-watermark-1-2-eps10-alpha-1-4-beta-1-8").defense
    assert settings == {"alpha": 0.25, "rounds": 8, "self_training": False, "restarts": 1}


def test_scenarios_can_be_keys() -> None:
    assert len(set(catalog())) == len(catalog())


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean gtsrb-watermark-38-4-eps20"):
        by_name("gtsrb-watermark-38-4-esp20")
    with pytest.raises(InputError, match="no scenario is called 'x'; unpoison bench list"):
        by_name("x")
    with pytest.raises(InputError, match="did you mean summary"):
        of_table("sumary")
