"""Tables as an attacker sees them, and the form in which they are written back: CSV, TSV and Parquet."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import Samples
from unpoison.data.arrays import row_ids
from unpoison.data.columns import Table
from unpoison.data.container import Dataset, Kind
from unpoison.data.files import writing
from unpoison.data.options import LoadOptions
from unpoison.data.records import BOM, Record, is_number, strip_line_end
from unpoison.data.table import ParquetOrigin, RecordsOrigin
from unpoison.errors import InputError
from unpoison.evaluation.forms import TEST, TRIGGERED, Form, HeldOut, Written
from unpoison.types import IndexArray, LabelArray

Edits: TypeAlias = Mapping[str, Mapping[int, Any]]
"""New cells by column and row of the source: strings for text and labels, floats for numbers."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_STYLES = ("where needed", "everywhere", "words")
"""What programs that write CSV put into quotes."""


@dataclass(frozen=True)
class Cells:
    """What attacks may change in a table: the label, and the column of text or the columns of numbers."""

    table: Table
    label: str
    text: str | None
    columns: tuple[str, ...]
    features: NDArray[Any]

    def edits(self, rows: IndexArray, features: NDArray[Any], labels: Sequence[str] | None) -> Edits:
        """The cells of these rows that are others under the new features and label names."""
        before = self.features[rows]
        found: dict[str, dict[int, Any]] = {}
        if labels is not None:
            old = self.table.columns[self.label]
            changed = [(row, new) for row, new in zip(rows.tolist(), labels, strict=True) if old[row] != new]
            found[self.label] = dict(changed)
        names = self.columns if self.text is None else (self.text,)
        before, after = before.reshape(len(rows), -1), features.reshape(len(rows), -1)
        for j, column in enumerate(names):
            places = np.flatnonzero(before[:, j] != after[:, j])
            found[column] = {int(rows[i]): after[i, j] for i in places.tolist()}
        return {column: cells for column, cells in found.items() if cells}

    def is_whole(self, column: str) -> bool:
        """Whether every cell of a column is a whole number."""
        return all(_INTEGER.fullmatch(cell.strip()) for cell in self.table.columns[column])


def table_form(dataset: Dataset, options: LoadOptions) -> Form:
    """The form of a table that came from a file."""
    origin = dataset.origin
    if not isinstance(origin, RecordsOrigin | ParquetOrigin) or options.label is None:
        raise InputError(
            f"{dataset.name}: tables on the Hugging Face hub cannot be poisoned in place; save this one with "
            "Dataset.to_csv or Dataset.to_parquet, and give that file"
        )
    table, text = origin.view.table, origin.view.text_column
    set_aside = (options.label, options.id_column)
    columns: tuple[str, ...] = ()
    if text is not None:
        features = np.array([*table.columns[text], None], dtype=object)[:-1]  # objects, whatever they are
    else:
        columns = tuple(
            name for name, given in table.columns.items() if name not in set_aside and _all_numbers(given)
        )
        parts = [np.array(list(map(float, table.columns[name]))) for name in columns]
        features = np.stack(parts, axis=1) if parts else np.empty((len(table), 0))
    cells = Cells(table, options.label, text, columns, features)
    if isinstance(origin, ParquetOrigin):
        return ParquetForm(dataset, options, cells, origin)
    return RecordsForm(dataset, options, cells, origin)


@dataclass(frozen=True)
class _TableForm(ABC):
    dataset: Dataset
    options: LoadOptions
    cells: Cells

    @property
    @abstractmethod
    def train_name(self) -> str:
        """``train`` with the ending of the file that it came from."""

    @property
    def kind(self) -> Kind:
        """Text, or rows of numbers and categories."""
        return self.dataset.kind

    @property
    def samples(self) -> Samples:
        """The texts, or the columns of numbers in the units of the file."""
        return Samples(self.cells.features, self.dataset.labels, self.dataset.class_names)

    @property
    def ids(self) -> tuple[str, ...]:
        """The cells of the id column, or numbers of rows."""
        return self.dataset.ids

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of numbers; none for text."""
        return self.cells.columns

    @property
    def clean_options(self) -> tuple[str, ...]:
        """The columns; that of text too, so that a part of the table is not taken for something else."""
        given = (
            ("--label", self.options.label),
            ("--text", self.cells.text),
            ("--id", self.options.id_column),
        )
        return tuple(part for option, value in given if value is not None for part in (option, value))

    def write_train(self, directory: Path, rows: IndexArray, poisoned: Samples) -> Written:
        """Write the chosen rows with their new cells."""
        edits = self.cells.edits(rows, poisoned.features, self._names(poisoned.labels))
        self._write(directory / self.train_name, rows, edits)
        return self._written(rows)

    def write_test(
        self, directory: Path, test: HeldOut, triggered: NDArray[Any], goal: LabelArray
    ) -> tuple[str, ...]:
        """Write ``test``, and ``test_triggered`` with the wanted class in the column ``goal``, if any is."""
        rows, suffix = _rows_of(test), Path(self.train_name).suffix
        self._write(directory / f"{TEST}{suffix}", rows, {})
        if not (goal >= 0).any():
            return (f"{TEST}{suffix}",)
        edits = self.cells.edits(rows, triggered, None)
        wanted = _goals(goal, self.dataset.class_names)
        self._write(directory / f"{TRIGGERED}{suffix}", rows, edits, goal=wanted)
        return f"{TEST}{suffix}", f"{TRIGGERED}{suffix}"

    @abstractmethod
    def _write(
        self, path: Path, rows: IndexArray, edits: Edits, *, goal: Sequence[str | None] | None = None
    ) -> None:
        """Write rows of the table, some cells changed, with what is wanted of each in one more column."""

    def _written(self, rows: IndexArray) -> Written:
        """Rows without ids of their own are numbered anew by whoever reads the file."""
        named = self.options.id_column is not None
        ids = tuple(self.ids[i] for i in rows.tolist()) if named else row_ids(len(rows))
        return Written(ids, np.arange(len(rows)))

    def _names(self, labels: LabelArray) -> list[str]:
        return [self.dataset.class_names[label] for label in labels.tolist()]

    def _goal_column(self) -> str:
        name = "goal"
        while name in self.cells.table.columns:
            name += "_"
        return name


@dataclass(frozen=True)
class RecordsForm(_TableForm):
    """CSV or TSV: records that the attack left alone stay byte for byte."""

    origin: RecordsOrigin

    @property
    def train_name(self) -> str:
        """``train.csv`` or ``train.tsv``."""
        return f"train.{self.origin.form}"

    def _write(
        self, path: Path, rows: IndexArray, edits: Edits, *, goal: Sequence[str | None] | None = None
    ) -> None:
        """Records with a new cell are written in the style of the old."""
        records = self.origin.records
        header = records.header.raw
        if goal is not None:
            header = self._text(records.header, (*records.header.cells, self._goal_column()))
        parts = [header]
        position = {name: i for i, name in enumerate(records.header.cells)}
        whole = {column: self.cells.is_whole(column) for column in edits if column in self.cells.columns}
        for place, row in enumerate(rows.tolist()):
            record = records.rows[row]
            cells = list(record.cells)
            for column, changed in edits.items():
                if row in changed:
                    cells[position[column]] = _cell(changed[row], whole=whole.get(column, False))
            if goal is not None:
                cells.append(goal[place] or "")
            parts.append(record.raw if tuple(cells) == record.cells else self._text(record, cells))
        parts[:-1] = map(_ended, parts[:-1])
        with writing(path.parent):
            path.write_bytes((BOM if records.bom else b"") + "".join(parts).encode())

    def _text(self, record: Record, cells: Sequence[str]) -> str:
        """New cells in the quotes and with the line end of a record."""
        end = record.raw[len(strip_line_end(record.raw)) :]
        delimiter = self.origin.records.delimiter
        if self.origin.form == "tsv":
            wrong = next((cell for cell in cells if any(sign in cell for sign in "\t\r\n")), None)
            if wrong is not None:
                raise InputError(
                    f"{wrong!r} holds a tab or line end, which a .tsv file cannot; choose another"
                )
            return delimiter.join(cells) + end
        old = strip_line_end(record.raw)
        fitting = (style for style in _STYLES if _csv_line(record.cells, delimiter, style) == old)
        return _csv_line(cells, delimiter, next(fitting, _STYLES[0])) + end


@dataclass(frozen=True)
class ParquetForm(_TableForm):
    """Parquet, with the schema of the file."""

    origin: ParquetOrigin

    @property
    def train_name(self) -> str:
        """``train.parquet``."""
        return "train.parquet"

    def _write(
        self, path: Path, rows: IndexArray, edits: Edits, *, goal: Sequence[str | None] | None = None
    ) -> None:
        """The column ``goal`` is null where nothing is wanted."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = self.origin.rows.schema
        table = self.origin.rows.table.cast(schema)
        for column, changed in edits.items():
            position = schema.get_field_index(column)
            values = table.column(position).to_pylist()
            for row, value in changed.items():
                values[row] = self._value(column, value)
            table = table.set_column(position, schema.field(position), self._array(column, values))
        table = table.take(pa.array(rows))
        if goal is not None:
            values = [None if name is None else self._value(self.cells.label, name) for name in goal]
            kind = schema.field(self.cells.label).type
            table = table.append_column(pa.field(self._goal_column(), kind), pa.array(values, type=kind))
        with writing(path.parent):
            pq.write_table(table, path)

    def _value(self, column: str, value: Any) -> Any:
        """A class name as the value that the label column has for it; whole numbers without a point."""
        if column == self.cells.label:
            row = self.cells.table.columns[column].index(value)
            return self.origin.rows.table.column(column)[row].as_py()
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def _array(self, column: str, values: list[Any]) -> Any:
        import pyarrow as pa

        kind = self.origin.rows.schema.field(column).type
        # pyarrow drops what comes after the point
        broken = pa.types.is_integer(kind) and any(isinstance(value, float) for value in values)
        try:
            if not broken:
                return pa.array(values, type=kind)
            reason = "not whole numbers"
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
            reason = str(error)
        raise InputError(
            f"the column {column!r} is {kind} and cannot hold what the attack puts there ({reason}); "
            "choose other --values or --columns"
        )


def _rows_of(test: HeldOut) -> IndexArray:
    return np.empty(0, dtype=np.int64) if test.rows is None else test.rows


def _goals(goal: LabelArray, class_names: Sequence[str]) -> list[str | None]:
    return [class_names[wanted] if wanted >= 0 else None for wanted in goal.tolist()]


def _cell(value: Any, *, whole: bool) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if whole and float(value).is_integer() else repr(float(value))


def _csv_line(cells: Sequence[str], delimiter: str, style: str) -> str:
    def quoted(cell: str) -> bool:
        needed = any(sign in cell for sign in (delimiter, '"', "\r", "\n"))
        return needed or style == "everywhere" or (style == "words" and not is_number(cell))

    return delimiter.join('"' + cell.replace('"', '""') + '"' if quoted(cell) else cell for cell in cells)


def _all_numbers(cells: Sequence[str]) -> bool:
    return all(is_number(cell) and math.isfinite(float(cell)) for cell in cells)


def _ended(line: str) -> str:
    return line if line.endswith(("\n", "\r")) else line + "\n"
