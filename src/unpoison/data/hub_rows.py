"""The rows of a Hugging Face dataset as Arrow holds them: cells, images, hashes, and writing them back.

Nothing here needs the package ``datasets``, and no file that a row names is opened unless it lies in the
folder of images that the user gave.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unpoison.data.columns import Table
from unpoison.data.files import CELL_BYTES, check_budget, file_sha256, read_regular, shown, writing
from unpoison.data.parquet import ParquetTable, cell_text, hash_rows, is_plain
from unpoison.errors import InputError
from unpoison.types import BoolArray

STATE, INFO, DATA = "state.json", "dataset_info.json", "data-00000-of-00001.arrow"
WRITTEN = (DATA, INFO, STATE)
"""What a written dataset consists of: the layout of ``Dataset.save_to_disk``."""
_ROWS_AT_ONCE = 100
"""Rows of a record batch: the bytes of its images must stay below the 2 GiB that Arrow's offsets reach."""


@dataclass(frozen=True)
class HubRows:
    """One split of a dataset, read-only."""

    name: str
    split: str
    table: Any
    """A ``pyarrow.Table`` that was validated, its types and metadata those of the features."""
    info: Mapping[str, Any]
    """What ``dataset_info.json`` says: features, license, citation, ..."""
    images: tuple[str, ...]
    """The columns that hold an image."""
    classes: Mapping[str, tuple[str, ...]]
    """The columns that hold class numbers, and the names of their classes."""
    root: Path | None = None
    """The folder whose image files may be read; None where every image must come with its bytes."""

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def plain_columns(self) -> list[str]:
        """The columns of numbers and strings. Others (images, lists, ...) are carried along unread."""
        return [field.name for field in self.table.schema if _is_cell(field.type)]

    def source(self, index: int) -> str:
        """Where a row stands."""
        return f"{self.name}[{self.split}][{index}]"

    def as_table(self, values: Mapping[str, Sequence[Any]]) -> Table:
        """The values of some columns as cells of text."""
        cells = {column: [cell_text(value) for value in given] for column, given in values.items()}
        return Table(shown(self.name), cells, tuple(self.source(i) for i in range(len(self))))

    def values(self, columns: Sequence[str]) -> dict[str, list[Any]]:
        """The named plain columns as None, bool, int, float or str; class numbers become class names."""
        part = self.table.select(columns)
        values = ParquetTable(shown(self.name), part, part.schema).values()
        return {column: self._named(column, cells) for column, cells in values.items()}

    def _named(self, column: str, numbers: list[Any]) -> list[Any]:
        names = self.classes.get(column)
        if names is None:
            return numbers
        # -1 is how datasets without labels (often the test split) say that there is none
        by_number: dict[Any, str | None] = {None: None, -1: None, **dict(enumerate(names))}
        unknown = next((i for i, number in enumerate(numbers) if number not in by_number), None)
        if unknown is not None:
            raise InputError(
                f"{shown(self.source(unknown))}: the class (column {column!r}) is {numbers[unknown]}, but "
                f"the column has {len(names)} class names, counted from 0; correct the row or the names"
            )
        return [by_number[number] for number in numbers]


def check_table_budget(rows: HubRows, columns: Sequence[str], max_bytes: int) -> None:
    """Refuse plain columns that would take too much memory as Python's own values."""
    stored = rows.table.select(columns).nbytes
    check_budget(shown(rows.name), 2 * stored + len(rows) * len(columns) * CELL_BYTES, max_bytes)


def sample_hashes(rows: HubRows, *, label: str, image: str | None, limit: int) -> tuple[str, ...]:
    """The hash of each sample: of its image and label, or without an image of all its plain columns."""
    if image is None:
        columns = rows.plain_columns
        return hash_rows(columns, rows.values(columns))
    read = image_reader(rows, image, limit=limit)
    labels = rows.as_table(rows.values([label])).columns[label]
    return tuple(hash_image(read(i), name) for i, name in enumerate(labels))


def hash_image(data: bytes, label: str) -> str:
    """The hash of an image as stored, and of the name of its label."""
    digest = hashlib.sha256(f"image|{len(data)}|".encode())
    digest.update(data)
    digest.update(label.encode())
    return digest.hexdigest()


def image_reader(rows: HubRows, column: str, *, limit: int) -> Callable[[int], bytes]:
    """A function that gives the stored bytes of the image in a row, at most ``limit`` of them."""
    stored = rows.table.column(column)
    contents, paths = pc.struct_field(stored, "bytes"), pc.struct_field(stored, "path")

    def read(index: int) -> bytes:
        content = contents[index]
        name = shown(rows.source(index))
        if content.is_valid:
            check_budget(name, len(content.as_buffer()), limit)
            data: bytes = content.as_py()
            return data
        return read_regular(_image_file(rows, name, column, paths[index].as_py()), name, limit=limit)

    return read


def lies_inside(path: Path, root: Path) -> Path | None:
    """The real file behind ``path``, links followed; None if that is no regular file below ``root``."""
    try:
        real = path.resolve(strict=True)
        return real if real.is_relative_to(root) and real.is_file() else None
    except (OSError, RuntimeError, ValueError):  # absent, a loop of links, a NUL in the name
        return None


def write_rows(rows: HubRows, keep: BoolArray, directory: Path, *, image: str | None, limit: int) -> None:
    """Write the kept rows as ``Dataset.save_to_disk`` would; the same rows give the same bytes.

    Not by ``save_to_disk`` itself, which would open every path that an image or audio column names, and store
    a random fingerprint. Images of the column ``image`` that are files are put inside, byte for byte.
    """
    read = None if image is None or rows.root is None else image_reader(rows, image, limit=limit)
    with writing(directory):
        with (
            pa.OSFile(str(directory / DATA), "wb") as file,
            pa.ipc.new_stream(file, rows.table.schema) as sink,
        ):
            for indices, batch in _kept_batches(rows.table, keep):
                whole = batch if read is None or image is None else _embedded(batch, image, indices, read)
                sink.write_batch(whole)
        fingerprint = file_sha256(directory / DATA, DATA)[:16]
        (directory / INFO).write_text(json.dumps(rows.info, indent=2), encoding="ascii")
        (directory / STATE).write_text(json.dumps(_state(rows, fingerprint), indent=2), encoding="ascii")


def _is_cell(data_type: Any) -> bool:
    # many views may share one long string, so their size in memory cannot be told from that of the file
    is_view = pa.types.is_string_view(data_type) or pa.types.is_binary_view(data_type)
    return is_plain(data_type) and not is_view


def _image_file(rows: HubRows, name: str, column: str, path: str | None) -> Path:
    if path is None:
        raise InputError(f"{name}: the image (column {column!r}) is empty; fill it or remove the row")
    if rows.root is None:
        raise InputError(
            f"{name}: the image (column {column!r}) is no image but the path {path[:200]!r}, which unpoison "
            "does not open, for it may lead anywhere. If you trust it, save the dataset as "
            "load_dataset(...).save_to_disk(FOLDER), which puts the images inside, and give hf:FOLDER"
        )
    real = lies_inside(Path(path), rows.root)
    if real is None:
        raise InputError(
            f"{name}: the image {path[:200]!r} is no file in the folder {shown(str(rows.root))}; unpoison "
            "opens no other. Put the file there (unpack archives) or remove the row"
        )
    return real


def _kept_batches(table: Any, keep: BoolArray) -> Iterator[tuple[list[int], Any]]:
    """The kept rows piece by piece, each piece with the numbers of its rows."""
    start = 0
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        kept = keep[start : start + len(batch)]
        if kept.any():
            yield (np.flatnonzero(kept) + start).tolist(), batch.filter(pa.array(kept))
        start += len(batch)


def _embedded(batch: Any, column: str, indices: list[int], read: Callable[[int], bytes]) -> Any:
    """The batch with the bytes of its images, which were files; of their paths only the name remains."""
    position = batch.schema.get_field_index(column)
    stored = batch.column(position)
    parts = {
        "bytes": [read(index) for index in indices],
        "path": [path and PurePath(path).name for path in pc.struct_field(stored, "path").to_pylist()],
    }
    children = [stored.type.field(i) for i in range(stored.type.num_fields)]
    arrays = [pa.array(parts[child.name], child.type) for child in children]
    images = pa.StructArray.from_arrays(arrays, fields=children)
    columns = [images if i == position else part for i, part in enumerate(batch.columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _state(rows: HubRows, fingerprint: str) -> dict[str, Any]:
    return {
        "_data_files": [{"filename": DATA}],
        "_fingerprint": fingerprint,
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": rows.split,
    }
