"""``run.json``: what was run on what, what came out, and the hashes of the files beside it."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np

from unpoison import __version__
from unpoison.core.result import Group, Sanitization
from unpoison.data.container import Dataset
from unpoison.outputs.manifest import class_name
from unpoison.outputs.verdict import caution, verdict

FORMAT_VERSION = 1

Record: TypeAlias = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class RunFacts:
    """What the caller knows about the run and the result does not."""

    settings: dict[str, Any]
    method: str
    learner: str
    seed: int
    seconds: float
    command: str | None = None
    input: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Choices at reading the data, such as the size of images."""
    training: dict[str, Any] | None = None
    """How networks were trained; None for other learners."""
    matmul_share: float | None = None
    """The rate at which networks computed, over that of a large matrix product on the same device."""


def build(dataset: Dataset, result: Sanitization, *, run: RunFacts) -> Record:
    """The content of ``run.json`` except ``files``; only numbers, text, lists and dicts."""
    facts = {
        "format_version": FORMAT_VERSION,
        "tool": {"name": "unpoison", "version": __version__},
        "command": run.command,
        "method": run.method,
        "learner": run.learner,
        "training": run.training,
        "seed": run.seed,
        "input": run.input,
        "settings": run.settings,
        "versions": versions(with_torch=run.training is not None),
        "data": _data(dataset),
        "result": _result(dataset, result),
        "cost": {**dataclasses.asdict(result.cost), "matmul_share": run.matmul_share},
        "timings": {"seconds": round(run.seconds, 3)},
    }
    record: Record = plain(facts)
    return record


def dump(record: Record) -> bytes:
    """The record as JSON in pure ASCII: showing the file on a terminal cannot run escape codes."""
    return (json.dumps(record, indent=2, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


def versions(*, with_torch: bool = False) -> dict[str, str]:
    """The versions on which the numbers of a run depend."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": _version("scikit-learn"),
        **({"torch": _version("torch")} if with_torch else {}),
        "platform": platform.platform(),
    }


def plain(value: Any) -> Any:
    """``value`` as JSON can hold it: arrays become lists, not-a-number becomes null, the unknown its text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value) if isinstance(value, PurePath) else repr(value)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # running from a source tree
        return "unknown"


def _data(dataset: Dataset) -> Record:
    counts = np.bincount(dataset.labels, minlength=len(dataset.class_names))
    return {
        "name": dataset.name,
        "form": dataset.origin.form,
        "kind": dataset.kind,
        "n": len(dataset),
        "classes": [{"name": n, "samples": int(c)} for n, c in zip(dataset.class_names, counts, strict=True)],
        "fingerprint": dataset.fingerprint,
    }


def _result(dataset: Dataset, result: Sanitization) -> Record:
    return {
        "verdict": verdict(dataset, result),
        "caution": caution(result),
        "n_removed": result.n_removed,
        "removed_fraction": result.removed_fraction,
        "by_class": [_by_class(dataset, result, label) for label in range(len(dataset.class_names))],
        "groups": [_group(dataset, group) for group in result.groups],
        "notes": result.notes,
    }


def _by_class(dataset: Dataset, result: Sanitization, label: int) -> Record:
    members = dataset.labels == label
    called = result.predicted[members & ~result.keep]
    votes = np.bincount(called[called >= 0], minlength=len(dataset.class_names))
    return {
        "class": dataset.class_names[label],
        "samples": int(members.sum()),
        "removed": len(called),
        "most_called": dataset.class_names[int(votes.argmax())] if votes.any() else None,
        "most_called_times": int(votes.max()),
    }


def _group(dataset: Dataset, group: Group) -> Record:
    return {
        "label": class_name(dataset, group.label),
        "called": class_name(dataset, group.called) if group.called >= 0 else None,
        "size": group.size,
        "removed": group.removed,
        "evidence": dict(group.evidence),
    }
