"""The removed samples that belong together, and are therefore looked at together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.types import IndexArray, LabelArray

MAX_GROUPS = 4
"""Groups that are looked at closely; this bounds the work and the size of the page."""

_LEADING = 0.5


@dataclass(frozen=True)
class Suspects:
    """Removed samples of one label, and what the vote calls them."""

    label: int
    called: int
    """-1 where the vote calls them different things, or nothing."""
    members: IndexArray
    n_removed: int
    """All removed samples of the label, these and those called something else."""

    @property
    def disputed(self) -> bool:
        """Whether the vote gives them another label than theirs."""
        return self.called != self.label


def suspect_groups(labels: LabelArray, result: Sanitization, *, limit: int = MAX_GROUPS) -> list[Suspects]:
    """One group for each label that loses two or more samples, largest first.

    Where most of a label's removed samples are called one and the same thing, they alone are its group: what
    was removed besides would blur what they have in common.
    """
    found = []
    for label in np.unique(labels[~result.keep]).tolist():
        members = np.flatnonzero(~result.keep & (labels == label))
        called, times = np.unique(result.predicted[members], return_counts=True)
        leading = int(times.argmax())
        if called[leading] >= 0 and times[leading] >= _LEADING * len(members):
            group = members[result.predicted[members] == called[leading]]
            found.append(Suspects(label, int(called[leading]), group, len(members)))
        else:
            found.append(Suspects(label, -1, members, len(members)))
    found.sort(key=lambda group: (-len(group.members), group.label))
    return [group for group in found[:limit] if len(group.members) >= 2]
