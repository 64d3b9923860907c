"""Successes counted from the published numbers of each scenario."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.evaluation.outcomes import SUCCESS
from unpoison.evaluation.published.read import SUMMARIZED, TOTAL, Measured, read_rows

UNDEFENDED = "nothing"


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


def counts(
    defense: str, *, below: float = SUCCESS, undefended_above: float | None = None
) -> dict[tuple[str, str], Count]:
    """Scenarios with a TMR below so many percent, by epsilon and table, and in total, in the paper's order.

    At 1% these are the highlighted cells. The paper counts among all scenarios; ``undefended_above`` leaves
    out those whose TMR without a defense is not above so many percent. Tables without a column for the
    defense have a :class:`Count` of no scenarios.

    >>> str(counts("ispl-paper")["total", "total"]), str(counts("ispl-paper", below=5.0)["total", "total"])
    ('134 / 165', '142 / 165')
    """
    return tally(
        [
            (row.epsilon, table, _is_below(row.cells[defense], below))
            for table in SUMMARIZED
            for row in read_rows(table)
            if defense in row.cells
            and (undefended_above is None or row.cells[UNDEFENDED].tmr > undefended_above)
        ]
    )


def taking_hold(above: float) -> dict[tuple[str, str], Count]:
    """Scenarios whose TMR without a defense is above so many percent."""
    return tally(
        [
            (row.epsilon, table, row.cells[UNDEFENDED].tmr > above)
            for table in SUMMARIZED
            for row in read_rows(table)
        ]
    )


def _is_below(cell: Measured, percent: float) -> bool:
    """By the highlighting at 1%: what is printed is rounded."""
    return cell.highlighted if percent == SUCCESS else cell.tmr < percent


def tally(found: list[tuple[int, str, bool]]) -> dict[tuple[str, str], Count]:
    """Sums over (epsilon, table, whether it is a success)."""
    sums = {
        (epsilon, table): Count() for epsilon in ("5", "10", "20", TOTAL) for table in (*SUMMARIZED, TOTAL)
    }
    for epsilon, table, success in found:
        for place in ((str(epsilon), table), (str(epsilon), TOTAL), (TOTAL, table), (TOTAL, TOTAL)):
            sums[place] += Count(int(success), 1)
    return sums
