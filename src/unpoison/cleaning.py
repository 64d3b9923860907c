"""The whole job: load a source, judge every sample, write the cleaned set with its evidence."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unpoison import __version__
from unpoison.core.checkpoint import FolderCheckpoints, check_same
from unpoison.core.config import GroupSettings, Settings
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import USUAL_EFFORT, settings_for, usual_method
from unpoison.core.result import Cost
from unpoison.data.container import Dataset
from unpoison.data.load import HUB_PREFIX, LoadOptions, load
from unpoison.data.named.catalog import NAMES
from unpoison.events import Listener, Progress, ignore
from unpoison.learners.choose import Chosen, LearnerChoice, choose, matmul_share
from unpoison.outputs.bundle import WORK_FOLDER, RunFacts, is_complete, prepare, write
from unpoison.outputs.record import read_record
from unpoison.runners.local import LocalRunner


@dataclass(frozen=True)
class CleanOptions:
    """How to clean. The defaults suit a first run."""

    method: str | None = None
    """None: ``ispl`` with the paper's or authors' settings, else ``groups``."""
    preset: str = "auto"
    effort: str | None = None
    """How long ``groups`` trains networks: ``quick``, ``standard`` (None) or ``thorough``. Plain classifiers
    train in moments: for them it changes nothing."""
    learner: LearnerChoice = field(default_factory=LearnerChoice)
    augment: str | None = None
    """How images are varied in training; None leaves that to the dataset."""
    seed: int = 0
    workers: int | None = None
    """Processes; None decides by the size of the data. The result does not depend on it."""
    resume: bool = False
    load: LoadOptions = field(default_factory=LoadOptions)
    changes: dict[str, Any] = field(default_factory=dict)
    """Single settings to change, by name."""


@dataclass(frozen=True)
class _Job:
    """A source that was read, and what will be done with it."""

    dataset: Dataset
    settings: Settings
    told: dict[str, Any]
    """The settings, and the effort where they follow from it."""
    learner: Chosen
    identity: dict[str, Any]
    """What must be the same for two runs to give the same result."""


def clean(
    source: str,
    out: Path,
    *,
    options: CleanOptions | None = None,
    listener: Listener = ignore,
    command: str | None = None,
) -> dict[str, Any]:
    """Clean ``source`` into the folder ``out``; return what its ``run.json`` says."""
    options = options or CleanOptions()
    started = time.perf_counter()
    finished = options.resume and _said(lambda: is_complete(out))
    new_folders = _missing(out)
    if not finished:
        local = source.removeprefix("hf:")
        there = local != "" and _said(Path(local).exists)
        prepare(out, resume=options.resume, source=Path(local) if there else None)
    try:
        listener(Progress("reading the data", 0, 1))
        job = _read(source, options)
    except Exception:
        _undo_prepare(out, new_folders)
        raise
    listener(Progress("reading the data", 1, 1))
    if finished:
        return _finished_run(out, job.identity)
    runner = LocalRunner(options.workers or job.learner.suitable_workers())
    result = sanitize(
        job.dataset.labels,
        job.learner.factory,
        job.settings,
        seed=options.seed,
        runner=runner,
        checkpoints=FolderCheckpoints(out / WORK_FOLDER / "rounds", identity=job.identity),
        listener=listener,
    )
    runner.close()
    listener(Progress("writing the results", 0, 1))
    seconds = time.perf_counter() - started
    facts = _facts(job, options, cost=result.cost, seconds=seconds, command=command)
    write(job.dataset, result, out, run=replace(facts, source=_source_facts(source, options.load)))
    listener(Progress("writing the results", 1, 1))
    return read_record(out)


def _read(source: str, options: CleanOptions) -> _Job:
    dataset = load(source, options=options.load)
    learner = learner_for(dataset, options.learner, augment=options.augment)
    method = options.method or usual_method(options.preset)
    if options.augment is None:
        learner = learner.suited_to(method)
    settings = settings_for(
        dataset.labels,
        method=method,
        preset=options.preset,
        networks=learner.is_network,
        effort=options.effort,
        **options.changes,
    )
    told = settings.as_dict()
    if isinstance(settings, GroupSettings) and learner.is_network:
        told["effort"] = options.effort or USUAL_EFFORT
    identity = {
        "data": dataset.fingerprint,
        "input": _input_options(options.load),
        "settings": told,
        "learner": learner.name,
        "training": learner.training,
        "seed": options.seed,
        "version": __version__,
    }
    return _Job(dataset, settings, told, learner, identity)


def learner_for(dataset: Dataset, choice: LearnerChoice, *, augment: str | None) -> Chosen:
    """The learner that is meant for a dataset; ``augment`` None varies images as suits the dataset."""
    training = replace(choice.training, augmentation=augment or dataset.augmentation)
    choice = replace(choice, training=training)
    return choose(choice, dataset.features, dataset.labels, n_classes=len(dataset.class_names))


_INPUT = ("label", "text", "id_column", "split", "image", "image_size")


def _input_options(options: LoadOptions) -> dict[str, Any]:
    """The choices at reading that change what a learner sees."""
    return {name: getattr(options, name) for name in _INPUT}


def _facts(job: _Job, options: CleanOptions, *, cost: Cost, seconds: float, command: str | None) -> RunFacts:
    return RunFacts(
        settings=job.told,
        method=job.settings.method,
        learner=job.learner.name,
        training=job.learner.training,
        matmul_share=matmul_share(job.learner, cost),
        seed=options.seed,
        seconds=seconds,
        command=command,
        input=job.identity["input"],
    )


def _source_facts(source: str, options: LoadOptions) -> dict[str, Any]:
    """Where the data can be read again, from any folder, and whether image files are to be copied."""
    scheme = HUB_PREFIX if source.startswith(HUB_PREFIX) else ""
    local = source.removeprefix(scheme)
    is_path = local != "" and source not in NAMES and _said(Path(local).exists)
    return {"place": scheme + str(Path(local).absolute()) if is_path else source, "copy": not options.link}


def _said(ask: Callable[[], bool]) -> bool:
    """The answer of the file system; no where it refuses one, as for a name that is too long."""
    try:
        return ask()
    except OSError:
        return False


def _missing(out: Path) -> list[Path]:
    """``out`` and the folders above it that are not there yet, innermost first."""
    return [folder for folder in (out, *out.parents) if not _said(folder.exists)]


def _undo_prepare(out: Path, new_folders: list[Path]) -> None:
    """Leave nothing behind where the input was refused before any work was done."""
    work = out / WORK_FOLDER
    if work.is_dir() and not any(work.iterdir()):
        with suppress(OSError):  # someone else put something there meanwhile
            for folder in (work, *new_folders):
                folder.rmdir()


def _finished_run(out: Path, identity: dict[str, object]) -> dict[str, Any]:
    """A resumed run that was complete already: check that it is the same one, tidy up, report it."""
    record = read_record(out)
    known = {
        "data": record["data"].get("fingerprint"),
        "settings": record.get("settings"),
        "learner": record.get("learner"),
        "training": record.get("training"),
        "seed": record.get("seed"),
        "input": record.get("input"),
    }
    check_same(known, {key: identity[key] for key in known}, where=str(out))
    shutil.rmtree(out / WORK_FOLDER, ignore_errors=True)
    return record
