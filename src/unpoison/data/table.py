"""Labelled tables: CSV, TSV and Parquet files with a column of labels."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
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
    return table_dataset(
        path.name, table, options, hashes, lambda view: RecordsOrigin(form, path.name, records, view)
    )


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
    return table_dataset(path.name, table, options, hashes, lambda view: ParquetOrigin(path.name, rows, view))


def table_dataset(
    name: str,
    table: Table,
    options: LoadOptions,
    sha256: tuple[str, ...],
    origin: Callable[[View], Origin],
    *,
    class_order: Sequence[str] = (),
) -> Dataset:
    """The dataset that a table is under the options. ``class_order`` is as in :func:`read_labels`."""
    features, labels, class_names, ids = _interpret(table, options, class_order)
    return Dataset(
        name=name,
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
    table: Table, options: LoadOptions, class_order: Sequence[str]
) -> tuple[Features, LabelArray, tuple[str, ...], tuple[str, ...]]:
    """Features, labels, class names and ids of a table."""
    label = find_column(table.name, table.columns, options.label, "--label")
    for column, option in ((options.text, "--text"), (options.id_column, "--id")):
        if column is not None:
            find_column(table.name, table.columns, column, option)
    if len(table) == 0:
        raise InputError(f"{table.name}: no rows under the header; add samples")
    labels, class_names = read_labels(table, label, class_order=class_order)
    ids = read_ids(table, options.id_column)
    set_aside = (label, options.id_column)
    used = [c for c in table.columns if c not in set_aside and not _PANDAS_INDEX.fullmatch(c)]
    features = build_features(table, used, text=options.text, max_bytes=options.max_bytes)
    return features, labels, class_names, ids


def read_labels(
    table: Table, column: str, *, class_order: Sequence[str] = ()
) -> tuple[LabelArray, tuple[str, ...]]:
    """Class numbers and class names of a column of labels.

    ``class_order`` has every class in the order that the source gives them; those without a sample are left
    out. Where it is empty the classes are sorted, as numbers if all are.
    """
    cells = table.columns[column]
    _refuse_empty(table, column, cells, "label")
    distinct = set(cells)
    class_names = [name for name in class_order if name in distinct] or _sorted_classes(
        table, column, distinct
    )
    number = {name: i for i, name in enumerate(class_names)}
    return np.array([number[cell] for cell in cells], dtype=np.int64), tuple(class_names)


def read_ids(table: Table, column: str | None) -> tuple[str, ...]:
    """The cells of the column that names each sample; numbers of rows where there is none."""
    if column is None:
        return row_ids(len(table))
    _refuse_empty(table, column, table.columns[column], "id")
    return tuple(table.columns[column])


def find_column(name: str, columns: Iterable[str], column: str | None, option: str) -> str:
    """``column`` if it is one of the columns of the table called ``name``; ``option`` is how it was given."""
    known = list(columns)
    if column in known:
        return column
    listed = ", ".join(map(repr, known))
    if column is None:
        raise InputError(
            f"{name}: name the column that holds the labels with {option}; the columns are: {listed}"
        )
    raise InputError(f"{name}: there is no column {column!r} for {option}; the columns are: {listed}")


def _sorted_classes(table: Table, column: str, distinct: set[str]) -> list[str]:
    _refuse_nan(table, column, distinct)
    if len(distinct) > max(50, len(table) / 2):
        raise InputError(
            f"{table.name}: the column {column!r} has {len(distinct)} distinct values in {len(table)} rows "
            "and does not look like class labels; name another column, or group its values into classes"
        )
    if all(_INTEGER.fullmatch(cell) for cell in distinct):
        return sorted(distinct, key=lambda cell: (int(cell), cell))
    return sorted(distinct)


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


def _refuse_empty(table: Table, column: str, cells: Sequence[str], what: str) -> None:
    for source, cell in zip(table.sources, cells, strict=True):
        if not cell.strip():
            raise InputError(
                f"{shown(source)}: the {what} (column {column!r}) is empty; fill it or remove the row"
            )
        check_utf8(shown(source), what, cell)


def _cut(cell: str) -> str:
    return cell if len(cell) <= PREVIEW_CHARACTERS else cell[:PREVIEW_CHARACTERS] + "..."
