"""What is measured when the truth is known."""

from __future__ import annotations

from unpoison.types import BoolArray, LabelArray


def accuracy(predicted: LabelArray, labels: LabelArray) -> float:
    """Share of right predictions."""
    return float((predicted == labels).mean())


def targeted_misclassification(
    predicted_clean: LabelArray, predicted_triggered: LabelArray, *, source: int, target: int
) -> float:
    """TMR over test images of the source class: right without the trigger *and* the target with it."""
    return float(((predicted_clean == source) & (predicted_triggered == target)).mean())


def attack_success(predicted_triggered: LabelArray, *, target: int) -> float:
    """ASR: share of triggered images that are sent to the target."""
    return float((predicted_triggered == target).mean())


def found_share(keep: BoolArray, truth: BoolArray) -> float:
    """Share of the planted samples that were removed; 1 where nothing was planted."""
    return float((~keep[truth]).mean()) if truth.any() else 1.0


def lost_share(keep: BoolArray, truth: BoolArray) -> float:
    """Share of the clean samples that were removed."""
    return float((~keep[~truth]).mean())
