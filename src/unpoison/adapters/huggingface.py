"""Hugging Face ``datasets``: a Dataset in, the same with the columns ``keep`` and ``suspicion`` out."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from unpoison.adapters.judging import Samples, judge, refuse_taken
from unpoison.data.hub import hub_dataset
from unpoison.data.hub_open import DEFAULT_SPLIT, quiet, rows_of
from unpoison.data.options import LoadOptions
from unpoison.errors import InputError, MissingExtraError
from unpoison.estimator import IncompatibilityClustering

NAME = "the dataset"


def judged(
    dataset: Any,
    cleaner: IncompatibilityClustering | None = None,
    *,
    label: str | None = None,
    image: str | None = None,
    text: str | None = None,
    image_size: int | None = None,
    folder: Path | None = None,
) -> Any:
    """The ``datasets.Dataset`` with ``keep`` (train on it) and ``suspicion`` (0 to 1) for every row.

    ``judged(...).filter(lambda row: row["keep"])`` is then the clean set. ``cleaner`` is fitted on the
    dataset, or taken as it is where it was fitted already; without one it is the usual of ``unpoison
    clean``. See :func:`samples` for the rest.
    """
    flat = _flat(dataset)
    refuse_taken(flat.column_names, NAME)

    def read() -> Samples:
        return samples(flat, label=label, image=image, text=text, image_size=image_size, folder=folder)

    fitted = judge(cleaner, len(flat), read)
    return flat.add_column("keep", fitted.keep_).add_column("suspicion", fitted.suspicion_)


def samples(
    dataset: Any,
    *,
    label: str | None = None,
    image: str | None = None,
    text: str | None = None,
    image_size: int | None = None,
    folder: Path | None = None,
) -> Samples:
    """Features and labels of a ``datasets.Dataset``, as ``unpoison clean hf:...`` reads them.

    A column of images makes it a set of images, otherwise the columns of numbers and strings are features.
    ``label``, ``image`` and ``text`` name columns where they are not plain to see; ``image_size`` is the side
    in pixels that images are scaled to. Images that are not in the dataset but files beside it, as
    ``load_dataset("imagefolder")`` has them, are opened only where they lie below ``folder``.
    """
    flat = _flat(dataset)
    split = str(flat.split or DEFAULT_SPLIT)
    root = None if folder is None else Path(folder).resolve()
    try:
        options = LoadOptions(label=label, image=image, text=text, image_size=image_size)
        rows = rows_of(flat, name=NAME, split=split, root=root, max_bytes=options.max_bytes)
        read = hub_dataset(rows, options=options)
    except InputError as error:
        raise InputError(_for_python(str(error))) from error
    return read.features, read.labels


def _flat(dataset: Any) -> Any:
    """The dataset in the order of its table, which ``select`` and ``shuffle`` leave as it was."""
    try:
        datasets = import_module("datasets")
    except ImportError as error:
        raise MissingExtraError("datasets", "hub", "judging a Hugging Face dataset") from error
    if isinstance(dataset, dict):
        raise InputError(f"{NAME} has the splits {', '.join(map(repr, dataset))}; give one of them")
    if not isinstance(dataset, datasets.Dataset):
        raise InputError(f"{NAME} must be a datasets.Dataset, got {type(dataset).__name__}")
    if dataset._indices is None:
        return dataset
    with quiet(datasets):
        return dataset.flatten_indices()


def _for_python(message: str) -> str:
    """An error of the command line in the words of this module: ``image_size=`` for ``--image-size``."""
    return re.sub(r"--([a-z][a-z-]*)", lambda option: option[1].replace("-", "_") + "=", message)
