"""The results of a finished run, read back and checked against the hashes in ``run.json``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unpoison.core.result import Sanitization
from unpoison.errors import OutputError, UnpoisonError
from unpoison.outputs import evidence, manifest, place
from unpoison.outputs.bundle import hash_file
from unpoison.outputs.evidence import Evidence
from unpoison.outputs.record import Record, read_record
from unpoison.report.review import Review
from unpoison.report.text import printable


@dataclass(frozen=True)
class Stored:
    """What a run, and the reviews after it, left in a folder."""

    record: Record
    table: manifest.Table
    evidence: Evidence

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """In the order of the data."""
        return tuple(row["name"] for row in self.record["data"]["classes"])

    @cached_property
    def ids(self) -> list[str]:
        """In the order of the data."""
        ids: list[str] = self.table["id"].to_pylist()
        return ids

    @property
    def result(self) -> Sanitization:
        """What the run decided, as far as files keep it: without groups, which are in the record."""
        number = {name: label for label, name in enumerate(self.class_names)}
        components = [self.table[name] for name in self.table.column_names if name.startswith("component_")]
        return Sanitization(
            keep=self.evidence.run_keep,
            suspicion=self._array("suspicion", np.float64),
            predicted=np.array([number.get(name, -1) for name in self.table["predicted"].to_pylist()]),
            components=np.array([column.to_numpy() for column in components], dtype=np.int64).reshape(
                len(components), len(self.table)
            ),
            notes=self.record["result"]["notes"],
            votes=self.evidence.votes,
        )

    @property
    def review(self) -> Review:
        """What people decided so far."""
        return manifest.read_review(self.table)

    def _array(self, name: str, dtype: type) -> Any:
        return np.array(self.table[name].to_pylist(), dtype=dtype)


def read_stored(directory: Path) -> Stored:
    """The results in ``directory``.

    Raises:
        OutputError: There are none, or they are not as the run wrote them.
    """
    place.check_folder(directory)
    if place.has_ready_review(directory):
        raise OutputError(f"{place.show(directory)}: {place.UNFINISHED_REVIEW}")
    if not place.is_complete(directory):
        raise OutputError(
            f"{place.show(directory)}: holds no finished run (no {place.RUN}); give the --out folder of a run"
        )
    record = read_record(directory)
    table = _read(directory, record, place.MANIFEST_PARQUET, manifest.read_parquet)
    classes = record["data"]["classes"]
    found = _read(
        directory,
        record,
        place.EVIDENCE,
        lambda path: evidence.read(path, n_samples=len(table), n_classes=len(classes)),
    )
    return Stored(record, table, found)


def _read(directory: Path, record: Record, name: str, reader: Callable[[Path], Any]) -> Any:
    path = directory / name
    try:
        if path.is_symlink() or hash_file(path) != record["files"].get(name):
            raise OutputError("was changed since the run wrote it")
        return reader(path)
    except (OSError, ValueError, UnpoisonError, pa.ArrowException) as error:
        raise OutputError(
            f"{place.show(path)}: cannot be used ({printable(str(error), 200)}); "
            f"unpoison verify {place.show(directory)} says what is wrong with these results"
        ) from error
