"""Checking that the results in a folder still are what a run wrote.

This finds damage and careless changes. It cannot find someone who rewrites everything, ``run.json``
included: keep the hash of ``run.json`` elsewhere if you need that.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from unpoison.errors import OutputError, UnpoisonError
from unpoison.outputs import evidence, manifest, place
from unpoison.outputs.bundle import hash_file
from unpoison.outputs.record import FORMAT_VERSION
from unpoison.report.text import printable


def verify(directory: Path) -> list[str]:
    """Everything that is wrong with the results in ``directory``, in words; empty when all is well.

    Raises:
        OutputError: There is no such folder, or it holds no results of unpoison.
    """
    try:
        _check_is_output(directory)
        return _problems(directory)
    except OSError as error:
        raise OutputError(f"{place.show(directory)}: cannot be read ({_reason(error)})") from error


def _problems(directory: Path) -> list[str]:
    record, problems = _read_record(directory / place.RUN)
    problems += _check_hashes(directory, record)
    problems += _check_strays(directory)
    table, unreadable = _read_manifest(directory / place.MANIFEST_PARQUET)
    problems += unreadable
    if table is None:
        return problems
    problems += _check_csv(directory / place.MANIFEST_CSV, table)
    if record is not None:
        problems += _check_counts(record, table)
        problems += _check_review(directory / place.EVIDENCE, record, table)
    problems += _check_clean(directory / place.CLEAN, record, table)
    return problems


def _check_is_output(directory: Path) -> None:
    place.check_folder(directory)
    signs = (place.RUN, place.MANIFEST_CSV, place.MANIFEST_PARQUET)
    if any((directory / name).exists() for name in signs):
        return
    if (directory / place.WORK_FOLDER).is_dir():
        raise OutputError(f"{place.show(directory)}: holds an unfinished run; finish it with --resume")
    raise OutputError(
        f"{place.show(directory)}: holds no results of unpoison (no {place.RUN} and no manifest); "
        "give the --out folder of a run"
    )


def _read_record(path: Path) -> tuple[dict[str, Any] | None, list[str]]:
    if not path.is_file():
        return None, [f"{place.RUN} is missing: the run is not complete, or the file was deleted"]
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return None, [f"{place.RUN} cannot be read: {_reason(error)}"]
    if not isinstance(record, dict):
        return None, [f"{place.RUN} does not hold a record of a run"]
    if record.get("format_version") != FORMAT_VERSION:
        found = printable(repr(record.get("format_version")))
        return record, [
            f"{place.RUN} has format version {found}; this version of unpoison knows {FORMAT_VERSION}"
        ]
    return record, []


def _check_hashes(directory: Path, record: dict[str, Any] | None) -> list[str]:
    hashes = None if record is None else _part(record, "files")
    form = "" if record is None else str(_part(record, "data").get("form"))
    # without a record nobody knows whether clean/ is one file or a folder of images
    names = place.hashed_names(directory, form=form or "folder")
    return list(_hash_problems(directory, names, hashes))


def _hash_problems(directory: Path, names: list[str], hashes: dict[str, Any] | None) -> Iterator[str]:
    for name in names:
        path = directory / name
        shown = printable(name, 200)
        if path.is_symlink() or not path.is_file():
            yield f"{shown} is missing or not a plain file"
            continue
        try:
            actual = hash_file(path)
        except OSError as error:
            yield f"{shown} cannot be read: {_reason(error)}"
            continue
        if hashes is None:
            continue
        if name not in hashes:
            yield f"{place.RUN} has no hash for {shown}"
        elif hashes[name] != actual:
            yield f"{shown} was changed: its sha256 is {actual}, not the one in {place.RUN}"


def _check_strays(directory: Path) -> list[str]:
    found = sorted(entry.name for entry in directory.iterdir())
    problems = [f"'{printable(name)}' was not written by the run" for name in found if not _is_known(name)]
    if place.has_ready_review(directory):
        problems.append(f"the folder {place.UNFINISHED_REVIEW}")
    elif place.WORK_FOLDER in found:
        problems.append(f"{place.WORK_FOLDER} is left over from an interrupted run; it can be deleted")
    return problems


def _is_known(name: str) -> bool:
    return name in place.PUBLISHED or name == place.WORK_FOLDER


def _read_manifest(path: Path) -> tuple[manifest.Table | None, list[str]]:
    if not path.is_file():
        return None, []  # reported with the hashes
    try:
        return manifest.read_parquet(path), []
    except (OSError, ValueError, UnpoisonError, pa.ArrowException, MemoryError) as error:
        return None, [f"{place.MANIFEST_PARQUET} cannot be read: {_reason(error)}"]


def _check_csv(path: Path, table: manifest.Table) -> list[str]:
    """The CSV must be, byte for byte, what the Parquet file would be written as."""
    if not path.is_file():
        return []  # reported with the hashes
    try:
        with path.open("rb") as file:
            for position, line in enumerate(manifest.csv_lines(table)):
                if file.read(len(line)) != line:
                    return [_disagreement(table, position)]
            if file.read(1):
                return [f"{place.MANIFEST_CSV} has more rows than {place.MANIFEST_PARQUET}"]
    except (OSError, ValueError) as error:
        return [f"{place.MANIFEST_CSV} cannot be compared: {_reason(error)}"]
    return []


def _disagreement(table: manifest.Table, position: int) -> str:
    if position == 0:
        return f"{place.MANIFEST_CSV} and {place.MANIFEST_PARQUET} have different columns"
    sample = printable(table["id"][position - 1].as_py())
    return (
        f"{place.MANIFEST_CSV} and {place.MANIFEST_PARQUET} disagree from row {position} on (id '{sample}')"
    )


def _check_counts(record: dict[str, Any], table: manifest.Table) -> list[str]:
    """What ``run.json`` says in numbers must follow from the manifest."""
    data, result = _part(record, "data"), _part(record, "result")
    labels, keep = table["label"].to_pylist(), table["keep"].to_pylist()
    samples = Counter(labels)
    removed = Counter(label for label, kept in zip(labels, keep, strict=True) if not kept)
    claims = [
        ("the number of samples", data.get("n"), len(labels)),
        ("the number of removed samples", result.get("n_removed"), removed.total()),
        ("the removed fraction", result.get("removed_fraction"), removed.total() / max(1, len(labels))),
        ("the samples of each class", _claimed(data.get("classes"), "name", "samples"), samples),
        ("the removed samples of each class", _claimed(result.get("by_class"), "class", "removed"), removed),
        ("the fingerprint of the data", data.get("fingerprint"), _fingerprint(table)),
    ]
    return [
        f"{place.RUN} and the manifest disagree about {what}" for what, said, is_ in claims if said != is_
    ]


def _check_review(path: Path, record: dict[str, Any], table: manifest.Table) -> list[str]:
    """What people did not decide must be as the run decided, and ``run.json`` must say how much they did."""
    if not path.is_file():
        return []  # reported with the hashes
    classes = _part(record, "data").get("classes")
    n_classes = len(classes) if isinstance(classes, list) else 0
    try:
        run_keep = evidence.read(path, n_samples=len(table), n_classes=n_classes).run_keep
    except (OSError, UnpoisonError, MemoryError) as error:
        return [f"{place.EVIDENCE} cannot be read: {_reason(error)}"]
    review = manifest.read_review(table)
    said = _part(record, "review")
    claims = [
        ("decided", int(review.decided.sum())),
        ("put_back", review.put_back(run_keep)),
        ("taken_out", review.taken_out(run_keep)),
    ]
    problems = [
        f"{place.RUN} and the manifest disagree about the review ({name}: {is_})"
        for name, is_ in claims
        if said.get(f"n_{name}", 0) != is_
    ]
    unknown = sorted(set(review.by.values()) - _reviewers(said))
    if unknown:
        problems.append(f"the manifest names the reviewer '{printable(unknown[0])}', {place.RUN} does not")
    n_changed = int((~review.decided & (review.keep != run_keep)).sum())
    if n_changed:
        problems.append(f"{n_changed} decisions of the manifest are neither the run's nor a reviewer's")
    return problems


def _reviewers(review: dict[str, Any]) -> set[str]:
    applied = review.get("applied")
    entries = applied if isinstance(applied, list) else []
    names = [entry.get("by") for entry in entries if isinstance(entry, dict)]
    return {name for name in names if isinstance(name, str)}


def _claimed(rows: Any, name: str, number: str) -> Counter[str] | None:
    """The counts in a list of rows of ``run.json``; None when it is not such a list."""
    try:
        return Counter({str(row[name]): int(row[number]) for row in rows})
    except (TypeError, KeyError, ValueError, OverflowError):
        return None


def _fingerprint(table: manifest.Table) -> str:
    """As ``Dataset.fingerprint`` computes it."""
    digest = hashlib.sha256()
    columns = (table["id"].to_pylist(), table["label"].to_pylist(), table["sha256"].to_pylist())
    for sample_id, label, sha in zip(*columns, strict=True):
        digest.update(f"{sample_id}\0{label}\0{sha}\n".encode())
    return digest.hexdigest()


def _check_clean(clean: Path, record: dict[str, Any] | None, table: manifest.Table) -> list[str]:
    from unpoison.data.verify import ExpectedSample, check_clean

    if clean.is_symlink() or not clean.is_dir():
        return [f"{place.CLEAN}/ is missing or not a folder"]
    form = _part(record, "data").get("form")
    if not isinstance(form, str):
        return [f"{place.CLEAN}/ cannot be checked: {place.RUN} does not say which form it has"]
    columns = ("id", "source", "label", "sha256", "keep")
    rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
    expected = [ExpectedSample(*row[:4]) for row in rows if row[4]]
    try:
        return [printable(problem, 1000) for problem in check_clean(form, clean, expected)]
    except Exception as error:  # whatever a damaged file makes a reader do is a finding, not a crash
        return [f"{place.CLEAN}/ cannot be checked: {_reason(error)}"]


def _part(record: dict[str, Any] | None, name: str) -> dict[str, Any]:
    part = record.get(name) if record is not None else None
    return part if isinstance(part, dict) else {}


def _reason(error: BaseException) -> str:
    return printable(str(error) or type(error).__name__, 300)
