"""Frozen, validated settings. Each names its symbol in the paper and where the paper states it.

The sections meant are 2 (clustering), 3 (defense) and the appendix "Defense Setups and Hyperparameters" (H).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, ClassVar, Literal, TypeAlias

from unpoison.errors import InputError

KeepRule: TypeAlias = Literal["mode-or-lower-half", "two-votes", "component"]


@dataclass(frozen=True)
class _MethodSettings:
    """What the settings of all methods have."""

    method: ClassVar[str]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for files."""
        return {"method": self.method, **asdict(self)}


@dataclass(frozen=True)
class IsplSettings(_MethodSettings):
    """ISPL and boosting. The defaults are the paper's for CIFAR-10."""

    method: ClassVar[str] = "ispl"

    rounds: int = 8
    """Components a restart looks for (H: 8 on CIFAR-10, 4 on GTSRB)."""
    restarts: int = 3
    """Independent runs of ISPL whose weak learners vote together (H)."""
    alpha: float = 0.25
    """alpha, the expansion factor: the share of each class that a model is trained on (2.2, H)."""
    momentum: float = 0.9
    """eta, the smoothing of losses between iterations (Algorithm 1, H)."""
    coverage: float = 0.96
    """The share of all samples that the components of one restart hold together (H: 8 times 12%)."""
    class_floor: float = 0.125
    """The lowest-loss share of each class that Trim always takes, times what ``class_floor_of`` says (H)."""
    class_floor_of: Literal["target", "current"] = "target"
    """``target``: the floor is class_floor * p (H). ``current``: class_floor * beta_t (the authors' code)."""
    sampling: Literal["per-class", "binomial"] = "per-class"
    """How Sample draws its alpha share (2.2: per class; the authors' code: binomial over all)."""
    first_training: Literal["sample", "half-then-all"] = "sample"
    """What a round trains on first: Sample(S, alpha); or half in round 1, then all (the authors' code)."""
    beta_from: Literal["3p", "fits"] = "3p"
    """Where beta starts: at 3p, cut off at 1 (H); or at the largest of 3p, 2p, p that fits (authors' code).
    They differ once 3p exceeds 1: in rounds 7 and 8 of 8, and 3 and 4 of 4."""
    first_epochs: int = 8
    """Epochs of the first iteration, the warm-up (H)."""
    epochs: int = 4
    """Epochs of each later iteration (H)."""
    annealing: bool = False
    """Whether every iteration brings its learning rate to an end, for learners with a schedule (H: no)."""
    weak_epochs: int = 40
    """Epochs of a weak learner on its component (H)."""
    weak_annealing: bool = False
    """Whether a weak learner brings its learning rate to an end (H gives a schedule for the final dataset
    only; in the authors' code the rate first falls at epoch 75 or later, which a weak learner never sees)."""
    min_steps: int = 0
    """Fewest optimiser steps an iteration (twice that in the first); 0 leaves it to the epochs."""
    weak_min_steps: int = 0
    """Fewest optimiser steps of a weak learner."""
    weak_start: Literal["fresh", "component"] = "fresh"
    """Weak learners start anew (3.3), or where the model that found their component stopped."""
    voters: Literal["all", "outsiders"] = "all"
    """Who votes on a sample: every weak learner (H), or those that did not train on it."""
    keep_rule: KeepRule = "mode-or-lower-half"
    """The per-sample vote of the paper (H), that of the authors' code, or Algorithm 2 (components, 3.3)."""
    self_training: bool = True
    """Whether to end with self-training (H: yes on CIFAR-10, no on GTSRB)."""
    self_training_updates: int = 20
    """How often self-training updates its training set (H: 100 epochs, every 5)."""
    self_training_interval: int = 5
    """Epochs between two updates (H)."""
    self_training_momentum: float = 0.8
    """Smoothing of the agreement between model and label (H)."""
    self_training_returns: Literal["trained", "updated"] = "trained"
    """What self-training gives back: what its last epoch trained on (H), or that set updated once more (the
    authors' code)."""

    def __post_init__(self) -> None:
        check_counts(
            self, "rounds", "restarts", "first_epochs", "epochs", "weak_epochs", "self_training_updates",
            "self_training_interval", least=1,
        )  # fmt: skip
        check_counts(self, "min_steps", "weak_min_steps", least=0)
        check_shares(self, "alpha", "coverage", low_open=True)
        check_shares(self, "class_floor")
        check_shares(self, "momentum", "self_training_momentum", high_open=True)
        check_choice(self, "class_floor_of", ("target", "current"))
        check_choice(self, "sampling", ("per-class", "binomial"))
        check_choice(self, "first_training", ("sample", "half-then-all"))
        check_choice(self, "beta_from", ("3p", "fits"))
        check_choice(self, "self_training_returns", ("trained", "updated"))
        check_choice(self, "weak_start", ("fresh", "component"))
        check_choice(self, "voters", ("all", "outsiders"))
        if self.voters == "outsiders" and self.rounds * self.restarts < 2:
            raise InputError(
                "The 'voters' parameter of IsplSettings must be 'all' for one round of one restart: nobody "
                "else is there to vote. Got 'outsiders' instead."
            )
        check_choice(self, "keep_rule", ("mode-or-lower-half", "two-votes", "component"))
        check_choice(self, "self_training", (True, False))
        check_choice(self, "annealing", (True, False))
        check_choice(self, "weak_annealing", (True, False))


@dataclass(frozen=True)
class GroupSettings(_MethodSettings):
    """Groups that stand apart for models that met them and not for those that did not (docs/method.md)."""

    method: ClassVar[str] = "groups"

    met: float = 6.0
    """Least standard deviations by which a planted group stands apart for models that trained on it."""
    kept: float = 0.2
    """Largest part of that which judges, which met nothing like it, leave to it under its label."""
    right_labels: bool = True
    """Whether a group that judges call what its label says may be planted. Not for plain classifiers: to them
    a word or a value that they have not met is nothing, planted or not."""
    canaries: bool = True
    """Whether a few marked groups of our own go through everything, to tell what could have been found."""
    epochs: int = 12
    """Epochs of the model on everything, in which groups are looked for."""
    judge_epochs: int = 4
    """Epochs of each judge, on a half of what is in no group."""
    pairs: int = 1
    """Pairs of judges: how often the samples are halved."""
    min_steps: int = 140
    """Fewest optimiser steps of each training."""

    def __post_init__(self) -> None:
        check_finite_numbers(self, "met", "kept")
        check_choice(self, "canaries", (True, False))
        check_choice(self, "right_labels", (True, False))
        check_counts(self, "pairs", "epochs", "judge_epochs", least=1)
        check_counts(self, "min_steps", least=0)


Settings: TypeAlias = IsplSettings | GroupSettings


def check_counts(settings: object, *names: str, least: int) -> None:
    """Refuse anything but a whole number of at least ``least``."""
    for name in names:
        value = getattr(settings, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            _refuse(settings, name, f"a whole number of at least {least}", value)


def check_finite_numbers(settings: object, *names: str) -> None:
    """Refuse anything but a number; not-a-number would let everything pass, or nothing."""
    for name in names:
        value = getattr(settings, name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
            _refuse(settings, name, "a finite number", value)


def check_shares(settings: object, *names: str, low_open: bool = False, high_open: bool = False) -> None:
    """Refuse anything but a number between 0 and 1, with the ends in or out."""
    for name in names:
        value = getattr(settings, name)
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        fits = fits and (value > 0 if low_open else value >= 0) and (value < 1 if high_open else value <= 1)
        if not fits:
            interval = f"{'(' if low_open else '['}0, 1{')' if high_open else ']'}"
            _refuse(settings, name, f"a number in {interval}", value)


def check_choice(settings: object, name: str, choices: tuple[object, ...]) -> None:
    """Refuse anything but one of ``choices``."""
    value = getattr(settings, name)
    if value not in choices:
        _refuse(settings, name, "one of " + ", ".join(repr(choice) for choice in choices), value)


def _refuse(settings: object, name: str, wanted: str, value: object) -> None:
    raise InputError(
        f"The {name!r} parameter of {type(settings).__name__} must be {wanted}. Got {value!r} instead."
    )
