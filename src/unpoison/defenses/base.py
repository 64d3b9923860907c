"""What every defense is: labels and models in, a decision about each sample out. Never the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.core.learner import LearnerFactory
from unpoison.core.result import Cost, Group
from unpoison.core.tasks import Runner, run_serially
from unpoison.errors import InputError
from unpoison.events import Listener, ignore
from unpoison.types import BoolArray, FloatArray, LabelArray


@dataclass(frozen=True)
class Decision:
    """What a defense says of ``n`` samples."""

    keep: BoolArray
    """True for what is to be trained on."""
    suspicion: FloatArray
    """0..1, higher is worse; comparable within one decision, not between defenses."""
    cost: Cost = field(default_factory=Cost)
    components: NDArray[np.int64] | None = None
    """The groups that samples were put into, one row a clustering, -1 where a sample is in none."""
    groups: tuple[Group, ...] = ()
    """What was judged together, in the order of the only row of ``components``, which counts them from 1."""
    voted: BoolArray | None = None
    """What would be kept without the last step, self-training, where a defense has one."""
    canaries: tuple[dict[str, int], ...] = ()
    """Of groups that the defense planted itself: label, size, and how many it found."""

    @property
    def n_removed(self) -> int:
        """How many samples are not kept."""
        return int((~self.keep).sum())

    @property
    def removed_fraction(self) -> float:
        """Removed samples over all samples."""
        return self.n_removed / len(self.keep)


class Defense(Protocol):
    """Decides which samples of a training set to keep. Its settings are its fields."""

    name: ClassVar[str]

    def judge(
        self,
        labels: LabelArray,
        factory: LearnerFactory,
        *,
        seed: int,
        runner: Runner = run_serially,
        listener: Listener = ignore,
    ) -> Decision:
        """The decision; the same arguments give the same, whatever the runner."""
        ...


def relative_suspicion(scores: FloatArray, *, border: float) -> FloatArray:
    """Scores from 0 on as a suspicion in 0..1 that is one half at ``border``, where removal begins.

    Groups with borders of their own become comparable: what counts is how far beyond its border a sample is.

    >>> relative_suspicion(np.array([0.0, 1.0, 3.0, np.inf]), border=1.0).tolist()
    [0.0, 0.5, 0.75, 1.0]
    """
    total = scores + border
    with np.errstate(invalid="ignore"):
        shares = scores / np.where(total > 0.0, total, 1.0)
    result: FloatArray = np.where(np.isfinite(scores), shares, 1.0)
    return result


def check_epsilon(epsilon: float, *, below: float) -> None:
    """Refuse what cannot be the poisoned share of a class, such as a percentage."""
    if not isinstance(epsilon, int | float) or not 0.0 <= epsilon < below:
        raise InputError(
            f"The 'epsilon' parameter must be the poisoned share of a class, in [0, {below:.3g}). "
            f"Got {epsilon!r} instead."
        )
