"""Opening a dataset with Hugging Face ``datasets`` so that nothing in it is run and nothing in it leads away.

The files are checked to be the dataset's own before they are read, and images stay undecoded.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from unpoison.data.files import SAMPLE_BYTES, check_budget, describe, read_regular, refusing, shown
from unpoison.data.hub_place import Place, check_builder, check_folder, find_place
from unpoison.data.hub_rows import INFO, STATE, HubRows, lies_inside
from unpoison.data.records import check_header
from unpoison.errors import InputError, MissingExtraError, UnpoisonError

DEFAULT_SPLIT = "train"
_DICT = "dataset_dict.json"
_SMALL_FILE = 2**26


def open_hub(given: str, *, split: str | None, max_bytes: int) -> HubRows:
    """One split, ``train`` unless named, of the dataset ``given``; see :func:`find_place`."""
    datasets = _package(f"reading hf:{shown(given)}")
    place = find_place(given)
    if place.folder is not None and any((place.folder / name).is_file() for name in (STATE, _DICT)):
        return open_saved(place.folder, split=split, max_bytes=max_bytes)
    return _open_built(datasets, place, split=split, max_bytes=max_bytes)


def open_saved(folder: Path, *, split: str | None = None, max_bytes: int) -> HubRows:
    """One split of a dataset that ``save_to_disk`` wrote to ``folder``."""
    name = shown(folder.name)
    datasets = _package(f"reading {name}")
    with refusing(name, "it is no dataset that save_to_disk wrote, or it is damaged; write it again"):
        inner, own_split = _saved_split(folder, name, split)
        state = _json(inner / STATE, name)
        files = [_plain_name(entry["filename"], name) for entry in state["_data_files"]]
        if not files:
            raise InputError(f"{name}: it was saved without any rows; add samples")
        for file in (*files, INFO):
            if lies_inside(inner / file, folder.resolve()) is None:
                raise InputError(
                    f"{name}: {shown(file)} is missing or a link out of the folder; put the file itself there"
                )
        if own_split is None:  # not one of several: whatever its name, it is meant unless another one is
            own_split = str(state.get("_split") or split or DEFAULT_SPLIT)
            _check_split(name, split or own_split, [own_split])
        for file in files:
            _check_arrow(inner / file, f"{name}: {shown(file)}")
        with quiet(datasets):
            dataset = datasets.load_from_disk(str(inner.resolve()))
    return rows_of(dataset, name=folder.name, split=own_split, max_bytes=max_bytes)


def rows_of(dataset: Any, *, name: str, split: str, root: Path | None = None, max_bytes: int) -> HubRows:
    """The rows of a ``datasets.Dataset`` whose indices are those of its table."""
    datasets = _package(f"reading {shown(name)}")
    table, features = dataset.data.table, dataset.features
    check_budget(shown(name), table.num_rows * SAMPLE_BYTES, max_bytes)
    with refusing(shown(name), "its Arrow data is damaged; write it again"):
        table.validate(full=True)
    check_header(table.column_names, shown(name))
    info = {key: getattr(dataset.info, key) for key in ("citation", "description", "homepage", "license")}
    kinds = {column: features[column] for column in table.column_names}
    return HubRows(
        name=name,
        split=split,
        table=table.replace_schema_metadata(features.arrow_schema.metadata),
        info={**info, "features": features.to_dict()},
        images=tuple(c for c, kind in kinds.items() if isinstance(kind, datasets.Image)),
        classes={
            c: tuple(map(str, kind.names))
            for c, kind in kinds.items()
            if isinstance(kind, datasets.ClassLabel)
        },
        root=root,
    )


@contextmanager
def quiet(datasets: Any) -> Iterator[None]:
    """Keep ``datasets``, and what it downloads with, from drawing bars, logging and warning."""
    parts = [datasets.utils, import_module("huggingface_hub").utils]
    before = [(part.logging.get_verbosity(), part.are_progress_bars_disabled()) for part in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for part in parts:
                part.logging.set_verbosity(logging.CRITICAL + 1)
                part.disable_progress_bars()
            yield
        finally:
            for part, (verbosity, disabled) in zip(parts, before, strict=True):
                part.logging.set_verbosity(verbosity)
                if not disabled:
                    part.enable_progress_bars()


def _package(purpose: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module("datasets")
    except ImportError as error:
        raise MissingExtraError("datasets", "hub", purpose) from error


def _open_built(datasets: Any, place: Place, *, split: str | None, max_bytes: int) -> HubRows:
    """A split that one of the readers of ``datasets`` makes of data files; it lands in the cache of those."""
    with quiet(datasets), _explaining(datasets, place):
        if place.folder is not None:
            check_folder(datasets, place, place.folder)
        # before version 4 datasets could bring a script
        options = {"trust_remote_code": False} if int(datasets.__version__.partition(".")[0]) < 4 else {}
        target = place.repository if place.folder is None else str(place.folder)
        builder = datasets.load_dataset_builder(target, place.config, **options)
        reader = check_builder(builder, place)
        known = [str(name) for name in builder.config.data_files or builder.info.splits or ()]
        wanted = _check_split(place.shown, split, known)
        # files in a folder may change and keep their times, so what an earlier run made of them is not used
        mode = "reuse_dataset_if_exists" if place.folder is None else "reuse_cache_if_exists"
        builder.download_and_prepare(download_mode=mode)
        dataset = builder.as_dataset(split=wanted)
        root = place.folder if reader == "imagefolder" else None
        return rows_of(dataset, name=place.name, split=wanted, root=root, max_bytes=max_bytes)


@contextmanager
def _explaining(datasets: Any, place: Place) -> Iterator[None]:
    """Turn any failure of ``datasets`` into an error that says what was tried and what may help."""
    try:
        yield
    except UnpoisonError:
        raise
    except Exception as error:
        failed = f"{place.shown} cannot be loaded"
        if place.folder is not None:
            reason = describe(error.__cause__ or error)  # the outer one may say only that there was an error
            raise InputError(
                f"{failed} ({reason}); give a folder that save_to_disk wrote, or one of Parquet, CSV, JSON "
                "or image files"
            ) from error
        offline = getattr(datasets.config, "HF_HUB_OFFLINE", False)
        network = "HF_HUB_OFFLINE is set, so nothing is fetched: unset it" if offline else "check the network"
        call = ", ".join(repr(part) for part in (place.repository, place.config) if part is not None)
        raise InputError(
            f"{failed} ({describe(error)}); tried load_dataset({call}), as there is no such folder. Check "
            f"the spelling; {network}; for a private or gated dataset log in with: hf auth login"
        ) from error


def _check_arrow(path: Path, name: str) -> None:
    """Validate a stream before anything works on it: offsets that lie would crash the process."""
    size, needed = path.stat().st_size, 0
    with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
        for batch in stream:
            batch.validate(full=True)
            needed += batch.nbytes
            if (
                needed > size
            ):  # then it does not come from the file, but is unpacked or several times the same
                raise InputError(f"{name} is compressed, which save_to_disk never does; write it again")


def _saved_split(folder: Path, name: str, split: str | None) -> tuple[Path, str | None]:
    """The folder of the split, and its name where ``folder`` holds several."""
    if (folder / STATE).is_file():
        return folder, None
    splits = [_plain_name(given, name) for given in _json(folder / _DICT, name)["splits"]]
    wanted = _check_split(name, split, splits)
    return folder / wanted, wanted


def _check_split(name: str, wanted: str | None, known: list[str]) -> str:
    chosen = wanted or DEFAULT_SPLIT
    if chosen in known:
        return chosen
    raise InputError(
        f"{name}: there is no split {chosen!r}; choose one with --split. The splits are: "
        f"{', '.join(map(repr, known)) or 'none'}"
    )


def _json(path: Path, name: str) -> Any:
    return json.loads(read_regular(path, f"{name}: {path.name}", limit=_SMALL_FILE))


def _plain_name(value: Any, name: str) -> str:
    if not isinstance(value, str) or value in ("", ".", "..") or PurePath(value).name != value:
        raise InputError(
            f"{name}: {value!r} is no plain name of a file or split; unpoison does not follow it"
        )
    return value
