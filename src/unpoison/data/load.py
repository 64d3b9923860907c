"""The one door for data: a name or a path in, a :class:`~unpoison.data.container.Dataset` out."""

from __future__ import annotations

from pathlib import Path

from unpoison.data.container import Dataset
from unpoison.data.files import check_utf8, describe, shown
from unpoison.data.named.catalog import NAMES, closest
from unpoison.data.options import DEFAULT_OPTIONS, LoadOptions
from unpoison.errors import InputError

__all__ = ["load", "LoadOptions"]

UNDERSTOOD = (
    "a folder of images with one subfolder a class, an .npz file with x and y, "
    f"a .csv, .tsv or .parquet file with a label column, hf:NAME for a Hugging Face "
    f"dataset, or one of the names {', '.join(NAMES)}"
)
HUB_PREFIX = "hf:"


def load(source: str | Path, *, options: LoadOptions = DEFAULT_OPTIONS) -> Dataset:
    """Read a training set.

    ``source`` is a folder of images, an ``.npz``, ``.csv``, ``.tsv`` or ``.parquet`` file, or the name of a
    dataset: ``digits``, or ``cifar10``, ``gtsrb``, ``imagenette`` or ``fashion-mnist`` once fetched
    (``unpoison data fetch``), of which this is the training split, or a Hugging Face dataset, as
    ``hf:user/name`` or ``hf:FOLDER``. A file or folder that happens to be called ``digits`` is meant by
    ``./digits``.

    >>> load("digits").features.shape
    (1797, 8, 8, 1)
    """
    if isinstance(source, str) and source.startswith(HUB_PREFIX):
        from unpoison.data.hub import load_hub

        return load_hub(source.removeprefix(HUB_PREFIX), options=options)
    if options.split is not None or options.image is not None:
        raise InputError(
            f"{shown(str(source))} is no {HUB_PREFIX} dataset; --split and --image are for those"
        )
    if source in NAMES or (isinstance(source, Path) and str(source) in NAMES and not source.exists()):
        from unpoison.data.named.load import load_split

        return load_split(str(source), "train", options=options)
    path = _existing(source)
    if path.is_dir():
        from unpoison.data.folder import load_folder

        return load_folder(path, options=options)
    if not path.is_file():
        raise InputError(f"{shown(str(source))} is neither a file nor a folder; give {UNDERSTOOD}")
    return _load_file(path, options)


def _existing(source: str | Path) -> Path:
    if not str(source):
        raise InputError(f"the source is empty; give {UNDERSTOOD}")
    path = Path(source)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: a NUL in the name
        meant = closest(str(source))
        hint = f"did you mean {meant}? Otherwise give" if meant else "give"
        raise InputError(f"{shown(str(source))} does not exist; {hint} {UNDERSTOOD}") from error
    except OSError as error:
        raise InputError(f"{shown(str(source))} cannot be read ({describe(error)})") from error
    return path


def _load_file(path: Path, options: LoadOptions) -> Dataset:
    check_utf8("the source", "file name", path.name)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        from unpoison.data.arrays import load_npz

        return load_npz(path, options=options)
    if suffix in (".csv", ".tsv", ".parquet"):
        from unpoison.data.table import load_delimited, load_parquet

        if suffix == ".parquet":
            return load_parquet(path, options=options)
        return load_delimited(path, form="tsv" if suffix == ".tsv" else "csv", options=options)
    raise InputError(f"{shown(str(path))} has a form that unpoison does not read; give {UNDERSTOOD}")
