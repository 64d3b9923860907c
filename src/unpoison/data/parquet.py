"""Reading Parquet tables within bounded memory, and the hash of a row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from unpoison.data.files import CELL_BYTES, check_budget, open_regular, refusing, writing
from unpoison.data.records import check_header
from unpoison.errors import InputError
from unpoison.types import BoolArray

_FIX = "it is not a Parquet file or it is damaged; write it again"
_PLAIN_TYPES = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
    pa.types.is_null,
)


@dataclass(frozen=True)
class ParquetTable:
    """A table in memory, strings as dictionaries, and the schema of the file."""

    name: str
    table: Any
    schema: Any

    @property
    def columns(self) -> list[str]:
        """The column names, in the order of the file."""
        return list(self.schema.names)

    def values(self) -> dict[str, list[Any]]:
        """Every column as plain values: None, bool, int, float or str."""
        with refusing(self.name, _FIX):
            return {column: _column_values(self.table.column(i)) for i, column in enumerate(self.columns)}

    def write(self, keep: BoolArray, path: Path) -> None:
        """Write the kept rows with the schema of the file."""
        kept = self.table.filter(pa.array(keep)).cast(self.schema)
        with writing(path.parent):
            pq.write_table(kept, path)


def read_parquet(path: Path, name: str, *, max_bytes: int) -> ParquetTable:
    """Read a whole table, after checking its types and its size."""
    with open_regular(path, name) as stream, refusing(name, _FIX):
        with _opened(stream) as file:
            schema = file.schema_arrow
            _check_size(file.metadata, name, max_bytes)
        check_header(schema.names, name)
        for field in schema:
            _check_type(field, name)
        stream.seek(0)
        # one long string may stand for a million rows: kept as a dictionary it is stored once
        with _opened(stream, [field.name for field in schema if _is_bytes(field.type)]) as file:
            table = file.read(use_threads=False)
        table.validate(full=True)
        check_budget(name, sum(_text_size(column) for column in table.columns), max_bytes)
        return ParquetTable(name, table, schema)


def hash_rows(columns: Sequence[str], values: dict[str, list[Any]]) -> tuple[str, ...]:
    """sha256 of each row as JSON with sorted keys: column names and plain values."""
    ordered = sorted(columns)
    encode = json.JSONEncoder(separators=(",", ":")).encode
    rows = zip(*(values[column] for column in ordered), strict=True)
    return tuple(
        hashlib.sha256(encode(dict(zip(ordered, row, strict=True))).encode()).hexdigest() for row in rows
    )


def cell_text(value: Any) -> str:
    """A plain value as the text of a cell; null is empty, as in CSV."""
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def is_plain(data_type: Any) -> bool:
    """Whether a cell of this type is one number, string or moment, and no list or structure."""
    value_type = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
    return _is_bytes(value_type) or any(is_type(value_type) for is_type in _PLAIN_TYPES)


@contextmanager
def _opened(stream: Any, dictionaries: Sequence[str] = ()) -> Iterator[Any]:
    file = pq.ParquetFile(stream, read_dictionary=list(dictionaries), pre_buffer=False)
    yield file


def _check_size(metadata: Any, name: str, max_bytes: int) -> None:
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    rows = max(metadata.num_rows, sum(group.num_rows for group in groups))
    stored = sum(group.total_byte_size for group in groups)
    # run-length encoding stores any number of equal cells in a few bytes, so cells are counted too
    check_budget(name, stored + rows * metadata.num_columns * CELL_BYTES, max_bytes)


def _check_type(field: Any, name: str) -> None:
    if not is_plain(field.type):
        raise InputError(
            f"{name}: the column {field.name!r} has type {field.type}, which unpoison does not read; "
            "drop the column or turn it into numbers or strings"
        )


def _is_bytes(data_type: Any) -> bool:
    return _is_string(data_type) or _is_binary(data_type)


def _is_string(data_type: Any) -> bool:
    types = pa.types
    return bool(
        types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type)
    )


def _is_binary(data_type: Any) -> bool:
    types = pa.types
    return bool(
        types.is_binary(data_type)
        or types.is_large_binary(data_type)
        or types.is_binary_view(data_type)
        or types.is_fixed_size_binary(data_type)
    )


def _text_size(column: Any) -> int:
    """Bytes of a column's strings if each row had its own."""
    total = 0
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type) and _is_bytes(chunk.type.value_type):
            lengths = np.array(
                [len(value or "") for value in _chunk_values(chunk.dictionary)], dtype=np.int64
            )
            counts = np.bincount(chunk.indices.drop_null().to_numpy(), minlength=len(lengths))
            total += int(lengths @ counts)
        elif not pa.types.is_dictionary(chunk.type):
            total += int(chunk.nbytes)
    return total


def _column_values(column: Any) -> list[Any]:
    return [value for chunk in column.chunks for value in _chunk_values(chunk)]


def _chunk_values(chunk: Any) -> list[Any]:
    """Plain values of one chunk; equal strings of a dictionary are one object."""
    data_type = chunk.type
    types = pa.types
    if types.is_dictionary(data_type):
        values = _chunk_values(chunk.dictionary)
        return [None if index is None else values[index] for index in chunk.indices.to_pylist()]
    if types.is_timestamp(data_type) and data_type.tz is not None:
        chunk = pc.cast(chunk, pa.timestamp(data_type.unit))  # the time in UTC; no time zone database needed
    if types.is_timestamp(data_type) or types.is_date(data_type) or types.is_time(data_type):
        chunk = pc.cast(chunk, pa.string())
    elif types.is_duration(data_type):
        chunk = pc.cast(chunk, pa.int64())
    elif types.is_floating(data_type):
        return [None if value is None else float(value) for value in chunk.to_pylist()]
    if types.is_decimal(data_type):
        return [None if value is None else str(value) for value in chunk.to_pylist()]
    if _is_binary(data_type):
        return [None if value is None else value.hex() for value in chunk.to_pylist()]
    return list(chunk.to_pylist())
