"""Labelled arrays: ``.npz`` files, and the digits that come with scikit-learn."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.data.container import Dataset, Kind, Preview
from unpoison.data.files import SAMPLE_BYTES, check_budget, check_keep, check_utf8, shown
from unpoison.data.npz import NpzReader, open_npz, write_npz
from unpoison.data.options import LoadOptions
from unpoison.errors import InputError, OutputError
from unpoison.types import BoolArray, LabelArray

KEY_PAIRS = (("x", "y"), ("X", "y"), ("x_train", "y_train"), ("X_train", "y_train"))
PREVIEW_COLUMNS = 64
_OTHER_SPLITS = frozenset({"test", "val", "valid", "validation", "dev", "eval", "holdout"})


@dataclass(frozen=True)
class Labelled:
    """The labelled samples of an archive as stored, before they become features."""

    x_key: str
    y_key: str
    x: NDArray[Any]
    labels: LabelArray
    class_names: tuple[str, ...]
    ids: tuple[str, ...] | None
    """None where the archive has no ``ids``."""

    def sha256(self) -> tuple[str, ...]:
        """The hash of each sample: dtype, shape and bytes of ``x[i]``, and the name of its label."""
        return hash_samples(self.x, [self.class_names[c] for c in self.labels.tolist()])


@dataclass(frozen=True)
class NpzOrigin:
    """An ``.npz`` file. It is read again to write what is kept, if it is still the same file."""

    file_name: str
    path: Path
    file_sha256: str
    keys: tuple[str, str]
    features: NDArray[Any]
    max_bytes: int
    form: str = "npz"

    def preview(self, index: int) -> Preview:
        """The sample's pixels or numbers."""
        return preview_array(self.features[index])

    def write_kept(self, keep: BoolArray, directory: Path) -> None:
        """Write an archive of the same name and keys; arrays with one entry a sample are filtered."""
        check_keep(keep, len(self.features))
        name = shown(self.file_name)
        with open_npz(self.path, name, max_bytes=self.max_bytes) as reader:
            if reader.sha256 != self.file_sha256:
                raise OutputError(f"{name} changed since it was loaded; run again on the file as it is now")
            write_npz(directory / self.file_name, self._kept(reader, keep), compressed=reader.compressed)

    def _kept(self, reader: NpzReader, keep: BoolArray) -> Iterator[tuple[str, NDArray[Any]]]:
        for key, header in reader.headers.items():
            array = reader.read(key)
            yield key, array[keep] if self._per_sample(key, header.shape) else array

    def _per_sample(self, key: str, shape: tuple[int, ...]) -> bool:
        if key in (*self.keys, "ids"):
            return True
        words = set(re.split(r"[^a-z0-9]+", key.lower()))
        return shape[:1] == (len(self.features),) and key != "class_names" and not words & _OTHER_SPLITS


@dataclass(frozen=True)
class MemoryOrigin:
    """Arrays that came from no file of the user's; each has one entry a sample."""

    file_name: str
    arrays: dict[str, NDArray[Any]]
    form: str = "npz"

    def preview(self, index: int) -> Preview:
        """The sample's pixels or numbers."""
        return preview_array(self.arrays["x"][index])

    def write_kept(self, keep: BoolArray, directory: Path) -> None:
        """Write the arrays, filtered, as an archive."""
        check_keep(keep, len(self.arrays["x"]))
        kept = ((key, array[keep]) for key, array in self.arrays.items())
        write_npz(directory / self.file_name, kept, compressed=True)


def load_npz(path: Path, *, options: LoadOptions, in_place: bool = False) -> Dataset:
    """Read an archive with ``x`` and ``y`` (or ``x_train``, ``y_train``), ``ids`` and ``class_names``.

    ``in_place`` maps the samples from the file itself: for files that nobody else changes.
    """
    name = shown(path.name)
    real = path.resolve()
    with open_npz(real, name, max_bytes=options.max_bytes) as reader:
        data = read_labelled(reader, name, max_bytes=options.max_bytes, in_place=in_place)
        file_sha256 = reader.sha256
    kind, features = _features(f"{name}: {data.x_key}", data.x)
    n = len(data.labels)
    return Dataset(
        name=path.name,
        kind=kind,
        features=features,
        labels=data.labels,
        class_names=data.class_names,
        ids=row_ids(n) if data.ids is None else data.ids,
        sources=tuple(f"{path.name}[{i}]" for i in range(n)),
        sha256=data.sha256(),
        origin=NpzOrigin(path.name, real, file_sha256, (data.x_key, data.y_key), features, options.max_bytes),
    )


def load_digits() -> Dataset:
    """scikit-learn's 1,797 handwritten digits, 8 x 8 pixels."""
    from sklearn.datasets import load_digits as sklearn_digits

    bunch = sklearn_digits()
    x = np.round(bunch.images * (255 / 16)).astype(np.uint8)[..., np.newaxis]
    y = bunch.target.astype(np.int64)
    ids = tuple(f"digits/{i:04d}" for i in range(len(y)))
    class_names = tuple(str(digit) for digit in range(10))
    return Dataset(
        name="digits",
        kind="image",
        features=x,
        labels=y,
        class_names=class_names,
        ids=ids,
        sources=tuple(f"digits.npz[{i}]" for i in range(len(y))),
        sha256=hash_samples(x, [class_names[c] for c in y.tolist()]),
        origin=MemoryOrigin("digits.npz", {"x": x, "y": y, "ids": np.array(ids)}),
    )


def read_labelled(reader: NpzReader, name: str, *, max_bytes: int, in_place: bool = False) -> Labelled:
    """The samples, labels and ids of an open archive, checked against each other."""
    x_key, y_key = _find_keys(reader, name)
    x_header, y_header = reader.headers[x_key], reader.headers[y_key]
    if len(y_header.shape) != 1:
        raise InputError(f"{name}: {y_key} has shape {y_header.shape}; labels must have one dimension")
    n = y_header.shape[0]
    if x_header.shape[:1] != (n,):
        raise InputError(
            f"{name}: {x_key} has shape {x_header.shape} but {y_key} has {n} labels; they must match"
        )
    # empty shapes and empty strings take no bytes, so the number of samples is bounded on its own
    check_budget(name, n * SAMPLE_BYTES, max_bytes)
    given = _strings(reader, "class_names", name) if "class_names" in reader.headers else None
    labels, class_names = _labels(reader.read(y_key), given, f"{name}: {y_key}")
    ids = _ids(reader, name, n) if "ids" in reader.headers else None
    x = np.ascontiguousarray(reader.read(x_key, in_place=in_place))
    return Labelled(x_key, y_key, x, labels, class_names, ids)


def hash_samples(x: NDArray[Any], label_names: Sequence[str]) -> tuple[str, ...]:
    """sha256 of each sample over dtype, shape, bytes and label name."""
    start = hashlib.sha256(f"{x.dtype.str}|{x.shape[1:]}|".encode())
    rows = np.empty((len(x), 0), dtype=np.uint8)
    if x.size and x.dtype.itemsize:
        rows = np.ascontiguousarray(x).reshape(len(x), -1).view(np.uint8)
    hashes = []
    for row, label in zip(rows, label_names, strict=True):
        digest = start.copy()
        digest.update(row.data)
        digest.update(label.encode())
        hashes.append(digest.hexdigest())
    return tuple(hashes)


def row_ids(n: int) -> tuple[str, ...]:
    """Ids for samples that bring none."""
    return tuple(f"row-{i:06d}" for i in range(n))


def preview_array(sample: NDArray[Any]) -> Preview:
    """Pixels ``(h, w, c)`` as an image, numbers ``(d,)`` as the first 64 columns."""
    if sample.ndim == 3:
        from unpoison.data.images import shrink

        return Preview(image=shrink(sample))
    columns = [(f"column {i}", f"{value:g}") for i, value in enumerate(sample[:PREVIEW_COLUMNS].tolist())]
    if len(sample) > PREVIEW_COLUMNS:
        columns.append(("...", f"and {len(sample) - PREVIEW_COLUMNS} more"))
    return Preview(columns=tuple(columns))


def _find_keys(reader: NpzReader, name: str) -> tuple[str, str]:
    found = [pair for pair in KEY_PAIRS if pair[0] in reader.headers and pair[1] in reader.headers]
    if len(found) == 1:
        return found[0]
    keys = ", ".join(repr(key) for key in reader.headers) or "none"
    if not found:
        raise InputError(f"{name}: no arrays 'x' and 'y' (or 'x_train' and 'y_train'); the keys are: {keys}")
    raise InputError(
        f"{name}: more than one training set, {found[0]} and {found[1]}; keep one. The keys are: {keys}"
    )


def _strings(reader: NpzReader, key: str, name: str) -> tuple[str, ...]:
    header = reader.headers[key]
    if len(header.shape) != 1 or header.dtype.kind not in "Uiu":
        raise InputError(
            f"{name}: {key} is {header.dtype} of shape {header.shape}; it must be a list of unicode strings"
        )
    array = reader.read(key)
    _check_characters(array, f"{name}: {key}")
    return _to_strings(array, f"{name}: {key}")


def _check_characters(array: NDArray[Any], where: str) -> None:
    """Refuse code points beyond Unicode, on which Python would fail in odd ways."""
    if array.dtype.kind != "U" or array.dtype.itemsize == 0:
        return
    points = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).view(np.uint32)
    if points.max(initial=0) > sys.maxunicode:
        raise InputError(f"{where} holds characters that are not Unicode; write it again")


def _to_strings(array: NDArray[Any], where: str) -> tuple[str, ...]:
    values = [str(value) for value in array.tolist()]
    for position, value in enumerate(values):
        if not value:
            raise InputError(f"{where}[{position}] is empty; give it a name")
        check_utf8(where, "value", value)
    return tuple(values)


def _ids(reader: NpzReader, name: str, n: int) -> tuple[str, ...]:
    if reader.headers["ids"].shape != (n,):
        raise InputError(f"{name}: ids has shape {reader.headers['ids'].shape}; there are {n} samples")
    return _strings(reader, "ids", name)


def _labels(y: NDArray[Any], given: tuple[str, ...] | None, where: str) -> tuple[LabelArray, tuple[str, ...]]:
    """Class numbers and class names. Names are the distinct labels, unless the archive gives them."""
    values, numbers = np.unique(_plain_labels(y, where), return_inverse=True)
    labels = numbers.reshape(-1).astype(np.int64)
    names = _to_strings(values, where)
    if given is None:
        return labels, names
    if len(set(given)) != len(given):
        raise InputError(
            f"{where}: class_names holds a name more than once; every class needs a name of its own"
        )
    places = _places(values, names, given, where)
    return places[labels], given


def _places(values: NDArray[Any], names: tuple[str, ...], given: tuple[str, ...], where: str) -> LabelArray:
    """Where each distinct label stands in the class names: integers are positions, strings are names."""
    if values.dtype.kind == "U":
        position = {class_name: i for i, class_name in enumerate(given)}
        unknown = [label for label in names if label not in position]
        if unknown:
            raise InputError(f"{where} has the label {unknown[0]!r}, which is not in class_names")
        return np.array([position[label] for label in names], dtype=np.int64)
    bad = values[(values < 0) | (values >= len(given))]
    if len(bad):
        raise InputError(
            f"{where} has the label {bad[0]}, but class_names has {len(given)} names, counted from 0"
        )
    return values.astype(np.int64)


def _plain_labels(y: NDArray[Any], where: str) -> NDArray[Any]:
    """Labels as integers or unicode strings."""
    _check_characters(y, where)
    if y.dtype.kind in "iuU":
        return y
    if y.dtype.kind == "b":
        return y.astype(np.int64)
    if y.dtype.kind != "f":
        raise InputError(f"{where} has dtype {y.dtype}; labels must be integers or unicode strings")
    wrong = np.flatnonzero(~np.isfinite(y) | (np.round(y) != y) | (np.abs(y) >= 2**53))
    if len(wrong):
        raise InputError(
            f"{where}[{wrong[0]}] is {y[wrong[0]]}, which is no class label; use integers or strings"
        )
    return y.astype(np.int64)


def _features(where: str, x: NDArray[Any]) -> tuple[Kind, NDArray[Any]]:
    if x.dtype.kind not in "biuf":
        raise InputError(f"{where} has dtype {x.dtype}; samples must be numbers")
    if x.size == 0 and len(x):
        raise InputError(f"{where} has shape {x.shape}; its samples are empty")
    if x.ndim == 2:
        return "rows", _rows(where, x)
    if x.ndim == 4 or (x.ndim == 3 and x.dtype == np.uint8):
        return "image", _images(where, x)
    raise InputError(
        f"{where} is {x.dtype} of shape {x.shape}; give images as uint8 (n, height, width) or "
        "(n, height, width, channels) of any number type, rows as (n, columns)"
    )


def _rows(where: str, x: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        rows = x.astype(np.float32)
    if not np.isfinite(rows).all():
        sample, column = np.argwhere(~np.isfinite(rows))[0]
        raise InputError(
            f"{where}: sample {sample}, column {column} is {x[sample, column]}; "
            "fill or remove missing values and keep numbers within what float32 holds"
        )
    return rows


def _images(where: str, x: NDArray[Any]) -> NDArray[np.uint8]:
    if x.ndim == 3:
        x = x[..., np.newaxis]
    if x.shape[3] not in (1, 3, 4):
        hint = "; move the channels last" if x.shape[1] in (1, 3, 4) else ""
        raise InputError(f"{where} has shape {x.shape}; the last number, channels, must be 1, 3 or 4{hint}")
    pixels = x if x.dtype == np.uint8 else _to_bytes(where, x)
    if pixels.shape[3] == 4:
        from unpoison.data.images import composite_on_white

        return composite_on_white(pixels)
    return pixels


def _to_bytes(where: str, x: NDArray[Any]) -> NDArray[np.uint8]:
    """Pixels as uint8: floats in 0..1 and truth values are stretched, anything in 0..255 is rounded."""
    if x.dtype.kind == "b":
        return x.astype(np.uint8) * np.uint8(255)
    if not np.isfinite(x).all():
        place = np.argwhere(~np.isfinite(x))[0]
        raise InputError(
            f"{where}: sample {place[0]} has the pixel {x[tuple(place)]} at {place[1:].tolist()}; replace it"
        )
    low, high = x.min(initial=0), x.max(initial=0)
    if low < 0 or high > 255:
        raise InputError(
            f"{where} has pixels from {low} to {high}; scale them to 0..1 or 0..255 (undo any normalization)"
        )
    scale = 255.0 if x.dtype.kind == "f" and high <= 1 else 1.0
    return np.round(x.astype(np.float32) * np.float32(scale)).astype(np.uint8)
