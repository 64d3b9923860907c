"""How sure the verdict is, from how the votes went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.report.text import percent
from unpoison.types import BoolArray, FloatArray, LabelArray

WEAK_VOTE = 0.7
"""Where fewer samples than this get their own label by vote, the learner cannot tell odd from planted."""

_CLEAR = 0.2
"""Removed samples get their own label in at most this share of the votes, and kept ones in all but this."""
_DOUBTFUL = 0.5


@dataclass(frozen=True)
class Certainty:
    """How far to trust the verdict, and why in one sentence."""

    level: Literal["clear", "mixed", "weak"]
    why: str


def certainty(labels: LabelArray, result: Sanitization) -> Certainty:
    """Clear where the votes part the removed from the kept, weak where they hardly do."""
    own = own_share(labels, result)
    heard = ~np.isnan(own)
    weak = (result.notes.get("vote_accuracy") or 1.0) < WEAK_VOTE
    kept = float(own[result.keep & heard].mean()) if (result.keep & heard).any() else 0.0
    if result.keep.all():
        why = f"Models give the samples their own label in {percent(kept)} of their votes."
        return Certainty("weak" if weak else "clear" if kept >= 1 - _CLEAR else "mixed", why)
    removed = float(own[~result.keep & heard].mean()) if (~result.keep & heard).any() else 0.0
    why = (
        f"Models give the removed samples their own label in {percent(removed)} of their votes, "
        f"and the kept samples in {percent(kept)}."
    )
    if weak or removed >= _DOUBTFUL:
        return Certainty("weak", why)
    return Certainty("clear" if removed <= _CLEAR and kept >= 1 - _CLEAR else "mixed", why)


def own_share(labels: LabelArray, result: Sanitization) -> FloatArray:
    """For each sample the share of the votes about it that give it its own label; NaN where nobody votes."""
    if result.votes is None:
        alone: FloatArray = (result.predicted == labels).astype(np.float64)
        return alone
    right: BoolArray = (result.votes.predictions == labels) & result.votes.asked
    asked = result.votes.asked.sum(axis=0)
    share: FloatArray = np.where(asked > 0, right.sum(axis=0) / np.maximum(asked, 1), np.nan)
    return share
