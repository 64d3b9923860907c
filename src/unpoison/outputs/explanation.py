"""What a run knows about one sample."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpoison.errors import InputError
from unpoison.outputs.manifest import BY_RUN
from unpoison.outputs.stored import Stored
from unpoison.report.evidence import EvidenceLine, explain
from unpoison.report.text import printable
from unpoison.report.votes import GROUPING, component_name

_N_SIMILAR = 3
_LONGEST = 200
"""Longer ids are not searched for likeness: it would take too long to say."""


@dataclass(frozen=True)
class Vote:
    """What one voter says of the sample."""

    voter: str
    called: str
    loss: float
    counts: bool
    """False where the voter had trained on the sample, and so was not asked."""


@dataclass(frozen=True)
class JudgedGroup:
    """A group that was judged in the sample's class."""

    size: int
    removed: bool
    undecided: bool
    called: str | None
    evidence: list[EvidenceLine]
    reason: str
    """Why it was decided so, in one sentence; empty where the run gives none."""
    is_member: bool


@dataclass(frozen=True)
class Explanation:
    """Everything the files of a run say about one sample, as they say it."""

    id: str
    source: str
    label: str
    called: str
    suspicion: float
    less_suspicious: float
    """The share of all samples with a lower suspicion."""
    keep: bool
    run_keep: bool
    decided_by: str
    """``run``, ``review`` or ``review: NAME``."""
    components: tuple[str, ...]
    group: JudgedGroup | None
    votes: tuple[Vote, ...]
    near_label: str | None
    near_called: str | None
    """Ids of the nearest kept samples of both classes, where they were looked for."""

    @property
    def reviewed(self) -> bool:
        """Whether a person decided."""
        return self.decided_by != BY_RUN

    @property
    def tally(self) -> list[tuple[str, int]]:
        """How many of the votes that count give which label, most first."""
        return Counter(vote.called for vote in self.votes if vote.counts).most_common()


def explain_sample(stored: Stored, sample: str) -> Explanation:
    """What is known about the sample with that id.

    Raises:
        InputError: There is no such id; the message names similar ones.
    """
    try:
        index = stored.ids.index(sample)
    except ValueError:
        raise InputError(_unknown(stored.ids, sample)) from None
    row: dict[str, Any] = {name: stored.table[name][index].as_py() for name in stored.table.column_names}
    suspicion = np.array(stored.table["suspicion"].to_pylist())
    run_keep = bool(stored.evidence.run_keep[index])
    near_label, near_called = _neighbours(stored, index)
    return Explanation(
        id=row["id"],
        source=row["source"],
        label=row["label"],
        called=row["predicted"],
        suspicion=row["suspicion"],
        less_suspicious=float((suspicion < row["suspicion"]).mean()),
        keep=row["keep"],
        run_keep=run_keep,
        decided_by=row["decided_by"],
        components=_components(stored, row),
        group=_group(stored, row, run_keep=run_keep),
        votes=_votes(stored, index),
        near_label=near_label,
        near_called=near_called,
    )


def _unknown(ids: list[str], wanted: str) -> str:
    similar = [sample for sample in ids if wanted and wanted in sample][:_N_SIMILAR]
    if not similar and len(wanted) <= _LONGEST:
        short = [sample for sample in ids if len(sample) <= _LONGEST]
        similar = difflib.get_close_matches(wanted, short, _N_SIMILAR)
    listed = " or ".join(f"'{printable(sample)}'" for sample in similar)
    hint = f"did you mean {listed}?" if similar else "the column id of manifest.csv has them all"
    return f"there is no sample with the id '{printable(wanted)}'; {hint}"


def _components(stored: Stored, row: dict[str, Any]) -> tuple[str, ...]:
    values = [value for name, value in row.items() if name.startswith("component_")]
    method = str(stored.record["method"])
    times = Counter(component_name(0, value, n_restarts=1, method=method) for value in values)
    if len(values) == 1:
        return tuple(times)
    return tuple(f"{name} in {n} of {len(values)} restarts" for name, n in times.most_common())


def _group(stored: Stored, row: dict[str, Any], *, run_keep: bool) -> JudgedGroup | None:
    """The group that the sample is in; else one of its label, if possible one that went."""
    groups = stored.record["result"]["groups"]
    number = row["component_1"] if stored.record["method"] in GROUPING else 0
    in_component = 0 < number <= len(groups)
    of_label = [group for group in groups if group["label"] == row["label"]]
    if not of_label:
        return None
    group = groups[number - 1] if in_component else max(of_label, key=lambda group: group["removed"])
    return JudgedGroup(
        size=group["size"],
        removed=group["removed"],
        undecided=group.get("undecided", False),
        called=group["called"],
        evidence=explain(group["evidence"]),
        reason=group.get("reason", ""),
        is_member=in_component or not run_keep,
    )


def _votes(stored: Stored, index: int) -> tuple[Vote, ...]:
    votes = stored.evidence.votes
    if votes is None:
        return ()
    return tuple(
        Vote(voter, stored.class_names[called], loss, counts)
        for voter, called, loss, counts in zip(
            votes.voters,
            votes.predictions[:, index].tolist(),
            votes.losses[:, index].tolist(),
            votes.asked[:, index].tolist(),
            strict=True,
        )
    )


def _neighbours(stored: Stored, index: int) -> tuple[str | None, str | None]:
    near = stored.evidence.near
    places = np.flatnonzero(near.samples == index)
    if not len(places):
        return None, None
    found = [int(near.of_label[places[0]]), int(near.of_called[places[0]])]
    of_label, of_called = (stored.ids[other] if other >= 0 else None for other in found)
    return of_label, of_called
