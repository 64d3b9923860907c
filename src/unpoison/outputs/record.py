"""``run.json``: what was run on what, what came out, and the hashes of the files beside it."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import numpy as np

from unpoison import __version__
from unpoison.core.result import Group, Sanitization
from unpoison.data.container import Dataset
from unpoison.errors import OutputError
from unpoison.outputs.manifest import class_name
from unpoison.outputs.overrides import Overrides
from unpoison.outputs.place import RUN, show
from unpoison.outputs.verdict import caution, verdict
from unpoison.report.canaries import NOTE, canaries
from unpoison.report.certainty import certainty, removed_labels
from unpoison.report.review import Review
from unpoison.report.shared import Shared
from unpoison.report.text import count, printable
from unpoison.types import BoolArray

FORMAT_VERSION = 2
"""2: the manifest has ``decided_by``, and ``evidence.npz`` stands beside it."""

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
    source: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Where the data was read from, for ``unpoison apply``, which reads it again."""
    input: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Choices at reading the data, such as the size of images."""
    training: dict[str, Any] | None = None
    """How networks were trained; None for other learners."""
    matmul_share: float | None = None
    """The rate at which networks computed, over that of a large matrix product on the same device."""


def build(
    dataset: Dataset, result: Sanitization, *, run: RunFacts, shared: Mapping[int, Shared] | None = None
) -> Record:
    """The content of ``run.json`` except ``files``; only numbers, text, lists and dicts.

    ``shared`` says for a label what its removed samples have in common.
    """
    facts = {
        "format_version": FORMAT_VERSION,
        "tool": {"name": "unpoison", "version": __version__},
        "command": run.command,
        "method": run.method,
        "learner": run.learner,
        "training": run.training,
        "seed": run.seed,
        "source": run.source,
        "input": run.input,
        "settings": run.settings,
        "versions": versions(with_torch=run.training is not None),
        "data": _data(dataset),
        "result": _result(dataset, result, shared or {}),
        "review": None,
        "cost": {**dataclasses.asdict(result.cost), "matmul_share": run.matmul_share},
        "timings": {"seconds": round(run.seconds, 3)},
    }
    record: Record = plain(facts)
    return record


def reviewed(
    record: Record,
    dataset: Dataset,
    result: Sanitization,
    *,
    review: Review,
    overrides: Overrides,
    by: str | None = None,
) -> Record:
    """The record of a run after a review: the run's findings, the numbers of now, and who changed them.

    The same overrides of the same reviewer again are the same review.
    """
    put_back, taken_out = review.put_back(result.keep), review.taken_out(result.keep)
    removed = int((~review.keep).sum())
    applied = [
        entry
        for entry in (record["review"] or {}).get("applied", [])
        if (entry.get("overrides_sha256"), entry.get("by")) != (overrides.sha256, by)
    ]
    entry = {
        "by": by,
        "overrides_sha256": overrides.sha256,
        "keep": len(overrides.keep),
        "remove": len(overrides.remove),
    }
    facts = {
        "summary": f"People decided about {count(int(review.decided.sum()))} of the samples: "
        f"{_are(put_back, 'that the run had removed')} kept, "
        f"{_are(taken_out, 'that it had kept')} removed. Now {_are(removed)} removed.",
        "n_decided": int(review.decided.sum()),
        "n_put_back": put_back,
        "n_taken_out": taken_out,
        "applied": [*applied, {**entry, "version": __version__}],
    }
    found = {**record["result"], **counts(dataset, result, review.keep)}
    return {**record, "result": found, "review": facts}


def _are(number: int, which: str = "") -> str:
    """``2 of which are``, ``1 of which is``."""
    return " ".join(part for part in (count(number), which, "is" if number == 1 else "are") if part)


def read_record(directory: Path) -> Record:
    """What ``run.json`` in ``directory`` says.

    Raises:
        OutputError: It cannot be read, or is of another format.
    """
    path = directory / RUN
    try:
        record: Record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise OutputError(f"{show(path)} cannot be read ({printable(str(error), 200)})") from error
    parts = ("data", "result", "files")
    if not isinstance(record, dict) or not all(isinstance(record.get(part), dict) for part in parts):
        raise OutputError(
            f"{show(path)} was not written by unpoison; choose an empty or new folder with --out"
        )
    if record.get("format_version") != FORMAT_VERSION:
        found = printable(repr(record.get("format_version")))
        raise OutputError(
            f"{show(path)} has format version {found}; this version of unpoison knows {FORMAT_VERSION}. "
            "Run unpoison clean again, into a new folder"
        )
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


def _result(dataset: Dataset, result: Sanitization, shared: Mapping[int, Shared]) -> Record:
    return {
        "verdict": verdict(dataset, result, shared={label: str(found) for label, found in shared.items()}),
        "certainty": certainty(dataset, result, marked=shared.keys()),
        "shared": [
            {"label": dataset.class_names[label], "removed": n, **_shared(shared.get(label))}
            for label, n in removed_labels(dataset.labels, result)
        ],
        "caution": caution(dataset, result),
        **counts(dataset, result, result.keep),
        "canaries": [
            {"label": class_name(dataset, canary.label), "size": canary.size, "found": canary.found}
            for canary in canaries(dataset, result)
        ],
        "groups": [_group(dataset, group) for group in result.groups],
        "notes": {name: note for name, note in result.notes.items() if name != NOTE},
    }


def _shared(found: Shared | None) -> Record:
    """A pattern or traits; neither where no common mark was found."""
    found = found or Shared()
    return {"pattern": found.pattern, "traits": [dataclasses.asdict(trait) for trait in found.named]}


def counts(dataset: Dataset, result: Sanitization, keep: BoolArray) -> Record:
    """How many samples are removed, in all and of each class; ``keep`` may be a reviewer's."""
    removed = int((~keep).sum())
    return {
        "n_removed": removed,
        "removed_fraction": removed / len(keep),
        "by_class": [_by_class(dataset, result, keep, label) for label in range(len(dataset.class_names))],
    }


def _by_class(dataset: Dataset, result: Sanitization, keep: BoolArray, label: int) -> Record:
    members = dataset.labels == label
    called = result.predicted[members & ~keep]
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
        "undecided": group.undecided,
        "reason": group.reason,
        "evidence": dict(group.evidence),
    }
