"""Checking the arrays of a dataset against what is known of it, and writing them as the cache keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unpoison.data.files import shown
from unpoison.data.named.catalog import Spec
from unpoison.data.npz import write_npz
from unpoison.errors import InputError

SplitName: TypeAlias = Literal["train", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "test")


def write_split(
    folder: Path, spec: Spec, split: SplitName, x: NDArray[Any], y: NDArray[Any], **more: NDArray[Any]
) -> None:
    """Write the samples of one split, once they are as many and of the form they should be."""
    n = check_count(spec, split, len(x) if x.ndim else 0)
    if x.shape[1:] != spec.shape or x.dtype != np.uint8:
        raise InputError(
            f"{spec.name}: the {split} images are {x.dtype} of shape {x.shape[1:]}, not uint8 of {spec.shape}"
        )
    check_labels(spec, split, y)
    for key, array in (("labels", y), *more.items()):
        if array.shape != (n,):
            raise InputError(f"{spec.name}: {split} has {key} of shape {array.shape} for {n:,} images")
    arrays = {
        "x": x,
        "y": y.astype(np.int64),
        "class_names": np.array(spec.class_names),
        "ids": np.array([f"{spec.name}/{split}/{i:05d}" for i in range(n)]),
        **more,
    }
    # not compressed: it is read far more often than written, and pixels hardly shrink
    write_npz(folder / f"{split}.npz", arrays.items(), compressed=False)


def check_count(spec: Spec, split: SplitName, found: int) -> int:
    """The number of samples, which must be the one that is known."""
    expected = spec.n_train if split == "train" else spec.n_test
    if found != expected:
        raise InputError(
            f"{spec.name}: {found:,} {split} images found where there are {expected:,}; give {spec.accepts}"
        )
    return found


def check_labels(spec: Spec, split: SplitName, y: NDArray[Any]) -> None:
    """Refuse labels that are not class numbers."""
    if y.dtype.kind not in "iu" or not ((y >= 0) & (y < len(spec.class_names))).all():
        raise InputError(
            f"{spec.name}: the {split} labels are not all whole numbers from 0 to {len(spec.class_names) - 1}"
        )


def one_of(given: Path, names: tuple[str, ...], spec: Spec) -> Path:
    """``given`` itself, or the first of ``names`` in it if it is a folder."""
    if not given.is_dir():
        return given
    for name in names:
        if (given / name).is_file():
            return given / name
    raise InputError(f"{shown(str(given))}: holds none of {', '.join(names)}; give {spec.accepts}")
