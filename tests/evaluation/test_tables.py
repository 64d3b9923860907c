from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from math import sqrt
from statistics import stdev
from typing import Any

import pytest

from unpoison.errors import InputError
from unpoison.evaluation.published import PER_SCENARIO
from unpoison.evaluation.scenarios import (
    ABLATION_BASES,
    ABLATION_SHARES,
    GTSRB_ABLATION_TABLES,
    ablation_name,
    of_table,
    tables,
)
from unpoison.evaluation.table_layout import FORMATS, Table
from unpoison.evaluation.tables import TITLES, build


def run(scenario: str, defense: str = "ispl-paper", **values: Any) -> dict[str, Any]:
    usual = {
        "scenario": scenario,
        "scale": "laptop",
        "seed": 0,
        "defense": defense,
        "accuracy": 0.9,
        "tmr": 0.002,
        "asr": 0.004,
        "false_positives": 10,
        "false_negatives": 1,
        "took_hold": True,
    }
    return usual | values


def records(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.csv())))


def find(rows: Iterable[dict[str, str]], **values: str) -> dict[str, str]:
    (found,) = (row for row in rows if all(row[name] == value for name, value in values.items()))
    return found


def test_there_is_a_builder_for_every_table() -> None:
    assert set(TITLES) == set(tables())


@pytest.mark.parametrize("name", tables())
@pytest.mark.parametrize("form", FORMATS)
def test_every_table_in_every_form(name: str, form: Any) -> None:
    beside = build(name, [run(scenario.name) for scenario in of_table(name)]).render(form)
    assert form == "csv" or "laptop" in beside
    if name not in GTSRB_ABLATION_TABLES:
        alone = build(name).render(form)
        assert alone != beside
        assert form == "csv" or "laptop" not in alone


@pytest.mark.parametrize("name", GTSRB_ABLATION_TABLES)
def test_what_the_paper_does_not_have_is_not_called_its(name: str) -> None:
    assert build(name, [run(scenario.name) for scenario in of_table(name)]).title.endswith(
        "on GTSRB: ours at scale laptop"
    )
    with pytest.raises(InputError, match=f"the paper has no table '{name}': it is ours, so give --out"):
        build(name)


def test_the_summary_begins_as_the_paper_prints_it() -> None:
    table = build("summary")
    assert table.columns[-4] == "total"
    assert tuple(row[:-3] for row in table.rows[:4]) == (
        ("ISPL+B (paper)", "5", "7 / 8", "4 / 4", "4 / 4", "6 / 8", "15 / 15", "6 / 8", "8 / 8", "50 / 55"),
        ("ISPL+B (paper)", "10", "8 / 8", "4 / 4", "2 / 4", "5 / 8", "15 / 15", "6 / 8", "8 / 8", "48 / 55"),
        ("ISPL+B (paper)", "20", "7 / 8", "4 / 4", "2 / 4", "1 / 8", "11 / 15", "5 / 8", "6 / 8", "36 / 55"),
        (
            "ISPL+B (paper)", "total", "22 / 24", "12 / 12", "8 / 12", "12 / 24", "41 / 45", "17 / 24",
            "22 / 24", "134 / 165",
        ),
    )  # fmt: skip


def test_the_summary_has_the_papers_total_and_that_of_attacks_that_took_hold_at_one_and_five_percent() -> (
    None
):
    table = build("summary")
    assert table.columns[-4:] == ("total", "took hold", "below 5%", "took hold, below 5%")
    totals = {row[0]: row[-4:] for row in table.rows if row[1] == "total"}
    assert totals == {
        "ISPL+B (paper)": ("134 / 165", "88 / 116", "142 / 165", "94 / 116"),
        "ND (paper)": ("31 / 165", "0 / 116", "44 / 165", "0 / 116"),
        "SS (paper)": ("1 / 24", "0 / 21", "7 / 24", "4 / 21"),
        "AC (paper)": ("5 / 24", "2 / 21", "8 / 24", "5 / 21"),
        "ITLM (paper)": ("4 / 24", "1 / 21", "5 / 24", "2 / 21"),
        "attack took hold (paper)": ("116 / 165", "-", "-", "-"),
    }


def test_the_summary_counts_ours_of_all_and_of_those_where_the_attack_took_hold() -> None:
    results = [
        run("gtsrb-watermark-1-2-eps10"),
        run("gtsrb-watermark-2-13-eps10", tmr=0.03),
        run("gtsrb-watermark-38-4-eps10", tmr=0.3),
        run("gtsrb-watermark-0-2-eps10", took_hold=False),
        run("gtsrb-watermark-0-2-eps10", "oracle", took_hold=False),
        run("gtsrb-watermark-1-2-eps10", "oracle"),
        run("cifar10-adaptive-0-2-eps5"),  # not of this table
    ]
    rows = records(build("summary", results))
    held = find(rows, defense="attack took hold (ours)", epsilon="10")
    ours = find(rows, defense="ispl-paper (ours)", epsilon="10")
    assert (held["gtsrb-watermark"], held["cifar10-watermark"], held["total"]) == ("3 / 4", "-", "3 / 4")
    assert (ours["gtsrb-watermark"], ours["cifar10-watermark"]) == ("2 / 4", "-")
    assert (ours["total"], ours["took hold"]) == ("2 / 4", "1 / 3")
    assert (ours["below 5%"], ours["took hold, below 5%"]) == ("3 / 4", "2 / 3")
    assert not any(row["defense"] == "oracle (ours)" for row in rows)


def test_a_published_row() -> None:
    row = find(records(build("cifar10-dirty-label")), **{"source / target": "9 / 2", "epsilon": "5"})
    assert (row["ITLM C"], row["ITLM A"], row["ITLM A highlighted"]) == ("92.7", "1.0", "true")
    assert (row["SS A"], row["SS A highlighted"]) == ("14.5", "false")
    assert (row["ISPL+B FP"], row["ISPL+B FN"]) == ("3625", "4")


@pytest.mark.parametrize("name", PER_SCENARIO)
def test_a_published_table_has_a_row_a_scenario(name: str) -> None:
    assert len(build(name).rows) == len(of_table(name))


def test_ours_beside_theirs() -> None:
    name = "cifar10-watermark-0-2-eps10"
    results = [
        *(run(name, seed=seed, tmr=tmr) for seed, tmr in enumerate((0.9, 0.004, 0.0))),
        run(name, "nothing", tmr=0.8, asr=0.85, false_positives=None),
        run(name, "out-of-subset", tmr=0.0),
        run(name, "ispl", tmr=0.3),
        run("cifar10-watermark-0-2-eps20", took_hold=False, tmr=0.0),
    ]
    rows = [row for row in records(build("cifar10-watermark", results)) if row["source / target"] == "0 / 2"]
    ispl = find(rows, epsilon="10", defense="ispl-paper")
    assert (ispl["A paper"], ispl["A paper highlighted"]) == ("4.4", "false")
    assert (ispl["A ours"], ispl["A ours highlighted"], ispl["runs"]) == ("0.4", "true", "3")
    assert (ispl["C paper"], ispl["C ours"], ispl["FN paper"], ispl["FN ours"]) == ("90.6", "90.0", "54", "1")
    nothing = find(rows, epsilon="10", defense="nothing")
    assert (nothing["A ours"], nothing["ASR ours"], nothing["FP ours"]) == ("80.0", "85.0", "")
    for defense, tmr in (("out-of-subset", "0.0"), ("ispl", "30.0")):  # not with the paper's settings
        other = find(rows, epsilon="10", defense=defense)
        assert (other["A paper"], other["A ours"]) == ("", tmr)
    idle = find(rows, epsilon="20", defense="ispl-paper")
    assert (idle["A ours"], idle["A ours highlighted"], idle["took hold"]) == ("0.0", "false", "no")
    assert find(rows, epsilon="10", defense="oracle")["A ours"] == ""
    assert not [row for row in rows if row["epsilon"] == "5" and row["defense"] == "out-of-subset"]


def test_tables_say_whose_images_were_used() -> None:
    watermarked = run("gtsrb-watermark-1-2-eps10"), run("gtsrb-watermark-2-13-eps10", images="official")
    assert (
        "Clean-label images and watermarks: official and ours." in build("gtsrb-watermark", watermarked).notes
    )
    assert not any("watermarks" in note for note in build("gtsrb-watermark").notes)
    drawn = [*watermarked, run("gtsrb-dirty-label-1-2-eps10")]
    assert not any("watermarks" in note for note in build("gtsrb-dirty-label", drawn).notes)


def test_the_ablation_averages_what_took_hold() -> None:
    results = [
        run(ablation_name(base, alpha, 8), accuracy=0.8 + 0.01 * i, took_hold=i < 2)
        for i, base in enumerate(ABLATION_BASES)
        for alpha in ABLATION_SHARES
    ]
    rows = records(build("ablation-accuracy", results))
    paper, ours = find(rows, alpha="1/4", by="paper"), find(rows, alpha="1/4", by="ours")
    assert (paper["1/8"], paper["average"]) == ("86.52", "88.80")
    assert (ours["1/8"], ours["1"], ours["average"]) == ("80.50", "", "")
    assert find(rows, alpha="average", by="ours")["1/8"] == "80.50"
    assert [row["by"] for row in records(build("ablation-tmr"))] == ["paper"] * 6


SLEEPER = "cifar10-sleeper-agent"


def sleeper_runs() -> list[dict[str, Any]]:
    names = [scenario.name for scenario in of_table(SLEEPER)]
    rates = (0.1, 0.2, 0.9)  # of a median that is not the mean
    return [
        *(
            run(name, asr=rate, attacker_asr=rate / 2, attacker_accuracy=0.8, took_hold=rate > 0.15)
            for name, rate in zip(names, rates, strict=False)
        ),
        run(names[0], "nothing", asr=0.5, attacker_asr=0.7, attacker_tmr=0.6, took_hold=False),
    ]


def test_sleeper_agent_gives_mean_and_standard_error_of_both_experiments() -> None:
    """The paper: "the mean over 24 runs, with the standard error in parentheses"."""
    rows = records(build(SLEEPER, sleeper_runs()))
    deviation = stdev([10.0, 20.0, 90.0])
    ours = find(rows, by="ours", training="defender", defense="ispl-paper")
    assert ours["ASR"] == f"40.0 ({deviation / sqrt(3):.1f})" == "40.0 (25.2)"
    assert (ours["ASR deviation"], ours["runs"]) == (f"{deviation:.1f}", "3")
    assert (ours["accuracy"], ours["took hold"]) == ("90.0 (0.0)", "2 / 3")
    second = find(rows, by="ours", training="attacker", defense="ispl-paper")
    assert (second["ASR"], second["accuracy"]) == ("20.0 (12.6)", "80.0 (0.0)")
    assert (
        second["took hold"] == "1 / 3"
    )  # of the first victim of the attacker's way, whatever the other says
    alone = find(rows, by="ours", training="attacker", defense="nothing")
    assert (alone["ASR"], alone["ASR deviation"], alone["took hold"]) == ("70.0", "", "1 / 1")


def test_sleeper_agents_second_experiment_is_the_papers() -> None:
    rows = records(build(SLEEPER))
    theirs = [
        find(rows, training="attacker", defense=by)["ASR"] for by in ("nothing", "ispl-paper", "oracle")
    ]
    assert theirs == ["49.1 (38.3)", "14.1 (15.6)", "2.4 (2.2)"]
    assert find(rows, training="attacker", defense="ispl-paper")["accuracy"] == "87.5 (0.6)"
    assert {row["runs"] for row in rows} == {"24"}


def test_results_without_the_second_experiment_have_no_row_of_it() -> None:
    (name, *_) = (scenario.name for scenario in of_table(SLEEPER))
    rows = records(build(SLEEPER, [run(name)]))
    assert [row["training"] for row in rows if row["by"] == "ours"] == ["defender"]


def test_scales_are_never_mixed() -> None:
    names = [scenario.name for scenario in of_table("gtsrb-watermark")][:2]
    with pytest.raises(InputError, match="which no table may mix"):
        build("gtsrb-watermark", [run(names[0]), run(names[1], scale="paper")])


def test_what_is_unknown_is_refused() -> None:
    with pytest.raises(InputError, match="no table is called 'sumary'; did you mean summary"):
        build("sumary")
    with pytest.raises(InputError, match="no scenario is called 'cifar10-watermark-0-2-eps7'"):
        build("summary", [run("cifar10-watermark-0-2-eps7")])
