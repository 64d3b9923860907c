"""The paper's figures, drawn from its published numbers and from results of our own beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from unpoison.evaluation.outcomes import SUCCESS, Outcome, Result, outcomes, scale_of
from unpoison.evaluation.published import DEFENSES, in_order, read_grid, read_rows
from unpoison.evaluation.scenarios import ABLATION_SHARES, EPSILONS, by_name
from unpoison.evaluation.tables import ablation_means, share_name
from unpoison.report.plots import pyplot, save

Figure: TypeAlias = Callable[[Iterable[Result], Path], None]
"""Draws results of one scale into a file, whose ending says in which form. Without results: the paper's."""

COMPARED = "cifar10-dirty-label"
"""The table whose scenarios the paper compares baselines on: CIFAR-10, dirty-label, one to one."""
_OURS: TypeAlias = dict[tuple[str, str], Outcome]


def draw_baselines(results: Iterable[Result], target: Path) -> None:
    """Box plots of TMR by defense, a panel an epsilon: median, quartiles, whole range, the 1% cutoff.

    Of the scenarios of one table, as in the paper. Its caption speaks of 24 runs a plot, three for each of 8
    scenarios; what it publishes of them, and what is drawn of ours, is the median of each scenario.
    """
    results = list(results)
    scale = scale_of(results)
    ours = {place: each for place, each in outcomes(results).items() if COMPARED in by_name(place[0]).tables}
    whose = ["the paper", *([f"ours, {scale}"] if ours else [])]
    plots = pyplot()
    figure, axes = plots.subplots(
        len(whose), len(EPSILONS), figsize=(3.4 * len(EPSILONS), 2.9 * len(whose)), sharey=True, squeeze=False
    )
    for row, who in enumerate(whose):
        for column, epsilon in enumerate(EPSILONS):
            rates = _rates_of_ours(ours, epsilon) if row else _rates_of_paper(epsilon)
            _boxes(axes[row][column], rates, title=f"{who}, epsilon {epsilon}%")
        axes[row][0].set_ylabel("TMR (%)")
    figure.tight_layout()
    save(figure, target)


def _rates_of_paper(epsilon: int) -> dict[str, list[float]]:
    rows = [row for row in read_rows(COMPARED) if row.epsilon == epsilon]
    return {
        short: [row.cells[name].tmr for row in rows if name in row.cells]
        for name, short in DEFENSES.items()
        if name != "oracle"
    }


def _rates_of_ours(ours: _OURS, epsilon: int) -> dict[str, list[float]]:
    """Of scenarios at this epsilon where the attack took hold."""
    rates: dict[str, list[float]] = {name: [] for name in in_order(defense for _, defense in ours)}
    for (scenario, defense), outcome in ours.items():
        if outcome.took_hold and outcome.tmr is not None and by_name(scenario).epsilon == epsilon:
            rates[defense].append(outcome.tmr)
    return {DEFENSES.get(name, name): values for name, values in rates.items()}


def _boxes(axes: Any, rates: dict[str, list[float]], *, title: str) -> None:
    filled = {name: values for name, values in rates.items() if values}
    if filled:
        axes.boxplot(list(filled.values()), whis=(0, 100), medianprops={"color": "tab:orange"})
        axes.set_xticks(range(1, len(filled) + 1), list(filled), rotation=30, ha="right")
    axes.axhline(SUCCESS, color="tab:blue", linewidth=1)
    axes.set_ylim(-3, 103)
    axes.set_title(f"{title} ({_counted(filled.values())} scenarios)", fontsize=9)


def _counted(groups: Iterable[Sequence[float]]) -> str:
    """How many there are in each: one number if it is the same, else the range."""
    counts = sorted(map(len, groups)) or [0]
    return str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"


def draw_ablation(results: Iterable[Result], target: Path) -> None:
    """Accuracy and TMR by alpha and beta as heat maps: the paper's, and ours below where there are any."""
    results = list(results)
    ours, scale = outcomes(results), scale_of(results)
    measures = {"accuracy": ("clean accuracy (%)", "viridis"), "tmr": ("TMR (%)", "viridis_r")}
    grids = [("the paper", {measure: read_grid(f"ablation-{measure}") for measure in measures})]
    own = {measure: ablation_means(ours, measure) for measure in measures}
    if any(own.values()):
        grids.append((f"ours, {scale} scale", own))
    plots = pyplot()
    figure, axes = plots.subplots(len(grids), 2, figsize=(8, 3.4 * len(grids)), squeeze=False)
    for row, (who, both) in enumerate(grids):
        for column, (measure, (label, colors)) in enumerate(measures.items()):
            _heat_map(axes[row][column], both[measure], colors=colors)
            axes[row][column].set_title(f"{who}: {label}", fontsize=9)
    figure.tight_layout()
    save(figure, target)


def _heat_map(axes: Any, means: Mapping[tuple[str, str], float], *, colors: str) -> None:
    names = [share_name(share) for share in ABLATION_SHARES]
    grid = np.array([[means.get((alpha, beta), np.nan) for beta in names] for alpha in names])
    axes.imshow(grid, cmap=colors)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("beta")
    axes.set_ylabel("alpha")
    for row, column in np.argwhere(np.isfinite(grid)).tolist():
        text = axes.text(column, row, f"{grid[row, column]:.1f}", ha="center", va="center", color="white")
        text.set_path_effects([_outline()])


def _outline() -> Any:
    from matplotlib import patheffects

    return patheffects.withStroke(linewidth=2, foreground="black")


def _datasets(results: Iterable[Result], target: Path) -> None:  # noqa: ARG001 - shows data, not results
    from unpoison.evaluation.dataset_examples import draw_datasets

    draw_datasets(target)


def _sleeper_agent(results: Iterable[Result], target: Path) -> None:  # noqa: ARG001 - shows data
    from unpoison.evaluation.dataset_examples import draw_sleeper_agent

    draw_sleeper_agent(target)


def _imagenette(results: Iterable[Result], target: Path) -> None:  # noqa: ARG001 - shows data
    from unpoison.evaluation.dataset_examples import draw_imagenette

    draw_imagenette(target)


def _linear_classifier(results: Iterable[Result], target: Path) -> None:  # noqa: ARG001 - a construction
    from unpoison.evaluation.theory.linear import draw_linear_classifier

    draw_linear_classifier(target)


def _incompatibility(folder: Path, target: Path) -> None:
    from unpoison.evaluation.incompatibility import draw_side_by_side, records_in

    draw_side_by_side(records_in(folder / "incompatibility"), target)


OF_FOLDERS: dict[str, Callable[[Path, Path], None]] = {"incompatibility": _incompatibility}
"""By name, what shows other records than results: drawn from their folder into a file."""
FIGURES: dict[str, Figure] = {
    "baselines": draw_baselines,
    "ablation": draw_ablation,
    "datasets": _datasets,
    "sleeper-agent": _sleeper_agent,
    "imagenette": _imagenette,
    "linear-classifier": _linear_classifier,
}
"""By name."""
