"""Draws the pictures of docs/method.md from one real run: ``python docs/figures.py``.

The run is the demo's with seed 0: digits, a fifth of the ones with a bright corner, labelled seven. It takes
ten seconds, and needs the extra ``plots``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.attacks.base import Truth
from unpoison.core.comovement import Split, movements, split_in_two
from unpoison.core.config import OutOfSubsetSettings
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import auto_out_of_subset
from unpoison.core.result import Sanitization
from unpoison.core.tasks import FitTask, Task, run_serially
from unpoison.evaluation.demo import DIGITS_ATTACK, split_digits
from unpoison.learners.choose import LearnerChoice, choose
from unpoison.report.plots import pyplot, save
from unpoison.types import Arrays, FloatArray, LabelArray

IMAGES = Path(__file__).parent / "images"
SEED, TARGET = 0, 7
FINE, BAD = "#4477aa", "#cc3311"


@dataclass
class Recorder:
    """A runner that keeps what every model of the first step said, and where it did not train."""

    losses: list[Any] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)

    def __call__(self, tasks: Mapping[str, Task]) -> Iterator[tuple[str, Arrays]]:
        """Run the tasks one after another."""
        for name, arrays in run_serially(tasks):
            task = tasks[name]
            if name.startswith("subset-") and isinstance(task, FitTask):
                self.losses.append(arrays["losses"])
                self.seen.append(np.isin(np.arange(task.n_samples), task.indices))
            yield name, arrays


@dataclass(frozen=True)
class Run:
    """The data, the truth, the result, and what the first step's models said of each sample."""

    labels: LabelArray
    truth: Truth
    settings: OutOfSubsetSettings
    result: Sanitization
    recorded: Recorder


def judge_digits() -> Run:
    """Poison the digits and clean them, recording."""
    poisoned, truth = DIGITS_ATTACK.apply(split_digits(SEED).train, seed=SEED)
    learner = choose(LearnerChoice(), poisoned.features, poisoned.labels, n_classes=poisoned.n_classes)
    settings = auto_out_of_subset(poisoned.labels)
    recorder = Recorder()
    result = sanitize(poisoned.labels, learner.factory, settings, seed=SEED, runner=recorder)
    return Run(poisoned.labels, truth, settings, result, recorder)


def draw_movement(run: Run, target: Path) -> None:
    """The movement of the sevens over the models, and where the class is cut."""
    members = np.flatnonzero(run.labels == TARGET)
    moved = movements(np.stack(run.recorded.losses)[:, members], np.stack(run.recorded.seen)[:, members])
    split, planted = split_in_two(moved), run.truth.planted[members]
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(9, 3.4), width_ratios=(3, 2))
    order = np.argsort(planted, kind="stable")
    left.imshow(moved[:, order], aspect="auto", cmap="RdBu", vmin=-4, vmax=4, interpolation="nearest")
    left.axvline(int((~planted).sum()) - 0.5, color="black", linewidth=1)
    left.set(xlabel=f"samples labelled {TARGET}: clean, then planted", ylabel="models, by size of subset")
    _draw_positions(right, moved, split, planted)
    figure.tight_layout()
    save(figure, target)


def _draw_positions(axes: Any, moved: FloatArray, split: Split, planted: Any) -> None:
    """How far each sample goes with the group, from 0 (the rest's mean) to 1 (the group's)."""
    direction = moved[:, split.group].mean(axis=1) - moved[:, ~split.group].mean(axis=1)
    position = direction @ moved
    near, far = position[~split.group].mean(), position[split.group].mean()
    travelled = (position - near) / (far - near)
    bins = np.linspace(travelled.min(), travelled.max(), 30)
    axes.hist([travelled[~planted], travelled[planted]], bins, stacked=True, color=(FINE, BAD))
    cut = (travelled[~split.group].max() + travelled[split.group].min()) / 2
    axes.axvline(cut, color="black", linestyle="--", linewidth=1)
    axes.set(xlabel="movement with the group", ylabel="samples")
    axes.legend(["the cut", "clean", "planted"], frameon=False)
    axes.set_title(f"separation {split.separation:.0%}", fontsize=10)


def draw_verdict(run: Run, target: Path) -> None:
    """Every group that was judged, by what the judges said of it."""
    figure, axes = pyplot().subplots(figsize=(5.4, 3.8))
    agreement, belonging = run.settings.agreement, run.settings.belonging
    axes.fill_between([-0.03, agreement], belonging, 1.03, color=BAD, alpha=0.1, linewidth=0)
    for number, group in enumerate(run.result.groups):
        place = group.evidence["agreement"], group.evidence["belonging"]
        axes.scatter(*place, s=6 * group.size, color=BAD if group.removed else FINE, alpha=0.7)
        name = f"{group.size} labelled {group.label}, called {group.called}"
        axes.annotate(
            name, place, xytext=(8, 8 if number % 2 else -16), textcoords="offset points", fontsize=8
        )
    axes.set(
        xlim=(-0.03, 1.03), ylim=(-0.03, 1.03),
        xlabel="agreement: judges who give the group's label", ylabel="belonging: sure of another class",
    )  # fmt: skip
    figure.tight_layout()
    save(figure, target)


def main() -> None:
    """Run once, draw both."""
    run = judge_digits()
    draw_movement(run, IMAGES / "method-movement.png")
    draw_verdict(run, IMAGES / "method-verdict.png")


if __name__ == "__main__":
    main()
