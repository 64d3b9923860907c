"""Results on disk: one small JSON file a task, there whole or not at all.

A task named ``laptop/scenario/defense-seed0`` has its result in ``laptop/scenario/defense-seed0.json`` below
the folder. If it failed, ``laptop/scenario/defense-seed0.failed.json`` has the error instead.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO, Any, TypeAlias

from unpoison import __version__
from unpoison.errors import OutputError

Record: TypeAlias = dict[str, Any]
Check: TypeAlias = Callable[[str, Record], None]
"""Looks at the record of a named task."""

RESULT, FAILURE = ".json", ".failed.json"
PLAN, LOCK, PARTIAL = "plan.txt", ".lock", ".partial-"
RESULT_PARTS, FAILURE_PARTS = ("task", "result", "provenance"), ("task", "error", "provenance")


@dataclass(frozen=True)
class Listing:
    """The names of the tasks that have a result, and of those that have only a failure."""

    done: frozenset[str]
    failed: frozenset[str]


@dataclass(frozen=True)
class Reading:
    """Records by the name of their task, and a line for each file that could not be read."""

    records: dict[str, Record]
    damaged: tuple[str, ...]


class Store:
    """The results in ``folder``. Reading is free to all; whoever writes holds :meth:`lock`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def listing(self) -> Listing:
        """What is there, by file names alone: quick with any number of results."""
        done, failed = set(), set()
        for name in _files(self.folder, ""):
            if name.endswith(FAILURE):
                failed.add(name.removesuffix(FAILURE))
            elif name.endswith(RESULT):
                done.add(name.removesuffix(RESULT))
        # a run that was killed between writing a result and removing the failure leaves both
        return Listing(frozenset(done), frozenset(failed - done))

    def results(self, names: Iterable[str], *, check: Check | None = None) -> Reading:
        """The results of the named tasks; files that are damaged are told, and count as not there.

        So are those that ``check`` raises a ``ValueError`` about.
        """
        return self._read(names, RESULT, RESULT_PARTS, check)

    def failures(self, names: Iterable[str]) -> Reading:
        """What the named tasks failed with."""
        return self._read(names, FAILURE, FAILURE_PARTS)

    def save(self, name: str, record: Mapping[str, Any]) -> None:
        """Keep a result; the failure of an earlier try goes."""
        self._write(name + RESULT, _dump(record))
        self._path(name + FAILURE).unlink(missing_ok=True)

    def save_failure(self, name: str, record: Mapping[str, Any]) -> None:
        """Keep what a task failed with."""
        self._write(name + FAILURE, _dump(record))

    def plan(self) -> frozenset[str]:
        """Every task that was ever asked for; whoever forgets ``plan.txt`` loses nothing but this."""
        try:
            return frozenset((self.folder / PLAN).read_text(encoding="utf-8").split())
        except (OSError, UnicodeDecodeError):
            return frozenset()

    def extend_plan(self, names: Iterable[str]) -> None:
        """Add to what was asked for."""
        known = self.plan()
        wanted = known.union(names)
        if wanted != known:
            self._write(PLAN, "".join(f"{name}\n" for name in sorted(wanted)))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only run that writes to the folder. The system drops the lock of a process that died.

        Raises:
            OutputError: Another run is at work there, or the folder cannot be used.
        """
        with self._open_lock() as file:
            if not _try_lock(file):
                raise OutputError(
                    f"{self.folder} is in use by another run ({self.owner() or 'just started'}); wait for "
                    "it, or choose another folder with --out"
                )
            file.truncate(0)
            file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
            file.flush()
            for left in self.folder.glob(f"{PARTIAL}*"):
                left.unlink(missing_ok=True)
            try:
                yield
            finally:
                file.truncate(0)

    def owner(self) -> str | None:
        """The process that is at work in the folder, in words; None if there is none here."""
        try:
            found = json.loads((self.folder / LOCK).read_text(encoding="utf-8"))
            pid, host = int(found["pid"]), str(found["host"])
        except (OSError, ValueError, TypeError, KeyError):
            return None
        if host == socket.gethostname() and not _is_alive(pid):
            return None
        return f"process {pid} on {host}"

    def _open_lock(self) -> IO[str]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # for appending: opening it must not empty it under whoever holds it
            return (self.folder / LOCK).open("a", encoding="utf-8")
        except (OSError, ValueError) as error:  # ValueError: a null byte in the path
            reason = getattr(error, "strerror", None) or error
            raise OutputError(
                f"{self.folder} cannot be used for the results ({reason}); choose a folder that you may "
                "write to with --out"
            ) from error

    def _read(
        self, names: Iterable[str], suffix: str, parts: tuple[str, ...], check: Check | None = None
    ) -> Reading:
        records, damaged = {}, []
        for name in names:
            path = self._path(name + suffix)
            try:
                record = _parsed(path.read_bytes(), parts)
                if check is not None:
                    check(name, record)
                records[name] = record
            except FileNotFoundError:
                continue
            except (OSError, ValueError, RecursionError) as error:
                damaged.append(f"{path} cannot be read ({error}) and counts as not there")
        return Reading(records, tuple(damaged))

    def _write(self, name: str, content: str) -> None:
        path, partial = self._path(name), self.folder / f"{PARTIAL}{os.getpid()}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("w", encoding="utf-8") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            raise OutputError(
                f"{path} cannot be written ({error.strerror}); what was stored before is whole: run again to "
                "go on once that is mended"
            ) from error

    def _path(self, name: str) -> Path:
        return self.folder / name


@cache
def machine() -> Record:
    """The versions and the hardware that results of this process come from."""
    return {
        "version": __version__,
        "code": code(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "numpy": _version("numpy"),
        "scikit-learn": _version("scikit-learn"),
        "torch": _version("torch"),
        "hardware": {"cpus": os.cpu_count(), "model": _processor(), "gpu": _gpu()},
    }


@cache
def code() -> str:
    """A short digest of this package's own sources: between releases the version does not tell changes."""
    return digest_of(Path(__file__).parents[1])


def digest_of(package: Path) -> str:
    """Of the names and the contents of all Python files below, whatever order a file system lists them in."""
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(package).as_posix(), path) for path in package.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def _files(folder: Path | str, prefix: str) -> Iterator[str]:
    """Every file below ``folder`` by its path from there, with ``/`` between the parts; no hidden ones."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"{folder} cannot be read ({error.strerror})") from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _files(entry.path, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name


def _parsed(content: bytes, parts: tuple[str, ...]) -> Record:
    record = json.loads(content)
    if isinstance(record, dict) and all(isinstance(record.get(part), dict) for part in parts):
        return record
    raise ValueError(f"it lacks one of {', '.join(parts)}")


def _dump(record: Mapping[str, Any]) -> str:
    """In pure ASCII: showing the file on a terminal cannot run escape codes."""
    return json.dumps(record, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _try_lock(file: IO[str]) -> bool:
    """False if another process has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**20)  # a byte that nobody reads: others may see who holds the lock
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise OutputError(
            f"{file.name} cannot be locked ({error.strerror}): its file system allows no locks; choose a "
            "folder on another with --out"
        ) from error
    return True


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":  # where asking with a signal would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is there, and another's
        return True
    return True


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _gpu() -> str | None:
    """Of a process that has loaded torch; loading it only to ask would take seconds."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return str(torch.cuda.get_device_name())
