"""Imagenette, which stays a folder of images: they are large and of different sizes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from unpoison.data.archives import Limits, tar_members
from unpoison.data.files import read_regular, shown, writing
from unpoison.data.named.catalog import Spec
from unpoison.data.named.origins import SourceFile, identify
from unpoison.data.named.splits import SplitName, check_count, one_of
from unpoison.errors import InputError
from unpoison.events import Listener, Progress

FOLDERS: dict[SplitName, str] = {"train": "train", "test": "val"}
"""The splits, and the folders of the original that they are."""

_IMAGE = re.compile(
    r"(?:[^/]+/){0,2}(?P<folder>train|val)/(?P<wnid>n\d{8})/(?P<file>[A-Za-z0-9_]+\.(?:JPEG|jpe?g|png))"
)
_LIMITS = Limits(total_bytes=4 * 2**30)
_LARGEST_IMAGE = 2**26


def convert(given: Path, folder: Path, *, spec: Spec, listener: Listener) -> tuple[SourceFile, ...]:
    """Put the images into ``folder``/train and ``folder``/val, in class folders that say what is in them."""
    if (given / "train").is_dir():
        source = _copy(given, folder, spec, listener)
    else:
        path = one_of(given, tuple(file.name for file in spec.known), spec)
        source = identify(path, spec.known)
        for member in tar_members(path, shown(path.name), limits=_LIMITS, listener=listener):
            place = _place(member.name, spec)
            if place is not None:
                member.save(folder / place)
    _check(folder, spec)
    return (source,)


def _place(path: str, spec: Spec) -> str | None:
    """Where an image goes, by the path it had; None for what is no image of a known class."""
    match = _IMAGE.fullmatch(path)
    names = [name for name in spec.class_names if match is not None and name.startswith(f"{match['wnid']} ")]
    return f"{match['folder']}/{names[0]}/{match['file']}" if match is not None and names else None


def _copy(given: Path, folder: Path, spec: Spec, listener: Listener) -> SourceFile:
    """Copy the images of an unpacked folder; the hash is over the path and content of each, in order."""
    digest, done = hashlib.sha256(), 0
    paths = [path for path in sorted(given.glob("*/*/*")) if not path.is_dir()]
    total = sum(path.lstat().st_size for path in paths)
    for path in paths:
        relative = path.relative_to(given).as_posix()
        place = _place(relative, spec)
        if place is None:
            continue
        data = read_regular(path, shown(relative), limit=_LARGEST_IMAGE)
        digest.update(f"{relative}\0{hashlib.sha256(data).hexdigest()}\n".encode())
        with writing(folder):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(data)
        done += len(data)
        listener(Progress(f"copy {shown(given.name)}", done, total))
    return SourceFile(given.name, digest.hexdigest(), official=False)


def _check(folder: Path, spec: Spec) -> None:
    for split, name in FOLDERS.items():
        counts = {path.name: sum(1 for _ in path.iterdir()) for path in (folder / name).glob("*")}
        check_count(spec, split, sum(counts.values()))
        empty = next((class_name for class_name in spec.class_names if class_name not in counts), None)
        if empty is not None:
            raise InputError(f"{spec.name}: no {split} image of {empty!r} found; give {spec.accepts}")
