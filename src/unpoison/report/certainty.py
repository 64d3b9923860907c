"""How sure the verdict is, from what was found of our own planted samples, or else from votes and marks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.report.canaries import Canary, canaries, measured
from unpoison.report.shared import listed
from unpoison.report.text import count, percent, printable
from unpoison.types import BoolArray, FloatArray, LabelArray

Level: TypeAlias = Literal["clear", "mixed", "weak"]

WEAK_VOTE = 0.7
"""Where fewer samples than this get their own label by vote, the learner cannot tell odd from planted."""

_CLEAR = 0.2
"""Removed samples get their own label in at most this share of the votes, and kept ones in all but this."""
_DOUBTFUL = 0.5
_NAMED = 3


@dataclass(frozen=True)
class Certainty:
    """How far to trust the verdict, and why."""

    level: Level
    votes: str
    """How the votes went, in one sentence; empty where the level was measured."""
    why: str
    """That or what was measured, and which of the removed samples share no mark, in words."""
    measured: str = ""
    """What was found of our own planted samples, in one sentence; empty without them."""


def certainty(dataset: Dataset, result: Sanitization, *, marked: Collection[int] = ()) -> Certainty:
    """How sure the verdict is.

    With planted samples of our own: by how many of them were found. Else clear where the votes part the
    removed from the kept, all that was removed shares a mark, and no group is left undecided; the votes alone
    would nearly always be clear, since they chose what is removed. ``marked`` are the labels whose removed
    samples were found to share something that does not belong there.
    """
    marks, all_marked = _marks(dataset, result, marked)
    planted = canaries(dataset, result)
    if planted:
        found = measured(planted)
        return Certainty(_measured_level(planted, result), "", _joined(found, marks), measured=found)
    level, shares = _votes(dataset.labels, result)
    if level == "clear" and any(group.undecided for group in result.groups):
        level = "mixed"
    votes = f"The votes are {level}: models give {shares}."
    if level == "clear" and not all_marked:
        level = "mixed"
    return Certainty(level, votes, _joined(votes, marks))


def _measured_level(planted: Sequence[Canary], result: Sanitization) -> Level:
    found = [canary.is_found for canary in planted]
    if not any(found):
        return "weak"
    undecided = any(group.undecided for group in result.groups)
    return "clear" if all(found) and not undecided else "mixed"


def _marks(dataset: Dataset, result: Sanitization, marked: Collection[int]) -> tuple[str, bool]:
    """Which of the removed samples share no mark, in words, and whether all share one."""
    if result.keep.all():
        return "", True
    groups = removed_labels(dataset.labels, result)
    unmarked = [item for item in groups if item[0] not in marked]
    if not unmarked:
        return f"{'The' if len(groups) == 1 else 'Each'} removed group shares a mark.", True
    named = [f"the {count(n)} labelled '{_name(dataset, label)}'" for label, n in unmarked[:_NAMED]]
    if len(unmarked) > _NAMED:
        named.append(f"those of {count(len(unmarked) - _NAMED)} other labels")
    return f"No common mark was found in {listed(named)}: look there first.", False


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def removed_labels(labels: LabelArray, result: Sanitization) -> list[tuple[int, int]]:
    """The labels that lose several samples, with how many, most first; if none does, those that lose one."""
    found, times = np.unique(labels[~result.keep], return_counts=True)
    several = times >= 2
    chosen = several if several.any() else ~several
    pairs = zip(found[chosen].tolist(), times[chosen].tolist(), strict=True)
    return sorted(pairs, key=lambda item: (-item[1], item[0]))


def _votes(labels: LabelArray, result: Sanitization) -> tuple[Level, str]:
    """How well the votes part the removed from the kept, and the shares that say so."""
    own = own_share(labels, result)
    heard = ~np.isnan(own)
    weak = (result.notes.get("vote_accuracy") or 1.0) < WEAK_VOTE
    kept = float(own[result.keep & heard].mean()) if (result.keep & heard).any() else 0.0
    if result.keep.all():
        shares = f"the samples their own label in {percent(kept)} of their votes"
        return ("weak" if weak else "clear" if kept >= 1 - _CLEAR else "mixed"), shares
    removed = float(own[~result.keep & heard].mean()) if (~result.keep & heard).any() else 0.0
    shares = (
        f"the removed samples their own label in {percent(removed)} of their votes, "
        f"and the kept samples in {percent(kept)}"
    )
    if weak or removed >= _DOUBTFUL:
        return "weak", shares
    return ("clear" if removed <= _CLEAR and kept >= 1 - _CLEAR else "mixed"), shares


def _name(dataset: Dataset, label: int) -> str:
    return printable(dataset.class_names[label], 40)


def own_share(labels: LabelArray, result: Sanitization) -> FloatArray:
    """For each sample the share of the votes about it that give it its own label; NaN where nobody votes."""
    if result.votes is None:
        alone: FloatArray = (result.predicted == labels).astype(np.float64)
        return alone
    right: BoolArray = (result.votes.predictions == labels) & result.votes.asked
    asked = result.votes.asked.sum(axis=0)
    share: FloatArray = np.where(asked > 0, right.sum(axis=0) / np.maximum(asked, 1), np.nan)
    return share
