"""Writing the results: all of them in a corner first, then in place one by one, ``run.json`` last."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.errors import OutputError
from unpoison.outputs import evidence, manifest, place, record
from unpoison.outputs.place import WORK_FOLDER, is_complete, prepare
from unpoison.outputs.record import Record, RunFacts
from unpoison.report.page import render
from unpoison.report.review import Review
from unpoison.report.study import Study, study

__all__ = ["write", "RunFacts", "prepare", "is_complete", "WORK_FOLDER"]

_STAGING = "staging-"
_MANY_FILES = 500
"""Above this, one flush of everything is faster than one a file."""


def write(dataset: Dataset, result: Sanitization, directory: Path, *, run: RunFacts) -> Path:
    """Leave manifest, record, cleaned set and report in ``directory``; return it.

    A run that dies on the way leaves no ``run.json``, and calling this again completes it with the same
    bytes. At the end the work folder is gone; if removing it fails, the run is complete all the same.

    Raises:
        OutputError: The folder holds results that are not from an unfinished run, or cannot be written.
    """
    try:
        _check_ours(directory)
        staging = _new_staging(directory)
        try:
            found = study(dataset, result)
            facts = record.build(dataset, result, run=run, shared=found.shared())
            _fill(staging, dataset, result, facts=facts, found=found)
            _flush(staging)
            _publish(staging, directory)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise OutputError(
            f"{place.show(directory)}: the results could not be written ({error}); "
            "remedy that and run again with --resume"
        ) from error
    shutil.rmtree(directory / WORK_FOLDER, ignore_errors=True)
    return directory


def rewrite(
    dataset: Dataset, result: Sanitization, directory: Path, *, facts: Record, review: Review
) -> None:
    """Replace the results in ``directory`` by those after a review; ``facts`` is their record.

    Whatever happens, the folder then holds the old results, or the new ones, or is finished by
    :func:`finish_review`.

    Raises:
        OutputError: The results could not be written; the old ones are as they were.
    """
    place.check_work_folder(directory)
    work = directory / WORK_FOLDER
    try:
        staging = _new_staging(directory)
        _fill(staging, dataset, result, facts=facts, found=study(dataset, result), review=review)
        _flush(staging)
        staging.replace(work / place.READY_REVIEW)  # from here on the review counts
        _flush_one(work)
    except BaseException as error:
        shutil.rmtree(work, ignore_errors=True)
        if isinstance(error, OSError):
            raise OutputError(
                f"{place.show(directory)}: the results could not be written ({error}); nothing was changed"
            ) from error
        raise
    finish_review(directory)


def finish_review(directory: Path) -> None:
    """Put in place what :func:`rewrite` had written when it was interrupted; nothing where nothing was."""
    place.check_work_folder(directory)
    if not place.has_ready_review(directory):
        return
    try:
        _publish(directory / WORK_FOLDER / place.READY_REVIEW, directory)
    except OSError as error:
        raise OutputError(
            f"{place.show(directory)}: the review could not be put in place ({error}); remedy that and "
            "run the same command again"
        ) from error
    shutil.rmtree(directory / WORK_FOLDER, ignore_errors=True)


def _check_ours(directory: Path) -> None:
    """Only an unfinished run of ours may be written over, and the work folder is its sign."""
    place.check_work_folder(directory)
    if (directory / WORK_FOLDER).is_dir():
        return
    for name in place.PUBLISHED:
        if os.path.lexists(directory / name):
            raise OutputError(
                f"{place.show(directory)}: already holds {name!r}; choose an empty or new folder with --out"
            )


def _new_staging(directory: Path) -> Path:
    work = directory / WORK_FOLDER
    work.mkdir(parents=True, exist_ok=True)
    for left_over in work.glob(f"{_STAGING}*"):
        shutil.rmtree(left_over)
    return Path(tempfile.mkdtemp(prefix=_STAGING, dir=work))


def _fill(
    staging: Path,
    dataset: Dataset,
    result: Sanitization,
    *,
    facts: Record,
    found: Study,
    review: Review | None = None,
) -> None:
    table = manifest.build(dataset, result, review)
    manifest.write_csv(table, staging / place.MANIFEST_CSV)
    manifest.write_parquet(table, staging / place.MANIFEST_PARQUET)
    evidence.write(staging / place.EVIDENCE, result, found.near)
    page = render(dataset, result, record=facts, found=found, review=review)
    (staging / place.REPORT).write_bytes(page.encode("utf-8"))
    clean = staging / place.CLEAN
    clean.mkdir()
    dataset.origin.write_kept(result.keep if review is None else review.keep, clean)
    hashed = place.hashed_names(staging, form=dataset.origin.form)
    files = {name: hash_file(staging / name) for name in hashed}
    (staging / place.RUN).write_bytes(record.dump({**facts, "files": files}))


def hash_file(path: Path) -> str:
    """The sha256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _publish(staging: Path, directory: Path) -> None:
    """Move everything to where it belongs. Each step is atomic, and ``run.json`` tells that all were done."""
    _set_aside(directory / place.RUN, staging)
    for name in place.PUBLISHED:
        if not os.path.lexists(staging / name):
            continue  # moved before an interruption
        if name == place.RUN:
            _flush_one(directory)
        elif not (directory / name).is_file():
            _set_aside(directory / name, staging)
        (staging / name).replace(directory / name)
    _flush_one(directory)


def _set_aside(path: Path, staging: Path) -> None:
    """Make room: a folder cannot be replaced by another in one step."""
    if os.path.lexists(path):
        path.replace(staging / f"old-{path.name}")


def _flush(staging: Path) -> None:
    """Have the disk hold what was written before any of it is called a result."""
    files = [Path(folder) / name for folder, _, names in os.walk(staging) for name in names]
    if len(files) > _MANY_FILES and hasattr(os, "sync"):
        os.sync()
        return
    for path in files:
        if not path.is_symlink():
            _flush_one(path)
    for folder, _, _ in os.walk(staging, topdown=False):
        _flush_one(Path(folder))


def _flush_one(path: Path) -> None:
    if os.name == "nt":  # neither folders nor files opened for reading can be flushed there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
