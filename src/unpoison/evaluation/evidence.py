"""What the models of a defense saw and said, kept, so that another rule is tried in seconds.

``bench run --keep-evidence DIR`` writes a folder for each task; ``bench replay --evidence DIR`` goes through
the defense again with what is there, and trains nothing. What was planted lies beside it, for the score:
the defense is given labels and checkpoints.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from unpoison.attacks.base import Truth
from unpoison.core.checkpoint import FolderCheckpoints
from unpoison.core.learner import Learner
from unpoison.defenses.base import Decision
from unpoison.defenses.incompatibility import Incompatibility
from unpoison.errors import InputError, UnpoisonError
from unpoison.evaluation.bench import ON_CLEAN, BenchTask
from unpoison.seeds import Seeds
from unpoison.types import Arrays, LabelArray

TRUTH = "truth"
RECORD = "identity.json"
COMPUTED_ANEW = ("groups-",)
"""Tasks that train nothing: they are the rule that is tried."""


class NeedsTrainingError(UnpoisonError):
    """A model is asked for that was never trained: other groups are proposed, and judges have to be anew."""


@dataclass(frozen=True)
class Replayed:
    """What a defense makes of one task's evidence."""

    task: str
    planted: int
    found: int
    lost: int
    undecided: int
    """Groups that are neither removed nor called natural."""
    groups: tuple[dict[str, Any], ...]
    canaries: tuple[dict[str, int], ...] = ()
    needs: str = ""
    """What would have to be trained; then nothing else is known."""


class _OnlyKept:
    """Checkpoints that are read, and never written; what the rule computes is computed anew."""

    def __init__(self, kept: FolderCheckpoints) -> None:
        self._kept = kept

    def load(self, name: str) -> Arrays | None:
        """What was kept of a task."""
        if name.startswith(COMPUTED_ANEW):
            return None
        found = self._kept.load(name)
        if found is None:
            raise NeedsTrainingError(name)
        return found

    def save(self, name: str, arrays: Arrays) -> None:
        """Keep nothing."""


def keeping(
    folder: Path, task: BenchTask, *, features: Any, labels: LabelArray, truth: Truth
) -> FolderCheckpoints:
    """Where the evidence of a task goes; what was planted is written beside it."""
    identity = {**task.identity, **identity_of(features, labels, "attacks", "learners")}
    kept = FolderCheckpoints(folder / task.name, identity=identity)
    kept.save(
        TRUTH,
        {
            "planted": truth.planted,
            "covers": truth.covers,
            "original_labels": truth.original_labels,
            "labels": labels,
        },
    )
    return kept


def identity_of(features: Any, labels: LabelArray, *packages: str) -> dict[str, object]:
    """What models follow from: the samples, the code of these packages, and torch."""
    from unpoison.evaluation.poisoning import hash_of_code

    return {
        "data": hashlib.sha256(np.ascontiguousarray(features).data).hexdigest(),
        "labels": hashlib.sha256(labels.tobytes()).hexdigest(),
        "code": hash_of_code(*packages),
        "torch": version("torch"),
    }


def replay(folder: Path, changes: Mapping[str, Any]) -> Iterator[Replayed]:
    """Every task whose evidence is below ``folder``, with single settings of the defense changed."""
    records = sorted(folder.rglob(RECORD)) if folder.is_dir() else []
    if not records:
        raise InputError(f"{folder} has no evidence; run: unpoison bench run --keep-evidence {folder}")
    for record in records:
        yield _replayed(record, changes)


def _replayed(record: Path, changes: Mapping[str, Any]) -> Replayed:
    from unpoison.evaluation.experiment import defense_for
    from unpoison.evaluation.scales import scale_named
    from unpoison.evaluation.scenarios import by_name

    identity = _read(record)
    task = BenchTask(*(identity[name] for name in ("scenario", "scale", "defense", "seed")))
    kept = FolderCheckpoints(record.parent, identity=identity)
    known = kept.load(TRUTH)
    if known is None:
        raise InputError(f"{record.parent} has no {TRUTH}.npz; remove the folder and keep the evidence again")
    planted, labels = known["planted"].astype(np.bool_), known["labels"].astype(np.int64)
    scenario = by_name(task.scenario)
    setup = scale_named(task.scale).setup_for(scenario)
    defense = defense_for(task.defense.removesuffix(ON_CLEAN), scenario, setup, np.zeros_like(planted))
    if not isinstance(defense, Incompatibility):
        raise InputError(
            f"{record.parent} is of {task.defense!r}, which keeps no evidence; remove the folder"
        )
    ours = replace(defense, checkpoints=_OnlyKept(kept), changes={**defense.changes, **changes})
    seed = Seeds(task.seed).within("experiment").integer("defense")
    try:
        with threadpool_limits(limits=1):  # as tasks run
            decision = ours.judge(labels, _NothingTrained(), seed=seed)
    except NeedsTrainingError as needed:
        return Replayed(task.name, int(planted.sum()), 0, 0, 0, (), needs=str(needed))
    removed = ~decision.keep
    covers = known["covers"].astype(np.bool_)
    return Replayed(
        task.name,
        int(planted.sum()),
        int((removed & planted).sum()),
        int((removed & ~planted & ~covers).sum()),
        sum(group.undecided for group in decision.groups),
        tuple(told_groups(decision, Truth(planted, covers, labels))),
        decision.canaries,
    )


def told_groups(decision: Decision, truth: Truth) -> list[dict[str, Any]]:
    """What was judged together, and how much of it was planted."""
    if decision.components is None:
        return []
    inside = [decision.components[0] == number for number in range(1, len(decision.groups) + 1)]
    return [
        {
            "label": group.label,
            "size": group.size,
            "planted": int(truth.planted[members].sum()),
            **({"covers": int(truth.covers[members].sum())} if truth.covers.any() else {}),
            "removed": group.removed,
            **({"undecided": True} if group.undecided else {}),
            "called": group.called,
            "evidence": {name: round(value, 4) for name, value in group.evidence.items()},
        }
        for group, members in zip(decision.groups, inside, strict=True)
    ]


class _NothingTrained:
    """In place of models: nothing is trained; copies for canaries are as many as they were, and not made."""

    def __call__(self, seed: int) -> Learner:  # noqa: ARG002 - a factory
        raise NeedsTrainingError("a model")

    def with_marked_copies(self, *_: Any, **__: Any) -> _NothingTrained:
        return self


def _read(record: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError) as error:
        raise InputError(
            f"{record} cannot be read ({error}); remove the folder and keep the evidence again"
        ) from error
