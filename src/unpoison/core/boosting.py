"""The votes: which components (Algorithm 2) and which samples are kept, and how suspicious each one is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.core.sampling import class_members
from unpoison.core.trimming import lowest, worst_unless_finite
from unpoison.types import BoolArray, FloatArray, IndexArray, LabelArray

TALLY_CELLS = 50_000_000
"""Votes are counted in blocks of at most this many samples times classes, to bound memory."""


def component_votes(
    predictions: NDArray[np.integer], components: list[IndexArray], labels: LabelArray
) -> BoolArray:
    """Algorithm 2: True for each component that voters holding more than half of the samples get right.

    Row ``i`` of ``predictions`` is what the model trained on ``components[i]`` says of every sample. A vote
    weighs as much as the voter's component, and goes to the components on which its zero-one loss is under
    one half.
    """
    sizes = np.array([len(component) for component in components])
    supported = np.zeros(len(components))
    for voter, row in enumerate(predictions):
        for k, component in enumerate(components):
            if np.count_nonzero(row[component] != labels[component]) < sizes[k] / 2:
                supported[k] += sizes[voter]
    result: BoolArray = supported > sizes.sum() / 2
    return result


def count_votes(
    predictions: NDArray[np.integer],
    labels: LabelArray,
    *,
    n_classes: int,
    rng: np.random.Generator,
    asked: BoolArray | None = None,
) -> tuple[LabelArray, NDArray[np.int32]]:
    """The modal label of each sample, and how many voters give it its own.

    ``asked`` (voters by samples) says whose vote counts; everyone's if not given. Works in blocks of samples.
    """
    n = len(labels)
    modal = np.zeros(n, dtype=np.int64)
    own_votes = np.zeros(n, dtype=np.int32)
    block = max(1, TALLY_CELLS // n_classes)
    for start in range(0, n, block):
        part = slice(start, start + block)
        counts = tally(
            predictions[:, part], n_classes=n_classes, asked=None if asked is None else asked[:, part]
        )
        modal[part] = modal_votes(counts, rng=rng)
        own_votes[part] = counts[np.arange(len(counts)), labels[part]]
    return modal, own_votes


def tally(
    predictions: NDArray[np.integer], *, n_classes: int, asked: BoolArray | None = None
) -> NDArray[np.int32]:
    """How many of the voters (rows) give each sample (columns) each label: shape ``(n, n_classes)``."""
    n_samples = predictions.shape[1]
    counts = np.zeros((n_samples, n_classes), dtype=np.int32)
    everyone = np.arange(n_samples)
    for voter, row in enumerate(predictions):
        voted_on = everyone if asked is None else np.flatnonzero(asked[voter])
        counts[voted_on, row[voted_on]] += 1
    return counts


def modal_votes(counts: NDArray[np.int32], *, rng: np.random.Generator) -> LabelArray:
    """The label with the most votes for each sample; ties are drawn at random."""
    best: LabelArray = counts.argmax(axis=1)
    top = counts.max(axis=1)
    tied = np.flatnonzero((counts == top[:, None]).sum(axis=1) > 1)
    if len(tied):
        lottery = np.where(counts[tied] == top[tied, None], rng.random((len(tied), counts.shape[1])), -1.0)
        best[tied] = lottery.argmax(axis=1)
    return best


def lower_half_of_class(losses: FloatArray, labels: LabelArray, *, rng: np.random.Generator) -> BoolArray:
    """True for the half of each class (rounded down) with the lowest loss, if it is finite."""
    chosen = np.zeros(len(labels), dtype=np.bool_)
    for members in class_members(labels):
        chosen[members[lowest(losses[members], len(members) // 2, rng=rng)]] = True
    return chosen


def keep_by_mode_or_lower_half(
    modal: LabelArray, losses: FloatArray, labels: LabelArray, *, rng: np.random.Generator
) -> BoolArray:
    """The paper's rule: the modal vote is the label, or the loss is in the lower half of the class."""
    result: BoolArray = (modal == labels) | lower_half_of_class(losses, labels, rng=rng)
    return result


def keep_by_two_votes(modal: LabelArray, own_votes: NDArray[np.int32], labels: LabelArray) -> BoolArray:
    """The authors' code: the modal vote is the label and it has more than one vote."""
    result: BoolArray = (modal == labels) & (own_votes > 1)
    return result


def suspicion_from_losses(losses: NDArray[np.floating], *, asked: BoolArray | None = None) -> FloatArray:
    """Mean probability that the voters (rows) give to any label but the sample's own: 0 trusted, 1 worst.

    It joins how many voters are against the label with how sure they are. A loss that is not finite counts
    as certain. ``asked`` (voters by samples) says whose word counts; 0 where nobody was asked.
    """
    total = np.zeros(losses.shape[1])
    for voter, row in enumerate(losses):
        against = 1.0 - np.exp(-worst_unless_finite(row))
        total += against if asked is None else np.where(asked[voter], against, 0.0)
    n_voters = len(losses) if asked is None else np.maximum(asked.sum(axis=0), 1)
    return np.clip(total / n_voters, 0.0, 1.0)
