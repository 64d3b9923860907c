"""Where a poisoned set goes: a folder that appears whole or not at all, with the truth in it."""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.attacks.base import Samples, Truth
from unpoison.data.load import HUB_PREFIX
from unpoison.errors import InputError, OutputError
from unpoison.evaluation.forms import Written
from unpoison.outputs.place import prepare, show

TRUTH, RECORD = "truth.csv", "attack.json"
TRUTH_COLUMNS = ("id", "row", "planted", "cover", "original_label", "label", "original_id")
LONGEST_LIST = 64
"""Entries of a list that ``attack.json`` shows one by one."""


def check_place(source: str, out: Path) -> None:
    """Refuse an output folder that is in use, before any work; leave no trace of having asked."""
    local = source.removeprefix(HUB_PREFIX)
    there = local != "" and _exists(Path(local))
    new = [folder for folder in (out, *out.parents) if not _exists(folder)]
    work = prepare(out, resume=False, source=Path(local) if there else None)
    with suppress(OSError):
        for folder in (work, *new):
            folder.rmdir()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, a NUL in it
        return False


def check_preview(path: Path, out: Path) -> None:
    """Refuse a name for the picture that cannot be written, before any work. It may lie in ``out``."""
    if path.suffix.lower() != ".png":
        raise InputError(f"{show(path)}: the preview is a PNG picture; give it a name that ends in .png")
    if _exists(path):
        raise OutputError(f"{show(path)}: exists already; choose another name for --preview")
    if path.absolute().parent != out.absolute() and not path.absolute().parent.is_dir():
        raise OutputError(f"{show(path)}: there is no such folder; make it, or choose another for --preview")


@contextmanager
def staging_for(out: Path) -> Iterator[Path]:
    """A folder beside ``out`` that becomes ``out`` when all went well, and is gone when it did not."""
    final = out.resolve()
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{final.name[:100]}-", dir=final.parent))
    except OSError as error:
        raise _not_written(out, error) from error
    try:
        yield staging
        staging.chmod(0o777 & ~_umask())
        if final.is_dir():
            final.rmdir()  # empty, or this fails
        staging.rename(final)
    except OSError as error:
        raise _not_written(out, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _not_written(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"{show(path)}: could not be written ({error.strerror or error}); choose an empty or new folder that "
        "you may write to with --out"
    )


def write_truth(
    path: Path, written: Written, original_ids: Sequence[str], poisoned: Samples, truth: Truth
) -> None:
    """One line a sample, in the order that ``clean`` reads them; the original ids are in the attack's."""
    names = poisoned.class_names
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(TRUTH_COLUMNS)
        for row, (sample_id, i) in enumerate(zip(written.ids, written.order.tolist(), strict=True)):
            marks = (str(bool(mark)).lower() for mark in (truth.planted[i], truth.covers[i]))
            labels = (names[truth.original_labels[i]], names[poisoned.labels[i]])
            writer.writerow([sample_id, row, *marks, *labels, original_ids[i]])


def save_preview(picture: Any, path: Path) -> None:
    """Write a Pillow image as PNG."""
    try:
        picture.save(path, format="PNG")
    except OSError as error:
        raise OutputError(
            f"{show(path)}: the preview could not be written ({error.strerror or error}); the poisoned set "
            "is complete all the same"
        ) from error


def plain(value: Any) -> Any:
    """Settings as JSON has them; arrays and long lists by size and hash.

    >>> plain({"x": np.float32(0.5), "path": Path("a/b.png")})
    {'x': 0.5, 'path': 'a/b.png'}
    """
    if isinstance(value, list | tuple) and len(value) > LONGEST_LIST:
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"dtype": str(value.dtype), "shape": list(value.shape), "sha256": digest}
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: plain(getattr(value, part.name)) for part in fields(value)}
        return {"type": type(value).__name__, **parts}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
