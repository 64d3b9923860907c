"""Datasets of Hugging Face: names on the hub, and folders that the package ``datasets`` reads or wrote."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unpoison.data.container import Dataset, Preview
from unpoison.data.files import SAMPLE_BYTES, check_budget, check_keep, shown
from unpoison.data.hub_open import open_hub, open_saved
from unpoison.data.hub_rows import (
    HubRows,
    check_table_budget,
    hash_image,
    image_reader,
    sample_hashes,
    write_rows,
)
from unpoison.data.images import Decoded, decode, decode_preview, pillow_guard, shorter_side
from unpoison.data.options import LoadOptions
from unpoison.data.parquet import hash_rows
from unpoison.data.pixels import decode_all, file_limit, usual_size
from unpoison.data.table import View, find_column, read_ids, read_labels, table_dataset
from unpoison.errors import InputError, OutputError
from unpoison.types import BoolArray

LABEL_NAMES = ("label", "labels", "class", "target", "fine_label")
"""How a column of labels is called that does not say itself that it holds classes."""


@dataclass(frozen=True)
class HubOrigin:
    """Rows in Arrow, mostly on disk: images are read again for previews and to be kept."""

    rows: HubRows
    sha256: tuple[str, ...]
    label: str
    image: str | None
    options: LoadOptions
    look: Callable[[int], Preview]
    form: str = "hub"

    def preview(self, index: int) -> Preview:
        """The sample's image, text or columns."""
        return self.look(index)

    def write_kept(self, keep: BoolArray, directory: Path) -> None:
        """Write the kept rows with all columns as ``datasets.load_from_disk`` reads them, and check them."""
        check_keep(keep, len(self.rows))
        limit = file_limit(self.options)
        write_rows(self.rows, keep, directory, image=self.image, limit=limit)
        written = open_saved(directory, max_bytes=self.options.max_bytes)
        found = sample_hashes(written, label=self.label, image=self.image, limit=limit)
        if found != tuple(self.sha256[i] for i in np.flatnonzero(keep)):
            raise OutputError(
                f"{shown(self.rows.name)} changed since it was loaded; run again on the data as it is now"
            )


def load_hub(source: str, *, options: LoadOptions) -> Dataset:
    """Read ``user/name``, ``user/name:config`` or a folder; see ``unpoison.data.hub_open.find_place``."""
    return hub_dataset(open_hub(source, split=options.split, max_bytes=options.max_bytes), options=options)


def hub_dataset(rows: HubRows, *, options: LoadOptions) -> Dataset:
    """What the rows are under the options.

    A column of images makes it a set of images, unless a column of text is named; otherwise the columns of
    numbers and strings are features as those of a table are. Other columns are kept but not looked at.
    """
    name = shown(rows.name)
    if len(rows) == 0:
        raise InputError(f"{name}: the split {rows.split!r} has no rows; choose another with --split")
    image = _image_column(rows, options)
    label = find_column(name, rows.plain_columns, options.label or _usual_label(rows), "--label")
    chosen = replace(options, label=label, image=image)
    return _table(rows, label, chosen) if image is None else _images(rows, label, image, chosen)


def _image_column(rows: HubRows, options: LoadOptions) -> str | None:
    if options.image in rows.images:
        return options.image
    listed = ", ".join(map(repr, rows.images)) or "none"
    if options.image is not None:
        raise InputError(
            f"{shown(rows.name)}: there is no column of images {options.image!r} for --image; the columns of "
            f"images are: {listed}"
        )
    if not rows.images or options.text is not None:
        return None
    if len(rows.images) > 1:
        raise InputError(f"{shown(rows.name)}: choose one of the columns of images with --image: {listed}")
    return rows.images[0]


def _usual_label(rows: HubRows) -> str | None:
    if len(rows.classes) == 1:
        return next(iter(rows.classes))
    named = [column for column in rows.plain_columns if column in LABEL_NAMES]
    return named[0] if len(named) == 1 else None


def _table(rows: HubRows, label: str, options: LoadOptions) -> Dataset:
    columns = rows.plain_columns
    check_table_budget(rows, columns, options.max_bytes)
    values = rows.values(columns)
    hashes = hash_rows(columns, values)

    def origin(view: View) -> HubOrigin:
        return HubOrigin(rows, hashes, label, None, options, view.preview)

    order = rows.classes.get(label, ())
    return table_dataset(rows.name, rows.as_table(values), options, hashes, origin, class_order=order)


def _images(rows: HubRows, label: str, image: str, options: LoadOptions) -> Dataset:
    name, n = shown(rows.name), len(rows)
    id_column = options.id_column
    if id_column is not None:
        find_column(name, rows.plain_columns, id_column, "--id")
    columns = [label] if id_column is None else [label, id_column]
    check_table_budget(rows, columns, options.max_bytes)
    table = rows.as_table(rows.values(columns))
    labels, class_names = read_labels(table, label, class_order=rows.classes.get(label, ()))
    pictures = _Pictures(rows, image_reader(rows, image, limit=file_limit(options)), options.max_pixels)
    with pillow_guard():
        size = options.image_size or usual_size(n, pictures.side)
        check_budget(name, n * (size * size * 3 + SAMPLE_BYTES), options.max_bytes)
        names = table.columns[label]
        pixels, hashes = decode_all(n, size, lambda index: pictures.decoded(index, size, names[index]))
    return Dataset(
        name=rows.name,
        kind="image",
        features=pixels,
        labels=labels,
        class_names=class_names,
        ids=read_ids(table, id_column),
        sources=table.sources,
        sha256=hashes,
        origin=HubOrigin(rows, hashes, label, image, options, pictures.preview),
    )


@dataclass(frozen=True)
class _Pictures:
    """The images of a dataset by number."""

    rows: HubRows
    read: Callable[[int], bytes]
    max_pixels: int

    def side(self, index: int) -> int:
        stream = io.BytesIO(self.read(index))
        return shorter_side(stream, name=self._name(index), max_pixels=self.max_pixels)

    def decoded(self, index: int, size: int, label: str) -> tuple[Decoded, str]:
        data = self.read(index)
        decoded = decode(data, name=self._name(index), size=size, max_pixels=self.max_pixels)
        return decoded, hash_image(data, label)

    def preview(self, index: int) -> Preview:
        with pillow_guard():
            data = self.read(index)
            return Preview(image=decode_preview(data, name=self._name(index), max_pixels=self.max_pixels))

    def _name(self, index: int) -> str:
        return shown(self.rows.source(index))
