"""What the method needs from a model: train on these samples, say how well those are explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from unpoison.core.result import Cost
from unpoison.errors import InputError
from unpoison.types import FloatArray, IndexArray, LabelArray


@dataclass(frozen=True)
class Assessment:
    """What a model says about some samples, in the order they were asked for."""

    losses: FloatArray
    """Cross-entropy of each sample's own label, natural logarithm; NaN and infinity count as the worst."""
    predictions: LabelArray
    """The label the model would give."""
    confidences: FloatArray
    """The probability it gives to that label."""


class Learner(Protocol):
    """A model over a fixed dataset, addressed by sample positions only."""

    @property
    def cost(self) -> Cost:
        """What was spent so far."""
        ...

    def fit(self, indices: IndexArray, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        """Train on for ``epochs`` passes over ``indices``, from where the last call stopped.

        Never fewer than ``min_steps`` optimiser steps: small subsets are not starved. A learner that cannot
        continue (a random forest, say) refits from scratch instead. ``final`` says that this training is
        complete: a learner with a learning-rate schedule brings it to its end within this call, and begins it
        anew if another call follows.
        """
        ...

    def assess(self, indices: IndexArray) -> Assessment:
        """Losses and predictions for ``indices``."""
        ...


class LearnerFactory(Protocol):
    """Makes a fresh, untrained learner. Must be picklable to run on worker processes."""

    def __call__(self, seed: int) -> Learner:
        """A learner whose every random choice follows from ``seed``."""
        ...


def embedding_of(learner: Learner) -> Callable[[IndexArray], FloatArray]:
    """The learner's ``embed``: what it sees in samples, a row of numbers each, before it names a class.

    Not every learner has one: the last hidden layer of a network, the scores of a plain classifier.
    """
    embed = method_of(
        learner,
        "embed",
        needed="The method 'groups' looks at what models see",
        instead="another method, or another learner",
    )
    return cast("Callable[[IndexArray], FloatArray]", embed)


def look_of(learner: Learner) -> Callable[[IndexArray], tuple[Assessment, FloatArray]]:
    """What the learner says of samples and what it sees in them, in one pass where it can do both at once."""
    at_once = getattr(learner, "look", None)
    if at_once is not None:
        return cast("Callable[[IndexArray], tuple[Assessment, FloatArray]]", at_once)
    embed = embedding_of(learner)
    return lambda indices: (learner.assess(indices), embed(indices))


def method_of(learner: Learner, name: str, *, needed: str, instead: str) -> Any:
    """A method that not every learner has. ``needed`` says who asks, ``instead`` what to use without it."""
    method = getattr(learner, name, None)
    if method is None:
        raise InputError(f"{needed}, and {type(learner).__name__} has no method {name!r}. Use {instead}.")
    return method


def check_finite(values: FloatArray, what: str) -> None:
    """Refuse what a model shows of itself after a training that went wrong; ``what`` begins the sentence."""
    if not np.isfinite(values).all():
        raise InputError(
            f"{what} not finite: its training diverged. Use a lower learning rate or another recipe."
        )
