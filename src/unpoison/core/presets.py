"""Named settings: the paper's, its authors' code's, and those that follow the size of the data."""

from __future__ import annotations

from dataclasses import fields, replace
from math import sqrt
from typing import Any

import numpy as np

from unpoison.core.config import GroupSettings, IsplSettings, Settings
from unpoison.errors import InputError
from unpoison.types import LabelArray

METHODS = ("ispl", "groups")
REPLACED = ("expansion", "out-of-subset")
"""Methods of earlier versions, in whose place ``groups`` is now."""
REPLACED_SETTINGS = (
    "above_usual", "agreement", "alpha_high", "alpha_low", "axes", "belonging", "disputed", "errors", "far",
    "further_epochs", "further_epochs_if_known", "growth", "judges", "known", "models", "own", "own_if_far",
    "samples_per_axis", "separation", "sharpness",
)  # fmt: skip
"""Settings that only those had."""
PRESETS = ("auto", "paper-cifar10", "paper-gtsrb", "authors-cifar10", "authors-gtsrb")

PAPER_CIFAR10 = IsplSettings()
PAPER_GTSRB = IsplSettings(rounds=4, alpha=0.5, self_training=False)
AUTHORS_CIFAR10 = IsplSettings(
    class_floor_of="current", sampling="binomial", first_training="half-then-all", beta_from="fits",
    keep_rule="two-votes", self_training_returns="updated",
)  # fmt: skip
AUTHORS_GTSRB = replace(AUTHORS_CIFAR10, rounds=4, alpha=0.5, self_training=False)
LARGE_CLASS = 500
"""From this size of the smallest class on, the paper's settings for CIFAR-10; below, those for GTSRB. The
paper uses the former on Imagenette too, whose smallest class has 858; GTSRB's has 150."""
PLAIN_GROUPS = GroupSettings(right_labels=False, canaries=False, pairs=4)
"""Plain classifiers train in milliseconds; their small sets have no room for canaries."""


EFFORTS = {"quick": 6, "standard": 12, "thorough": 24}
"""Passes over everything by effort, at ``FULL_SIZE`` samples or more."""
USUAL_EFFORT = "standard"
FULL_SIZE = 25_000
MOST_FOR_SIZE = 4.0
"""Smaller sets get more passes, since a training takes steps: at most so many times as many."""
JUDGE_PART = 3
"""Judges have this part of the passes: they train on halves, and need not know single samples."""


def usual_method(preset: str = "auto") -> str:
    """The method where none is named: the paper's with its settings, else ours.

    >>> usual_method(), usual_method("paper-gtsrb")
    ('groups', 'ispl')
    """
    return "groups" if preset == "auto" else "ispl"


def check_method(method: str) -> None:
    """Refuse what is no method, and say what took the place of one that was."""
    if method in REPLACED:
        raise InputError(f"The method {method!r} was replaced by 'groups'. Use method 'groups'.")
    if method not in METHODS:
        raise InputError(
            f"The 'method' parameter must be one of {', '.join(METHODS)}. Got {method!r} instead."
        )


def settings_for(
    labels: LabelArray,
    *,
    method: str = "ispl",
    preset: str = "auto",
    networks: bool = False,
    effort: str | None = None,
    **changes: Any,
) -> Settings:
    """The settings called ``preset`` for ``method`` on these labels, with single values changed.

    ``networks`` says that the learners are networks, which take longer to train than plain classifiers.
    ``effort`` says how long ``groups`` may train them: ``quick``, ``standard`` (None) or ``thorough``.

    >>> settings_for(np.repeat([0, 1], 5000), preset="paper-gtsrb", restarts=1).rounds
    4
    """
    check_method(method)
    if preset not in PRESETS:
        raise InputError(
            f"The 'settings' parameter must be one of {', '.join(PRESETS)}. Got {preset!r} instead."
        )
    if method != "ispl" and preset != "auto":
        raise InputError(
            f"The settings {preset!r} belong to the method 'ispl'. Use method 'ispl', or the settings 'auto'."
        )
    _check_effort(effort, method)
    if method == "groups":
        by_effort = groups_for_networks(len(labels), effort=effort or USUAL_EFFORT)
        return _changed(by_effort if networks else PLAIN_GROUPS, changes)
    if preset == "auto" and networks:
        return _changed(auto_ispl_for_networks(labels), changes)
    named = {
        "paper-cifar10": PAPER_CIFAR10, "paper-gtsrb": PAPER_GTSRB,
        "authors-cifar10": AUTHORS_CIFAR10, "authors-gtsrb": AUTHORS_GTSRB,
    }  # fmt: skip
    return _changed(named[preset] if preset in named else auto_ispl(labels), changes)


def _check_effort(effort: str | None, method: str) -> None:
    if effort is None:
        return
    if effort not in EFFORTS:
        raise InputError(f"The effort must be one of {', '.join(EFFORTS)}. Got {effort!r} instead.")
    if method != "groups":
        raise InputError(
            f"The effort {effort!r} belongs to the method 'groups': {method!r} trains as its settings say. "
            "Leave the effort out, or use method 'groups'."
        )


def groups_for_networks(n_samples: int, *, effort: str = USUAL_EFFORT) -> GroupSettings:
    """Passes by effort and size, and for ``thorough`` twice as many judges.

    >>> groups_for_networks(50_000).epochs, groups_for_networks(6_250).epochs
    (12, 24)
    """
    more = float(np.clip(sqrt(FULL_SIZE / n_samples), 1.0, MOST_FOR_SIZE))
    passes = round(EFFORTS[effort] * more)
    return GroupSettings(
        epochs=passes,
        judge_epochs=max(1, round(passes / JUDGE_PART)),
        pairs=2 if effort == "thorough" else 1,
    )


def auto_ispl(labels: LabelArray) -> IsplSettings:
    """Rounds, alpha and training steps that fit the data.

    A component should hold a few dozen samples of the smallest class, as in the paper (8 rounds where a class
    has thousands, 4 where the smallest has 150); alpha is 1/2 where classes are small, as the paper does on
    GTSRB. Steps have a floor, since forty epochs over a hundred samples are not training.
    """
    smallest = _smallest_class(labels)
    return IsplSettings(
        rounds=int(np.clip(smallest // 36, 2, 8)),
        alpha=0.25 if smallest >= 1000 else 0.5,
        min_steps=100,
        weak_min_steps=800,
    )


def auto_ispl_for_networks(labels: LabelArray) -> IsplSettings:
    """The paper's settings, for CIFAR-10 or GTSRB by the size of the classes, with a floor under the steps.

    The floor matters only for sets much smaller than the paper's, where forty epochs over a hundred samples
    are no training.
    """
    paper = PAPER_CIFAR10 if _smallest_class(labels) >= LARGE_CLASS else PAPER_GTSRB
    return replace(paper, min_steps=40, weak_min_steps=400)


def _smallest_class(labels: LabelArray) -> int:
    return int(np.bincount(labels)[np.unique(labels)].min())


def _changed(settings: Settings, changes: dict[str, Any]) -> Settings:
    known = {field.name for field in fields(settings)}
    unknown = sorted(set(changes) - known)
    if unknown and unknown[0] in REPLACED_SETTINGS:
        raise InputError(
            f"The setting {unknown[0]!r} went with the methods {' and '.join(REPLACED)}, which were replaced "
            f"by 'groups'. The method {settings.method!r} has {', '.join(sorted(known))}"
        )
    if unknown:
        raise InputError(
            f"The method {settings.method!r} has no setting {unknown[0]!r}; it has {', '.join(sorted(known))}"
        )
    return replace(settings, **changes)
