"""Bringing a dataset into the cache: get the original files, convert them once, put the result in place."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from unpoison.data.files import file_sha256, shown
from unpoison.data.named import cifar10, fashion_mnist, gtsrb, imagenette
from unpoison.data.named.cache import (
    Record,
    cache_folder,
    check_replaceable,
    locked,
    publish,
    read_record,
    staging,
)
from unpoison.data.named.catalog import Spec, find
from unpoison.data.named.origins import Origin, SourceFile
from unpoison.errors import InputError
from unpoison.events import Listener, ignore

_CONVERTERS: dict[str, Callable[..., tuple[SourceFile, ...]]] = {
    "cifar10": cifar10.convert,
    "gtsrb": gtsrb.convert,
    "imagenette": imagenette.convert,
    "fashion-mnist": fashion_mnist.convert,
}


@dataclass(frozen=True)
class Fetched:
    """A dataset in the cache. ``already`` if it was there before."""

    folder: Path
    record: Record
    already: bool


def fetch(
    name: str, *, source: Path | None = None, force: bool = False, listener: Listener = ignore
) -> Fetched:
    """Make sure that a dataset is in the cache.

    ``source`` is a file or folder with the originals; without it every place where they are published is
    tried. With ``force`` a dataset that is in the cache is fetched again. Progress counts bytes.

    Raises:
        InputError: No place has the files, or they are not what they should be. The cache is unchanged.
    """
    spec = find(name)
    with locked(name):
        record = None if force else read_record(name)
        if record is not None:
            return Fetched(cache_folder() / name, record, already=True)
        check_replaceable(name)
        if source is not None:
            given = _existing(source, spec)
            record = _convert(spec, f"given: {given.name}", given, listener)
        else:
            record = _try_all(spec, listener)
    return Fetched(cache_folder() / name, record, already=False)


def _existing(source: Path, spec: Spec) -> Path:
    if not source.exists():
        raise InputError(f"{shown(str(source))} does not exist; give {spec.accepts}")
    return source.resolve()


def _try_all(spec: Spec, listener: Listener) -> Record:
    """Convert what the first place gives that has the files."""
    downloads = cache_folder() / ".downloads" / spec.name
    failures: list[str] = []
    for origin in spec.origins:
        try:
            record = _from_origin(spec, origin, downloads, listener)
        except InputError as error:
            place = "" if str(error).startswith(origin.description) else f"{origin.description}: "
            failures.append(f"({len(failures) + 1}) {place}{error}")
        else:
            shutil.rmtree(downloads, ignore_errors=True)
            return record
    raise InputError(
        f"{spec.name} could not be fetched from anywhere. Tried: {'; '.join(failures)}. Get the files in "
        f"another way and run: unpoison data fetch {spec.name} --from PATH, where PATH is {spec.accepts}"
    )


def _from_origin(spec: Spec, origin: Origin, downloads: Path, listener: Listener) -> Record:
    given = origin.obtain(downloads, listener)
    return _convert(spec, origin.description, given, listener)


def _convert(spec: Spec, origin: str, given: Path, listener: Listener) -> Record:
    with staging(spec.name) as folder:
        sources = _CONVERTERS[spec.name](given, folder, spec=spec, listener=listener)
        record = Record(spec.name, origin, sources, dict(_hashes(folder)))
        publish(record, folder)
    return record


def _hashes(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        place = path.relative_to(folder).as_posix()
        yield place, file_sha256(path, shown(place))
