"""What sets of samples do for each other: the job behind ``unpoison measure``, and the same from Python.

The quantities are those of :mod:`unpoison.core.expansion`, which works on positions and learners. Here go in
features, labels and a model, or a source and a file that says which samples make up which set.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from unpoison import __version__
from unpoison.core import expansion
from unpoison.core.expansion import Compatibility, Estimate, Measuring
from unpoison.data.container import Dataset
from unpoison.data.files import read_regular, shown
from unpoison.data.load import LoadOptions, load
from unpoison.data.records import Record, read_records
from unpoison.errors import InputError
from unpoison.events import Listener, Progress, ignore
from unpoison.learners.choose import Chosen, LearnerChoice, meant
from unpoison.runners.local import LocalRunner
from unpoison.types import IndexArray, LabelArray

Labelled: TypeAlias = tuple[Any, Any]
"""Features (rows, images or a sparse matrix) and one label a sample: ``(X, y)``."""

ID, SET = "id", "set"
MOST_SETS = 20
"""More are a mistake, or a hundred hours: every two sets are measured together."""
POOR = 0.5
"""An error of more than this share of what guessing the commonest class gets wrong says little."""


def expansion_error(
    learner: Any,
    S: Labelled,
    *,
    given: Labelled | None = None,
    alpha: float = 0.5,
    repeats: int = 8,
    epochs: int | None = None,
    seed: int = 0,
    workers: int = 1,
) -> Estimate:
    """The alpha-expansion error of ``S = (X, y)``, given another set or alone.

    Models are trained on a random share ``alpha`` of each class of both sets together; the error is what they
    get wrong among all samples of ``S``, on average over ``repeats`` models.

    Parameters
    ----------
    learner : classifier, str, callable or None
        As the ``estimator`` of :class:`IncompatibilityClustering`: a scikit-learn classifier, a name such as
        "compact", a callable that builds torch networks, or None for a logistic regression.
    epochs : int or None
        Passes over the training samples, for learners that train in passes. None: 10, and more for small
        sets, up to 300 steps.
    seed, workers : int
        The same seed gives the same numbers, with any number of worker processes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> error = expansion_error(None, (X[::2], y[::2]), given=(X[1::2], y[1::2]))
    >>> low, high = error.interval(0.95)
    >>> bool(0 <= low <= error.mean <= high < 0.2)
    True
    """
    how = measuring_for(alpha=alpha, repeats=repeats, epochs=epochs)
    sets = {"S": S} if given is None else {"S": S, "given": given}
    labels, chosen, members = _prepared(learner, sets)
    with closing(LocalRunner(workers)) as runner:
        return expansion.expansion_error(
            labels, chosen.factory, members["S"],
            given=members.get("given"), how=how, seed=seed, runner=runner,
        )  # fmt: skip


def compatibility(
    learner: Any,
    S: Labelled,
    T: Labelled,
    alpha: float = 0.5,
    *,
    repeats: int = 8,
    confidence: float = 0.95,
    epochs: int | None = None,
    seed: int = 0,
    workers: int = 1,
) -> Compatibility:
    """Whether training on ``T = (X, y)`` too helps with ``S``: compatible, incompatible or undecided.

    ``decision`` holds at the ``confidence`` asked for; where it is "undecided", ``repeats_needed`` says about
    how many repeats would decide. Parameters are those of :func:`expansion_error`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> wrong = (y + 1) % 3  # the same flowers, each called by another name
    >>> compatibility(None, (X[::2], y[::2]), (X[1::2], wrong[1::2])).decision
    'incompatible'
    """
    how = measuring_for(alpha=alpha, repeats=repeats, epochs=epochs, confidence=confidence)
    labels, chosen, members = _prepared(learner, {"S": S, "T": T})
    with closing(LocalRunner(workers)) as runner:
        return expansion.compatibility(
            labels, chosen.factory, members["S"], members["T"], how=how, seed=seed, runner=runner
        )


def compatibility_matrix(
    learner: Any,
    sets: Mapping[str, Labelled],
    *,
    alpha: float = 0.5,
    repeats: int = 8,
    confidence: float = 0.95,
    epochs: int | None = None,
    seed: int = 0,
    workers: int = 1,
) -> dict[tuple[str, str], Compatibility]:
    """For every ordered pair of named sets ``(S, T)``, what training on ``T`` too does for ``S``.

    Parameters are those of :func:`expansion_error`; k sets take ``repeats`` k (k + 1) / 2 models. The
    confidence is that of each decision by itself.
    """
    how = measuring_for(alpha=alpha, repeats=repeats, epochs=epochs, confidence=confidence)
    labels, chosen, members = _prepared(learner, sets)
    with closing(LocalRunner(workers)) as runner:
        return expansion.compatibility_matrix(
            labels, chosen.factory, members, how=how, seed=seed, runner=runner
        )


def measuring_for(*, epochs: int | None, **settings: Any) -> Measuring:
    """Epochs that were asked for are kept to; otherwise small sets get more."""
    return Measuring(**settings) if epochs is None else Measuring(epochs=epochs, min_steps=0, **settings)


def _prepared(learner: Any, sets: Mapping[str, Labelled]) -> tuple[LabelArray, Chosen, dict[str, IndexArray]]:
    """All sets in one: class numbers, the learner over all samples, and where each set is."""
    parts = {name: _checked(name, *given) for name, given in sets.items()}
    if len({_kind(y) for _, y in parts.values()}) > 1:
        raise InputError("the labels of some sets are text and those of others numbers; use one of them")
    shapes = {name: X.shape[1:] for name, (X, _) in parts.items()}
    if len(set(shapes.values())) > 1:
        raise InputError(f"the samples of the sets have different shapes: {shapes}; give the same features")
    classes, labels = np.unique(np.concatenate([y for _, y in parts.values()]), return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"all labels are {classes[0]!r}; a model needs at least two classes to tell apart")
    labels = labels.astype(np.int64)
    chosen = meant(learner, _stacked([X for X, _ in parts.values()]), labels, n_classes=len(classes))
    ends = np.cumsum([len(y) for _, y in parts.values()])
    members = {
        name: np.arange(end - len(y), end) for (name, (_, y)), end in zip(parts.items(), ends, strict=True)
    }
    return labels, chosen, members


def _checked(name: str, X: Any, y: Any) -> tuple[Any, Any]:
    from sklearn.utils.multiclass import check_classification_targets

    X, y = X if hasattr(X, "tocsr") else np.asarray(X), np.asarray(y)
    if y.ndim != 1 or X.shape[0] != len(y):
        raise InputError(
            f"the set {name!r} has features of shape {X.shape} and labels of shape {y.shape}; give one label "
            "a sample"
        )
    if len(y) == 0:
        raise InputError(f"the set {name!r} is empty; its error is not defined")
    check_classification_targets(y)
    return X, y


def _kind(labels: Any) -> str:
    return "text" if labels.dtype.kind in "OUS" else "number"


def _stacked(parts: list[Any]) -> Any:
    if not any(hasattr(part, "tocsr") for part in parts):
        return np.concatenate(parts)
    from scipy import sparse

    return sparse.vstack(parts, format="csr")


@dataclass(frozen=True)
class MeasureOptions:
    """How to measure. The defaults suit a first look."""

    how: Measuring = field(default_factory=Measuring)
    learner: LearnerChoice = field(default_factory=LearnerChoice)
    augment: str | None = None
    """How images are varied in training; None leaves that to the dataset."""
    seed: int = 0
    workers: int | None = None
    """Processes; None decides by the size of the data. The result does not depend on it."""
    load: LoadOptions = field(default_factory=LoadOptions)


def measure(
    source: str,
    sets: Path,
    *,
    options: MeasureOptions | None = None,
    listener: Listener = ignore,
    command: str | None = None,
) -> dict[str, Any]:
    """Measure every ordered pair of the sets that the file ``sets`` names in ``source``; plain values."""
    from unpoison.cleaning import learner_for  # here: what writes cleaned sets takes a moment to import

    options = options or MeasureOptions()
    started = time.perf_counter()
    listener(Progress("reading the data", 0, 1))
    dataset = load(source, options=options.load)
    members = read_sets(sets, dataset, max_bytes=options.load.max_bytes)
    learner = learner_for(dataset, options.learner, augment=options.augment)
    listener(Progress("reading the data", 1, 1))
    with closing(LocalRunner(options.workers or learner.suitable_workers())) as runner:
        matrix = expansion.compatibility_matrix(
            dataset.labels, learner.factory, members,
            how=options.how, seed=options.seed, runner=runner, listener=listener,
        )  # fmt: skip
    return {
        "data": {
            "name": dataset.name,
            "kind": dataset.kind,
            "n": len(dataset),
            "fingerprint": dataset.fingerprint,
        },
        **_found(dataset, members, matrix, options.how),
        "settings": asdict(options.how),
        "learner": learner.name,
        "training": learner.training,
        "seed": options.seed,
        "cost": _cost(matrix, members, options.how, seconds=time.perf_counter() - started),
        "version": __version__,
        "command": command,
    }


def read_sets(path: Path, dataset: Dataset, *, max_bytes: int) -> dict[str, IndexArray]:
    """The positions of the samples of each set, from a CSV or TSV file with columns ``id`` and ``set``."""
    name = shown(path.name)
    if not path.is_file():
        raise InputError(
            f"{shown(str(path))} is no file; give a CSV file with the columns {ID!r} and {SET!r}"
        )
    data = read_regular(path.resolve(), name, limit=max_bytes)
    form: Any = "tsv" if path.suffix.lower() == ".tsv" else "csv"
    records = read_records(data, name, form=form, max_bytes=max_bytes, label=SET)
    columns = records.header.cells
    for column in (ID, SET):
        if column not in columns:
            raise InputError(
                f"{name}:{records.header.line}: there is no column {column!r}, only "
                f"{', '.join(map(repr, columns))}; the file needs the columns {ID!r} and {SET!r}"
            )
    found = _grouped(name, records.rows, columns.index(ID), columns.index(SET), dataset)
    if not 2 <= len(found) <= MOST_SETS:
        raise InputError(
            f"{name}: names {len(found)} sets{_quoted(found)}; 2 to {MOST_SETS} can be measured against each "
            "other"
        )
    return found


def _grouped(
    name: str, rows: tuple[Record, ...], id_at: int, set_at: int, dataset: Dataset
) -> dict[str, IndexArray]:
    place = {sample_id: i for i, sample_id in enumerate(dataset.ids)}
    line_of: dict[str, int] = {}
    groups: dict[str, list[int]] = {}
    for row in rows:
        sample, group = row.cells[id_at], row.cells[set_at].strip()
        where = f"{name}:{row.line}"
        if not group:
            raise InputError(f"{where}: the set of {sample!r} is empty; name a set, or leave the line out")
        if sample not in place:
            raise InputError(
                f"{where}: {dataset.name} has no sample with the id {sample!r}; ids are those of "
                f"manifest.csv, the first one is {dataset.ids[0]!r}"
            )
        if sample in line_of:
            raise InputError(
                f"{where}: the sample {sample!r} is in a set already (line {line_of[sample]}); a sample is "
                "in one set, once"
            )
        line_of[sample] = row.line
        groups.setdefault(group, []).append(place[sample])
    return {group: np.sort(np.array(places, dtype=np.int64)) for group, places in groups.items()}


def _quoted(sets: Mapping[str, Any]) -> str:
    """The first names, which tell where columns were swapped."""
    names = ", ".join(repr(name) for name in list(sets)[:3])
    return f" ({names}{', ...' if len(sets) > 3 else ''})" if sets else ""


def _found(
    dataset: Dataset,
    members: Mapping[str, IndexArray],
    matrix: Mapping[tuple[str, str], Compatibility],
    how: Measuring,
) -> dict[str, Any]:
    alone = {of: found.alone for (of, _), found in matrix.items()}
    return {
        "sets": {
            name: {
                "n": len(places),
                "classes": len(np.unique(dataset.labels[places])),
                "error": _plain(alone[name], how),
            }
            for name, places in members.items()
        },
        "pairs": [
            {
                "of": of,
                "given": given,
                "decision": found.decision,
                "error": _plain(found.given, how),
                "change": _plain(found.difference, how),
                "repeats_needed": found.repeats_needed,
            }
            for (of, given), found in matrix.items()
        ],
        "notes": [
            note
            for name, places in members.items()
            for note in _notes(name, dataset.labels[places], alone[name].mean)
        ],
    }


def _plain(estimate: Estimate, how: Measuring) -> dict[str, Any]:
    return {
        "mean": estimate.mean,
        "standard_error": estimate.standard_error,
        "interval": list(estimate.interval(how.confidence)),
    }


def _notes(name: str, labels: LabelArray, error: float) -> list[str]:
    """What makes the numbers of a set say less than they seem to."""
    guessing = 1.0 - float(np.bincount(labels).max()) / len(labels)
    if guessing == 0.0:
        return [
            f"All samples of {name!r} have the same label. Models that see no other cannot be wrong about "
            "it, so whatever is added can only raise its error."
        ]
    if error > POOR * guessing:
        return [
            f"The learner explains little of {name!r}: alone its error is {error:.1%}, and guessing its "
            f"commonest class gets {guessing:.1%} wrong. More epochs or another learner may tell more."
        ]
    return []


def _cost(
    matrix: Mapping[tuple[str, str], Compatibility],
    members: Mapping[str, IndexArray],
    how: Measuring,
    *,
    seconds: float,
) -> dict[str, Any]:
    cost = next(iter(matrix.values())).cost
    return {
        "models": how.repeats * len(members) * (len(members) + 1) // 2,
        "trained": cost.trained,
        "scored": cost.scored,
        "learner_seconds": round(cost.seconds, 3),
        "seconds": round(seconds, 3),
    }
