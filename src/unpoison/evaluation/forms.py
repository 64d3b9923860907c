"""A source as an attacker sees it, and the form in which its poisoned samples are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import Samples
from unpoison.data.arrays import NpzOrigin, read_labelled
from unpoison.data.container import Dataset, Kind
from unpoison.data.files import shown, writing
from unpoison.data.folder import FolderOrigin
from unpoison.data.npz import open_npz, write_npz
from unpoison.data.options import LoadOptions
from unpoison.errors import InputError
from unpoison.types import IndexArray, LabelArray

TEST, TRIGGERED = "test", "test_triggered"


@dataclass(frozen=True)
class HeldOut:
    """Samples that no model trains on. ``rows`` are their places in the source, if they are from there."""

    samples: Samples
    ids: tuple[str, ...]
    rows: IndexArray | None = None


@dataclass(frozen=True)
class Written:
    """What ``clean`` will find: the ids in the order that it reads them, and where each sample was before."""

    ids: tuple[str, ...]
    order: IndexArray


class Form(Protocol):
    """A source in memory, and how to write a part of it after an attack."""

    @property
    def kind(self) -> Kind:
        """What the samples are."""
        ...

    @property
    def samples(self) -> Samples:
        """All of them, as attacks take them."""
        ...

    @property
    def ids(self) -> tuple[str, ...]:
        """What the source calls them."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of rows; empty for others."""
        ...

    @property
    def train_name(self) -> str:
        """The file or folder that ``clean`` is given."""
        ...

    @property
    def clean_options(self) -> tuple[str, ...]:
        """What ``clean`` must be told to read it alike."""
        ...

    def write_train(self, directory: Path, rows: IndexArray, poisoned: Samples) -> Written:
        """Write the samples ``rows`` of the source as they are after the attack."""
        ...

    def write_test(
        self, directory: Path, test: HeldOut, triggered: NDArray[Any], goal: LabelArray
    ) -> tuple[str, ...]:
        """Write the test set and, where anything is attacked, the triggered one; the names of the files."""
        ...


def form_of(dataset: Dataset, options: LoadOptions, *, as_arrays: bool) -> Form:
    """The form that fits a dataset; ``as_arrays`` has images from any source written as one archive."""
    origin = dataset.origin
    if dataset.kind == "image":
        if isinstance(origin, FolderOrigin) and not as_arrays:
            return FolderForm(dataset, origin)
        return ArrayForm(dataset, np.asarray(dataset.features))
    if isinstance(origin, NpzOrigin):
        return ArrayForm(dataset, _stored_rows(origin))
    from unpoison.evaluation.table_forms import table_form

    return table_form(dataset, options)


@dataclass(frozen=True)
class ArrayForm:
    """Images or rows of numbers: ``train.npz`` with ``x``, ``y``, ``class_names`` and ``ids``."""

    dataset: Dataset
    x: NDArray[Any]
    train_name: str = "train.npz"

    @property
    def kind(self) -> Kind:
        """Images or rows."""
        return self.dataset.kind

    @property
    def ids(self) -> tuple[str, ...]:
        """Those of the dataset."""
        return self.dataset.ids

    @property
    def clean_options(self) -> tuple[str, ...]:
        """How the dataset has its images varied in training, where an archive would have another way."""
        return _augment(self.dataset)

    @property
    def samples(self) -> Samples:
        """Images as they are, rows as float64."""
        features = self.x if self.kind == "image" else self.x.astype(np.float64)
        return Samples(features, self.dataset.labels, self.dataset.class_names)

    @property
    def columns(self) -> tuple[str, ...]:
        """The numbers of the columns, for rows."""
        return () if self.kind == "image" else tuple(map(str, range(self.x.shape[1])))

    def write_train(self, directory: Path, rows: IndexArray, poisoned: Samples) -> Written:
        """Write ``train.npz``; rows in the number type of the source, where that holds what was planted."""
        ids = tuple(self.ids[i] for i in rows.tolist())
        features = _as_stored(poisoned.features, self.x.dtype)
        _write_arrays(directory / self.train_name, features, poisoned.labels, poisoned.class_names, ids)
        return Written(ids, np.arange(len(rows)))

    def write_test(
        self, directory: Path, test: HeldOut, triggered: NDArray[Any], goal: LabelArray
    ) -> tuple[str, ...]:
        """Write ``test.npz`` and ``test_triggered.npz``, which has the array ``goal`` besides."""
        return write_test_arrays(directory, test, triggered, goal, dtype=self.x.dtype)


@dataclass(frozen=True)
class FolderForm:
    """An image folder: ``train/CLASS/IMAGE``. Files that the attack left alone stay byte for byte."""

    dataset: Dataset
    origin: FolderOrigin
    train_name: str = "train"
    columns: tuple[str, ...] = ()
    kind: Kind = "image"

    @property
    def ids(self) -> tuple[str, ...]:
        """Paths relative to the folder."""
        return self.dataset.ids

    @property
    def samples(self) -> Samples:
        """The images at the size they were read."""
        return Samples(np.asarray(self.dataset.features), self.dataset.labels, self.dataset.class_names)

    @property
    def clean_options(self) -> tuple[str, ...]:
        """The size, so that a planted image, which has that size, is read pixel by pixel."""
        return ("--image-size", str(self.dataset.features.shape[1]), *_augment(self.dataset))

    def write_train(self, directory: Path, rows: IndexArray, poisoned: Samples) -> Written:
        """Link or copy what stays, move what was relabelled, write what was drawn on as PNG."""
        root = directory / self.train_name
        with writing(directory):
            root.mkdir()
        before = self.samples
        drawn = _differs(before.features[rows], poisoned.features)
        moved = before.labels[rows] != poisoned.labels
        self._keep(rows[~drawn & ~moved], root)
        places = self._places(rows, drawn, poisoned.labels)
        self._move(rows[~drawn & moved], [places[i] for i in np.flatnonzero(~drawn & moved)], directory)
        for i in np.flatnonzero(drawn).tolist():
            _write_png(root / places[i], poisoned.features[i])
        order = sorted(range(len(rows)), key=lambda i: (int(poisoned.labels[i]), places[i]))
        return Written(tuple(places[i] for i in order), np.array(order, dtype=np.int64))

    def write_test(
        self, directory: Path, test: HeldOut, triggered: NDArray[Any], goal: LabelArray
    ) -> tuple[str, ...]:
        """Write ``test.npz`` and ``test_triggered.npz`` at the size that the images were read."""
        return write_test_arrays(directory, test, triggered, goal, dtype=np.dtype(np.uint8))

    def _keep(self, rows: IndexArray, directory: Path) -> None:
        keep = np.zeros(len(self.dataset), dtype=np.bool_)
        keep[rows] = True
        self.origin.write_kept(keep, directory)

    def _move(self, rows: IndexArray, places: Sequence[str], directory: Path) -> None:
        """Files whose label alone is another: the same bytes in another class folder."""
        aside = directory / "moved"
        with writing(directory):
            aside.mkdir()
            self._keep(rows, aside)
            for row, place in zip(rows.tolist(), places, strict=True):
                target = directory / self.train_name / place
                target.parent.mkdir(parents=True, exist_ok=True)
                (aside / self.ids[row]).rename(target)
            for folder in sorted(aside.rglob("*"), reverse=True):
                folder.rmdir()
            aside.rmdir()

    def _places(self, rows: IndexArray, drawn: NDArray[np.bool_], labels: LabelArray) -> list[str]:
        """Its own place for what nothing changed; for the rest a free one like those beside it."""
        names = self.dataset.class_names
        own = [self.ids[row] for row in rows.tolist()]
        old = self.dataset.labels[rows]
        stays = ~drawn & (old == labels)
        taken = {_stem(place) for place, stay in zip(own, stays.tolist(), strict=True) if stay}
        folders = _folders(own)
        places = list(own)
        for i in np.flatnonzero(~stays).tolist():
            path = PurePosixPath(own[i])
            suffix = ".png" if drawn[i] else path.suffix
            inside = folders[names[labels[i]]]
            parent = str(PurePosixPath(*path.parts[1:-1]))
            folder = PurePosixPath(names[labels[i]], parent if parent in inside else min(inside))
            stem = _renamed(path.stem, names[old[i]], names[labels[i]])
            places[i] = _free(folder, stem, suffix, taken)
            taken.add(_stem(places[i]))
        return places


def write_test_arrays(
    directory: Path, test: HeldOut, triggered: NDArray[Any], goal: LabelArray, *, dtype: np.dtype[Any]
) -> tuple[str, ...]:
    """The test set as archives. With nothing to attack there is no triggered one."""
    samples = test.samples
    x = _as_stored(samples.features, dtype)
    _write_arrays(directory / f"{TEST}.npz", x, samples.labels, samples.class_names, test.ids)
    if not (goal >= 0).any():
        return (f"{TEST}.npz",)
    x = _as_stored(triggered, dtype)
    _write_arrays(directory / f"{TRIGGERED}.npz", x, samples.labels, samples.class_names, test.ids, goal=goal)
    return f"{TEST}.npz", f"{TRIGGERED}.npz"


def _write_arrays(
    path: Path,
    x: NDArray[Any],
    y: LabelArray,
    class_names: Sequence[str],
    ids: Sequence[str],
    *,
    goal: LabelArray | None = None,
) -> None:
    arrays = {"x": x, "y": y, "class_names": np.array(class_names), "ids": np.array(ids)}
    if goal is not None:
        arrays["goal"] = goal
    # photographs shrink by a tenth at the price of most of the time; tables of numbers are small anyway
    write_npz(path, arrays.items(), compressed=False)


def _augment(dataset: Dataset) -> tuple[str, ...]:
    usual = {field.name: field.default for field in fields(Dataset)}["augmentation"]
    different = dataset.kind == "image" and dataset.augmentation != usual
    return ("--augment", dataset.augmentation) if different else ()


def _stored_rows(origin: NpzOrigin) -> NDArray[Any]:
    """``x`` in the number type of its file."""
    name = shown(origin.file_name)
    with open_npz(origin.path, name, max_bytes=origin.max_bytes) as reader:
        if reader.sha256 != origin.file_sha256:
            raise InputError(f"{name} changed since it was loaded; run again on the file as it is now")
        return read_labelled(reader, name, max_bytes=origin.max_bytes).x


def _as_stored(features: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """``features`` in another number type, if that changes no value."""
    if features.dtype == dtype:
        return features
    with np.errstate(invalid="ignore", over="ignore"):
        stored = features.astype(dtype)
    return stored if np.array_equal(stored.astype(features.dtype), features) else features


def _differs(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.bool_]:
    result: NDArray[np.bool_] = (before != after).reshape(len(before), -1).any(axis=1)
    return result


def _folders(places: Sequence[str]) -> dict[str, set[str]]:
    """The folders inside each class folder that hold images, ``.`` for itself."""
    found: dict[str, set[str]] = {}
    for place in places:
        parts = PurePosixPath(place).parts
        found.setdefault(parts[0], set()).add(str(PurePosixPath(*parts[1:-1])))
    return found


def _renamed(stem: str, old: str, new: str) -> str:
    """A file that is called after its class is called after the new one: ``cat_17`` becomes ``dog_17``."""
    return new + stem[len(old) :] if stem.lower().startswith(old.lower()) else stem


def _free(folder: PurePosixPath, stem: str, suffix: str, taken: set[str]) -> str:
    """``stem`` in ``folder``; where that is taken, with its last number counted up until it is not.

    >>> _free(PurePosixPath("dog"), "dog_009", ".png", {"dog/dog_009"})
    'dog/dog_010.png'
    """
    found = re.search(r"[0-9]+(?=[^0-9]*$)", stem)
    head, number, tail = (stem + "_", "1", "") if found is None else _around(stem, found)
    place, count = str(folder / (stem + suffix)), int(number)
    while _stem(place) in taken:
        count += 1
        place = str(folder / f"{head}{count:0{len(number)}d}{tail}{suffix}")
    return place


def _stem(place: str) -> str:
    """A place without its suffix, as a file system that ignores case has it."""
    return str(PurePosixPath(place).with_suffix("")).lower()


def _around(stem: str, found: re.Match[str]) -> tuple[str, str, str]:
    return stem[: found.start()], found.group(), stem[found.end() :]


def _write_png(path: Path, pixels: NDArray[np.uint8]) -> None:
    from PIL import Image

    flat = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.ascontiguousarray(flat)).save(path, format="PNG")
