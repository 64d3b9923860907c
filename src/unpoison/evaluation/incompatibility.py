"""The paper's incompatibility experiment (section 4.1): what poison does to clean data, and the reverse.

``C`` is an eighth of each class of the clean data and ``P`` as many poisoned samples as ``C`` has of the
source class. One of them is fixed, of the other a part is added that grows from nothing (ratio 0) to all of
it (ratio 1), and models are trained on an alpha share of both. What counts is how accuracies change from
ratio 0 on: on ``C``, on its source and its other classes, and on ``P``. Five draws of the part for each of
five draws of what is fixed, in both directions, for each scenario of a family of attacks.

Draws are nested: the part at a small ratio is in the part at a larger one, and the models of one draw share
their chance (:class:`unpoison.core.expansion.ErrorTask`), so that changes are not mostly noise.

The paper leaves open, and we chose: the ratios between 0 and 1 (:data:`RATIOS`), the epochs (those of its
final trainings), which of its poisoned datasets are meant (:data:`EPSILON`), and what is added to poison
(an equal share of every class of ``C``).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.options import meant
from unpoison.core.expansion import ErrorTask, Estimate, Measuring
from unpoison.core.learner import LearnerFactory
from unpoison.core.sampling import ceil_share
from unpoison.core.tasks import Runner, run_serially
from unpoison.data.named.cache import cache_folder
from unpoison.errors import InputError
from unpoison.evaluation.poisoning import PoisonOptions, attacked
from unpoison.evaluation.scales import scale_named
from unpoison.evaluation.scenarios import EPSILONS, PAPER_EPOCHS, Scenario, of_table
from unpoison.learners.choose import LearnerChoice, choose
from unpoison.learners.recipes import PAPER as PAPER_RECIPES
from unpoison.learners.recipes import TrainingOptions
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray

Record: TypeAlias = Mapping[str, Any]
Curve: TypeAlias = Mapping[float, float]
"""By ratio, the change of an accuracy."""
Fixed: TypeAlias = Literal["clean", "poisoned"]
FIXED: tuple[Fixed, ...] = ("clean", "poisoned")
"""Whose error is asked for: of clean data given poison, or of poison given clean data."""
METRICS = ("clean", "source", "other", "poisoned")
"""Accuracy on all of ``C``, on its source class, on its other classes, and on ``P``."""
FAMILIES = {
    "gan": "clean-label, GAN",
    "l2": "clean-label, l2",
    "linf": "clean-label, l-infinity",
    "dirty-label": "dirty-label",
    "watermark": "watermark",
}
"""The attacks that the paper has a figure of each, with their titles, in the order of its "full" figures."""
SHARE = 1 / 8
RATIOS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Ours: the paper says "from 0 to 1" on a linear axis, and no more."""
EPSILON = max(EPSILONS)
"""Ours, in percent: the paper has one poisoned dataset for each pair or class and does not say which. An
eighth of a class is 12.5%, so of its 5, 10 and 20% only the last holds enough poison for ratio 1."""
SMALL_BATCH, SMALL_RATE = 32, 0.1
"""For networks on a few hundred images: the usual batch of 128 would leave them too few steps."""
OTHER_EPOCHS = 40
"""For networks that the paper has no recipe for, where it trains for 100. On half of an eighth of CIFAR-10
``compact`` gets 97% of what it is trained on right with 40, and 80% with the 20 of victims on all of it."""
DATASET = "cifar10"
CLEAN_LABEL = "clean-label"


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
    recipe: Literal["own", "small"] = "own"
    """The network's own, or that in small batches (:data:`SMALL_BATCH`)."""
    augmentation: str | None = None
    """How images are varied in training; None for what suits the dataset, as in all trainings of the paper:
    its text has marks visible "before data augmentation"."""
    alpha: float = 0.5
    ratios: tuple[float, ...] = RATIOS
    draws: int = 5
    """Of what is fixed, and of what is added for each of them."""

    def __post_init__(self) -> None:
        if not self.ratios or self.ratios[0] != 0.0 or list(self.ratios) != sorted(set(self.ratios)):
            raise InputError(f"ratios must rise from 0, which all changes are from. Got {self.ratios}")
        if self.ratios[-1] > 1.0 or self.draws < 2:
            raise InputError(
                f"ratios end at 1 at the latest and draws are at least 2. Got {self.ratios[-1]}, {self.draws}"
            )
        if self.recipe not in ("own", "small"):
            raise InputError(f"The 'recipe' parameter of Trial must be own or small. Got {self.recipe!r}.")

    @property
    def family(self) -> str:
        """One of :data:`FAMILIES`."""
        return self.settings.get("perturbation", "linf") if self.attack == CLEAN_LABEL else self.attack

    @property
    def case(self) -> str:
        """Which scenario of its family it is: the classes that are attacked, such as ``0-2`` or ``7``."""
        return "-".join(self.settings[name] for name in ("source", "target") if name in self.settings)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for records."""
        return {**asdict(self), **{name: list(getattr(self, name)) for name in ("classes", "ratios")}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Trial:
        """What :meth:`as_dict` made."""
        return cls(**{**values, **{name: tuple(values[name]) for name in ("classes", "ratios")}})


_PLANES = {"source": "0", "target": "2", "epsilon": "0.5"}
_HARD_PLANES = {"target": "0", "epsilon": "0.5"}
_MARK = {"trigger": "ell", "place": "3,5", "color": "225,104,121"}
"""What seed 1 drew when the results were recorded: marks depend on the pair of classes since."""
_LAPTOP = Trial(
    DATASET, "", classes=(0, 1, 2, 8), limit=10_000, epochs=14, recipe="small", augmentation="none",
    ratios=(0.0, 0.5, 1.0),
)  # fmt: skip
"""Airplanes, cars, birds and ships of a fifth of CIFAR-10."""
LAPTOP: dict[str, Trial] = {
    family: replace(_LAPTOP, attack=attack, settings=settings)
    for family, attack, settings in (
        ("gan", CLEAN_LABEL, {**_HARD_PLANES, "perturbation": "gan"}),
        ("l2", CLEAN_LABEL, {**_HARD_PLANES, "perturbation": "l2", "epochs": "8"}),
        ("linf", CLEAN_LABEL, {**_HARD_PLANES, "perturbation": "linf", "epochs": "8"}),
        ("dirty-label", "dirty-label", {**_PLANES, **_MARK}),
        ("watermark", "watermark", {**_PLANES, "trigger": "peace"}),
    )
}
"""By family, one scenario at the scale of a laptop."""


def trials_for(
    family: str, scale: str, *, seed: int = 0, network: str | None = None, cases: Collection[str] = ()
) -> list[Trial]:
    """The trials of one figure of the paper: every scenario of a family of attacks, or the ``cases`` named.

    ``paper`` has all of CIFAR-10 and PreActResNet18 by its own recipe, ``full`` the same with ``compact``,
    ``laptop`` one scenario of four classes. ``network`` is another one, with its own recipe. The seed is that
    of :func:`run`: the authors' dirty-label marks are known for 0, 1 and 2.

    >>> [trial.case for trial in trials_for("gan", "paper")]
    ['0', '2', '4', '7', '9']
    """
    if family not in FAMILIES:
        raise InputError(
            f"no family of attacks is called {family!r}; {meant(family, FAMILIES)}choose one of "
            f"{', '.join(FAMILIES)}"
        )
    if scale == "laptop":
        found = [LAPTOP[family]]
    else:
        found = [_whole(scenario, scale, seed=seed) for scenario in scenarios_of(family)]
    known = [trial.case for trial in found]
    if unknown := sorted(set(cases) - set(known)):
        raise InputError(
            f"{family} has no scenario {unknown[0]!r} at the scale {scale!r}; choose from {', '.join(known)}"
        )
    return [_with_network(trial, network) for trial in found if not cases or trial.case in cases]


def scenarios_of(family: str) -> list[Scenario]:
    """The paper's scenarios of a family on CIFAR-10, with the poison that is enough for ratio 1."""
    is_clean_label = family in ("gan", "l2", "linf")
    table = of_table(f"{DATASET}-{CLEAN_LABEL if is_clean_label else family}")
    return [
        scenario
        for scenario in table
        if scenario.epsilon == EPSILON and scenario.options.get("perturbation", family) == family
    ]


def _whole(scenario: Scenario, scale: str, *, seed: int) -> Trial:
    setup = scale_named(scale).setup_for(scenario)
    settings = {name: str(value) for name, value in scenario.options_for(seed).items()}
    return Trial(
        scenario.dataset, scenario.attack, settings, learner=setup.network, epochs=_epochs(setup.network)
    )


def _with_network(trial: Trial, network: str | None) -> Trial:
    if network in (None, trial.learner):
        return trial
    return replace(trial, learner=str(network), epochs=_epochs(str(network)), recipe="own")


def _epochs(network: str) -> int:
    return PAPER_EPOCHS if network in PAPER_RECIPES else OTHER_EPOCHS


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
    augmentation: str
    """How images of this dataset are varied in training."""

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
    found = attacked(trial.dataset, options, kept=cache_folder() / "attacks")
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
        augmentation=found.augmentation,
    )


def factory_for(trial: Trial, pools: Pools) -> LearnerFactory:
    """The learners of a trial, by their own recipe or in small batches."""
    training = TrainingOptions(augmentation=trial.augmentation or pools.augmentation)
    choice = LearnerChoice(trial.learner, training=training)
    chosen = choose(choice, pools.features, pools.labels, n_classes=pools.n_classes)
    if not chosen.is_network or trial.recipe == "own":
        return chosen.factory
    factory: Any = chosen.factory
    recipe = replace(factory.options.recipe, batch_size=SMALL_BATCH, learning_rate=SMALL_RATE)
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
    path.parent.mkdir(parents=True, exist_ok=True)
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


def file_for(out: Path, trial: Trial) -> Path:
    """Where the records of a trial go: ``out`` itself if it is a ``.jsonl`` file, else a file in it."""
    return out if out.suffix == ".jsonl" else out / f"{trial.family}-{trial.case}.jsonl"


@dataclass(frozen=True)
class Measured:
    """The records of a trial, as far as there are any."""

    trial: Trial
    seed: int
    records: Sequence[Record]


def read_measured(path: Path) -> Measured:
    """What :func:`run_into` wrote."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; benchmarks/incompatibility.py writes such files")
    try:
        lines = read_lines(path)
        trial, seed, records = Trial.from_dict(lines[0]["trial"]), int(lines[0]["seed"]), lines[1:]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error})") from error
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} holds something else than measurements; remove it") from error
    numbers = ("base", "ratio", *METRICS)
    for record in records:
        if not all(isinstance(record, dict) and isinstance(record.get(x), (int, float)) for x in numbers):
            raise InputError(f"{path} holds something else than measurements; remove it")
    return Measured(trial, seed, records)


def records_in(folder: Path) -> list[list[Measured]]:
    """What the files in a folder hold, by family of attacks; files without a record are left out."""
    groups: dict[str, list[Measured]] = defaultdict(list)
    for path in sorted(folder.glob("*.jsonl")):
        measured = read_measured(path)
        if measured.records:
            groups[measured.trial.family].append(measured)
    if not groups:
        raise InputError(
            f"{folder} holds no measurements; run: python benchmarks/incompatibility.py --family watermark "
            f"--out {folder}"
        )
    return list(groups.values())


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


_OF_DIRTY_LABELS = {("clean", "clean"): "falls", ("clean", "source"): "falls"}
_OF_CLEAN_LABELS = {("clean", "clean"): "falls", ("clean", "source"): "rises", ("clean", "other"): "falls"}
_OF_ALL = {("clean", "poisoned"): "rises", ("poisoned", "poisoned"): "falls"}
PAPER: dict[str, dict[tuple[str, str], str]] = {
    family: {**(_OF_CLEAN_LABELS if title.startswith(CLEAN_LABEL) else _OF_DIRTY_LABELS), **_OF_ALL}
    for family, title in FAMILIES.items()
}
"""What the paper's text says of each trend: by family, then by whose error is asked for and metric.

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


def trends(measured: Sequence[Measured], *, confidence: float = 0.95) -> list[dict[str, Any]]:
    """For each direction and metric: where it ends, its slope, its sign, the paper's sign.

    The slope's interval is over the bases of one scenario, or over several scenarios. ``rises`` and ``falls``
    mean that it leaves 0 on that side; what is ``unclear`` neither agrees with the paper nor disagrees.
    """
    family = _only_family(measured)
    found = []
    for fixed, metric in product(FIXED, METRICS):
        by_scenario = [
            [curve for curve in changes(each.records, fixed, metric).values() if len(curve) > 1]
            for each in measured
        ]
        slopes = [[_slope(curve) for curve in curves] for curves in by_scenario if curves]
        units = slopes[0] if len(slopes) == 1 else [mean(some) for some in slopes]
        if len(units) < 2:
            continue
        slope = _mean(units)
        low, high = slope.interval(confidence)
        trend = "rises" if low > 0 else "falls" if high < 0 else "unclear"
        said = PAPER.get(family, {}).get((fixed, metric))
        found.append({
            "fixed": fixed, "metric": metric, "scenarios": len(slopes), "bases": sum(map(len, slopes)),
            "end": median(curve[max(curve)] for curves in by_scenario for curve in curves),
            "slope": slope.mean, "interval": [low, high], "trend": trend, "paper": said,
            "agrees": None if said is None or trend == "unclear" else trend == said,
        })  # fmt: skip
    return found


def _slope(curve: Curve) -> float:
    ratios, values = np.array(list(curve)), np.array(list(curve.values()))
    away = ratios - ratios.mean()
    return float((away * values).sum() / (away**2).sum())


def _mean(values: Sequence[float]) -> Estimate:
    spread = float(np.std(values, ddof=1))
    return Estimate(float(np.mean(values)), spread / len(values) ** 0.5, len(values) - 1.0)


def _only_family(measured: Sequence[Measured]) -> str:
    """The family that all are of, if they can be shown together."""
    families = sorted({each.trial.family for each in measured})
    if len(families) != 1:
        raise InputError(
            f"a figure shows one family of attacks, and the records are of {' and '.join(families) or 'none'}"
            "; give those of one"
        )
    sizes = [{**each.trial.as_dict(), "settings": None} for each in measured]
    if any(size != sizes[0] for size in sizes):
        differing = sorted({name for size in sizes for name in size if size[name] != sizes[0][name]})
        raise InputError(
            f"the records of {families[0]} differ in {', '.join(differing)}; keep those of one scale and "
            "network in a folder"
        )
    return families[0]


TITLES = {
    "clean": "clean data", "source": "clean, source class", "other": "clean, other classes",
    "poisoned": "poisoned data",
}  # fmt: skip
COLORS = {"clean": "#0072B2", "poisoned": "#D55E00"}
"""Blue and vermilion of Okabe and Ito: told apart with any eyes."""
ADDED = {"clean": "poison added to clean data", "poisoned": "clean data added to poison"}


def draw_incompatibility(
    measured: Sequence[Measured], target: Path, *, directions: Sequence[Fixed] = FIXED
) -> None:
    """The paper's figure for one family: changes in accuracy by ratio, a row a metric, a column a direction.

    A point is a base of a scenario, the line connects the medians of all: with several scenarios these are
    the paper's "aggregated" results.
    """
    draw_side_by_side([measured], target, directions=directions)


def draw_side_by_side(
    groups: Sequence[Sequence[Measured]], target: Path, *, directions: Sequence[Fixed] = FIXED
) -> None:
    """:func:`draw_incompatibility` for several families, a panel each."""
    titles = [_title(group) for group in groups]
    _draw(list(zip(titles, groups, strict=True)), target, columns=len(groups), directions=directions)


def draw_scenarios(
    measured: Sequence[Measured], target: Path, *, directions: Sequence[Fixed] = FIXED
) -> None:
    """The paper's "full" figure for one family: a panel a scenario, two of them side by side."""
    family = _only_family(measured)
    panels = [(f"{FAMILIES.get(family, family)} ({each.trial.case})", [each]) for each in measured]
    _draw(panels, target, columns=min(2, len(panels)), directions=directions)


def _title(measured: Sequence[Measured]) -> str:
    family = _only_family(measured)
    scenarios = measured[0].trial.case if len(measured) == 1 else f"{len(measured)} scenarios"
    return f"{FAMILIES.get(family, family)} ({scenarios})"


def _draw(
    panels: Sequence[tuple[str, Sequence[Measured]]],
    target: Path,
    *,
    columns: int,
    directions: Sequence[Fixed],
) -> None:
    from unpoison.report.plots import pyplot, save

    rows = -(-len(panels) // columns)
    size = (4 * len(directions) * columns, 9 * rows)
    figure = pyplot().figure(figsize=size, layout="constrained")
    places = figure.subfigures(rows, columns, squeeze=False).flat
    for place, (title, measured) in zip(places, panels, strict=False):
        _draw_panel(place, title, measured, directions)
    save(figure, target)


def _draw_panel(figure: Any, title: str, measured: Sequence[Measured], directions: Sequence[Fixed]) -> None:
    axes = figure.subplots(len(METRICS), len(directions), sharex=True, squeeze=False)
    for column, fixed in enumerate(directions):
        for row, metric in enumerate(METRICS):
            curves = [curve for each in measured for curve in changes(each.records, fixed, metric).values()]
            _panel(axes[row][column], curves, COLORS[fixed])
            axes[row][column].set_title(TITLES[metric], fontsize=9)
        added = "poisoned" if fixed == "clean" else "clean"
        axes[-1][column].set_xlabel(f"share of the {added} data that is added")
    figure.suptitle(f"{title}: {', '.join(ADDED[fixed] for fixed in directions)}")
    figure.supylabel("change in accuracy (points)")


def _panel(axes: Any, curves: Sequence[Curve], color: str) -> None:
    ratios = sorted({ratio for curve in curves for ratio in curve})
    for curve in curves:
        axes.plot(list(curve), [100 * value for value in curve.values()], "o", color=color, alpha=0.5, ms=4)
    middle = [100 * median(curve[ratio] for curve in curves if ratio in curve) for ratio in ratios]
    axes.plot(ratios, middle, color=color, linewidth=2)
    axes.axhline(0.0, color="gray", linewidth=1, linestyle="--")
