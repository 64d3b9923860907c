"""Reading a dataset from the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from unpoison.data.arrays import NpzOrigin, load_digits, load_npz
from unpoison.data.container import Dataset
from unpoison.data.files import shown
from unpoison.data.folder import FolderOrigin, load_folder
from unpoison.data.named.cache import Record, cache_folder, read_record
from unpoison.data.named.catalog import DIGITS, Spec, find
from unpoison.data.named.imagenette import FOLDERS
from unpoison.data.named.splits import SPLITS, SplitName
from unpoison.data.options import DEFAULT_OPTIONS, LoadOptions
from unpoison.errors import InputError


def load_split(name: str, split: SplitName, *, options: LoadOptions = DEFAULT_OPTIONS) -> Dataset:
    """The ``train`` or ``test`` split of a dataset that was fetched.

    What is read must have the hashes that fetching wrote down. ``options.image_size`` counts for imagenette,
    whose images are scaled to 112 pixels a side without it.

    >>> load_split("digits", "train").name
    'digits'
    """
    if split not in SPLITS:
        raise InputError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    if name == DIGITS:
        if split != "train":
            raise InputError(f"{DIGITS} has no {split} split; divide its train split")
        return load_digits()
    spec = find(name)
    record = read_record(name)
    if record is None:
        raise InputError(_how_to_fetch(spec))
    read = _load_arrays if f"{split}.npz" in record.files else _load_images
    return read(spec, record, split, options)


def _load_arrays(spec: Spec, record: Record, split: SplitName, options: LoadOptions) -> Dataset:
    path = cache_folder() / spec.name / f"{split}.npz"
    dataset = load_npz(path, options=options, in_place=True)
    if not isinstance(dataset.origin, NpzOrigin) or dataset.origin.file_sha256 != record.files[path.name]:
        raise _changed(spec, path.name)
    name = _shown_name(spec, split)
    return replace(
        dataset,
        name=name,
        sources=tuple(f"{name}.npz[{i}]" for i in range(len(dataset))),
        origin=replace(dataset.origin, file_name=f"{name}.npz"),
        augmentation=spec.augmentation,
    )


def _load_images(spec: Spec, record: Record, split: SplitName, options: LoadOptions) -> Dataset:
    folder = FOLDERS[split]
    sized = replace(options, image_size=options.image_size or spec.shape[0])
    dataset = load_folder(cache_folder() / spec.name / folder, options=sized)
    expected = {place: sha256 for place, sha256 in record.files.items() if place.startswith(f"{folder}/")}
    found = {
        f"{folder}/{place}": sha256 for place, sha256 in zip(dataset.sources, dataset.sha256, strict=True)
    }
    if found != expected:
        raise _changed(spec, _first_difference(found, expected))
    name = _shown_name(spec, split)
    origin = dataset.origin
    if isinstance(origin, FolderOrigin):
        origin = replace(origin, name=name)
    return replace(dataset, name=name, origin=origin, augmentation=spec.augmentation)


def _first_difference(found: Mapping[str, str], expected: Mapping[str, str]) -> str:
    return min(place for place in {*found, *expected} if found.get(place) != expected.get(place))


def _shown_name(spec: Spec, split: SplitName) -> str:
    return spec.name if split == "train" else f"{spec.name}-{split}"


def _changed(spec: Spec, place: str) -> InputError:
    return InputError(
        f"{spec.name} in the cache is not what was fetched ({place!r} differs); "
        f"run: unpoison data fetch {spec.name} --force"
    )


def _how_to_fetch(spec: Spec) -> str:
    also = (
        f". The file or folder of that name here is meant by ./{spec.name}"
        if Path(spec.name).exists()
        else ""
    )
    return (
        f"{spec.name} is not in the cache {shown(str(cache_folder()))}; run: unpoison data fetch {spec.name} "
        f"(or, with the files at hand: unpoison data fetch {spec.name} --from PATH){also}"
    )
