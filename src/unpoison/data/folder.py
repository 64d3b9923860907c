"""Image folders: one subfolder a class, the images inside it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from unpoison.data.container import Dataset, Preview
from unpoison.data.files import (
    LITTER,
    SAMPLE_BYTES,
    check_budget,
    check_keep,
    check_utf8,
    describe,
    file_sha256,
    open_regular,
    read_regular,
    shown,
    writing,
)
from unpoison.data.images import Decoded, decode, decode_preview, pillow_guard, shorter_side
from unpoison.data.options import LoadOptions
from unpoison.data.pixels import decode_all, file_limit, usual_size
from unpoison.errors import InputError, OutputError
from unpoison.types import BoolArray

IGNORED_SUFFIXES = frozenset({".txt", ".json", ".csv", ".md"})
LAYOUT = "the layout is FOLDER/CLASS/IMAGE, with one subfolder for each class"


@dataclass(frozen=True)
class ImageFile:
    """One image: its place relative to the source folder, and the real file, any link resolved."""

    relative: str
    path: Path
    label: int


@dataclass(frozen=True)
class FolderOrigin:
    """A folder of images. The files are read again for previews and linked or copied to be kept."""

    name: str
    files: tuple[ImageFile, ...]
    sha256: tuple[str, ...]
    options: LoadOptions
    form: str = "folder"

    def preview(self, index: int) -> Preview:
        """The original image, at most 128 pixels a side."""
        file = self.files[index]
        name = _named(self.name, file.relative)
        data = read_regular(file.path, name, limit=file_limit(self.options))
        if hashlib.sha256(data).hexdigest() != self.sha256[index]:
            raise InputError(f"{name} changed since it was loaded; run again on the folder as it is now")
        with pillow_guard():
            return Preview(image=decode_preview(data, name=name, max_pixels=self.options.max_pixels))

    def write_kept(self, keep: BoolArray, directory: Path) -> None:
        """Link or copy the kept files to the same relative paths, and check each after it arrived."""
        check_keep(keep, len(self.files))
        for index in np.flatnonzero(keep):
            file = self.files[index]
            target = directory / file.relative
            with writing(directory):
                target.parent.mkdir(parents=True, exist_ok=True)
                _place(file.path, target, link=self.options.link)
            self._check_written(target, _named(self.name, file.relative), self.sha256[index])

    def _check_written(self, target: Path, name: str, sha256: str) -> None:
        # the hash of what arrived, not of the source: a file swapped in between cannot slip through
        try:
            found = file_sha256(target, name)
        except InputError:
            target.unlink(missing_ok=True)
            raise
        if found != sha256:
            target.unlink()
            raise OutputError(f"{name} changed since it was loaded; run again on the folder as it is now")


def load_folder(path: Path, *, options: LoadOptions) -> Dataset:
    """Read every image of every class folder."""
    root = path.resolve()
    name = shown(root.name or str(root))
    check_utf8(name, "folder name", root.name)
    class_names, files = find_images(root, name)
    with pillow_guard():
        size = options.image_size or _usual_size(files, name, options)
        check_budget(name, len(files) * (size * size * 3 + SAMPLE_BYTES), options.max_bytes)
        features, hashes = _read_all(files, name, size, options)
    places = tuple(file.relative for file in files)
    return Dataset(
        name=root.name or str(root),
        kind="image",
        features=features,
        labels=np.array([file.label for file in files], dtype=np.int64),
        class_names=class_names,
        ids=places,
        sources=places,
        sha256=hashes,
        origin=FolderOrigin(name, files, hashes, options),
    )


def find_images(root: Path, name: str) -> tuple[tuple[str, ...], tuple[ImageFile, ...]]:
    """The class names in order, and the files of each class in the order of their paths."""
    entries = [entry for entry in _entries(root, name) if not _ignored(entry.name)]
    folders = [entry for entry in entries if _is_folder(entry)]
    loose = [entry for entry in entries if not _is_folder(entry)]
    if loose:
        raise InputError(f"{_named(name, loose[0].name)} is in no class folder; {LAYOUT}")
    if not folders:
        raise InputError(f"{name}: no class folders found; {LAYOUT}")
    files: list[ImageFile] = []
    for label, folder in enumerate(folders):
        _refuse_link_to_folder(folder, root, name, folder.name)
        found = sorted(_walk(Path(folder.path), root, name))
        if not found:
            raise InputError(
                f"{name}: the class folder {folder.name!r} holds no images; remove it or add some"
            )
        files.extend(ImageFile(relative, path, label) for relative, path in found)
    return tuple(folder.name for folder in folders), tuple(files)


def _walk(folder: Path, root: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Relative and real path of every file below ``folder`` that should be an image."""
    waiting = [folder]
    while waiting:
        for entry in _entries(waiting.pop(), name):
            if _ignored(entry.name):
                continue
            path = Path(entry.path)
            relative = path.relative_to(root).as_posix()
            if entry.is_symlink():
                _refuse_link_to_folder(entry, root, name, relative)
                yield relative, _resolve_inside(path, root, name, relative)
            elif entry.is_dir():
                waiting.append(path)
            elif entry.is_file():
                yield relative, path
            else:
                raise InputError(f"{_named(name, relative)} is not a regular file; remove it")


def _entries(folder: Path, name: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(
            f"{name}: the folder {shown(str(folder))} cannot be read ({describe(error)})"
        ) from error
    for entry in entries:
        check_utf8(name, "file name", entry.name)
    return entries


def _ignored(file_name: str) -> bool:
    lower = file_name.lower()
    return lower.startswith(".") or lower in LITTER or PurePosixPath(lower).suffix in IGNORED_SUFFIXES


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads round in a circle, or to where one may not look
        return False


def _refuse_link_to_folder(entry: os.DirEntry[str], root: Path, name: str, relative: str) -> None:
    if entry.is_symlink() and _is_folder(entry):
        _resolve_inside(Path(entry.path), root, name, relative)
        raise InputError(
            f"{_named(name, relative)} is a link to a folder; put a real folder in its place, "
            "so that no image is read twice"
        )


def _resolve_inside(path: Path, root: Path, name: str, relative: str) -> Path:
    """The real file behind a symbolic link, which must lie inside the source folder."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        raise InputError(f"{_named(name, relative)} is a link that leads nowhere; remove it") from error
    if not target.is_relative_to(root):
        raise InputError(
            f"{_named(name, relative)} is a link to {shown(str(target))}, outside the source folder; "
            "unpoison does not follow it. Replace it by the file itself or remove it"
        )
    return target


def _usual_size(files: Sequence[ImageFile], name: str, options: LoadOptions) -> int:
    def side(index: int) -> int:
        shown_name = _named(name, files[index].relative)
        with open_regular(files[index].path, shown_name) as stream:
            return shorter_side(stream, name=shown_name, max_pixels=options.max_pixels)

    return usual_size(len(files), side)


def _read_all(
    files: Sequence[ImageFile], name: str, size: int, options: LoadOptions
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Pixels and hash of every file, both from one reading of its bytes."""

    def read(index: int) -> tuple[Decoded, str]:
        shown_name = _named(name, files[index].relative)
        data = read_regular(files[index].path, shown_name, limit=file_limit(options))
        decoded = decode(data, name=shown_name, size=size, max_pixels=options.max_pixels)
        return decoded, hashlib.sha256(data).hexdigest()

    return decode_all(len(files), size, read)


def _place(source: Path, target: Path, *, link: bool) -> None:
    # on a file system that ignores case, two names may be one: refuse rather than overwrite
    if target.is_symlink() or target.exists():
        raise FileExistsError(17, "File exists", str(target))
    if link:
        try:
            target.hardlink_to(source)  # what arrives is checked afterwards
        except OSError:  # another device, a file system without links, or a file of someone else's
            pass
        else:
            return
    shutil.copy2(source, target)


def _named(name: str, relative: str) -> str:
    return f"{name}: {relative!r}"
