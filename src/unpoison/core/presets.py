"""Named settings: the paper's, its authors' code's, and those that follow the size of the data."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from unpoison.core.config import ExpansionSettings, GroupSettings, IsplSettings, OutOfSubsetSettings, Settings
from unpoison.errors import InputError
from unpoison.types import LabelArray

METHODS = ("ispl", "groups", "expansion", "out-of-subset")
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
NETWORKS_OUT_OF_SUBSET = OutOfSubsetSettings(
    models=12, alpha_low=0.15, alpha_high=0.5, judges=4, growth=0, epochs=10, min_steps=300
)
PLAIN_GROUPS = GroupSettings(right_labels=False, canaries=False, pairs=4)
"""Plain classifiers train in milliseconds; their small sets have no room for canaries."""


def usual_method(preset: str = "auto", *, networks: bool) -> str:
    """The method where none is named: the paper's with its settings, else ours for that kind of learner.

    >>> usual_method(networks=False)
    'out-of-subset'
    """
    if preset != "auto":
        return "ispl"
    return "expansion" if networks else "out-of-subset"


def settings_for(
    labels: LabelArray,
    *,
    method: str = "ispl",
    preset: str = "auto",
    networks: bool = False,
    wide: bool = False,
    **changes: Any,
) -> Settings:
    """The settings called ``preset`` for ``method`` on these labels, with single values changed.

    ``networks`` says that the learners are networks, trained by steps, which need more data than plain
    classifiers and take longer: ``auto`` then asks for fewer of them, on larger subsets. ``wide`` says that
    samples have more features than can be learned from a handful of them, as texts have.

    >>> settings_for(np.repeat([0, 1], 5000), preset="paper-gtsrb", restarts=1).rounds
    4
    """
    if method not in METHODS:
        raise InputError(
            f"The 'method' parameter must be one of {', '.join(METHODS)}. Got {method!r} instead."
        )
    if preset not in PRESETS:
        raise InputError(
            f"The 'settings' parameter must be one of {', '.join(PRESETS)}. Got {preset!r} instead."
        )
    if method != "ispl" and preset != "auto":
        raise InputError(
            f"The settings {preset!r} belong to the method 'ispl'. Use method 'ispl', or the settings 'auto'."
        )
    if method == "groups":
        return _changed(GroupSettings() if networks else PLAIN_GROUPS, changes)
    if method == "expansion":
        return _changed(ExpansionSettings(), changes)
    if method == "out-of-subset":
        return _changed(
            NETWORKS_OUT_OF_SUBSET if networks else auto_out_of_subset(labels, wide=wide), changes
        )
    if preset == "auto" and networks:
        return _changed(auto_ispl_for_networks(labels), changes)
    named = {
        "paper-cifar10": PAPER_CIFAR10, "paper-gtsrb": PAPER_GTSRB,
        "authors-cifar10": AUTHORS_CIFAR10, "authors-gtsrb": AUTHORS_GTSRB,
    }  # fmt: skip
    return _changed(named[preset] if preset in named else auto_ispl(labels), changes)


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


def auto_out_of_subset(labels: LabelArray, *, wide: bool = False) -> OutOfSubsetSettings:
    """Subset shares for which a class gives each model about 5 to 14 samples, never under 1% nor over 3/8.

    Of ``wide`` samples about 16 to 40 of the smallest class.
    """
    sizes = np.bincount(labels)[np.unique(labels)]
    low = float(np.clip(16.0 / sizes.min() if wide else 5.6 / np.median(sizes), 0.01, 0.15))
    return OutOfSubsetSettings(alpha_low=low, alpha_high=2.5 * low)


def _changed(settings: Settings, changes: dict[str, Any]) -> Settings:
    known = {field.name for field in fields(settings)}
    unknown = sorted(set(changes) - known)
    if unknown:
        raise InputError(
            f"The method {settings.method!r} has no setting {unknown[0]!r}; it has {', '.join(sorted(known))}"
        )
    return replace(settings, **changes)
