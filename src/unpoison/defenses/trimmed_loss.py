"""Iterative Trimmed Loss Minimization (Shen and Sanghavi, 2019): train, keep what is learned best, again."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from unpoison.core.config import check_counts, check_shares
from unpoison.core.learner import LearnerFactory
from unpoison.core.tasks import FitTask, Runner, Workshop, run_serially
from unpoison.core.trimming import lowest, worst_unless_finite
from unpoison.defenses.base import Decision, check_epsilon, relative_suspicion
from unpoison.errors import InputError
from unpoison.events import Listener, ignore
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, FloatArray, LabelArray


@dataclass(frozen=True)
class TrimmedLoss:
    """Keeps the ``alpha`` share of all samples that has the lowest losses, and trains a fresh model on it.

    The first model is trained on everything; every model judges all samples, also those it did not see. What
    the last one explains best is kept. The share is one of all samples, not of each class, rounded down.

    Its epochs are those of its authors, whatever the final model has: the paper's tables of 200 epochs change
    "the final model" alone.
    """

    name: ClassVar[str] = "trimmed-loss"

    alpha: float = 0.98
    """Kept of all samples (appendix: 98% for epsilon 5%; see ``for_epsilon``)."""
    _: KW_ONLY
    first_epochs: int = 80
    """Epochs of the first model (appendix)."""
    later_epochs: int = 40
    """Epochs of each later one (appendix)."""
    rounds: int = 5
    """Models trained in all. The appendix says "several"; five is our choice."""
    min_steps: int = 0

    def __post_init__(self) -> None:
        check_shares(self, "alpha", low_open=True)
        check_counts(self, "first_epochs", "later_epochs", "rounds", least=1)
        check_counts(self, "min_steps", least=0)

    @classmethod
    def for_epsilon(
        cls,
        epsilon: float,
        *,
        first_epochs: int = 80,
        later_epochs: int = 40,
        rounds: int = 5,
        min_steps: int = 0,
    ) -> TrimmedLoss:
        """alpha falls linearly with the poisoned share of a class, as in the appendix.

        >>> [TrimmedLoss.for_epsilon(epsilon).alpha for epsilon in (0.05, 0.1, 0.2)]
        [0.98, 0.96, 0.92]
        """
        check_epsilon(epsilon, below=1.0)
        return cls(
            round(1.0 - 0.4 * epsilon, 12),
            first_epochs=first_epochs,
            later_epochs=later_epochs,
            rounds=rounds,
            min_steps=min_steps,
        )

    def judge(
        self,
        labels: LabelArray,
        factory: LearnerFactory,
        *,
        seed: int,
        runner: Runner = run_serially,
        listener: Listener = ignore,
    ) -> Decision:
        """Rounds are a chain: each model is trained on what the last one keeps."""
        n, seeds = len(labels), Seeds(seed).within(self.name)
        workshop = Workshop(runner=runner, listener=listener)
        workshop.begin("rounds", self.rounds)
        keep, losses = np.ones(n, dtype=np.bool_), np.zeros(n)
        for number in range(self.rounds):
            epochs = self.later_epochs if number else self.first_epochs
            name, chosen = f"round-{number}", np.flatnonzero(keep)
            model_seed = seeds.within("round", number).integer("learner")
            task = FitTask(factory, n, chosen, epochs, self.min_steps, model_seed)
            losses = workshop.run({name: task})[name]["losses"].astype(np.float64)
            keep = self._best(losses, rng=seeds.stream("round", number, "ties"))
        border = float(losses[keep].max())
        return Decision(keep, relative_suspicion(worst_unless_finite(losses), border=border), workshop.cost)

    def _best(self, losses: FloatArray, *, rng: np.random.Generator) -> BoolArray:
        count = max(1, int(self.alpha * len(losses) + 1e-9))
        keep = lowest(losses, count, rng=rng)
        if not keep.any():
            raise InputError("Every loss was NaN or infinite: the learner cannot be trained on this data.")
        return keep
