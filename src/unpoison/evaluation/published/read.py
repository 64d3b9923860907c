"""Reading the CSVs beside this file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from unpoison.errors import InputError

OWN = "ispl-paper"
"""The paper's own defense: ISPL with its settings. ISPL with others stands in rows of ours."""
DEFENSES: dict[str, str] = {
    "oracle": "Oracle",
    "nothing": "ND",
    "spectral-signatures": "SS",
    "activation-clustering": "AC",
    "trimmed-loss": "ITLM",
    OWN: "ISPL+B",
}
"""From our names to those in the paper's tables, in the order of its columns."""


def in_order(defenses: Iterable[str]) -> list[str]:
    """Each once, those of the paper first and in its order, the others by name.

    >>> in_order(["groups", "ispl-paper", "confident-learning", "nothing", "ispl-paper"])
    ['nothing', 'ispl-paper', 'confident-learning', 'groups']
    """
    found = set(defenses)
    return [*(name for name in DEFENSES if name in found), *sorted(found.difference(DEFENSES))]


TOTAL = "total"
SUMMARIZED = (
    "cifar10-dirty-label",
    "cifar10-all-to-one",
    "cifar10-all-to-all",
    "cifar10-watermark",
    "cifar10-clean-label",
    "gtsrb-dirty-label",
    "gtsrb-watermark",
)
"""The tables that the main one counts, in the order of its columns."""
PER_SCENARIO = (
    *SUMMARIZED,
    "imagenette-dirty-label",
    "cifar10-adaptive",
    "preactresnet18-200-epochs",
    "resnet32-200-epochs",
)
"""The tables with a row for each scenario."""
GRIDS = ("ablation-accuracy", "ablation-tmr")
"""The tables of alpha by beta."""


@dataclass(frozen=True)
class Measured:
    """What a defense achieved in a scenario, median of three runs; rates in percent, None if not printed."""

    accuracy: float | None
    tmr: float
    highlighted: bool
    """A success, by the paper."""
    false_positives: int | None
    false_negatives: int | None


@dataclass(frozen=True)
class Row:
    """One scenario of a table."""

    scenario: str
    case: Mapping[str, str]
    """What tells the rows of an epsilon apart, as the paper numbers it: source, target, offset, ..."""
    epsilon: int
    """In percent."""
    cells: Mapping[str, Measured]
    """By defense."""


@dataclass(frozen=True)
class SleeperRow:
    """What the text says of 24 runs of Sleeper Agent: mean and spread of the attack success rate."""

    training: str
    """Whose way of training the victim: the ``attacker``'s or the ``defender``'s."""
    defense: str
    asr: float
    asr_spread: float
    accuracy: str
    """As far as it is given: a mean with its spread, a range, or nothing."""


@cache
def read_rows(table: str) -> tuple[Row, ...]:
    """The rows of one of the tables in :data:`PER_SCENARIO`.

    >>> read_rows("gtsrb-watermark")[0].cells["ispl-paper"].tmr
    0.0
    """
    if table not in PER_SCENARIO:
        raise InputError(f"no table {table!r} has a row a scenario; choose one of {', '.join(PER_SCENARIO)}")
    return tuple(_row(record) for record in _records(table))


@cache
def read_summary() -> dict[tuple[str, str], tuple[int, int]]:
    """The main table as it is printed: defended and all scenarios, by epsilon and table, and in total.

    >>> read_summary()["20", "cifar10-watermark"]
    (1, 8)
    """
    return {
        (record["epsilon"], record["table"]): (int(record["defended"]), int(record["scenarios"]))
        for record in _records("summary")
    }


@cache
def read_grid(table: str) -> dict[tuple[str, str], float]:
    """``ablation-accuracy`` or ``ablation-tmr`` by alpha and beta; ``average`` stands for all of either.

    >>> read_grid("ablation-tmr")["1/4", "1/8"]
    7.07
    """
    if table not in GRIDS:
        raise InputError(f"the ablation has no table {table!r}; choose one of {', '.join(GRIDS)}")
    return {
        (record["alpha"], beta): float(value)
        for record in _records(table)
        for beta, value in record.items()
        if beta != "alpha" and value
    }


@cache
def read_sleeper_agent() -> tuple[SleeperRow, ...]:
    """What the text gives for Sleeper Agent, which has no table."""
    return tuple(
        SleeperRow(
            record["training"],
            record["defense"],
            float(record["asr"]),
            float(record["asr_spread"]),
            _accuracy(record),
        )
        for record in _records("cifar10-sleeper-agent")
    )


def _accuracy(record: Mapping[str, str]) -> str:
    if record["accuracy_from"]:
        return f"{record['accuracy_from']} to {record['accuracy_to']}"
    return f"{record['accuracy']} ({record['accuracy_spread']})" if record["accuracy"] else ""


def _row(record: Mapping[str, str]) -> Row:
    names = list(record)
    case = names[names.index("scenario") + 1 : names.index("epsilon")]
    return Row(
        record["scenario"],
        {name: record[name] for name in case},
        int(record["epsilon"]),
        {
            defense: _measured(record, defense.replace("-", "_"))
            for defense in DEFENSES
            if f"{defense.replace('-', '_')}_tmr" in record
        },
    )


def _measured(record: Mapping[str, str], prefix: str) -> Measured:
    accuracy = record.get(f"{prefix}_accuracy")
    positives, negatives = (record.get(f"{prefix}_false_{kind}") for kind in ("positives", "negatives"))
    return Measured(
        None if accuracy is None else float(accuracy),
        float(record[f"{prefix}_tmr"]),
        record.get(f"{prefix}_highlighted") == "true",
        None if positives is None else int(positives),
        None if negatives is None else int(negatives),
    )


def _records(table: str) -> list[dict[str, str]]:
    file = resources.files("unpoison.evaluation.published").joinpath(f"{table}.csv")
    return list(csv.DictReader(file.read_text(encoding="ascii").splitlines()))
