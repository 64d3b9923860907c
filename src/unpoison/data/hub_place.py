"""Where a Hugging Face dataset is, and what must be refused before ``datasets`` may look at it.

A dataset brings more than rows: a card that says where its files are, at times a script. All of it is the
attacker's. So only plain readers are let loose, and only on the dataset's own files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

from unpoison.data.files import check_utf8, refusing, shown
from unpoison.data.hub_rows import lies_inside
from unpoison.errors import InputError

READERS = ("arrow", "cache", "csv", "imagefolder", "json", "parquet")
"""The readers of ``datasets`` that are used. Others decode whatever they find, some of it by running it."""

_PACKAGED = "datasets.packaged_modules."
_HUB_NAME = re.compile(r"(?P<name>\w[\w.-]*/\w[\w.-]*)(?::(?P<config>[^\s:/]+))?", re.ASCII)
_SAVE = "save it as load_dataset(...).save_to_disk(FOLDER) and give hf:FOLDER"


@dataclass(frozen=True)
class Place:
    """Where a dataset is: a folder, links resolved, or a name on the hub."""

    name: str
    folder: Path | None
    repository: str | None
    config: str | None

    @property
    def shown(self) -> str:
        """What the user gave, for a message."""
        return f"hf:{shown(self.name)}"


def find_place(given: str) -> Place:
    """``user/name``, ``user/name:config``, ``FOLDER`` or ``FOLDER:config``; a folder comes first."""
    before, _, after = given.rpartition(":")
    for path, config in ((given, None), (before, after)):
        folder = _existing(path)
        if folder is not None and folder.is_dir():
            check_utf8("hf:", "folder name", folder.name)
            return Place(folder.name or str(folder), folder, None, config)
        if folder is not None and config is None:
            raise InputError(f"hf:{shown(given)} is not a folder; to read a single file leave out hf:")
    match = _HUB_NAME.fullmatch(given)
    if match is None:
        raise InputError(
            f"hf:{shown(given)}: there is no such folder, and nothing on the hub has such a name; give "
            "hf:user/name, hf:user/name:config or hf:FOLDER"
        )
    return Place(given, None, match["name"], match["config"])


def check_folder(datasets: Any, place: Place, folder: Path) -> None:
    """Refuse what ``datasets`` would run, or follow out of the folder, while it looks for the data."""
    script = folder / f"{folder.name}.py"
    if script.exists():
        raise InputError(
            f"{place.shown} comes with a script ({shown(script.name)}), and unpoison runs no code of a "
            f"dataset. If you trust it, {_SAVE}"
        )
    with refusing(f"{place.shown}: its card", "correct the YAML in README.md or remove the file"):
        for pattern in _patterns(_configurations(datasets, folder)):
            path = PurePath(pattern)
            if "://" in pattern or "::" in pattern or path.is_absolute() or ".." in path.parts:
                raise InputError(
                    f"{place.shown}: its card names the data files {pattern!r}, outside the folder; unpoison "
                    "does not go there. Correct README.md or remove it"
                )


def check_builder(builder: Any, place: Place) -> str:
    """The name of the reader, after checking that it is a plain one and reads the dataset's own files."""
    module = type(builder).__module__
    reader = module.removeprefix(_PACKAGED).partition(".")[0]
    if reader not in READERS or not module.startswith(_PACKAGED):
        raise InputError(
            f"{place.shown} holds files of a kind that unpoison does not read ({reader}); the kinds it reads "
            f"are {', '.join(kind for kind in READERS if kind != 'cache')}. For any other, {_SAVE}"
        )
    for files in (builder.config.data_files or {}).values():
        for file in map(str, files):
            if not _is_own(file, place):
                raise InputError(
                    f"{place.shown}: the data file {shown(file)} is not one of the dataset's own (a link or "
                    "its card leads elsewhere); unpoison does not read it. Replace it by the file itself"
                )
    return reader


def _existing(path: str) -> Path | None:
    try:
        return Path(path).resolve() if path and Path(path).exists() else None
    except (OSError, ValueError):  # a name that is too long, a NUL in it
        return None


def _configurations(datasets: Any, folder: Path) -> list[Any]:
    """What README.md and its YAML twin declare, as ``datasets`` reads them."""
    found: list[Any] = []
    if (folder / "README.md").is_file():
        card = import_module("huggingface_hub").DatasetCard.load(folder / "README.md")
        found += card.data.to_dict().get("configs") or []
    twin = folder / datasets.config.REPOYAML_FILENAME
    if twin.is_file():
        content = import_module("yaml").safe_load(twin.read_text(encoding="utf-8")) or {}
        found += content.get("configs") or []
    return found


def _patterns(configurations: Any) -> Iterator[str]:
    """Every string by which configurations name their files."""
    for configuration in configurations or ():
        yield from _strings([configuration.get("data_files"), configuration.get("data_dir")])


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _is_own(file: str, place: Place) -> bool:
    if place.folder is None:
        return file.startswith(f"hf://datasets/{place.repository}@")
    return lies_inside(Path(file), place.folder) is not None
