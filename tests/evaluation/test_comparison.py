from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from unpoison.errors import InputError
from unpoison.evaluation.comparison import compare
from unpoison.evaluation.table_layout import Table

A, B, C, D = (f"gtsrb-watermark-{case}" for case in ("1-2-eps10", "1-2-eps20", "38-4-eps10", "38-4-eps20"))


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
            run(A, "mine"), run(B, "mine", tmr=0.5, auc=0.25), run(C, "mine", tmr=0.9, took_hold=False),
            run(A, "other", tmr=0.01), run(B, "other", auc=None), run(C, "other", took_hold=False),
            run(D, "mine", tmr=1.0),
        ]
    )  # fmt: skip
    assert found.title == "Defenses on the same 2 attacks at scale laptop"
    mine, other = rows(found)["mine"], rows(found)["other"]
    assert (mine["defended"], other["defended"]) == ("1 / 2", "1 / 2")  # 1.0% is not below 1%
    assert (mine["of all"], other["of all"]) == ("1 / 3", "2 / 3")  # as the paper counts
    assert (mine["below 5%"], other["below 5%"]) == ("1 / 2", "2 / 2")
    assert (mine["below 5% of all"], other["below 5% of all"]) == ("1 / 3", "3 / 3")
    assert (mine["TMR"], mine["AUC"], mine["clean removed"]) == ("25.1", "0.500", "1.0")
    assert other["AUC"] == "0.750"
    assert mine["cost"] == "10"  # 8 epochs of training, 6 of forward passes at a third
    assert mine["removed, none planted"] == ""
    assert "Of 3 attacks that every defense met, 2 took hold" in found.notes[0]


def test_a_defense_that_was_run_on_little_can_be_left_out() -> None:
    results = [run(A, "mine"), run(B, "mine"), run(A, "other"), run(B, "other"), run(A, "partly")]
    assert rows(compare(results))["mine"]["defended"] == "1 / 1"
    chosen = rows(compare(results, only=["other", "mine"]))
    assert {name: row["defended"] for name, row in chosen.items()} == {"mine": "2 / 2", "other": "2 / 2"}


def test_counts_by_epsilon_and_of_what_is_possible() -> None:
    tmr = {A: 0.5, B: 0.0, C: 0.0, D: 0.02}
    results = [run(name, "mine", tmr=rate) for name, rate in tmr.items()]
    (mine,) = rows(compare(results)).values()
    assert (mine["defended"], mine["by epsilon"]) == ("2 / 4", "- 1/2 1/2")
    assert mine["of what a perfect filter defends"] == "-"
    perfect = [run(name, "oracle", tmr=0.02 if name == D else 0.0) for name in tmr]
    for only in ([], ["mine"]):
        mine = rows(compare([*results, *perfect], only=only))["mine"]
        assert mine["of what a perfect filter defends"] == "2 / 3"


def test_the_papers_come_first_whatever_the_order_of_results() -> None:
    given = ("random", "ispl-authors", "activation-clustering", "nothing", "expansion")
    assert list(rows(compare([run(A, name) for name in given]))) == [
        "nothing", "activation-clustering", "expansion", "ispl-authors", "random"
    ]  # fmt: skip


def test_what_is_removed_of_clean_data_stands_beside() -> None:
    found = compare([run(A, "mine"), run(A, "mine+clean", false_positive_rate=0.07)])
    assert list(rows(found)) == ["mine"]
    assert rows(found)["mine"]["removed, none planted"] == "7.0"


@pytest.mark.parametrize(
    "results",
    [[], [run(A, "mine", took_hold=False)], [run(A, "mine"), run(B, "other")]],
    ids=["none", "not held", "nothing shared"],
)
def test_nothing_to_compare(results: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="no scenario that every defense was run on"):
        compare(results)


def test_scales_do_not_mix() -> None:
    with pytest.raises(InputError, match="which no table may mix"):
        compare([run(A, "mine"), run(B, "mine", scale="paper")])
