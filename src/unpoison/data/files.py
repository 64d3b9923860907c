"""Opening files that may be hostile, and the limits and messages every reader shares."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from unpoison.errors import InputError, OutputError, UnpoisonError
from unpoison.types import BoolArray

SAMPLE_BYTES = 256
"""What one sample costs besides its features: an id, a source, a hash."""
LITTER = frozenset({".ds_store", "thumbs.db", "desktop.ini"})
"""What operating systems leave in folders, in lower case."""
CELL_BYTES = 64
"""What one cell of a table costs as a Python string, besides its characters."""


def shown(text: str) -> str:
    """``text`` for an error message of one line: quoted and escaped where it is not plainly printable."""
    return text if text.isprintable() and text else ascii(text)


def describe(error: BaseException) -> str:
    """An exception in a few words of one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:200]}" if words else type(error).__name__


@contextmanager
def refusing(subject: str, fix: str) -> Iterator[None]:
    """Turn whatever a parser throws at bad input into an :class:`InputError`.

    Parsers fail on hostile bytes with almost any exception (struct.error, KeyError, MemoryError, ...), so
    all are caught. ``KeyboardInterrupt`` is not.
    """
    try:
        yield
    except UnpoisonError:
        raise
    except Exception as error:
        raise InputError(f"{subject} cannot be read ({describe(error)}); {fix}") from error


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Turn a failed write below ``directory`` into an :class:`OutputError`."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot write to {shown(str(directory))} ({describe(error)})") from error


def check_budget(name: str, needed: int, max_bytes: int) -> None:
    """Refuse data that would take more than ``max_bytes`` of memory, before taking it."""
    if needed > max_bytes:
        raise InputError(
            f"{name}: needs about {needed:,} bytes of memory, more than the limit of {max_bytes:,} "
            "(max_bytes); raise the limit if you trust the size, or split the data"
        )


def check_keep(keep: BoolArray, n: int) -> None:
    """Refuse a ``keep`` that does not have one truth value a sample."""
    if keep.shape != (n,) or keep.dtype != bool:
        raise InputError(f"keep must be {n} truth values, got {keep.dtype} of shape {keep.shape}")


def check_utf8(name: str, what: str, value: str) -> None:
    """Refuse a name that UTF-8 cannot write (undecodable file names, lone surrogates)."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name}: the {what} {value!a} is not valid Unicode; rename it") from error


@contextmanager
def open_regular(path: Path, name: str) -> Iterator[BufferedReader]:
    """Open a regular file for reading: no device, no pipe, no symbolic link put there at the last moment."""
    # O_NONBLOCK: opening a pipe must not hang; O_NOFOLLOW: callers resolve the links that they allow
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        handle = os.open(path, flags)
    except OSError as error:
        raise InputError(f"{name} cannot be opened ({describe(error)})") from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise InputError(f"{name} is a folder; give a file")
        raise InputError(f"{name} is not a regular file; unpoison reads only regular files")
    with os.fdopen(handle, "rb") as stream:
        yield stream


def read_regular(path: Path, name: str, *, limit: int) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes."""
    with open_regular(path, name) as stream:
        check_budget(name, os.fstat(stream.fileno()).st_size, limit)
        try:
            data = stream.read(limit + 1)
        except OSError as error:
            raise InputError(f"{name} cannot be read ({describe(error)})") from error
    check_budget(name, len(data), limit)
    return data


def file_sha256(path: Path, name: str) -> str:
    """sha256 of a regular file, read piece by piece."""
    with open_regular(path, name) as stream:
        try:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise InputError(f"{name} cannot be read ({describe(error)})") from error
