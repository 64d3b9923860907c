"""Decide: what was measured of a group goes in; planted, natural or undecided comes out."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt
from typing import Literal, TypeAlias

from unpoison.core.groups.separation import NOT_MEASURED, TINY, Separation

MOSTLY = 0.5
"""Of a group that judges call by its label less often than this, they say that it is something else."""
Verdict: TypeAlias = Literal["planted", "natural", "undecided"]


@dataclass(frozen=True)
class Thresholds:
    """The two numbers that decide."""

    met: float = 6.0
    """A planted group stands apart by so many standard deviations, or more, for models that trained on it;"""
    kept: float = 0.2
    """judges, which met nothing like it, leave at most this part of that distance to it under its label."""
    right_labels: bool = True
    """Whether a mark on right labels counts as planted."""


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
    elsewhere: float
    """The share that they call another class, as surely as they call what they know of that class."""
    called: int
    """What judges call most of it."""

    @property
    def kept(self) -> float:
        """How much of its distance the group keeps for judges, and under its own label.

        The part that they still see, times the part of the group that they do not surely call another class.
        """
        return self.seen * (1.0 - self.elsewhere)

    @property
    def kept_error(self) -> float:
        """Standard error of ``kept``."""
        if self.unmet.error >= NOT_MEASURED:
            return NOT_MEASURED
        return hypot((1.0 - self.elsewhere) * self.seen_error, self.seen * self.error_of(self.elsewhere))

    @property
    def seen(self) -> float:
        """How much of its distance judges still see, under whatever label."""
        return self.unmet.z / max(self.met.z, TINY)

    @property
    def seen_error(self) -> float:
        """Standard error of ``seen``."""
        return hypot(self.unmet.error, self.seen * self.met.error) / max(self.met.z, TINY)

    def error_of(self, share: float) -> float:
        """Standard error of a share of the group; never that of none or all."""
        share = (share * self.size + 1.0) / (self.size + 2.0)
        return sqrt(share * (1.0 - share) / self.size)

    @property
    def kind(self) -> str:
        """What a planted group is, by what judges call it."""
        return "filed under the wrong class" if self.agreement < MOSTLY else "a mark on right labels"

    def reason(self, verdict: Verdict) -> str:
        """Why it was decided so, in one sentence."""
        met = f"for models that trained on it it stands {self.met.z:.1f} standard deviations from its class"
        if self.unmet.error >= NOT_MEASURED:
            return f"Undecided: {met}, and judges know too little of its kind to compare it with."
        unmet = f"{self.unmet.z:.1f} for judges that did not"
        sure = f"which surely call {self.elsewhere:.0%} of it something else"
        if verdict == "planted":
            return f"Planted ({self.kind}): {met}, and {unmet}, {sure}."
        if verdict == "undecided":
            return f"Undecided: {met}, and {unmet}, {sure}: within the error of a threshold."
        return f"Natural: {met}, and {unmet}, {sure}."


def decide(evidence: Evidence, thresholds: Thresholds) -> Verdict:
    """A planted group stands apart for models that met it; for others it dissolves, or is something else.

    Within one standard error of a threshold that would change the verdict it is undecided.

    >>> apart, dissolved = Separation(13.0, 0.5), Separation(1.0, 0.2)
    >>> decide(Evidence(2, 100, apart, dissolved, 0.0, 0.9, 1), Thresholds())
    'planted'
    >>> decide(Evidence(2, 100, apart, apart, 0.0, 0.5, 1), Thresholds())
    'natural'
    """
    met, (kept, error) = evidence.met, (evidence.kept, evidence.kept_error)
    met_by, gone_by = met.z - thresholds.met, thresholds.kept - kept
    called_by = 1.0 if thresholds.right_labels else MOSTLY - evidence.agreement
    margins = ((met_by, met.error), (gone_by, error), (called_by, evidence.error_of(evidence.agreement)))
    if any(margin + error < 0.0 for margin, error in margins):
        return "natural"
    return "planted" if all(margin >= error for margin, error in margins) else "undecided"
