"""GTSRB from the publisher's zip files, or from arrays that someone made of them.

The whole picture is taken, as torchvision does; the box around the sign (``Roi`` in the publisher's tables),
which leaves out a border of about a tenth, is not used.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.data.archives import Limits, ZipReader, open_zip
from unpoison.data.files import refusing, shown
from unpoison.data.images import decode, pillow_guard
from unpoison.data.named.catalog import Spec
from unpoison.data.named.origins import SourceFile, identify
from unpoison.data.named.splits import check_count, write_split
from unpoison.data.npz import open_npz
from unpoison.errors import InputError
from unpoison.events import Listener, Progress

TRAINING_ZIP, TEST_ZIP, TRUTH_ZIP = (
    "GTSRB-Training_fixed.zip", "GTSRB_Final_Test_Images.zip", "GTSRB_Final_Test_GT.zip",
)  # fmt: skip
TRUTH_TABLE = "GT-final_test.csv"

_TRAINING_IMAGE = re.compile(r"(?:.*/)?(?P<label>\d{5})/(?P<track>\d{5})_\d{5}\.ppm")
_TEST_IMAGE = re.compile(r"(?:.*/)?(?P<file>\d{5}\.ppm)")
_LIMITS = Limits(total_bytes=2**30)
_MAX_PIXELS = 1_000_000
_NPZ_BYTES = 2**30


def convert(given: Path, folder: Path, *, spec: Spec, listener: Listener) -> tuple[SourceFile, ...]:
    """Write both splits of GTSRB to ``folder``, with the track of each training image.

    A track is up to 30 pictures of one sign as a car came nearer; its number counts within the class.
    """
    if not given.is_dir():
        return _convert_npz(given, folder, spec, listener)
    paths = [given / name for name in (TRAINING_ZIP, TEST_ZIP, TRUTH_ZIP)]
    for path in paths:
        if not path.is_file():
            raise InputError(f"{shown(str(given))}: holds no {path.name}; give {spec.accepts}")
    with pillow_guard():
        x, y, track = read_training(paths[0], spec, listener)
        write_split(folder, spec, "train", x, y, track=track)
        write_split(folder, spec, "test", *read_test(paths[1], paths[2], spec, listener))
    return tuple(identify(path, spec.known) for path in paths)


def read_training(
    path: Path, spec: Spec, listener: Listener
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Images, labels and tracks in the order of class, track and frame."""
    with open_zip(path, shown(path.name), limits=_LIMITS, listener=listener) as archive:
        found = sorted(filter(None, map(_TRAINING_IMAGE.fullmatch, archive.names)), key=lambda m: m[0])
        check_count(spec, "train", len(found))
        labels = np.array([int(match["label"]) for match in found], dtype=np.int64)
        tracks = np.array([int(match["track"]) for match in found], dtype=np.int64)
        return _decode_all(archive, [match[0] for match in found], path, spec), labels, tracks


def read_test(
    images: Path, truth: Path, spec: Spec, listener: Listener
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images and labels in the order of the file names."""
    with open_zip(images, shown(images.name), limits=_LIMITS, listener=listener) as archive:
        found = {match["file"]: match[0] for match in map(_TEST_IMAGE.fullmatch, archive.names) if match}
        check_count(spec, "test", len(found))
        truths = _read_truth(truth)
        missing = next((file for file in sorted(found) if file not in truths), None)
        if missing is not None:
            raise InputError(
                f"{shown(truth.name)}: {TRUTH_TABLE} has no row for {missing}; get the file again"
            )
        labels = np.array([truths[file] for file in sorted(found)], dtype=np.int64)
        return _decode_all(archive, [found[file] for file in sorted(found)], images, spec), labels


def _decode_all(archive: ZipReader, members: Sequence[str], path: Path, spec: Spec) -> NDArray[np.uint8]:
    pixels = np.empty((len(members), *spec.shape), dtype=np.uint8)
    for index, member in enumerate(members):
        name = f"{shown(path.name)}: {member!r}"
        decoded = decode(archive.read(member), name=name, size=spec.shape[0], max_pixels=_MAX_PIXELS)
        pixels[index] = decoded.pixels
    return pixels


def _read_truth(path: Path) -> dict[str, int]:
    """The class of every test image by its file name."""
    name = shown(path.name)
    with open_zip(path, name, limits=Limits(total_bytes=2**24, members=100)) as archive:
        table = next((member for member in archive.names if member.endswith(TRUTH_TABLE)), None)
        if table is None:
            raise InputError(f"{name}: holds no {TRUTH_TABLE}; get the file again")
        with refusing(f"{name}: {table!r}", "get the file again"):
            rows = csv.DictReader(archive.read(table).decode("ascii").splitlines(), delimiter=";")
            return {row["Filename"]: int(row["ClassId"]) for row in rows}


def _convert_npz(path: Path, folder: Path, spec: Spec, listener: Listener) -> tuple[SourceFile, ...]:
    name, size = shown(path.name), path.stat().st_size
    with open_npz(path.resolve(), name, max_bytes=_NPZ_BYTES) as reader:
        for number, split in enumerate(("train", "test"), start=1):
            arrays: dict[str, NDArray[Any]] = {}
            for key in ("x", "y", "track"):
                if f"{key}_{split}" in reader.headers:
                    arrays[key] = np.ascontiguousarray(reader.read(f"{key}_{split}"))
            if not {"x", "y"} <= set(arrays):
                raise InputError(f"{name}: holds no x_{split} and y_{split}; give {spec.accepts}")
            write_split(folder, spec, "train" if split == "train" else "test", **arrays)
            listener(Progress(f"read {name}", number * size // 2, size))
    return (identify(path, spec.known),)
