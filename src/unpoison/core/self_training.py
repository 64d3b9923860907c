"""Self-training: a fresh model fitted to what was kept takes back the clean samples that the vote lost."""

from __future__ import annotations

import numpy as np

from unpoison.core.config import IsplSettings
from unpoison.core.learner import Learner
from unpoison.types import BoolArray, LabelArray


def recover(learner: Learner, keep: BoolArray, labels: LabelArray, *, settings: IsplSettings) -> BoolArray:
    """Train on ``keep``; every few epochs let the samples that the model agrees with replace it.

    Agreement is smoothed (momentum 0.8 in the paper) from a start of one half, and a sample is in while its
    agreement is above one half. Should nobody agree, the last set stands. What comes back is the set that the
    last epoch trained on, or that set updated once more (``self_training_returns``).
    """
    everyone = np.arange(len(labels))
    agreement = np.full(len(labels), 0.5)
    current = keep.copy()
    momentum = settings.self_training_momentum
    last = settings.self_training_updates - 1
    for number in range(settings.self_training_updates):
        if not current.any():
            break
        learner.fit(np.flatnonzero(current), epochs=settings.self_training_interval)
        if number == last and settings.self_training_returns == "trained":
            break
        agrees = learner.assess(everyone).predictions == labels
        agreement = momentum * agreement + (1.0 - momentum) * agrees
        updated = agreement > 0.5
        current = updated if updated.any() else current
    return current
