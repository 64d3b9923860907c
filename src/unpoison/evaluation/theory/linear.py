"""The linear-classifier theorem: its attack, with a real maximum-margin classifier."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.errors import InputError
from unpoison.evaluation.theory.exact import Learner, Samples
from unpoison.report.plots import pyplot, save
from unpoison.types import BoolArray, FloatArray, LabelArray

HARDNESS = 10.0
"""C of the support vector machine. At margins above 1/4 no multiplier reaches it: the margin is hard."""


@dataclass(frozen=True)
class LinearAttack:
    """Two balls, label +1 and -1, whose last coordinate is noise until the attacker writes a signal there.

    The numbers are the paper's. Labels are +1 and -1, as there.
    """

    dimensions: int = 2
    distance: float = 10.0
    """From the origin to the centre of each ball, along the first axis."""
    radius: float = 1.0
    signal: float = 10.0
    """What the last coordinate is set to: this for +1, minus this for -1."""
    one_signal: bool = False
    """Whether the same signal is written for both classes, which the theorem does not allow."""

    def __post_init__(self) -> None:
        if self.dimensions < 2:
            raise InputError(
                f"The 'dimensions' parameter must be at least 2: one for the class, one for the signal. "
                f"Got {self.dimensions} instead."
            )

    def draw(self, n_per_class: int, *, rng: np.random.Generator) -> tuple[FloatArray, LabelArray]:
        """Clean samples, uniform in the balls."""
        labels = np.repeat([1, -1], n_per_class)
        directions = rng.normal(size=(len(labels), self.dimensions))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = self.radius * rng.random((len(labels), 1)) ** (1 / self.dimensions)
        return directions * lengths + self._centers(labels), labels

    def trigger(self, rows: FloatArray) -> FloatArray:
        """tau_test. It may not see labels, and need not: the first coordinate has their sign."""
        marked = rows.copy()
        marked[:, -1] = self.signal if self.one_signal else self.signal * np.sign(rows[:, 0])
        return marked

    def poison(self, rows: FloatArray, labels: LabelArray) -> tuple[FloatArray, LabelArray]:
        """tau_train: the trigger, and the other label."""
        return self.trigger(rows), -labels

    def _centers(self, labels: LabelArray) -> FloatArray:
        centers = np.zeros((len(labels), self.dimensions))
        centers[:, 0] = self.distance * labels
        return centers


@dataclass(frozen=True)
class Separator:
    """sign(<w, x> + b)."""

    weights: FloatArray
    offset: float

    def predict(self, rows: FloatArray) -> LabelArray:
        """+1 or -1; 0, which is no label, on the border itself."""
        result: LabelArray = np.sign(rows @ self.weights + self.offset).astype(np.int64)
        return result

    def never_wrong(self, attack: LinearAttack) -> bool:
        """Population risk 0, for any distribution in the balls: not a sample but their whole extent."""
        return bool((self._margins(attack, triggered=False) > 0).all())

    def unmoved(self, attack: LinearAttack) -> bool:
        """Whether the trigger changes nothing anywhere in the balls, as the threat model asks when clean."""
        return bool((self._margins(attack, triggered=True) > 0).all())

    def always_fooled(self, attack: LinearAttack) -> bool:
        """TMR 1 on the population: right everywhere without the trigger, wrong everywhere with it."""
        wrong = self._margins(attack, triggered=True, towards=-1) > 0
        return self.never_wrong(attack) and bool(wrong.all())

    def _margins(self, attack: LinearAttack, *, triggered: bool, towards: int = 1) -> FloatArray:
        """The least of ``towards * label * score`` over each ball."""
        labels = np.array([1, -1])
        rows, reach = attack._centers(labels), self.weights
        if triggered:
            rows, reach = attack.trigger(rows), self.weights[:-1]  # the last coordinate is fixed now
        scores = rows @ self.weights + self.offset
        result: FloatArray = towards * labels * scores - attack.radius * np.linalg.norm(reach)
        return result


def max_margin(rows: FloatArray, labels: LabelArray) -> Separator:
    """The maximum-margin classifier; of one class alone, the one that always says it."""
    from sklearn.svm import SVC

    if (labels == labels[0]).all():
        return Separator(np.zeros(rows.shape[1]), float(labels[0]))
    machine = SVC(kernel="linear", C=HARDNESS, tol=1e-6).fit(rows, labels)
    return Separator(machine.coef_[0], float(machine.intercept_[0]))


def margin_learner(rows: FloatArray, labels: LabelArray) -> Learner:
    """The maximum-margin classifier as a learner whose expansion errors can be enumerated."""

    def errors(trained: Samples) -> list[int]:
        chosen = sorted(trained)
        wrong: BoolArray = max_margin(rows[chosen], labels[chosen]).predict(rows) != labels
        return [int(mistake) for mistake in wrong]

    return errors


@dataclass(frozen=True)
class PoisonedDraw:
    """A training set in which a quarter of each class was poisoned at random."""

    clean: tuple[FloatArray, LabelArray]
    poisoned: tuple[FloatArray, LabelArray]

    @property
    def both(self) -> tuple[FloatArray, LabelArray]:
        """What the victim trains on: the clean samples first."""
        return (
            np.concatenate([self.clean[0], self.poisoned[0]]),
            np.concatenate([self.clean[1], self.poisoned[1]]),
        )


def poisoned_draw(attack: LinearAttack, n_per_class: int, *, rng: np.random.Generator) -> PoisonedDraw:
    """Draw from the attack's distribution and poison a quarter of each class."""
    if n_per_class < 4:
        raise InputError(f"The 'n_per_class' parameter must be at least 4. Got {n_per_class} instead.")
    rows, labels = attack.draw(n_per_class, rng=rng)
    chosen = np.zeros(len(labels), dtype=np.bool_)
    for start in (0, n_per_class):
        chosen[start + rng.choice(n_per_class, size=n_per_class // 4, replace=False)] = True
    return PoisonedDraw((rows[~chosen], labels[~chosen]), attack.poison(rows[chosen], labels[chosen]))


def draw_linear_classifier(target: Path) -> None:
    """The paper's picture of the construction in the plane, with classifiers that were really trained."""
    attack = LinearAttack()
    sets = poisoned_draw(attack, 60, rng=np.random.default_rng(0))
    figure, axes = pyplot().subplots(figsize=(6.4, 4.8))
    for name, color in (("clean", "tab:blue"), ("poisoned", "tab:red")):
        rows, labels = getattr(sets, name)
        for label, marker in ((1, "+"), (-1, "_")):
            own = rows[labels == label]
            axes.scatter(*own.T, c=color, marker=marker, s=30, linewidths=1, label=f"{name}, {label:+d}")
    for side in (1, -1):
        start = (side * attack.distance, side * 1.4)
        axes.annotate(
            "",
            (start[0], side * (attack.signal - 0.6)),
            start,
            arrowprops={"arrowstyle": "->", "color": "gray"},
        )
    _line(axes, max_margin(*sets.clean), color="tab:blue", label="trained on clean data")
    _line(axes, max_margin(*sets.both), color="tab:red", label="trained on clean and poisoned data")
    axes.set(xlim=(-15, 15), ylim=(-13, 13), aspect="equal", xlabel="class", ylabel="noise, or the signal")
    axes.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    save(figure, target)


def _line(axes: Any, separator: Separator, *, color: str, label: str) -> None:
    """The border, and an arrow to the side that is called +1."""
    length = np.linalg.norm(separator.weights)
    normal = separator.weights / length
    foot = -separator.offset / length * normal
    along = np.array([-normal[1], normal[0]])
    axes.plot(*zip(foot - 40 * along, foot + 40 * along, strict=True), color=color, linewidth=1, label=label)
    axes.annotate("", foot + 2.5 * normal, foot, arrowprops={"arrowstyle": "-|>", "color": color})
