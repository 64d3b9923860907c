"""The decision about every sample, one row each, as CSV and as Parquet.

Values are written exactly as they are, because ids must lead back to the samples. A class or a file may
be called ``=1+1`` or ``@SUM(A1)`` by whoever made the data: import ``manifest.csv`` into a spreadsheet with
all columns as text, or read ``manifest.parquet``, instead of opening it with a double click.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.errors import InputError, OutputError
from unpoison.report.review import Review
from unpoison.report.text import printable

Table: TypeAlias = Any
"""A ``pyarrow.Table``; pyarrow carries no types."""

SUSPICION_DIGITS = 6
BY_RUN, BY_REVIEW = "run", "review"
"""Who decided about a sample; a reviewer who gave a name is ``review: NAME``."""
MAX_REVIEWER = 100
_NAMED = ": "

_HEAD = (
    ("id", pa.string()),
    ("source", pa.string()),
    ("label", pa.string()),
    ("keep", pa.bool_()),
    ("decided_by", pa.string()),
    ("suspicion", pa.float64()),
    ("predicted", pa.string()),
)


def build(dataset: Dataset, result: Sanitization, review: Review | None = None) -> Table:
    """One row a sample in the order of the dataset, :func:`schema` columns."""
    review = review or Review.none(result)
    check_match(dataset, result)
    check_text(dataset)
    columns: list[Any] = [
        list(dataset.ids),
        list(dataset.sources),
        [dataset.class_names[label] for label in dataset.labels],
        review.keep.tolist(),
        [_who(review, i) for i in range(len(dataset))],
        # Adding zero turns -0.0 into 0.0: two names for one number would be two different files.
        (np.round(result.suspicion, SUSPICION_DIGITS) + 0.0).tolist(),
        [class_name(dataset, called) for called in result.predicted],
        *[row.tolist() for row in result.components],
        list(dataset.sha256),
    ]
    wanted = schema(len(result.components))
    arrays = [pa.array(values, type=field.type) for values, field in zip(columns, wanted, strict=True)]
    return pa.Table.from_arrays(arrays, schema=wanted)


def _who(review: Review, index: int) -> str:
    if not review.decided[index]:
        return BY_RUN
    name = review.by.get(index)
    return BY_REVIEW if name is None else f"{BY_REVIEW}{_NAMED}{name}"


def read_review(table: Table) -> Review:
    """What people decided, as a manifest says it."""
    who = table["decided_by"].to_pylist()
    names = {i: said.split(_NAMED, 1)[1] for i, said in enumerate(who) if _NAMED in said}
    decided = np.array([said != BY_RUN for said in who], dtype=np.bool_)
    return Review(np.array(table["keep"].to_pylist(), dtype=np.bool_), decided, names)


def check_reviewer(name: str) -> None:
    """Refuse a name that is empty, too long, or does not show on one line."""
    if not name.strip() or len(name) > MAX_REVIEWER or not name.isprintable():
        raise InputError(f"the reviewer '{printable(name)}' must be 1 to {MAX_REVIEWER} printable characters")


def _is_reviewer(who: str) -> bool:
    kind, colon, name = who.partition(_NAMED)
    try:
        check_reviewer(name if colon else BY_REVIEW)
    except InputError:
        return False
    return kind == BY_REVIEW


def schema(n_restarts: int) -> Any:
    """The columns of a manifest whose run had ``n_restarts`` restarts."""
    components = [(f"component_{r + 1}", pa.int64()) for r in range(n_restarts)]
    return pa.schema([*_HEAD, *components, ("sha256", pa.string())])


def class_name(dataset: Dataset, label: int) -> str:
    """The name of class ``label``; empty for -1, no vote."""
    return dataset.class_names[label] if label >= 0 else ""


def write_csv(table: Table, path: Path) -> None:
    """UTF-8, ``\\n`` line ends, text in quotes; the same table gives the same bytes."""
    with path.open("wb") as file:
        file.writelines(csv_lines(table))


def write_parquet(table: Table, path: Path) -> None:
    """The same table gives the same bytes with the same version of pyarrow."""
    pq.write_table(table, path)


def read_parquet(path: Path) -> Table:
    """The manifest at ``path``.

    Raises:
        OutputError: It has other columns than a manifest.
        pyarrow.ArrowException, OSError: It is not readable as Parquet.
    """
    with path.open("rb") as file:
        table = pq.read_table(file)
    table.validate(full=True)
    n_restarts = table.num_columns - len(_HEAD) - 1
    if n_restarts < 0 or not table.schema.equals(schema(n_restarts)):
        raise OutputError("has other columns than a manifest")
    if any(column.null_count for column in table.columns):
        raise OutputError("has empty cells, which a manifest never has")
    if not all(_is_reviewer(who) for who in table["decided_by"].unique().to_pylist() if who != BY_RUN):
        raise OutputError(f"names others than '{BY_RUN}' and '{BY_REVIEW}' in decided_by")
    return table


def csv_lines(table: Table) -> Iterator[bytes]:
    """The lines of ``manifest.csv``, the header first; a line may hold line breaks inside quotes."""
    buffer = io.StringIO()
    # Quoting all text, not only where needed: the csv module's idea of "needed" differs between versions
    # of Python, and some leave a lone carriage return bare, which then cannot be read back.
    writer = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(table.column_names)
    yield _taken(buffer)
    for batch in table.to_batches(max_chunksize=4096):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            writer.writerow([_cell(value) for value in row])
            yield _taken(buffer)


def _cell(value: str | bool | float) -> str | int | Decimal:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return Decimal(f"{value:.{SUSPICION_DIGITS}f}")
    return value


def _taken(buffer: io.StringIO) -> bytes:
    line = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return line.encode("utf-8")


def check_match(dataset: Dataset, result: Sanitization) -> None:
    """Refuse a result that belongs to another dataset, or that has no number where one is due."""
    n = len(dataset)
    lengths = {
        "keep": result.keep.shape,
        "suspicion": result.suspicion.shape,
        "predicted": result.predicted.shape,
        "components": result.components.shape[1:],
    }
    for name, shape in lengths.items():
        if shape != (n,):
            raise OutputError(f"{printable(dataset.name)}: {name} has shape {shape} for {n} samples")
    if not np.isfinite(result.suspicion).all():
        first = dataset.ids[int(np.flatnonzero(~np.isfinite(result.suspicion))[0])]
        raise OutputError(f"{printable(dataset.name)}: the suspicion of '{printable(first)}' is not a number")


def check_text(dataset: Dataset) -> None:
    """Refuse names that no file can hold, such as file names in another encoding than UTF-8."""
    fields = {"id": dataset.ids, "source": dataset.sources, "class name": dataset.class_names}
    for field, values in fields.items():
        for value in values:
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                raise OutputError(
                    f"{printable(dataset.name)}: the {field} '{printable(value)}' is not Unicode; rename it"
                ) from None
