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
from unpoison.outputs import manifest, place, record
from unpoison.outputs.place import WORK_FOLDER, is_complete, prepare
from unpoison.outputs.record import RunFacts
from unpoison.report.page import render

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
            _fill(staging, dataset, result, run)
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


def _fill(staging: Path, dataset: Dataset, result: Sanitization, run: RunFacts) -> None:
    table = manifest.build(dataset, result)
    manifest.write_csv(table, staging / place.MANIFEST_CSV)
    manifest.write_parquet(table, staging / place.MANIFEST_PARQUET)
    facts = record.build(dataset, result, run=run)
    page = render(dataset, result, record=facts)
    (staging / place.REPORT).write_bytes(page.encode("utf-8"))
    clean = staging / place.CLEAN
    clean.mkdir()
    dataset.origin.write_kept(result.keep, clean)
    hashed = place.hashed_names(staging, form=dataset.origin.form)
    facts["files"] = {name: hash_file(staging / name) for name in hashed}
    (staging / place.RUN).write_bytes(record.dump(facts))


def hash_file(path: Path) -> str:
    """The sha256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _publish(staging: Path, directory: Path) -> None:
    """Move everything to where it belongs. Each step is atomic, and ``run.json`` tells that all were done."""
    _set_aside(directory / place.RUN, staging)
    for name in place.PUBLISHED:
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
