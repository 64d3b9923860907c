"""Inverse self-paced learning: one round finds one component (Algorithm 1)."""

from __future__ import annotations

import numpy as np

from unpoison.core.config import IsplSettings
from unpoison.core.learner import Learner
from unpoison.core.sampling import sample_binomial, sample_per_class
from unpoison.core.trimming import beta_schedule, smooth_losses, target_fraction, trim
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray


def find_component(
    learner: Learner,
    active: IndexArray,
    labels: LabelArray,
    *,
    settings: IsplSettings,
    round_number: int,
    seeds: Seeds,
) -> IndexArray:
    """The subset of ``active`` (S in the paper) that this round settles on, in ascending order.

    ``learner`` is fresh; it is trained on from iteration to iteration. The result is empty only where every
    loss is NaN or infinite.
    """
    p = target_fraction(len(labels), len(active), rounds=settings.rounds, coverage=settings.coverage)
    losses = np.zeros(len(active))
    current = active
    for t, beta in enumerate(beta_schedule(p, start=settings.beta_from)):
        subset = _training_subset(current, labels, settings, t, round_number, seeds.stream("sample", t))
        learner.fit(
            subset,
            epochs=settings.first_epochs if t == 0 else settings.epochs,
            min_steps=settings.min_steps * (2 if t == 0 else 1),
            final=settings.annealing,
        )
        losses = smooth_losses(losses, learner.assess(active).losses, momentum=settings.momentum)
        floor_base = p if settings.class_floor_of == "target" else beta
        chosen = trim(
            losses,
            labels[active],
            beta=beta,
            class_share=settings.class_floor * floor_base,
            rng=seeds.stream("trim", t),
        )
        current = active[chosen]
        if len(current) == 0:
            break
    return current


def _training_subset(
    current: IndexArray,
    labels: LabelArray,
    settings: IsplSettings,
    t: int,
    round_number: int,
    rng: np.random.Generator,
) -> IndexArray:
    if t == 0 and settings.first_training == "half-then-all":
        return sample_binomial(current, alpha=0.5, rng=rng) if round_number == 0 else current
    if settings.sampling == "binomial":
        return sample_binomial(current, alpha=settings.alpha, rng=rng)
    return sample_per_class(current, labels, alpha=settings.alpha, rng=rng)
