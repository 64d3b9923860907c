"""What a run found of our own planted samples, and what it would therefore have missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.report.shared import listed
from unpoison.report.text import count, percent

NOTE = "canaries"
"""The note of a result that has them."""

_FOUND = 0.9
"""A group counts as found from this share of its samples on."""


@dataclass(frozen=True)
class Canary:
    """A small group of marked copies of the user's samples that we planted ourselves."""

    label: int
    size: int
    found: int
    """How many of them the run would have removed."""
    class_share: float
    """Its size over that of the class whose label it carried."""

    @property
    def is_found(self) -> bool:
        """Whether nearly all of it was found."""
        return self.found >= _FOUND * self.size


def canaries(dataset: Dataset, result: Sanitization) -> tuple[Canary, ...]:
    """Those of the run; none where the method has none, or no class was large enough."""
    sizes = np.bincount(dataset.labels, minlength=len(dataset.class_names))
    return tuple(
        Canary(each["label"], each["size"], each["found"], each["size"] / max(1, int(sizes[each["label"]])))
        for each in result.notes.get(NOTE, ())
    )


def measured(planted: Sequence[Canary]) -> str:
    """What was found of them, in one sentence; nothing without them."""
    if not planted:
        return ""
    sizes = listed([count(canary.size) for canary in planted])
    found = listed([count(canary.found) for canary in planted])
    return f"Of our own {sizes} planted samples, {found} {'was' if found == '1' else 'were'} found."


def missed(planted: Sequence[Canary]) -> str:
    """What this run could not have found, and what helps; nothing where it found all of ours."""
    lost = [canary for canary in planted if not canary.is_found]
    if not lost:
        return ""
    sizes = listed([count(canary.size) for canary in lost])
    shares = listed([_rounded(canary.class_share) for canary in lost])
    in_part = " or found only in part" if any(canary.found for canary in lost) else ""
    return (
        f"Groups of about {sizes} samples, {shares} of their class, would have been missed{in_part}. "
        "A stronger network or more passes may find them."
    )


def _rounded(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else percent(share)
