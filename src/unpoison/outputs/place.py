"""The folder the results go to: which names in it are ours, and when it may be used."""

from __future__ import annotations

from pathlib import Path

from unpoison.errors import OutputError
from unpoison.report.text import printable

WORK_FOLDER = ".unpoison-work"
"""Checkpoints and unfinished files, inside the output folder; gone when a run is complete."""

READY_REVIEW = "review"
"""In the work folder: a review that was written whole, while it is being put in place."""

RUN = "run.json"
REPORT = "report.html"
MANIFEST_CSV = "manifest.csv"
MANIFEST_PARQUET = "manifest.parquet"
EVIDENCE = "evidence.npz"
CLEAN = "clean"

PUBLISHED = (CLEAN, EVIDENCE, MANIFEST_PARQUET, MANIFEST_CSV, REPORT, RUN)
"""Everything a complete run leaves, in the order it appears: ``run.json`` last."""


def hashed_names(directory: Path, *, form: str) -> list[str]:
    """The files whose sha256 ``run.json`` holds, relative to ``directory``.

    A cleaned set that is one file is among them: the hashes of its samples cover neither a table's header nor
    the other arrays of an ``.npz``. A folder of images has a hash for each in the manifest.
    """
    names = [EVIDENCE, MANIFEST_CSV, MANIFEST_PARQUET, REPORT]
    clean = directory / CLEAN
    if form != "folder" and clean.is_dir() and not clean.is_symlink():
        names += sorted(f"{CLEAN}/{entry.name}" for entry in clean.iterdir() if entry.is_file())
    return names


def check_folder(directory: Path) -> None:
    """Refuse what is no folder, before anything in it is looked at."""
    try:
        found = directory.is_dir()
    except (OSError, ValueError):  # a name that no folder can have
        found = False
    if not found:
        raise OutputError(f"{show(directory)}: there is no such folder; give the --out folder of a run")


UNFINISHED_REVIEW = "holds a review that was interrupted; finish it with the same unpoison apply again"


def has_ready_review(directory: Path) -> bool:
    """Whether a review was interrupted while it was being put in place."""
    return (directory / WORK_FOLDER / READY_REVIEW / RUN).is_file()


def is_complete(directory: Path) -> bool:
    """Whether ``directory`` holds a finished run: ``run.json`` appears last, after everything else."""
    return (directory / RUN).is_file()


def prepare(directory: Path, *, resume: bool, source: Path | None = None) -> Path:
    """Make ``directory`` ready for a run and return its work folder, which exists afterwards.

    Accepts a folder that is absent or empty; with ``resume`` also one that an interrupted run left.

    Raises:
        OutputError: The folder cannot be used; the message names the way out. Nothing in it was changed.
    """
    try:
        _check_apart(directory, source)
        _check_usable(directory, resume=resume)
        work = directory / WORK_FOLDER
        work.mkdir(parents=True, exist_ok=True)
        _check_writable(work)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(
            f"{show(directory)}: cannot be used for the results ({reason}); "
            "choose a folder that you may write to with --out"
        ) from error
    return work


def show(path: Path) -> str:
    """A path for a message: control characters visible, not endlessly long."""
    return printable(str(path), 400)


def _check_apart(directory: Path, source: Path | None) -> None:
    """The output must not become part of the next run's input, nor the input part of the output."""
    if source is None:
        return
    inner, outer = directory.resolve(), source.resolve()
    if inner == outer:
        raise OutputError(f"{show(directory)}: is the source itself; choose another folder with --out")
    if inner.is_relative_to(outer):
        raise OutputError(
            f"{show(directory)}: lies inside the source {show(source)}, so the next run would read these "
            "results as data; choose a folder outside the source with --out"
        )
    if outer.is_relative_to(inner):
        raise OutputError(
            f"{show(directory)}: contains the source {show(source)}; choose an empty or new folder with --out"
        )


def _check_usable(directory: Path, *, resume: bool) -> None:
    if directory.is_symlink() and not directory.exists():
        raise OutputError(
            f"{show(directory)}: is a symbolic link to nowhere; remove the link or create its target"
        )
    if not directory.exists():
        return
    if not directory.is_dir():
        raise OutputError(f"{show(directory)}: is a file; choose a folder with --out")
    check_work_folder(directory)
    if has_ready_review(directory):
        raise OutputError(f"{show(directory)}: {UNFINISHED_REVIEW}")
    found = {entry.name for entry in directory.iterdir()}
    if found and not (found == {WORK_FOLDER} and _is_empty(directory / WORK_FOLDER)):
        _check_resumable(directory, found, resume=resume)


def _check_resumable(directory: Path, found: set[str], *, resume: bool) -> None:
    if WORK_FOLDER not in found:
        state = "holds a finished run" if RUN in found else "is not empty"
        raise OutputError(f"{show(directory)}: {state}; choose an empty or new folder with --out")
    foreign = sorted(found - {WORK_FOLDER, *PUBLISHED})
    if foreign:
        raise OutputError(
            f"{show(directory)}: is not empty (it holds '{printable(foreign[0])}', which no run wrote); "
            "choose an empty or new folder with --out"
        )
    if not resume:
        raise OutputError(
            f"{show(directory)}: holds an unfinished run; continue it with --resume, "
            "or choose another folder with --out"
        )


def check_work_folder(directory: Path) -> None:
    """Refuse a work folder that leads elsewhere: nothing outside ``directory`` is ever touched."""
    work = directory / WORK_FOLDER
    if work.is_symlink() or (work.exists() and not work.is_dir()):
        raise OutputError(
            f"{show(work)}: is not a folder of its own; remove it or choose another folder with --out"
        )


def _check_writable(work: Path) -> None:
    """Asking the file system by writing is the only answer that counts quotas and read-only mounts."""
    probe = work / "probe"
    probe.touch()
    probe.unlink()


def _is_empty(directory: Path) -> bool:
    return next(directory.iterdir(), None) is None
