"""Labelled tables: CSV, TSV and Parquet files with a column of labels."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from unpoison.data.arrays import row_ids
from unpoison.data.columns import Features, Table, build_features
from unpoison.data.container import Dataset, Origin, Preview
from unpoison.data.files import check_keep, check_utf8, read_regular, shown, writing
from unpoison.data.options import LoadOptions
from unpoison.data.records import Records, is_number, read_records
from unpoison.errors import InputError
from unpoison.types import BoolArray, LabelArray

PREVIEW_CHARACTERS = 2_000
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class View:
    """How a person looks at a row: the text column, or all columns where there is none."""

    table: Table
    text_column: str | None

    def preview(self, index: int) -> Preview:
        """Text, or the columns of the file in order; long cells are cut."""
        if self.text_column is not None:
            return Preview(text=_cut(self.table.columns[self.text_column][index]))
        return Preview(
            columns=tuple((name, _cut(cells[index])) for name, cells in self.table.columns.items())
        )


@dataclass(frozen=True)
class RecordsOrigin:
    """A CSV or TSV file, held as the exact text of its records."""

    form: str
    file_name: str
    records: Records
    view: View

    def preview(self, index: int) -> Preview:
        """The sample's text or columns."""
        return self.view.preview(index)

    def write_kept(self, keep: BoolArray, directory: Path) -> None:
        """Write the header and the kept records, byte for byte as they came."""
        check_keep(keep, len(self.records.rows))
        with writing(directory), (directory / self.file_name).open("xb") as stream:
            stream.write(self.records.raw_bytes(keep.tolist()))


@dataclass(frozen=True)
class ParquetOrigin:
    """A Parquet file, held in memory."""

    file_name: str
    rows: Any
    view: View
    form: str = "parquet"

    def preview(self, index: int) -> Preview:
        """The sample's text or columns."""
        return self.view.preview(index)

    def write_kept(self, keep: BoolArray, directory: Path) -> None:
        """Write the kept rows with the schema of the file."""
        check_keep(keep, len(self.view.table))
        self.rows.write(keep, directory / self.file_name)


def load_delimited(path: Path, *, form: Literal["csv", "tsv"], options: LoadOptions) -> Dataset:
    """Read a CSV or TSV file; its label column is named in the options."""
    name = shown(path.name)
    data = read_regular(path.resolve(), name, limit=options.max_bytes)
    records = read_records(data, name, form=form, max_bytes=options.max_bytes, label=options.label)
    cells = list(zip(*(row.cells for row in records.rows), strict=True))
    columns = dict(zip(records.header.cells, cells or [()] * len(records.header.cells), strict=True))
    table = Table(name, columns, tuple(f"{path.name}:{row.line}" for row in records.rows))
    hashes = tuple(row.sha256() for row in records.rows)
    return _dataset(path, table, options, hashes, lambda view: RecordsOrigin(form, path.name, records, view))


def load_parquet(path: Path, *, options: LoadOptions) -> Dataset:
    """Read a Parquet file; its label column is named in the options."""
    from unpoison.data.parquet import cell_text, hash_rows, read_parquet

    name = shown(path.name)
    rows = read_parquet(path.resolve(), name, max_bytes=options.max_bytes)
    values = rows.values()
    n = rows.table.num_rows
    columns = {column: [cell_text(value) for value in values[column]] for column in rows.columns}
    table = Table(name, columns, tuple(f"{path.name}[{i}]" for i in range(n)))
    hashes = hash_rows(rows.columns, values)
    return _dataset(path, table, options, hashes, lambda view: ParquetOrigin(path.name, rows, view))


def _dataset(
    path: Path,
    table: Table,
    options: LoadOptions,
    sha256: tuple[str, ...],
    origin: Callable[[View], Origin],
) -> Dataset:
    features, labels, class_names, ids = _interpret(table, options)
    return Dataset(
        name=path.name,
        kind=features.kind,
        features=features.matrix,
        labels=labels,
        class_names=class_names,
        ids=ids,
        sources=table.sources,
        sha256=sha256,
        origin=origin(View(table, features.text_column)),
    )


def _interpret(
    table: Table, options: LoadOptions
) -> tuple[Features, LabelArray, tuple[str, ...], tuple[str, ...]]:
    """Features, labels, class names and ids of a table."""
    label = _column(table, options.label, "--label")
    text = None if options.text is None else _column(table, options.text, "--text")
    id_column = None if options.id_column is None else _column(table, options.id_column, "--id")
    if len(table) == 0:
        raise InputError(f"{table.name}: no rows under the header; add samples")
    labels, class_names = _labels(table, label)
    ids = row_ids(len(table)) if id_column is None else _ids(table, id_column)
    used = [c for c in table.columns if c not in (label, id_column) and not _PANDAS_INDEX.fullmatch(c)]
    features = build_features(table, used, text=text, max_bytes=options.max_bytes)
    return features, labels, class_names, ids


def _column(table: Table, column: str | None, option: str) -> str:
    if column is not None and column in table.columns:
        return column
    known = ", ".join(repr(name) for name in table.columns)
    if column is None:
        raise InputError(
            f"{table.name}: name the column that holds the labels with {option}; the columns are: {known}"
        )
    raise InputError(f"{table.name}: there is no column {column!r} for {option}; the columns are: {known}")


def _labels(table: Table, column: str) -> tuple[LabelArray, tuple[str, ...]]:
    cells = table.columns[column]
    _refuse_empty(table, column, cells, "label")
    distinct = set(cells)
    _refuse_nan(table, column, distinct)
    if len(distinct) > max(50, len(cells) / 2):
        raise InputError(
            f"{table.name}: the column {column!r} has {len(distinct)} distinct values in {len(cells)} rows "
            "and does not look like class labels; name another column, or group its values into classes"
        )
    if all(_INTEGER.fullmatch(cell) for cell in distinct):
        class_names = sorted(distinct, key=lambda cell: (int(cell), cell))
    else:
        class_names = sorted(distinct)
    number = {name: i for i, name in enumerate(class_names)}
    return np.array([number[cell] for cell in cells], dtype=np.int64), tuple(class_names)


def _refuse_nan(table: Table, column: str, distinct: set[str]) -> None:
    """``nan`` among numbers is a label that is missing; among words it is a word."""
    if not all(is_number(cell) for cell in distinct):
        return
    for cell in sorted(distinct):
        if not math.isfinite(float(cell)):
            source = shown(table.sources[list(table.columns[column]).index(cell)])
            raise InputError(
                f"{source}: the label (column {column!r}) is {cell!r}; fill it or remove the row"
            )


def _ids(table: Table, column: str) -> tuple[str, ...]:
    cells = table.columns[column]
    _refuse_empty(table, column, cells, "id")
    return tuple(cells)


def _refuse_empty(table: Table, column: str, cells: Sequence[str], what: str) -> None:
    for source, cell in zip(table.sources, cells, strict=True):
        if not cell.strip():
            raise InputError(
                f"{shown(source)}: the {what} (column {column!r}) is empty; fill it or remove the row"
            )
        check_utf8(shown(source), what, cell)


def _cut(cell: str) -> str:
    return cell if len(cell) <= PREVIEW_CHARACTERS else cell[:PREVIEW_CHARACTERS] + "..."
