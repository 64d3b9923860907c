"""Successes counted from the published numbers of each scenario."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.evaluation.published.read import SUMMARIZED, TOTAL, read_rows


@dataclass(frozen=True)
class Count:
    """``defended`` of so many ``scenarios``."""

    defended: int = 0
    scenarios: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.defended + other.defended, self.scenarios + other.scenarios)

    def __str__(self) -> str:
        """As the paper writes it; a dash where there is nothing to count."""
        return f"{self.defended} / {self.scenarios}" if self.scenarios else "-"


def counts(defense: str) -> dict[tuple[str, str], Count]:
    """Highlighted cells of a defense by epsilon and table, and in total, in the paper's order.

    Tables without a column for the defense have a :class:`Count` of no scenarios.

    >>> str(counts("ispl-paper")["total", "total"])
    '134 / 165'
    """
    found: list[tuple[int, str, bool]] = [
        (row.epsilon, table, row.cells[defense].highlighted)
        for table in SUMMARIZED
        for row in read_rows(table)
        if defense in row.cells
    ]
    return tally(found)


def tally(found: list[tuple[int, str, bool]]) -> dict[tuple[str, str], Count]:
    """Sums over (epsilon, table, whether it is a success)."""
    sums = {
        (epsilon, table): Count() for epsilon in ("5", "10", "20", TOTAL) for table in (*SUMMARIZED, TOTAL)
    }
    for epsilon, table, success in found:
        for place in ((str(epsilon), table), (str(epsilon), TOTAL), (TOTAL, table), (TOTAL, TOTAL)):
            sums[place] += Count(int(success), 1)
    return sums
