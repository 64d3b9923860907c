"""Finished runs on small real data, without the training: the decision is given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cli.builders import planted, write_form
from unpoison.core.result import Cost, Group, Sanitization, VoteRecord
from unpoison.data.container import Dataset
from unpoison.data.load import LoadOptions, load
from unpoison.outputs import RunFacts, write

INPUT = ("label", "text", "id_column", "split", "image", "image_size")


def finished_run(form: str, directory: Path, *, copy: bool = False) -> Path:
    """Digits in ``form`` and, in the folder ``out`` beside them, a run that removed what was planted."""
    data = planted()
    source, extra = write_form(form, directory, data)
    given = dict(zip(extra[::2], extra[1::2], strict=True))
    options = LoadOptions(label=given.get("--label"), id_column=given.get("--id"), link=not copy)
    dataset = load(source, options=options)
    ids = {sample for sample, truth in zip(data.ids, data.truth, strict=True) if truth}
    removed = [i for i, sample in enumerate(dataset.ids) if sample.removesuffix(".png").split("/")[-1] in ids]
    return finish(dataset, directory / "out", source=str(source), removed=removed, options=options)


def finish(
    dataset: Dataset,
    out: Path,
    *,
    source: str,
    removed: Sequence[int],
    called: str = "one",
    options: LoadOptions | None = None,
) -> Path:
    """Write what a run on ``dataset`` that removed those samples would have written."""
    options = options or LoadOptions()
    facts = RunFacts(
        settings={"pairs": 2},
        method="groups",
        learner="logistic",
        seed=0,
        seconds=1.5,
        command="unpoison clean",
        source={"place": source, "copy": not options.link},
        input={name: getattr(options, name) for name in INPUT},
    )
    return write(dataset, decision(dataset, removed, called), out, run=facts)


def decision(dataset: Dataset, removed: Sequence[int], called: str) -> Sanitization:
    n = len(dataset)
    keep = np.ones(n, dtype=np.bool_)
    keep[list(removed)] = False
    number = dataset.class_names.index(called)
    predictions = np.tile(dataset.labels, (4, 1)).astype(np.int32)
    predictions[:3, list(removed)] = number
    losses = np.where(predictions == dataset.labels, 0.125, 3.0).astype(np.float32)
    asked = np.ones((4, n), dtype=np.bool_)
    asked[3] = np.arange(n) % 2 == 0
    suspicion = np.where(keep, 0.1, 0.8) + np.linspace(0, 0.1, n)
    label = int(dataset.labels[removed[0]]) if len(removed) else 0
    groups = (Group(label, len(removed), True, number, {"met": 13.0, "agreement": 0.25}),)
    return Sanitization(
        keep=keep,
        suspicion=suspicion,
        predicted=np.where(keep, dataset.labels, number),
        components=np.where(keep, 0, 1)[None, :],
        cost=Cost(1000, 400),
        groups=groups if len(removed) else (),
        notes={"vote_accuracy": 0.95},
        votes=VoteRecord(("judge 1", "judge 2", "judge 3", "judge 4"), predictions, losses, asked),
    )


def save_overrides(path: Path, out: Path, **changes: Any) -> Path:
    """An overrides file for the run in ``out``."""
    record = json.loads((out / "run.json").read_text())
    content = {"unpoison_overrides": 1, "fingerprint": record["data"]["fingerprint"], **changes}
    path.write_text(json.dumps(content))
    return path
