"""What a run decides about every sample, and on what grounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.types import BoolArray, FloatArray, LabelArray


@dataclass(frozen=True)
class Cost:
    """What the learners were asked to do, in passes of one sample through one model, and what that took."""

    trained: int = 0
    """Passes forward and backward."""
    scored: int = 0
    """Passes forward only."""
    seconds: float = field(default=0.0, compare=False)
    """Time inside the learners, added up over workers."""
    flops: float = field(default=0.0, compare=False)
    """Floating-point operations of the passes, where the learner knows them."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.trained + other.trained,
            self.scored + other.scored,
            seconds=self.seconds + other.seconds,
            flops=self.flops + other.flops,
        )


@dataclass(frozen=True)
class Group:
    """A set of samples judged together, and why it was kept or removed."""

    label: int
    """The class its members carry."""
    size: int
    removed: bool
    called: int
    """The class that models trained without the group most often call its members."""
    evidence: dict[str, float] = field(default_factory=dict)
    """Named numbers behind the judgement, such as ``met`` and ``agreement``."""
    undecided: bool = False
    """Whether it was kept only since it could not be told what it is."""
    reason: str = ""
    """Why, in one sentence, where the method gives one."""


@dataclass(frozen=True)
class VoteRecord:
    """What every voter says of every sample: the arrays have a row a voter and a column a sample."""

    voters: tuple[str, ...]
    """What each voter is, such as ``restart 1, round 2``."""
    predictions: NDArray[np.int32]
    losses: NDArray[np.float32]
    asked: BoolArray
    """False where a voter's word does not count, since it had trained on the sample."""


@dataclass(frozen=True)
class Sanitization:
    """The decision for ``n`` samples.

    ``keep`` is True for what is safe to train on; ``suspicion`` (0..1, higher is worse) ranks the samples;
    ``predicted`` is the label by vote; ``components`` has one row a restart, -1 where a sample is in none.
    """

    keep: BoolArray
    suspicion: FloatArray
    predicted: LabelArray
    components: NDArray[np.int64]
    cost: Cost = field(default_factory=Cost)
    groups: tuple[Group, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
    """Plain facts for ``run.json``; ``vote_accuracy``: the share of samples whose voted label is theirs."""
    votes: VoteRecord | None = None
    """The votes behind the decision, where the method has voters."""
    voted: BoolArray | None = None
    """What the vote alone would keep, before self-training."""

    @property
    def n_removed(self) -> int:
        """How many samples are not kept."""
        return int((~self.keep).sum())

    @property
    def removed_fraction(self) -> float:
        """Removed samples over all samples."""
        return self.n_removed / len(self.keep)
