"""``overrides.json``: what a person decided about single samples, as the report saves it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unpoison.data.files import read_regular, refusing
from unpoison.errors import InputError
from unpoison.outputs.place import show
from unpoison.report.text import printable

VERSION = 1
MAX_BYTES = 256 * 1024 * 1024
_VERSION_KEY = "unpoison_overrides"
_KEYS = (_VERSION_KEY, "fingerprint", "keep", "remove")
_FIX = "save it again from the report"


@dataclass(frozen=True)
class Overrides:
    """Ids to keep and ids to remove, of the data with that fingerprint."""

    fingerprint: str
    keep: frozenset[str]
    remove: frozenset[str]
    sha256: str
    """Of the file as it was read."""


def read_overrides(path: Path) -> Overrides:
    """Read and check a file of overrides.

    Raises:
        InputError: It is no such file; the message says what is wrong with it.
    """
    name = show(path)
    with refusing(name, "give the overrides.json that the report saved"):
        data = read_regular(path.resolve(), name, limit=MAX_BYTES)
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        reason = printable(str(error) or type(error).__name__, 200)
        raise InputError(f"{name}: is not JSON ({reason}); {_FIX}") from error
    _check(name, found)
    keep, remove = _ids(name, found, "keep"), _ids(name, found, "remove")
    both = sorted(keep & remove)
    if both:
        raise InputError(f"{name}: '{printable(both[0])}' is in keep and in remove; leave it in one of them")
    return Overrides(found["fingerprint"], keep, remove, hashlib.sha256(data).hexdigest())


def _check(name: str, found: Any) -> None:
    if not isinstance(found, dict) or _VERSION_KEY not in found:
        raise InputError(f"{name}: holds no overrides (there is no {_VERSION_KEY!r} in it); {_FIX}")
    if found[_VERSION_KEY] != VERSION or isinstance(found[_VERSION_KEY], bool):
        version = printable(repr(found[_VERSION_KEY]))
        raise InputError(
            f"{name}: has version {version} of overrides; this version of unpoison knows {VERSION}"
        )
    unknown = sorted(set(found) - set(_KEYS))
    if unknown:
        raise InputError(
            f"{name}: has an unknown entry '{printable(unknown[0])}'; known are {', '.join(_KEYS)}"
        )
    if not isinstance(found.get("fingerprint"), str):
        raise InputError(f"{name}: does not say which data it is for (no 'fingerprint'); {_FIX}")


def _ids(name: str, found: dict[str, Any], key: str) -> frozenset[str]:
    ids = found.get(key, [])
    if not isinstance(ids, list) or not all(isinstance(sample, str) for sample in ids):
        raise InputError(f"{name}: {key!r} must be a list of ids; {_FIX}")
    return frozenset(ids)
