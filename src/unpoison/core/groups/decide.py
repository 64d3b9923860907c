"""Decide: what was measured of a group goes in; planted, natural or undecided comes out."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt
from typing import Literal, TypeAlias

from unpoison.core.groups.separation import NOT_MEASURED, TINY, Separation

Verdict: TypeAlias = Literal["planted", "natural", "undecided"]


@dataclass(frozen=True)
class Thresholds:
    """The two numbers that decide."""

    met: float = 6.0
    """A planted group stands apart by so many standard deviations, or more, for models that trained on it;"""
    kept: float = 0.2
    """judges, which met nothing like it, see at most this part of that distance, or at most as large a part
    as the part of the group that they surely call something else."""


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
        """How much of its distance the group keeps for judges."""
        return self.unmet.z / max(self.met.z, TINY)

    @property
    def kept_error(self) -> float:
        """Standard error of ``kept``."""
        return hypot(self.unmet.error, self.kept * self.met.error) / max(self.met.z, TINY)

    @property
    def elsewhere_error(self) -> float:
        """Standard error of ``elsewhere``, a share of so many; never that of none or all."""
        share = (self.elsewhere * self.size + 1.0) / (self.size + 2.0)
        return sqrt(share * (1.0 - share) / self.size)

    @property
    def kind(self) -> str:
        """What a planted group is, by what judges call it."""
        return "filed under the wrong class" if self.agreement < 0.5 else "a mark on right labels"

    def beyond(self, thresholds: Thresholds) -> tuple[float, float]:
        """By how much it keeps more than a planted group does, and the standard error of that."""
        if self.elsewhere > thresholds.kept:
            return self.kept - self.elsewhere, hypot(self.kept_error, self.elsewhere_error)
        return self.kept - thresholds.kept, self.kept_error

    def reason(self, verdict: Verdict) -> str:
        """Why it was decided so, in one sentence."""
        met = f"for models that trained on it it stands {self.met.z:.1f} standard deviations from its class"
        if self.unmet.error >= NOT_MEASURED:
            return f"Undecided: {met}, and judges know nothing that they call the same, to compare it with."
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
    met, (beyond, error) = evidence.met, evidence.beyond(thresholds)
    if met.z - met.error >= thresholds.met and beyond + error <= 0.0:
        return "planted"
    if met.z + met.error < thresholds.met or beyond - error > 0.0:
        return "natural"
    return "undecided"
