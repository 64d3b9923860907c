from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from unpoison.errors import InputError
from unpoison.evaluation.comparison import compare
from unpoison.evaluation.table_layout import Table


def run(scenario: str, defense: str, **values: Any) -> dict[str, Any]:
    usual = {
        "scenario": scenario, "scale": "laptop", "seed": 0, "defense": defense, "took_hold": True, "n": 100,
        "accuracy": 0.9, "tmr": 0.002, "true_positive_rate": 1.0, "false_positive_rate": 0.01, "auc": 0.75,
        "defense_cost": {"trained": 800, "scored": 600, "seconds": 1.0},
    }  # fmt: skip
    return usual | values


def rows(table: Table) -> dict[str, dict[str, str]]:
    return {row["defense"]: row for row in csv.DictReader(io.StringIO(table.csv()))}


def test_medians_over_the_attacks_that_all_met_and_that_took_hold() -> None:
    found = compare(
        [
            run("a", "mine"), run("b", "mine", tmr=0.5, auc=0.25), run("c", "mine", tmr=0.9, took_hold=False),
            run("a", "other", tmr=0.01), run("b", "other", auc=None), run("c", "other", took_hold=False),
            run("d", "mine", tmr=1.0),
        ]
    )  # fmt: skip
    assert found.title == "Defenses on the same 2 attacks at scale laptop"
    mine, other = rows(found)["mine"], rows(found)["other"]
    assert (mine["defended"], other["defended"]) == ("1 / 2", "1 / 2")  # 1.0% is not below 1%
    assert (mine["TMR"], mine["AUC"], mine["clean removed"]) == ("25.1", "0.500", "1.0")
    assert other["AUC"] == "0.750"
    assert mine["cost"] == "10"  # 8 epochs of training, 6 of forward passes at a third
    assert mine["removed, none planted"] == ""
    assert "Of 3 attacks that every defense met, 2 took hold" in found.notes[0]


def test_the_papers_come_first_whatever_the_order_of_results() -> None:
    given = ("random", "ispl-authors", "activation-clustering", "nothing", "expansion")
    assert list(rows(compare([run("a", name) for name in given]))) == [
        "nothing", "activation-clustering", "expansion", "ispl-authors", "random"
    ]  # fmt: skip


def test_what_is_removed_of_clean_data_stands_beside() -> None:
    found = compare([run("a", "mine"), run("a", "mine+clean", false_positive_rate=0.07)])
    assert list(rows(found)) == ["mine"]
    assert rows(found)["mine"]["removed, none planted"] == "7.0"


@pytest.mark.parametrize(
    "results",
    [[], [run("a", "mine", took_hold=False)], [run("a", "mine"), run("b", "other")]],
    ids=["none", "not held", "nothing shared"],
)
def test_nothing_to_compare(results: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="no scenario that every defense was run on"):
        compare(results)


def test_scales_do_not_mix() -> None:
    with pytest.raises(InputError, match="which no table may mix"):
        compare([run("a", "mine"), run("b", "mine", scale="paper")])
