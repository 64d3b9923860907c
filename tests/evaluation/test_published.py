"""The published numbers, against the paper's own tables and sentences; and where these disagree."""

from __future__ import annotations

from collections import Counter
from importlib import resources
from math import sqrt
from statistics import fmean, stdev

import pytest

from unpoison.defenses.spectral import (
    LEAST_SHARE,
    LEAST_SHARE_200_EPOCHS,
    SpectralSignatures,
    n_outliers,
)
from unpoison.errors import InputError
from unpoison.evaluation.published import (
    DEFENSES,
    PER_SCENARIO,
    SUMMARIZED,
    TOTAL,
    Count,
    Measured,
    Row,
    SleeperRow,
    counts,
    read_grid,
    read_rows,
    read_sleeper_agent,
    read_summary,
)
from unpoison.evaluation.published.counts import taking_hold
from unpoison.evaluation.scenarios import GTSRB_ABLATION_TABLES, tables

LONGER = ("preactresnet18-200-epochs", "resnet32-200-epochs")
SHARES = ("1", "1/2", "1/4", "1/8", "1/16")


def row_of(scenario: str) -> Row:
    return next(row for table in PER_SCENARIO for row in read_rows(table) if row.scenario == scenario)


def successes(table: str, defense: str) -> int:
    return sum(row.cells[defense].highlighted for row in read_rows(table))


def cells(*names: str) -> list[tuple[str, str, Measured]]:
    return [
        (row.scenario, defense, cell)
        for table in names
        for row in read_rows(table)
        for defense, cell in row.cells.items()
    ]


def test_there_is_a_file_for_every_table() -> None:
    folder = resources.files("unpoison.evaluation.published")
    found = {file.name for file in folder.iterdir() if file.name.endswith(".csv")}
    assert found == {f"{table}.csv" for table in set(tables()) - set(GTSRB_ABLATION_TABLES)}


@pytest.mark.parametrize("table", PER_SCENARIO)
def test_every_cell_is_filled_with_a_rate(table: str) -> None:
    rows = read_rows(table)
    assert {tuple(row.cells) for row in rows} == {tuple(rows[0].cells)}
    assert Counter(row.epsilon for row in rows) == dict.fromkeys((5, 10, 20), len(rows) // 3)
    for row in rows:
        for defense, cell in row.cells.items():
            assert defense in DEFENSES
            assert 0 <= cell.tmr <= 100
            assert cell.accuracy is None or 86 <= cell.accuracy <= 96
            assert defense != "oracle" or not cell.highlighted


# one row of each table, read off the paper
@pytest.mark.parametrize(
    ("scenario", "printed"),
    [
        (
            "cifar10-dirty-label-9-2-eps5",
            {
                "oracle": Measured(93.3, 0.0, False, None, None),
                "nothing": Measured(92.9, 75.4, False, None, None),
                "spectral-signatures": Measured(92.7, 14.5, False, None, None),
                "activation-clustering": Measured(90.3, 31.0, False, None, None),
                "trimmed-loss": Measured(92.7, 1.0, True, None, None),
                "ispl-paper": Measured(91.0, 0.0, True, 3625, 4),
            },
        ),
        (
            "cifar10-all-to-one-2-eps10",
            {
                "oracle": Measured(93.1, 0.1, False, None, None),
                "nothing": Measured(93.0, 0.8, True, None, None),
                "ispl-paper": Measured(90.9, 0.0, True, 3632, 25),
            },
        ),
        (
            "cifar10-all-to-all-7-eps20",
            {
                "oracle": Measured(92.5, 0.0, False, None, None),
                "nothing": Measured(93.2, 90.0, False, None, None),
                "ispl-paper": Measured(90.6, 86.7, False, 3076, 8952),
            },
        ),
        (
            "cifar10-watermark-2-5-eps20",
            {
                "oracle": Measured(93.1, 2.4, False, None, None),
                "nothing": Measured(92.9, 73.7, False, None, None),
                "ispl-paper": Measured(90.4, 35.4, False, 3499, 622),
            },
        ),
        (
            "cifar10-clean-label-linf-2-eps20",
            {
                "oracle": Measured(93.0, 0.1, False, None, None),
                "nothing": Measured(93.0, 66.2, False, None, None),
                "ispl-paper": Measured(90.4, 1.0, True, 4157, 430),
            },
        ),
        (
            "gtsrb-dirty-label-38-4-eps10",
            {
                "oracle": Measured(94.1, 0.0, False, None, None),
                "nothing": Measured(92.7, 3.0, False, None, None),
                "ispl-paper": Measured(93.8, 2.3, False, 668, 138),
            },
        ),
        (
            "gtsrb-watermark-9-18-eps20",
            {
                "oracle": Measured(94.8, 0.0, False, None, None),
                "nothing": Measured(94.6, 94.0, False, None, None),
                "ispl-paper": Measured(94.2, 0.0, True, 482, 0),
            },
        ),
        (
            "imagenette-dirty-label-1-3-eps20",
            {
                "oracle": Measured(91.4, 0.0, False, None, None),
                "nothing": Measured(91.2, 91.9, False, None, None),
                "ispl-paper": Measured(88.9, 89.1, False, 586, 185),
            },
        ),
        ("cifar10-adaptive-3-5-eps10", {"ispl-paper": Measured(90.7, 8.2, False, 3665, 51)}),
        (
            "cifar10-dirty-label-7-4-eps20-preactresnet18-200",
            {
                "oracle": Measured(None, 1.5, False, None, None),
                "nothing": Measured(94.6, 96.5, False, None, None),
                "spectral-signatures": Measured(94.3, 0.1, True, 14000, 0),
                "activation-clustering": Measured(92.1, 78.6, False, 21292, 22),
                "trimmed-loss": Measured(94.4, 96.5, False, 3910, 910),
                "ispl-paper": Measured(92.8, 84.5, False, 3203, 867),
            },
        ),
        (
            "cifar10-dirty-label-1-3-eps20-resnet32-200",
            {
                "oracle": Measured(None, 0.0, False, None, None),
                "nothing": Measured(92.1, 98.1, False, None, None),
                "spectral-signatures": Measured(91.5, 0.0, True, 14004, 4),
                "activation-clustering": Measured(89.1, 0.4, True, 21145, 70),
                "trimmed-loss": Measured(91.9, 97.3, False, 3900, 900),
                "ispl-paper": Measured(89.4, 0.0, True, 5833, 1),
            },
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rows_as_printed(scenario: str, printed: dict[str, Measured]) -> None:
    assert row_of(scenario).cells == printed


PRINTED_SUMMARY = """
5     7 / 8    4 / 4    4 / 4   6 / 8    15 / 15  6 / 8    8 / 8    50 / 55
10    8 / 8    4 / 4    2 / 4   5 / 8    15 / 15  6 / 8    8 / 8    48 / 55
20    7 / 8    4 / 4    2 / 4   1 / 8    11 / 15  5 / 8    6 / 8    36 / 55
total 22 / 24  12 / 12  8 / 12  12 / 24  41 / 45  17 / 24  22 / 24  134 / 165
"""


def test_the_summary_recomputed_is_the_summary_printed_row_by_row() -> None:
    recomputed = counts("ispl-paper")
    lines = [
        " ".join([epsilon, *(str(recomputed[epsilon, table]) for table in (*SUMMARIZED, TOTAL))])
        for epsilon in ("5", "10", "20", TOTAL)
    ]
    assert lines == [" ".join(line.split()) for line in PRINTED_SUMMARY.strip().splitlines()]
    assert {place: Count(*numbers) for place, numbers in read_summary().items()} == recomputed


@pytest.mark.parametrize(
    ("defense", "dirty_label", "everything"),
    [
        ("spectral-signatures", [1, 0, 0, 1], Count(1, 24)),
        ("activation-clustering", [4, 1, 0, 5], Count(5, 24)),
        ("trimmed-loss", [4, 0, 0, 4], Count(4, 24)),
        ("nothing", [0, 0, 0, 0], Count(31, 165)),
        ("oracle", [0, 0, 0, 0], Count(0, 165)),
    ],
)
def test_the_baselines_counted_the_same_way(defense: str, dirty_label: list[int], everything: Count) -> None:
    found = counts(defense)
    by_epsilon = [found[epsilon, "cifar10-dirty-label"].defended for epsilon in ("5", "10", "20", TOTAL)]
    assert by_epsilon == dirty_label
    assert found[TOTAL, TOTAL] == everything


@pytest.mark.parametrize(
    ("table", "defense", "count"),
    [
        ("imagenette-dirty-label", "ispl-paper", 21),  # "21 of the 24 scenarios defended"
        ("cifar10-adaptive", "ispl-paper", 20),  # "20/24 of the scenarios (versus 22/24 ...)"
        ("cifar10-dirty-label", "ispl-paper", 22),  # "22 out of 24 scenarios ...
        ("cifar10-dirty-label", "activation-clustering", 5),  # ... versus only 5 for the next best"
        ("cifar10-dirty-label", "spectral-signatures", 1),
        ("preactresnet18-200-epochs", "spectral-signatures", 9),  # "9 scenarios instead of just 1"
        ("preactresnet18-200-epochs", "activation-clustering", 0),
        ("preactresnet18-200-epochs", "trimmed-loss", 0),
        ("preactresnet18-200-epochs", "ispl-paper", 17),
        ("resnet32-200-epochs", "spectral-signatures", 2),
        ("resnet32-200-epochs", "activation-clustering", 2),
        ("resnet32-200-epochs", "trimmed-loss", 0),
        ("resnet32-200-epochs", "ispl-paper", 20),
    ],
)
def test_successes_of_the_other_tables(table: str, defense: str, count: int) -> None:
    assert successes(table, defense) == count


def test_attacks_that_fail_undefended_count_as_defended_in_the_paper() -> None:
    idle = [row for table in SUMMARIZED for row in read_rows(table) if row.cells["nothing"].highlighted]
    assert len(idle) == 31
    assert all(row.cells["ispl-paper"].highlighted for row in idle)


def test_a_threshold_of_five_percent_gives_142_as_the_text_says() -> None:
    assert sum(cell.tmr < 5 for _, defense, cell in cells(*SUMMARIZED) if defense == "ispl-paper") == 142
    assert counts("ispl-paper", below=5.0)[TOTAL, TOTAL] == Count(142, 165)


def test_counts_among_the_attacks_that_took_hold() -> None:
    held = {
        row.scenario: row.cells["ispl-paper"]
        for table in SUMMARIZED
        for row in read_rows(table)
        if row.cells["nothing"].tmr > 10
    }
    for below, defended in (
        (1.0, sum(cell.highlighted for cell in held.values())),
        (5.0, sum(cell.tmr < 5 for cell in held.values())),
    ):
        found = counts("ispl-paper", below=below, undefended_above=10.0)
        assert found[TOTAL, TOTAL] == Count(defended, len(held))
        assert counts("nothing", below=below, undefended_above=10.0)[TOTAL, TOTAL] == Count(0, len(held))
    assert taking_hold(10.0)[TOTAL, TOTAL] == Count(len(held), 165)
    assert taking_hold(10.0)["5", "cifar10-clean-label"] == Count(2, 15)


def test_highlighted_is_below_one_but_for_what_reads_one_after_rounding() -> None:
    at_odds = {
        (scenario, defense)
        for scenario, defense, cell in cells(*PER_SCENARIO)
        if defense != "oracle" and cell.highlighted != (cell.tmr < 1)
    }
    assert at_odds == {
        ("cifar10-clean-label-linf-2-eps20", "ispl-paper"),  # the one among the 134
        ("cifar10-dirty-label-9-2-eps5", "trimmed-loss"),
        ("cifar10-clean-label-linf-7-eps5", "nothing"),
        ("gtsrb-watermark-15-29-eps5", "nothing"),
    }
    assert all(row_of(scenario).cells[defense].tmr == 1.0 for scenario, defense in at_odds)
    not_highlighted = row_of("cifar10-clean-label-linf-9-eps20").cells["nothing"]
    assert (not_highlighted.tmr, not_highlighted.highlighted) == (1.0, False)


def test_the_grids_as_printed() -> None:
    accuracy, tmr = read_grid("ablation-accuracy"), read_grid("ablation-tmr")
    assert len(accuracy) == len(tmr) == 5 * 5 + 5 + 5
    assert [accuracy["1/4", beta] for beta in (*SHARES, "average")] == [
        92.64, 91.93, 89.92, 86.52, 83.01, 88.80,
    ]  # fmt: skip
    assert [tmr[alpha, "1/8"] for alpha in (*SHARES, "average")] == [5.88, 3.54, 7.07, 10.96, 11.91, 7.87]
    # "beta in [1/8, 1/16] and alpha in [1, 1/4] all yield ... less than 10%"
    assert max(tmr[alpha, beta] for alpha in SHARES[:3] for beta in SHARES[3:]) == 9.59


@pytest.mark.parametrize("table", ["ablation-accuracy", "ablation-tmr"])
def test_the_averages_are_right_but_for_one_hundredth(table: str) -> None:
    grid = read_grid(table)
    off = set()
    for share in SHARES:
        row, column = ([grid[a, b] for a, b in line] for line in (
            [(share, beta) for beta in SHARES], [(alpha, share) for alpha in SHARES],
        ))  # fmt: skip
        off |= {(share, "average")} if abs(fmean(row) - grid[share, "average"]) > 0.00501 else set()
        off |= {("average", share)} if abs(fmean(column) - grid["average", share]) > 0.00501 else set()
    assert off == ({("1/16", "average")} if table == "ablation-accuracy" else set())


def test_sleeper_agent_as_the_text_has_it() -> None:
    assert read_sleeper_agent() == (
        SleeperRow("attacker", "nothing", 49.1, 38.3, ""),
        SleeperRow("attacker", "oracle", 2.4, 2.2, ""),
        SleeperRow("attacker", "ispl-paper", 14.1, 15.6, "87.5 (0.6)"),
        SleeperRow("defender", "nothing", 4.5, 4.3, "89 to 90"),
        SleeperRow("defender", "oracle", 3.0, 4.8, "89 to 90"),
        SleeperRow("defender", "ispl-paper", 4.3, 4.1, "89 to 90"),
    )


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(InputError, match="choose one of cifar10-dirty-label"):
        read_rows("summary")
    with pytest.raises(InputError, match="choose one of ablation-accuracy, ablation-tmr"):
        read_grid("../../setup")


# where the paper disagrees with itself: the data are as printed


def mean_accuracy(defense: str, *names: str) -> float:
    return fmean(
        cell.accuracy for _, by, cell in cells(*names) if by == defense and cell.accuracy is not None
    )


def test_clean_accuracy_drops_by_more_than_the_two_percent_of_the_text() -> None:
    cifar10, gtsrb = SUMMARIZED[:5], SUMMARIZED[5:]
    drops = [
        round(mean_accuracy("oracle", *names) - mean_accuracy("ispl-paper", *names), 2)
        for names in (cifar10, gtsrb, ["imagenette-dirty-label"])
    ]
    assert drops == [2.38, 0.09, 2.04]  # "less than 2%", "negligible", "less than 2%"


def test_a_watermark_that_was_not_removed_at_all_and_yet_did_nothing() -> None:
    row = row_of("gtsrb-watermark-2-13-eps20")
    planted = row_of("gtsrb-dirty-label-2-13-eps20").cells["ispl-paper"].false_negatives
    assert row.cells["ispl-paper"].false_negatives == planted == 300
    assert (row.cells["nothing"].tmr, row.cells["ispl-paper"].tmr) == (76.9, 0.1)


def removed(table: str, defense: str) -> dict[str, int]:
    """Samples that a defense removed: false positives, and what was planted and not left."""
    found = {}
    for row in read_rows(table):
        cell = row.cells[defense]
        if cell.false_positives is not None and cell.false_negatives is not None:
            found[row.scenario] = cell.false_positives - cell.false_negatives + 50 * row.epsilon
    return found


def test_itlm_did_not_always_remove_what_the_text_says() -> None:
    says = {5: 1000, 10: 2000, 20: 4000}
    differ = Counter[tuple[int, int]]()
    for table in LONGER:
        for scenario, count in removed(table, "trimmed-loss").items():
            epsilon = row_of(scenario).epsilon
            if count != says[epsilon]:
                differ[epsilon, count] += 1
    assert differ == {(10, 1000): 6, (20, 1000): 4, (10, 1999): 1, (20, 4070): 1}


def test_spectral_signatures_removed_fifteen_percent_not_twenty() -> None:
    found = {
        (row_of(scenario).epsilon, count)
        for table in LONGER
        for scenario, count in removed(table, "spectral-signatures").items()
    }
    assert found == {(5, 7501), (5, 7502), (5, 7503), (10, 7500), (20, 15000)}


def test_the_shares_of_the_preset_are_those_of_every_row_of_200_epochs() -> None:
    for table in LONGER:
        for scenario, count in removed(table, "spectral-signatures").items():
            epsilon = row_of(scenario).epsilon
            by_table, by_text = (
                spectral_removals(epsilon, least) for least in (LEAST_SHARE_200_EPOCHS, LEAST_SHARE)
            )
            assert 0 <= count - by_table <= (2 if epsilon == 5 else 0)
            assert (by_text == by_table) == (epsilon == 20)
        assert len(removed(table, "spectral-signatures")) == 24


def spectral_removals(epsilon: int, least_share: float) -> int:
    """Of CIFAR-10, planted images having left the source class for the target class."""
    share = SpectralSignatures.for_epsilon(epsilon / 100, least_share=least_share).share
    sizes = (*[5000] * 8, 5000 + 50 * epsilon, 5000 - 50 * epsilon)
    return sum(n_outliers(share, size) for size in sizes)


def test_what_spectral_signatures_removed_in_the_main_table_is_not_printed() -> None:
    assert removed("cifar10-dirty-label", "spectral-signatures") == {}
    assert len(removed("cifar10-dirty-label", "ispl-paper")) == 24


def test_the_tables_of_200_epochs_read_like_attack_success() -> None:
    longer = {row.cells["oracle"].tmr for table in LONGER for row in read_rows(table) if pair(row) == (3, 5)}
    usual = {row.cells["oracle"].tmr for row in read_rows("cifar10-dirty-label") if pair(row) == (3, 5)}
    assert (min(longer), max(longer), usual) == (5.9, 7.6, {0.2})
    cats = [row.cells["nothing"].tmr for table in LONGER for row in read_rows(table) if pair(row)[0] == 3]
    assert max(cats) == 98.6


def pair(row: Row) -> tuple[int, int]:
    return int(row.case["source"]), int(row.case["target"])


def test_the_standard_error_of_sleeper_agent_cannot_be_one() -> None:
    largest = stdev([0.0] * 12 + [100.0] * 12) / sqrt(24)
    assert round(largest, 1) == 10.4
    assert max(row.asr_spread for row in read_sleeper_agent()) > largest
