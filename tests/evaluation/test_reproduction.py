from __future__ import annotations

from typing import Any

import pytest

from unpoison.errors import InputError
from unpoison.evaluation.reproduction import COLUMNS, by_component, reproduce

WATERMARK = "gtsrb-watermark-1-2-eps10"


def result(defense: str, scenario: str = WATERMARK, **values: Any) -> dict[str, Any]:
    return {
        "scenario": scenario, "scale": "full", "seed": 0, "defense": defense, "took_hold": True, "n": 1000,
        "planted": 150, "accuracy": 0.9551, "tmr": 0.0125, "asr": 0.02, "false_positives": 321,
        "false_negatives": 7, "defense_cost": {"trained": 180_000, "scored": 30_000}, **values,
    }  # fmt: skip


def test_a_run_stands_beside_the_papers_row() -> None:
    table = reproduce([result("ispl-paper"), result("nothing", tmr=0.5), result("oracle", tmr=0.001)])
    assert len(table.columns) == len(COLUMNS)
    assert table.rows == (
        (
            WATERMARK, "0", "150", "50.0", "54.0", "0.1", "0.0", "1.2", "0.0", "95.5", "94.7", "321", "359",
            "7", "8", "190",
        ),
    )  # fmt: skip
    assert "Clean-label images and watermarks: ours." in table.notes


def test_official_images_are_told() -> None:
    runs = [result("ispl-paper", images="official"), result("ispl-paper", seed=1)]
    assert "Clean-label images and watermarks: official and ours." in reproduce(runs).notes
    marks = [result("ispl-paper", "gtsrb-dirty-label-1-0-eps10")]
    assert not any("images" in note for note in reproduce(marks).notes)


def test_what_was_not_run_is_a_dash() -> None:
    (row,) = reproduce([result("ispl-paper")]).rows
    assert (row[3], row[5]) == ("-", "-")


def test_clean_sets_come_last() -> None:
    clean = result("ispl-paper+clean", "cifar10-watermark-1-3-eps10", planted=0, false_negatives=0)
    rows = reproduce([clean, result("ispl-paper")]).rows
    assert [row[0] for row in rows] == [WATERMARK, "cifar10, clean"]
    assert rows[1][11] == "321"


def test_another_defense_can_be_named() -> None:
    runs = [result("ispl-authors"), result("ispl-paper", tmr=0.5)]
    assert reproduce(runs, defense="ispl-authors").rows[0][7] == "1.2"
    with pytest.raises(InputError, match="there are no results of 'expansion'"):
        reproduce(runs, defense="expansion")


def test_where_the_planted_samples_are() -> None:
    votes = {"voted_false_positives": 40, "voted_false_negatives": 2}
    runs = [
        result("ispl-paper", planted_by_component=[[0, 0, 9, 140, 1], [0, 3, 0, 140, 7]], **votes),
        result("ispl-paper", seed=1, planted_by_component=[[150, 0]], **votes),
        result("nothing"),
    ]
    table = by_component(runs)
    assert table.columns == ("scenario", "seed", "restart 1", "restart 2", "by the vote alone")
    assert table.rows == (
        (WATERMARK, "0", "0 0 9 140 | 1", "0 3 0 140 | 7", "40, 2"),
        (WATERMARK, "1", "150 | 0", "", "40, 2"),
    )
