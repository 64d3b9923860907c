"""Decide: what was measured of a group goes in; planted, natural or undecided comes out."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from typing import Literal, TypeAlias

from unpoison.core.groups.separation import NOT_MEASURED, TINY, Separation

Verdict: TypeAlias = Literal["planted", "natural", "undecided"]


@dataclass(frozen=True)
class Thresholds:
    """The two numbers that decide."""

    met: float = 7.0
    """A planted group stands apart by so many standard deviations, or more, for models that trained on it,"""
    kept: float = 0.25
    """and by so large a part of that, or less, for judges, which met nothing like it."""


@dataclass(frozen=True)
class Evidence:
    """What was measured of one group."""

    label: int
    size: int
    met: Separation
    """How far it stands apart for models that trained on it: from the rest of its class."""
    unmet: Separation
    """How far for judges that did not: from samples that they call the same classes."""
    agreement: float
    """The share that judges call by its label."""
    called: int
    """What judges call most of it."""

    @property
    def kept(self) -> float:
        """How much of its distance the group keeps for judges."""
        return self.unmet.z / max(self.met.z, TINY)

    @property
    def kept_error(self) -> float:
        """Standard error of ``kept``."""
        return hypot(self.unmet.error, self.kept * self.met.error) / max(self.met.z, TINY)

    @property
    def kind(self) -> str:
        """What a planted group is, by what judges call it."""
        return "filed under the wrong class" if self.agreement < 0.5 else "a mark on right labels"

    def reason(self, verdict: Verdict) -> str:
        """Why it was decided so, in one sentence."""
        met = f"for models that trained on it it stands {self.met.z:.1f} standard deviations from its class"
        if self.unmet.error >= NOT_MEASURED:
            return f"Undecided: {met}, and judges know nothing that they call the same, to compare it with."
        unmet = f"{self.unmet.z:.1f} for judges that did not"
        if verdict == "planted":
            return f"Planted ({self.kind}): {met}, and only {unmet}."
        if verdict == "undecided":
            return f"Undecided: {met}, and {unmet}, which is within the error of a threshold."
        return f"Natural: {met}, and {unmet}, which met nothing like it."


def decide(evidence: Evidence, thresholds: Thresholds) -> Verdict:
    """A planted group stands apart for models that met it and dissolves for those that did not.

    Within one standard error of a threshold that would change the verdict it is undecided.

    >>> apart, dissolved = Separation(13.0, 0.5), Separation(1.0, 0.2)
    >>> decide(Evidence(2, 100, apart, dissolved, 0.0, 1), Thresholds())
    'planted'
    >>> decide(Evidence(2, 100, apart, apart, 0.0, 1), Thresholds())
    'natural'
    """
    met, kept, error = evidence.met, evidence.kept, evidence.kept_error
    if met.z - met.error >= thresholds.met and kept + error <= thresholds.kept:
        return "planted"
    if met.z + met.error < thresholds.met or kept - error > thresholds.kept:
        return "natural"
    return "undecided"
