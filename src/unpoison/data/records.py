"""Reading CSV and TSV records together with the exact text they were written in."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from unpoison.data.files import CELL_BYTES, check_budget
from unpoison.errors import InputError

DELIMITERS = (",", ";", "\t")
BOM = b"\xef\xbb\xbf"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_LARGEST_FIELD = 2**31 - 1


@dataclass(frozen=True)
class Record:
    """One record: the line it starts on (from 1), its cells, and its text with the line end."""

    line: int
    cells: tuple[str, ...]
    raw: str

    def sha256(self) -> str:
        """The hash of the record's bytes without the line end."""
        return hashlib.sha256(strip_line_end(self.raw).encode()).hexdigest()


@dataclass(frozen=True)
class Records:
    """A whole file: the header and the records under it."""

    header: Record
    rows: tuple[Record, ...]
    bom: bool
    delimiter: str

    def raw_bytes(self, keep: Sequence[bool]) -> bytes:
        """The file with only the records where ``keep`` is true, byte for byte as they came."""
        kept = "".join(row.raw for row, kept in zip(self.rows, keep, strict=True) if kept)
        return (BOM if self.bom else b"") + (self.header.raw + kept).encode()


def read_records(
    data: bytes, name: str, *, form: Literal["csv", "tsv"], max_bytes: int, label: str | None = None
) -> Records:
    """Parse a file. TSV knows no quotes; CSV is split at the comma, semicolon or tab that fits the header."""
    text = decode_text(data, name)
    if form == "tsv":
        return parse_records(
            text, name, delimiter="\t", quoting=False, bom=_has_bom(data), max_bytes=max_bytes
        )
    delimiter = sniff_delimiter(text, label)
    return parse_records(
        text, name, delimiter=delimiter, quoting=True, bom=_has_bom(data), max_bytes=max_bytes
    )


def decode_text(data: bytes, name: str) -> str:
    """The text of a UTF-8 file, without a byte order mark."""
    nul = data.find(b"\0")
    if nul >= 0:
        raise InputError(f"{name}:{_line_of(data, nul)}: holds a NUL byte; save the file as UTF-8 text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}:{_line_of(data, error.start)}: the byte 0x{data[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8"
        ) from error


def sniff_delimiter(text: str, label: str | None) -> str:
    """The delimiter under which the header has the label, then the one that gives most columns."""
    first = next(_lines(text), "")

    def merit(delimiter: str) -> tuple[bool, int]:
        try:
            cells = next(csv.reader([first], delimiter=delimiter), [])
        except csv.Error:
            return False, 0
        return label in cells, len(cells)

    return max(DELIMITERS, key=merit)  # the comma where they tie


def parse_records(
    text: str, name: str, *, delimiter: str, quoting: bool, bom: bool, max_bytes: int
) -> Records:
    """Split into records, refusing rows that do not have as many fields as the header."""
    with _large_fields():
        return _collect(
            _parse(text, name, delimiter=delimiter, quoting=quoting), name, delimiter, bom, max_bytes
        )


def _collect(records: Iterator[Record], name: str, delimiter: str, bom: bool, max_bytes: int) -> Records:
    header = next(records, None)
    if header is None:
        raise InputError(f"{name}:1: the file is empty; it needs a header line with the column names")
    check_header(header.cells, f"{name}:{header.line}")
    _refuse_data_as_header(header, name)
    width, rows, needed = len(header.cells), [], len(header.raw)
    for record in records:
        if len(record.cells) != width:
            raise InputError(
                f"{name}:{record.line}: {len(record.cells)} fields where the header has {width}; "
                "add or remove fields, or quote the delimiter"
            )
        needed += 2 * len(record.raw) + width * CELL_BYTES
        check_budget(name, needed, max_bytes)
        rows.append(record)
    return Records(header, tuple(rows), bom, delimiter)


def check_header(columns: Sequence[str], where: str) -> None:
    """Refuse empty and duplicate column names."""
    seen: set[str] = set()
    for number, column in enumerate(columns, start=1):
        if not column.strip():
            raise InputError(f"{where}: column {number} has no name; every column needs one")
        if column in seen:
            raise InputError(f"{where}: the column name {column!r} occurs more than once; rename one")
        seen.add(column)


def is_number(cell: str) -> bool:
    """Whether the cell reads as a number (``nan`` and ``inf`` do)."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # float("1_000") is Python's own habit


def strip_line_end(raw: str) -> str:
    """The text without the one line end that closes it."""
    if raw.endswith("\r\n"):
        return raw[:-2]
    return raw[:-1] if raw.endswith(("\n", "\r")) else raw


def _refuse_data_as_header(header: Record, name: str) -> None:
    if all(is_number(cell) for cell in header.cells):
        raise InputError(
            f"{name}:{header.line}: the first line holds only numbers ({header.cells[0]!r}, ...); "
            "add a header line with the column names"
        )


def _parse(text: str, name: str, *, delimiter: str, quoting: bool) -> Iterator[Record]:
    tap = _Tap(text)
    reader = csv.reader(
        tap,
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE,
        strict=True,
    )
    while True:
        line = reader.line_num + 1
        cells = _next_cells(reader, f"{name}:{line}")
        if cells is None:
            return
        raw = tap.take()
        if cells:  # a blank line is no record
            yield Record(line, tuple(cells), raw)


def _next_cells(reader: Any, where: str) -> list[str] | None:
    try:
        cells: list[str] | None = next(reader, None)
    except csv.Error as error:
        raise InputError(f"{where}: not a valid record ({error}); check the quotes") from error
    return cells


@contextmanager
def _large_fields() -> Iterator[None]:
    # the limit belongs to the whole process, so it is put back; size is bounded by max_bytes
    before = csv.field_size_limit(_LARGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


class _Tap:
    """The lines of a text, remembering those that were taken since the last record."""

    def __init__(self, text: str) -> None:
        self._lines = _lines(text)
        self._taken: list[str] = []

    def __iter__(self) -> _Tap:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._taken.append(line)
        return line

    def take(self) -> str:
        raw = "".join(self._taken)
        self._taken.clear()
        return raw


def _lines(text: str) -> Iterator[str]:
    # not str.splitlines, which also splits at form feeds and Unicode separators
    return (match.group() for match in _LINE.finditer(text))


def _line_of(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _has_bom(data: bytes) -> bool:
    return data.startswith(BOM)
