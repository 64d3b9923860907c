from __future__ import annotations

import numpy as np
import pytest

from unpoison.evaluation.metrics import (
    accuracy,
    attack_success,
    auc,
    by_component,
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


def test_by_component_counts_those_in_none_last() -> None:
    component = labels(0, 2, -1, 2, -1, 0)
    assert by_component(component, mask("xxxx.."), n_components=3) == [1, 0, 2, 1]
    assert by_component(component, mask("......"), n_components=3) == [0, 0, 0, 0]


def test_targeted_misclassification_counts_only_what_was_right_before() -> None:
    clean = labels(1, 1, 5, 7, 1)
    triggered = labels(7, 1, 7, 7, 3)
    # the first alone: the second resists, the third and fourth were wrong anyway, the fifth goes elsewhere
    assert targeted_misclassification(clean, triggered, labels=labels(*[1] * 5), goal=labels(*[7] * 5)) == 0.2


def test_attack_success_does_not_ask_what_was_before() -> None:
    assert attack_success(labels(7, 1, 7, 7, 3), goal=labels(*[7] * 5)) == 0.6


def test_each_sample_has_a_goal_of_its_own() -> None:
    clean, triggered = labels(0, 1, 2), labels(1, 2, 0)
    assert targeted_misclassification(clean, triggered, labels=clean, goal=labels(1, 2, 3)) == 2 / 3
    assert attack_success(triggered, goal=labels(1, 2, 3)) == 2 / 3


def test_nobody_attacked_is_nobody_hit() -> None:
    assert targeted_misclassification(labels(), labels(), labels=labels(), goal=labels()) == 0.0
    assert attack_success(labels(), goal=labels()) == 0.0


def test_auc_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    truth = rng.random(200) < 0.2
    suspicion = np.round(rng.normal(size=200) + truth, 1)  # with ties
    assert auc(suspicion, truth) == pytest.approx(roc_auc_score(truth, suspicion))
    assert auc(suspicion, np.zeros(200, dtype=np.bool_)) is None


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
