from __future__ import annotations

import numpy as np
import pytest

from unpoison.evaluation.metrics import (
    accuracy,
    attack_success,
    found_share,
    lost_share,
    targeted_misclassification,
)


def labels(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def mask(text: str) -> np.ndarray:
    return np.array([character == "x" for character in text], dtype=np.bool_)


def test_accuracy() -> None:
    assert accuracy(labels(1, 2, 3, 3), labels(1, 2, 3, 4)) == 0.75


def test_targeted_misclassification_counts_only_what_was_right_before() -> None:
    clean = labels(1, 1, 5, 7, 1)
    triggered = labels(7, 1, 7, 7, 3)
    # the first alone: the second resists, the third and fourth were wrong anyway, the fifth goes elsewhere
    assert targeted_misclassification(clean, triggered, source=1, target=7) == 0.2


def test_attack_success_does_not_ask_what_was_before() -> None:
    assert attack_success(labels(7, 1, 7, 7, 3), target=7) == 0.6


@pytest.mark.parametrize(
    ("keep", "truth", "found", "lost"),
    [
        ("xx..", "..xx", 1.0, 0.0),
        ("xxxx", "..xx", 0.0, 0.0),
        ("x.x.", "..xx", 0.5, 0.5),
        ("....", "..xx", 1.0, 1.0),
        ("xxx.", "....", 1.0, 0.25),
    ],
)
def test_found_and_lost(keep: str, truth: str, found: float, lost: float) -> None:
    assert found_share(mask(keep), mask(truth)) == found
    assert lost_share(mask(keep), mask(truth)) == lost


@pytest.mark.parametrize("value", [accuracy(labels(1), labels(1)), found_share(mask("x"), mask("x"))])
def test_plain_floats(value: object) -> None:
    assert type(value) is float
