"""Fashion-MNIST from the four files its publisher made, packed by whomever."""

from __future__ import annotations

import hashlib
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.data.archives import read_maybe_gz
from unpoison.data.files import shown
from unpoison.data.named.catalog import Spec
from unpoison.data.named.origins import SourceFile, identify
from unpoison.data.named.splits import SPLITS, SplitName, write_split
from unpoison.errors import InputError
from unpoison.events import Listener, Progress

PREFIXES: dict[SplitName, str] = {"train": "train", "test": "t10k"}
_FIX = "get the file again"


def convert(given: Path, folder: Path, *, spec: Spec, listener: Listener) -> tuple[SourceFile, ...]:
    """Write both splits of Fashion-MNIST to ``folder`` from the folder with the idx files."""
    sources: list[SourceFile] = []
    for split in SPLITS:
        n = spec.n_train if split == "train" else spec.n_test
        images, images_source = _read(
            given, f"{PREFIXES[split]}-images-idx3-ubyte", spec, (n, *spec.shape[:2])
        )
        labels, labels_source = _read(given, f"{PREFIXES[split]}-labels-idx1-ubyte", spec, (n,))
        write_split(folder, spec, split, images[..., np.newaxis], labels)
        sources += [images_source, labels_source]
        size = sum((given / source.name).stat().st_size for source in sources)
        listener(Progress(f"read {split} files", size, size))
    return tuple(sources)


def read_idx(data: bytes, name: str, *, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The array of an idx file of bytes, which must have ``shape``."""
    header = struct.pack(f">I{len(shape)}I", 0x800 + len(shape), *shape)
    if not data.startswith(header) or len(data) != len(header) + math.prod(shape):
        raise InputError(
            f"{name}: {len(data):,} bytes that begin with {data[: len(header)].hex()} are no idx file "
            f"of shape {shape}; {_FIX}"
        )
    return np.frombuffer(data, dtype=np.uint8, offset=len(header)).reshape(shape)


def _read(given: Path, stem: str, spec: Spec, shape: tuple[int, ...]) -> tuple[NDArray[Any], SourceFile]:
    path = _find(given, stem, spec)
    data = read_maybe_gz(path, shown(path.name), max_bytes=math.prod(shape) + 16)
    source = identify(path, spec.known)
    if not source.official:  # the same content may have been packed anew, as Debian does
        content = hashlib.sha256(data).hexdigest()
        known = any(content == file.content_sha256 for file in spec.known if file.name == f"{stem}.gz")
        source = SourceFile(source.name, source.sha256, official=known)
    return read_idx(data, shown(path.name), shape=shape), source


def _find(given: Path, stem: str, spec: Spec) -> Path:
    for name in (f"{stem}.gz", stem):
        if (given / name).is_file():
            return given / name
    raise InputError(f"{shown(str(given))}: holds no {stem}.gz; give {spec.accepts}")
