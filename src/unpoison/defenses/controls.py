"""Controls: what results would look like without a defense, by chance, or by a mask from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unpoison.core.config import check_counts
from unpoison.core.learner import LearnerFactory
from unpoison.core.tasks import Runner, run_serially
from unpoison.defenses.base import Decision
from unpoison.errors import InputError
from unpoison.events import Listener, ignore
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, LabelArray


@dataclass(frozen=True)
class Nothing:
    """No defense: keeps everything."""

    name: ClassVar[str] = "nothing"

    def judge(
        self,
        labels: LabelArray,
        factory: LearnerFactory,  # noqa: ARG002 - no model is asked
        *,
        seed: int,  # noqa: ARG002
        runner: Runner = run_serially,  # noqa: ARG002
        listener: Listener = ignore,  # noqa: ARG002
    ) -> Decision:
        """All kept, nothing suspected."""
        return Decision(np.ones(len(labels), dtype=np.bool_), np.zeros(len(labels)))


@dataclass(frozen=True)
class RandomFilter:
    """Removes ``n_removed`` samples at random: what a defense must beat that removes as many."""

    name: ClassVar[str] = "random"

    n_removed: int

    def __post_init__(self) -> None:
        check_counts(self, "n_removed", least=0)

    @classmethod
    def like(cls, decision: Decision) -> RandomFilter:
        """As many as ``decision`` removes."""
        return cls(decision.n_removed)

    def judge(
        self,
        labels: LabelArray,
        factory: LearnerFactory,  # noqa: ARG002 - no model is asked
        *,
        seed: int,
        runner: Runner = run_serially,  # noqa: ARG002
        listener: Listener = ignore,  # noqa: ARG002
    ) -> Decision:
        """Suspicion is an order drawn at random; its upper end is removed."""
        n = len(labels)
        if self.n_removed > n:
            raise InputError(
                f"The 'n_removed' parameter of RandomFilter must be at most the number of samples, {n}. "
                f"Got {self.n_removed} instead."
            )
        rank = Seeds(seed).within(self.name).stream("order").permutation(n)
        return Decision(rank < n - self.n_removed, rank / max(1, n - 1))


@dataclass(frozen=True, eq=False)
class Given:
    """Decides as it was told to: ``evaluation`` makes the perfect filter of it, knowing the truth."""

    name: ClassVar[str] = "given"

    keep: BoolArray

    def __post_init__(self) -> None:
        if self.keep.ndim != 1 or self.keep.dtype != np.bool_:
            raise InputError(
                "The 'keep' parameter of Given must be one truth value a sample. "
                f"Got {self.keep.dtype} of shape {self.keep.shape} instead."
            )

    def judge(
        self,
        labels: LabelArray,
        factory: LearnerFactory,  # noqa: ARG002 - no model is asked
        *,
        seed: int,  # noqa: ARG002
        runner: Runner = run_serially,  # noqa: ARG002
        listener: Listener = ignore,  # noqa: ARG002
    ) -> Decision:
        """The mask; what it removes is suspected fully."""
        if len(self.keep) != len(labels):
            raise InputError(
                f"The 'keep' parameter of Given is for {len(self.keep)} samples, but there are {len(labels)}."
            )
        return Decision(self.keep.copy(), (~self.keep).astype(np.float64))
