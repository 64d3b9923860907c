"""Checking that a clean set on disk is still what the manifest says."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING

from unpoison.data.files import LITTER, describe, file_sha256, read_regular, shown
from unpoison.data.options import DEFAULT_MAX_BYTES
from unpoison.errors import UnpoisonError

if TYPE_CHECKING:
    from unpoison.data.hub_rows import HubRows

MAX_PROBLEMS = 20
_PLACE = re.compile(r"(?P<file>.+)(?:\[\d+\]|:\d+)", re.DOTALL)


@dataclass(frozen=True)
class ExpectedSample:
    """A kept sample as the manifest has it."""

    id: str
    source: str
    label: str
    sha256: str


@dataclass(frozen=True)
class _Found:
    """The samples of a file in order. ``ids`` and ``labels`` are None where the file does not say."""

    sha256: tuple[str, ...]
    labels: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    columns: tuple[Sequence[str], ...] | None = None
    """The cells of a table, in one of whose columns the labels must stand."""


def check_clean(
    form: str, directory: Path, expected: Sequence[ExpectedSample], *, max_bytes: int = DEFAULT_MAX_BYTES
) -> list[str]:
    """Problems of a clean set in the eyes of a person; none means that it is as written.

    ``expected`` are the kept samples in the order of the manifest. Content that cannot be read is a problem,
    never an exception. At most 20 problems are listed, then how many more there are.
    """
    try:
        if form == "folder":
            problems = list(_check_folder(directory, expected))
        elif form == "hub":
            problems = list(_check_hub(directory, expected, max_bytes))
        elif form in _READERS:
            problems = list(_check_file(form, directory, expected, max_bytes))
        else:
            problems = [f"the form {form!r} is not one of folder, hub, {', '.join(_READERS)}"]
    except UnpoisonError as error:
        problems = [str(error)]
    except Exception as error:  # whatever the content does to a parser, the answer is a line
        problems = [f"{shown(str(directory))}: cannot be checked ({describe(error)})"]
    if len(problems) > MAX_PROBLEMS:
        return [*problems[:MAX_PROBLEMS], f"and {len(problems) - MAX_PROBLEMS} more"]
    return problems


def _check_folder(directory: Path, expected: Sequence[ExpectedSample]) -> Iterator[str]:
    # only files that the walk met are opened, so a manifest cannot point out of the directory
    present = set(_files_below(directory))
    for sample in expected:
        if sample.source not in present:
            yield f"{_named(sample)}: missing"
            continue
        if sample.source.partition("/")[0] != sample.label:
            yield f"{_named(sample)}: the manifest says label {sample.label!r}, the folder says otherwise"
        try:
            changed = file_sha256(directory / sample.source, _named(sample)) != sample.sha256
        except UnpoisonError as error:
            yield str(error)
            continue
        if changed:
            yield f"{_named(sample)}: changed"
    for extra in sorted(present - {sample.source for sample in expected}):
        yield f"{extra!r}: extra, not in the manifest"


def _files_below(directory: Path) -> Iterator[str]:
    """Relative POSIX paths of everything that is no real folder; links are listed, not followed."""

    def stop(error: OSError) -> None:
        raise error

    for folder, folders, files in os.walk(directory, onerror=stop):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in (*links, *files):
            if name.lower() not in LITTER:
                yield (Path(folder) / name).relative_to(directory).as_posix()


def _check_file(
    form: str, directory: Path, expected: Sequence[ExpectedSample], max_bytes: int
) -> Iterator[str]:
    present = set(_files_below(directory))
    names = {match["file"] if (match := _PLACE.fullmatch(sample.source)) else "" for sample in expected}
    if not expected:  # nothing was kept: the file, without samples, is still there
        names = set(sorted(path for path in present if path.lower().endswith(f".{form}"))[:1])
    if len(names) != 1:
        yield f"the manifest names {len(names)} files where a {form} set is one file"
        return
    name = names.pop()
    if name not in present:
        yield f"{shown(name)}: missing"
    else:
        yield from _best(_READERS[form](directory / name, shown(name), max_bytes), shown(name), expected)
    for extra in sorted(present - {name}):
        yield f"{extra!r}: extra, not in the manifest"


def _check_hub(directory: Path, expected: Sequence[ExpectedSample], max_bytes: int) -> Iterator[str]:
    from unpoison.data.hub_open import open_saved
    from unpoison.data.hub_rows import WRITTEN

    present = set(_files_below(directory))
    missing = [name for name in WRITTEN if name not in present]
    yield from (f"{name}: missing" for name in missing)
    if not missing:
        rows = open_saved(directory, max_bytes=max_bytes)
        yield from _best(_read_hub(rows, expected, max_bytes), shown(directory.name), expected)
    for extra in sorted(present - set(WRITTEN)):
        yield f"{extra!r}: extra, not in the manifest"


def _best(readings: Iterator[_Found], name: str, expected: Sequence[ExpectedSample]) -> list[str]:
    """The problems of the reading that fits; of the first reading if none does."""
    first: list[str] | None = None
    for found in readings:
        problems = list(_compare(name, expected, found))
        if not problems:
            return []
        first = problems if first is None else first
    return [f"{name}: cannot be read"] if first is None else first


def _compare(name: str, expected: Sequence[ExpectedSample], found: _Found) -> Iterator[str]:
    if len(found.sha256) != len(expected):
        yield from _compare_as_sets(name, expected, found)
        return
    for i, (sample, sha256) in enumerate(zip(expected, found.sha256, strict=True)):
        if sha256 != sample.sha256:
            yield f"{_named(sample)}: changed"
        elif found.labels is not None and found.labels[i] != sample.label:
            yield f"{_named(sample)}: the manifest says label {sample.label!r}, the file {found.labels[i]!r}"
        elif found.ids is not None and found.ids[i] != sample.id:
            yield f"{_named(sample)}: the file says the id is {found.ids[i]!r}"
    labels = [sample.label for sample in expected]
    if found.columns is not None and labels and not any(list(column) == labels for column in found.columns):
        yield f"{name}: no column holds the labels of the manifest"


def _compare_as_sets(name: str, expected: Sequence[ExpectedSample], found: _Found) -> Iterator[str]:
    """When numbers differ, positions mean nothing: say which samples are too few and which too many."""
    yield f"{name}: holds {len(found.sha256)} samples, the manifest {len(expected)}"
    wanted, there = Counter(sample.sha256 for sample in expected), Counter(found.sha256)
    lacking, surplus = wanted - there, there - wanted
    for sample in expected:
        if lacking[sample.sha256] > 0:
            lacking[sample.sha256] -= 1
            yield f"{_named(sample)}: missing or changed"
    for i, sha256 in enumerate(found.sha256):
        if surplus[sha256] > 0:
            surplus[sha256] -= 1
            yield f"{name}: sample {i} (counted from 0) is extra or changed"


def _read_npz(path: Path, name: str, max_bytes: int) -> Iterator[_Found]:
    from unpoison.data.arrays import read_labelled
    from unpoison.data.npz import open_npz

    with open_npz(path, name, max_bytes=max_bytes) as reader:
        data = read_labelled(reader, name, max_bytes=max_bytes)
        labels = tuple(data.class_names[c] for c in data.labels.tolist())
        yield _Found(data.sha256(), labels=labels, ids=data.ids)


def _read_csv(path: Path, name: str, max_bytes: int) -> Iterator[_Found]:
    from unpoison.data.records import DELIMITERS, sniff_delimiter

    # the label column, which helped to choose the delimiter, is not known here; the hashes tell which fits
    data = read_regular(path, name, limit=max_bytes)
    first = sniff_delimiter(data.decode("utf-8-sig", errors="replace"), None)
    errors: list[UnpoisonError] = []
    for delimiter in sorted(DELIMITERS, key=lambda d: d != first):
        try:
            found = _records(data, name, delimiter, quoting=True, max_bytes=max_bytes)
        except UnpoisonError as error:
            errors.append(error)
        else:
            yield found
    if len(errors) == len(DELIMITERS):
        raise errors[0]


def _read_tsv(path: Path, name: str, max_bytes: int) -> Iterator[_Found]:
    data = read_regular(path, name, limit=max_bytes)
    yield _records(data, name, "\t", quoting=False, max_bytes=max_bytes)


def _records(data: bytes, name: str, delimiter: str, *, quoting: bool, max_bytes: int) -> _Found:
    from unpoison.data.records import decode_text, parse_records

    text = decode_text(data, name)
    records = parse_records(text, name, delimiter=delimiter, quoting=quoting, bom=False, max_bytes=max_bytes)
    columns = tuple(zip(*(row.cells for row in records.rows), strict=True))
    return _Found(tuple(row.sha256() for row in records.rows), columns=columns)


def _read_parquet(path: Path, name: str, max_bytes: int) -> Iterator[_Found]:
    from unpoison.data.parquet import cell_text, hash_rows, read_parquet

    rows = read_parquet(path, name, max_bytes=max_bytes)
    values = rows.values()
    columns = tuple([cell_text(value) for value in values[column]] for column in rows.columns)
    yield _Found(hash_rows(rows.columns, values), columns=columns)


def _read_hub(rows: HubRows, expected: Sequence[ExpectedSample], max_bytes: int) -> Iterator[_Found]:
    from unpoison.data.hub_rows import check_table_budget, sample_hashes

    check_table_budget(rows, rows.plain_columns, max_bytes)
    columns = rows.as_table(rows.values(rows.plain_columns)).columns
    wanted = [sample.label for sample in expected]

    def agreement(column: str) -> tuple[int, int]:
        same_place = sum(map(eq, columns[column], wanted))
        return same_place, (Counter(columns[column]) & Counter(wanted)).total()

    # the manifest does not say which columns held label and image; the labels and the hashes tell which fits
    label = max(columns, key=agreement)
    for image in (*rows.images, None):
        hashes = sample_hashes(rows, label=label, image=image, limit=max_bytes)
        yield _Found(hashes, columns=tuple(columns.values()))


_READERS: dict[str, Callable[[Path, str, int], Iterator[_Found]]] = {
    "npz": _read_npz,
    "csv": _read_csv,
    "tsv": _read_tsv,
    "parquet": _read_parquet,
}


def _named(sample: ExpectedSample) -> str:
    place = "" if sample.source == sample.id else f" ({shown(sample.source)})"
    return f"{sample.id!r}{place}"
