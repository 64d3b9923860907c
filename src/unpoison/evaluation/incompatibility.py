"""The paper's incompatibility experiment (section 3.1): what poison does to clean data, and the reverse.

``C`` is an eighth of each class of the clean data and ``P`` as many poisoned samples as ``C`` has of the
source class. One of them is fixed, of the other a part is added that grows from nothing (ratio 0) to all of
it (ratio 1), and models are trained on an alpha share of both. What counts is how accuracies change from
ratio 0 on: on ``C``, on its source and its other classes, and on ``P``. Five draws of the part for each of
five draws of what is fixed, in both directions.

Draws are nested: the part at a small ratio is in the part at a larger one, and the models of one draw share
their chance (:class:`unpoison.core.expansion.ErrorTask`), so that changes are not mostly noise.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unpoison.core.expansion import ErrorTask, Estimate, Measuring
from unpoison.core.learner import LearnerFactory
from unpoison.core.sampling import ceil_share
from unpoison.core.tasks import Runner, run_serially
from unpoison.errors import InputError
from unpoison.evaluation.poisoning import PoisonOptions, attacked
from unpoison.learners.choose import LearnerChoice, choose
from unpoison.learners.recipes import TrainingOptions
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray

Record: TypeAlias = Mapping[str, Any]
Fixed: TypeAlias = Literal["clean", "poisoned"]
FIXED: tuple[Fixed, ...] = ("clean", "poisoned")
"""Whose error is asked for: of clean data given poison, or of poison given clean data."""
METRICS = ("clean", "source", "other", "poisoned")
"""Accuracy on all of ``C``, on its source class, on its other classes, and on ``P``."""
SHARE = 1 / 8
BATCH, RATE = 32, 0.1
"""For networks on a few hundred images: the usual batch of 128 would leave them too few steps."""


@dataclass(frozen=True)
class Trial:
    """An attack on a dataset, and how large the experiment is."""

    dataset: str
    attack: str
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    classes: tuple[int, ...] = ()
    """Those that are looked at, the source among them; none named: all."""
    limit: int | None = None
    learner: str = "compact"
    epochs: int = 14
    """Enough to learn what is trained on: with fewer, whatever is added helps by the steps it adds."""
    alpha: float = 0.5
    ratios: tuple[float, ...] = (0.0, 0.5, 1.0)
    draws: int = 5
    """Of what is fixed, and of what is added for each of them."""

    def __post_init__(self) -> None:
        if not self.ratios or self.ratios[0] != 0.0 or list(self.ratios) != sorted(set(self.ratios)):
            raise InputError(f"ratios must rise from 0, which all changes are from. Got {self.ratios}")
        if self.ratios[-1] > 1.0 or self.draws < 2:
            raise InputError(
                f"ratios end at 1 at the latest and draws are at least 2. Got {self.ratios[-1]}, {self.draws}"
            )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for records."""
        return {**asdict(self), **{name: list(getattr(self, name)) for name in ("classes", "ratios")}}


PLANES = {"source": "0", "target": "2", "epsilon": "0.5"}
FOUR = (0, 1, 2, 8)
"""Airplanes, cars, birds and ships."""
TRIALS = {
    "dirty-label": Trial("cifar10", "dirty-label", {**PLANES, "trigger": "ell"}, FOUR, limit=10_000),
    "watermark": Trial("cifar10", "watermark", {**PLANES, "trigger": "peace"}, FOUR, limit=10_000),
    "clean-label": Trial(
        "cifar10", "clean-label", {"target": "0", "epsilon": "0.5", "perturbation": "linf", "epochs": "8"},
        FOUR, limit=10_000,
    ),
}  # fmt: skip
"""At the scale of a laptop, by attack: four classes of a fifth of CIFAR-10."""


@dataclass(frozen=True)
class Pools:
    """A poisoned dataset, and what ``C`` and ``P`` are drawn from."""

    features: NDArray[Any]
    labels: LabelArray
    n_classes: int
    planted: IndexArray
    clean: Mapping[int, IndexArray]
    """By class, what the attack left alone."""
    sizes: Mapping[int, int]
    """By class, how many samples an eighth of it is."""
    source: int

    def clean_draw(self, seeds: Seeds) -> dict[int, IndexArray]:
        """``C`` by class, each in a random order."""
        return {c: _some(members, self.sizes[c], seeds.within(c)) for c, members in self.clean.items()}

    def poisoned_draw(self, seeds: Seeds) -> IndexArray:
        """``P`` in a random order."""
        return _some(self.planted, self.sizes[self.source], seeds)


def _some(members: IndexArray, count: int, seeds: Seeds) -> IndexArray:
    drawn: IndexArray = seeds.stream("draw").permutation(members)[:count]
    return drawn


def pools_of(trial: Trial, *, seed: int) -> Pools:
    """Poison the dataset of a trial and part it."""
    options = PoisonOptions(trial.attack, trial.settings, seed=seed, limit=trial.limit, test_share=0.0)
    found = attacked(trial.dataset, options)
    original, planted = found.truth.original_labels, found.truth.planted
    sources = np.unique(original[planted])
    if len(sources) != 1:
        raise InputError(f"the attack {trial.attack!r} poisons {len(sources)} classes; give it one source")
    classes = trial.classes or tuple(range(found.poisoned.n_classes))
    if int(sources[0]) not in classes:
        raise InputError(f"the source class {sources[0]} is not among the classes {classes} of the trial")
    rows = np.flatnonzero(np.isin(original, classes))
    original, planted = original[rows], planted[rows]
    return Pools(
        features=found.poisoned.features[rows],
        labels=found.poisoned.labels[rows],
        n_classes=found.poisoned.n_classes,
        planted=np.flatnonzero(planted),
        clean={c: np.flatnonzero((original == c) & ~planted) for c in classes},
        sizes={c: ceil_share(SHARE, int((original == c).sum())) for c in classes},
        source=int(sources[0]),
    )


def factory_for(trial: Trial, pools: Pools) -> LearnerFactory:
    """The learners of a trial; networks in small batches, on images as they are."""
    choice = LearnerChoice(trial.learner, training=TrainingOptions(augmentation="none"))
    chosen = choose(choice, pools.features, pools.labels, n_classes=pools.n_classes)
    if not chosen.is_network:
        return chosen.factory
    factory: Any = chosen.factory
    recipe = replace(factory.options.recipe, batch_size=BATCH, learning_rate=RATE)
    small: LearnerFactory = replace(factory, options=replace(factory.options, recipe=recipe))
    return small


def run(
    trial: Trial, *, seed: int = 0, done: Collection[str] = (), runner: Runner = run_serially
) -> Iterator[dict[str, Any]]:
    """Measure every point of a trial but those ``done`` (by ``name``); a record each, as they arrive.

    A record has the point (``fixed``, ``base``, ``draw``, ``ratio``), the accuracies by :data:`METRICS`, and
    what it cost.
    """
    pools = pools_of(trial, seed=seed)
    factory = factory_for(trial, pools)
    points = {name: point for name, point in points_of(trial).items() if name not in done}
    tasks = {name: _task(trial, pools, factory, point, Seeds(seed)) for name, point in points.items()}
    for name, result in runner(tasks):
        sizes = [len(judged) for judged in tasks[name].judged]
        source, other, poisoned = result["wrong"].tolist()
        trained, scored, seconds, _ = result["cost"].tolist()
        yield {
            "name": name, "attack": trial.attack, "seed": seed, **points[name],
            "clean": 1 - (source + other) / (sizes[0] + sizes[1]),
            "source": 1 - source / sizes[0],
            "other": 1 - other / sizes[1],
            "poisoned": 1 - poisoned / sizes[2],
            "trained": int(trained), "scored": int(scored), "seconds": round(seconds, 3),
        }  # fmt: skip


def run_into(
    path: Path, trial: Trial, *, seed: int = 0, runner: Runner = run_serially
) -> Iterator[dict[str, Any]]:
    """:func:`run` with a line of JSON in ``path`` for each record: goes on where a killed run stopped.

    The records that were there come first. The first line of the file says what they are of.
    """
    head = {"trial": trial.as_dict(), "seed": seed}
    lines = read_lines(path)
    if lines and lines[0] != head:
        raise InputError(f"{path} holds results of another trial or seed; choose another file")
    text = "".join(json.dumps(line) + "\n" for line in [head, *lines[1:]])
    path.write_text(text, encoding="ascii")  # without what a killed run left half of
    yield from lines[1:]
    with path.open("a", encoding="ascii") as file:
        for record in run(trial, seed=seed, done={line["name"] for line in lines[1:]}, runner=runner):
            file.write(json.dumps(record) + "\n")
            file.flush()
            yield record


def read_lines(path: Path) -> list[dict[str, Any]]:
    """What the lines of ``path`` hold, up to one that was not written to its end."""
    found: list[dict[str, Any]] = []
    for line in path.read_text(encoding="ascii").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def records_in(folder: Path) -> list[list[dict[str, Any]]]:
    """The records of each file that :func:`run_into` wrote in a folder, by the names of the files."""
    files = [_records(path) for path in sorted(folder.glob("*.jsonl"))]
    found = [records for records in files if records]
    if not found:
        raise InputError(
            f"{folder} holds no measurements; run: python benchmarks/incompatibility.py --attack watermark "
            f"--out {folder / 'watermark.jsonl'}"
        )
    return found


def _records(path: Path) -> list[dict[str, Any]]:
    try:
        records = read_lines(path)[1:]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error})") from error
    numbers = ("base", "ratio", *METRICS)
    for record in records:
        if not all(isinstance(record, dict) and isinstance(record.get(x), (int, float)) for x in numbers):
            raise InputError(f"{path} holds something else than measurements; remove it")
    return records


def points_of(trial: Trial) -> dict[str, dict[str, Any]]:
    """Every point of a trial by its name."""
    draws = range(trial.draws)
    return {
        f"{fixed}-{base}-{draw}-{ratio:g}": {"fixed": fixed, "base": base, "draw": draw, "ratio": ratio}
        for fixed, base, draw, ratio in product(FIXED, draws, draws, trial.ratios)
    }


def _task(trial: Trial, pools: Pools, factory: LearnerFactory, point: Record, seeds: Seeds) -> ErrorTask:
    fixed, ratio = point["fixed"], point["ratio"]
    of_fixed = seeds.within("incompatibility", fixed, point["base"])
    of_added = of_fixed.within("added", point["draw"])
    is_clean = fixed == "clean"
    clean = pools.clean_draw((of_fixed if is_clean else of_added).within("clean"))
    poisoned = pools.poisoned_draw((of_added if is_clean else of_fixed).within("poisoned"))
    source, other = clean[pools.source], _joined(clean[c] for c in clean if c != pools.source)
    trained = [
        *(_first(members, 1.0 if is_clean else ratio) for members in clean.values()),
        _first(poisoned, ratio if is_clean else 1.0),
    ]
    how = Measuring(alpha=trial.alpha, epochs=trial.epochs, min_steps=0)
    return ErrorTask(factory, pools.labels, _joined(trained), (source, other, poisoned), how, of_added)


def _first(members: IndexArray, share: float) -> IndexArray:
    return members[: ceil_share(share, len(members))]


def _joined(parts: Iterable[IndexArray]) -> IndexArray:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


PAPER: dict[tuple[str, str, str], str] = {
    **{
        (attack, "clean", metric): trend
        for attack in ("dirty-label", "watermark")
        for metric, trend in (("clean", "falls"), ("source", "falls"), ("poisoned", "rises"))
    },
    ("clean-label", "clean", "clean"): "falls",
    ("clean-label", "clean", "source"): "rises",
    ("clean-label", "clean", "other"): "falls",
    ("clean-label", "clean", "poisoned"): "rises",
    **{(attack, "poisoned", "poisoned"): "falls" for attack in ("dirty-label", "watermark", "clean-label")},
}
"""What the paper's text says of each trend: by attack, whose error is asked for, and metric.

Of the other classes under dirty-label it says that they stay "largely constant", and of poison given clean
data that both are incompatible."""


def changes(records: Iterable[Record], fixed: Fixed, metric: str) -> dict[int, dict[float, float]]:
    """By base and ratio, the mean accuracy over the draws less that at ratio 0."""
    values: dict[int, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record["fixed"] == fixed:
            values[record["base"]][record["ratio"]].append(record[metric])
    means = {
        base: {ratio: sum(found) / len(found) for ratio, found in sorted(ratios.items())}
        for base, ratios in sorted(values.items())
    }
    return {
        base: {ratio: mean - ratios[0.0] for ratio, mean in ratios.items()}
        for base, ratios in means.items()
        if 0.0 in ratios
    }


def trends(records: Iterable[Record], *, confidence: float = 0.95) -> list[dict[str, Any]]:
    """For each direction and metric: where it ends, its slope over the bases, its sign, the paper's sign.

    ``rises`` and ``falls`` mean that the slope's interval leaves 0 on that side; what is ``unclear`` neither
    agrees with the paper nor disagrees.
    """
    records = list(records)
    attack = _only_attack(records)
    found = []
    for fixed, metric in product(FIXED, METRICS):
        curves = [curve for curve in changes(records, fixed, metric).values() if len(curve) > 1]
        if len(curves) < 2:
            continue
        slope = _mean([_slope(curve) for curve in curves])
        low, high = slope.interval(confidence)
        trend = "rises" if low > 0 else "falls" if high < 0 else "unclear"
        said = PAPER.get((attack, fixed, metric))
        found.append({
            "fixed": fixed, "metric": metric, "bases": len(curves),
            "end": median(curve[max(curve)] for curve in curves),
            "slope": slope.mean, "interval": [low, high], "trend": trend, "paper": said,
            "agrees": None if said is None or trend == "unclear" else trend == said,
        })  # fmt: skip
    return found


def _slope(curve: Mapping[float, float]) -> float:
    ratios, values = np.array(list(curve)), np.array(list(curve.values()))
    away = ratios - ratios.mean()
    return float((away * values).sum() / (away**2).sum())


def _mean(values: Sequence[float]) -> Estimate:
    spread = float(np.std(values, ddof=1))
    return Estimate(float(np.mean(values)), spread / len(values) ** 0.5, len(values) - 1.0)


def _only_attack(records: Sequence[Record]) -> str:
    attacks = sorted({str(record["attack"]) for record in records})
    if len(attacks) != 1:
        raise InputError(
            f"a figure shows one attack, and the records are of {' and '.join(attacks) or 'none'}; give "
            "those of one"
        )
    return attacks[0]


TITLES = {
    "clean": "clean data", "source": "clean, source class", "other": "clean, other classes",
    "poisoned": "poisoned data",
}  # fmt: skip
COLORS = {"clean": "#0072B2", "poisoned": "#D55E00"}
"""Blue and vermilion of Okabe and Ito: told apart with any eyes."""


def draw_incompatibility(records: Iterable[Record], target: Path) -> None:
    """The paper's figure for one attack: changes in accuracy by ratio, a row a metric, a column a direction.

    A point is a base, the line connects the medians.
    """
    draw_side_by_side([list(records)], target)


def draw_side_by_side(groups: Sequence[Sequence[Record]], target: Path) -> None:
    """:func:`draw_incompatibility` for several attacks, a panel each."""
    from unpoison.report.plots import pyplot, save

    attacks = [_only_attack(records) for records in groups]
    figure = pyplot().figure(figsize=(8 * len(groups), 9), layout="constrained")
    panels = figure.subfigures(1, len(groups), squeeze=False)[0]
    for panel, attack, records in zip(panels, attacks, groups, strict=True):
        _draw_attack(panel, attack, records)
    save(figure, target)


def _draw_attack(figure: Any, attack: str, records: Sequence[Record]) -> None:
    axes = figure.subplots(len(METRICS), len(FIXED), sharex=True)
    for column, fixed in enumerate(FIXED):
        for row, metric in enumerate(METRICS):
            _panel(axes[row][column], changes(records, fixed, metric), COLORS[fixed])
            axes[row][column].set_title(TITLES[metric], fontsize=9)
        added = "poisoned" if fixed == "clean" else "clean"
        axes[-1][column].set_xlabel(f"share of the {added} data that is added")
    figure.suptitle(f"{attack}: poison added to clean data (left), clean data added to poison (right)")
    figure.supylabel("change in accuracy (points)")


def _panel(axes: Any, curves: Mapping[int, Mapping[float, float]], color: str) -> None:
    ratios = sorted({ratio for curve in curves.values() for ratio in curve})
    for curve in curves.values():
        axes.plot(list(curve), [100 * value for value in curve.values()], "o", color=color, alpha=0.5, ms=4)
    middle = [100 * median(curve[ratio] for curve in curves.values() if ratio in curve) for ratio in ratios]
    axes.plot(ratios, middle, color=color, linewidth=2)
    axes.axhline(0.0, color="gray", linewidth=1, linestyle="--")
