"""The folder that keeps fetched datasets, and the record that says what each is made of.

A dataset is a folder of its own, made elsewhere and renamed into place: if it is there, it is complete.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from unpoison.data.files import LITTER, describe, file_sha256, read_regular, refusing, shown, writing
from unpoison.data.named.origins import SourceFile
from unpoison.errors import InputError, OutputError

RECORD = "dataset.json"
_FORMAT = 1
_LARGEST_RECORD = 2**25


@dataclass(frozen=True)
class Record:
    """What a dataset in the cache was made from, and the sha256 of every file that it consists of."""

    name: str
    origin: str
    sources: tuple[SourceFile, ...]
    files: dict[str, str]
    """Path relative to the dataset's folder, and sha256."""

    @property
    def official(self) -> bool:
        """Whether the hash of every file it was made from was known beforehand."""
        return all(source.official for source in self.sources)


def cache_folder() -> Path:
    """``$UNPOISON_CACHE``, else ``$XDG_CACHE_HOME/unpoison``, else ``~/.cache/unpoison``."""
    try:
        if own := os.environ.get("UNPOISON_CACHE"):
            return Path(own).expanduser().absolute()
        if shared := os.environ.get("XDG_CACHE_HOME"):
            return Path(shared).expanduser().absolute() / "unpoison"
        return Path.home() / ".cache" / "unpoison"
    except RuntimeError as error:  # this user has no home
        raise InputError("no folder for the cache is known; name one in UNPOISON_CACHE") from error


def read_record(name: str) -> Record | None:
    """The record of a dataset in the cache; None if the dataset is not there."""
    path = cache_folder() / name / RECORD
    try:
        if not path.is_file():
            return None
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be read ({describe(error)})") from error
    with refusing(shown(str(path)), f"run: unpoison data fetch {name} --force"):
        found = json.loads(read_regular(path, shown(str(path)), limit=_LARGEST_RECORD))
        if (found["format"], found["name"]) != (_FORMAT, name):
            raise ValueError(f"format {found['format']!r}, name {found['name']!r}")
        sources = tuple(SourceFile(**source) for source in found["sources"])
        files = {str(path): str(sha256) for path, sha256 in found["files"].items()}
        return Record(name, str(found["origin"]), sources, files)


def check(name: str) -> list[str]:
    """What differs between a dataset in the cache and its record, one line each; none means nothing does."""
    try:
        record = read_record(name)
        if record is None:
            return [f"{name}: not in the cache; run: unpoison data fetch {name}"]
        return list(_differences(record, cache_folder() / name))
    except InputError as error:
        return [f"{name}: {error}"]
    except OSError as error:
        return [f"{name}: cannot be checked ({describe(error)})"]


def _differences(record: Record, folder: Path) -> Iterator[str]:
    present = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if not path.is_dir() and path.name.lower() not in LITTER
    }
    for place, sha256 in record.files.items():
        if place not in present:
            yield f"{record.name}: {place!r} is missing"
        elif file_sha256(folder / place, f"{place!r}") != sha256:
            yield f"{record.name}: {place!r} changed"
    for place in sorted(present - set(record.files) - {RECORD}):
        yield f"{record.name}: {place!r} is extra"


@contextmanager
def staging(name: str) -> Iterator[Path]:
    """An empty folder beside the datasets; whatever is still there at the end is removed."""
    root = cache_folder()
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=root, prefix=f".{name}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(record: Record, folder: Path) -> Path:
    """Write the record into ``folder`` and put that in the place of the dataset, of an earlier one if any."""
    target = cache_folder() / record.name
    check_replaceable(record.name)
    text = json.dumps({"format": _FORMAT, **asdict(record)}, indent=1) + "\n"
    # no flush to disk: after a power cut the hashes tell, and fetching again is the cure
    with writing(target.parent), staging(record.name) as old:
        (folder / RECORD).write_text(text, encoding="utf-8")
        folder.chmod(0o755)  # temporary folders are private, a cache may be shared
        if target.exists():
            target.rename(old / "old")
        folder.rename(target)
    return target


def check_replaceable(name: str) -> None:
    """Refuse a place in which something lies that no fetch wrote."""
    target = cache_folder() / name
    if (target.exists() or target.is_symlink()) and not (target / RECORD).is_file():
        raise OutputError(
            f"{shown(str(target))}: is in the way and was not written by unpoison; move it, "
            "or name another folder for the cache in UNPOISON_CACHE"
        )


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Keep two fetches of one dataset apart, and remove what one that was killed left behind."""
    root = cache_folder()
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        stream = (root / f".{name}.lock").open("ab")
    with stream:
        alone = _lock(stream.fileno())
        if alone is False:
            raise InputError(f"{name} is being fetched by another process; wait until it is done")
        if alone:
            for left in root.glob(f".{name}-*"):
                shutil.rmtree(left, ignore_errors=True)
        yield


def _lock(handle: int) -> bool | None:
    """Whether this process is the only one; None where the system cannot tell."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network drives know no locks
        return None
    return True
