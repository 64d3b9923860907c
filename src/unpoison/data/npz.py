"""Reading and writing ``.npz`` archives without pickle, with every size checked before memory is taken."""

from __future__ import annotations

import hashlib
import math
import os
import struct
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from unpoison.data.files import check_budget, check_utf8, open_regular, refusing, shown, writing
from unpoison.data.memory import largest_in_memory, room_for
from unpoison.errors import InputError

_FIX = "save it again with numpy.savez"
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LOCAL_HEADER = 30
"""Bytes before the name of a member; the last four are the lengths of the name and of what follows it."""
_PART = 2**24


@dataclass(frozen=True)
class Header:
    """What an ``.npy`` member says about itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool = False


class NpzReader:
    """An open archive whose members have all been checked. ``sha256`` is that of the whole file."""

    def __init__(
        self, path: Path, archive: zipfile.ZipFile, name: str, headers: dict[str, Header], sha256: str
    ) -> None:
        self._path = path
        self._archive = archive
        self._name = name
        self.headers = headers
        self.sha256 = sha256

    @property
    def compressed(self) -> bool:
        """Whether any member is compressed."""
        return any(info.compress_type != zipfile.ZIP_STORED for info in self._archive.infolist())

    def read(self, key: str, *, in_place: bool = False) -> NDArray[Any]:
        """One array. ``in_place`` maps the file into memory, read-only, where the array lies in it as it is.

        Only for files that nobody else changes. Arrays that would fill too much memory are mapped from a
        copy in a file of their own.
        """
        header = self.headers[key]
        size = math.prod(header.shape) * header.dtype.itemsize
        with refusing(f"{self._name}: the array {key!r}", _FIX):
            stored = self._archive.getinfo(f"{key}.npy").compress_type == zipfile.ZIP_STORED
            if in_place and stored and size:
                return self._mapped(key, header)
            with self._archive.open(f"{key}.npy") as member:
                if size > largest_in_memory():
                    return _read_mapped(member, header)
                array: NDArray[Any] = npy_format.read_array(member, allow_pickle=False)
                return array

    def _mapped(self, key: str, header: Header) -> NDArray[Any]:
        with self._archive.open(f"{key}.npy") as member:
            _read_header(member)  # type: ignore[arg-type]
            used = member.tell()
        info = self._archive.getinfo(f"{key}.npy")
        stream = cast(BinaryIO, self._archive.fp)
        stream.seek(info.header_offset)
        name_length, more_length = struct.unpack("<HH", stream.read(_LOCAL_HEADER)[-4:])
        return np.memmap(
            self._path,
            dtype=header.dtype,
            mode="r",
            offset=info.header_offset + _LOCAL_HEADER + name_length + more_length + used,
            shape=header.shape,
            order="F" if header.fortran_order else "C",
        )


@contextmanager
def open_npz(path: Path, name: str, *, max_bytes: int) -> Iterator[NpzReader]:
    """Open an archive and check all its members: sizes, names, no pickles."""
    with open_regular(path, name) as stream:
        check_budget(name, os.fstat(stream.fileno()).st_size, max_bytes)
        with refusing(name, f"it is not an .npz archive or it is damaged; {_FIX}"):
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            stream.seek(0)
            archive = zipfile.ZipFile(stream)
        with archive:
            _check_directory(archive, name, max_bytes)
            headers = {_key(info): _header(archive, info, name) for info in archive.infolist()}
            yield NpzReader(path, archive, name, headers, sha256)


def write_npz(path: Path, arrays: Iterable[tuple[str, NDArray[Any]]], *, compressed: bool) -> None:
    """Write arrays one by one; the same arrays give the same bytes."""
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with writing(path.parent), zipfile.ZipFile(path, "x") as archive:
        for key, array in arrays:
            info = zipfile.ZipInfo(f"{key}.npy", date_time=_FIXED_DATE)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=True) as member:
                npy_format.write_array(member, array, allow_pickle=False)


def _check_directory(archive: zipfile.ZipFile, name: str, max_bytes: int) -> None:
    check_budget(name, sum(info.file_size for info in archive.infolist()), max_bytes)
    seen: set[str] = set()
    for info in archive.infolist():
        _check_member(info, name)
        if info.filename in seen:
            raise InputError(f"{name}: the member {info.filename!r} occurs more than once; {_FIX}")
        seen.add(info.filename)


def _check_member(info: zipfile.ZipInfo, name: str) -> None:
    member = shown(info.filename)
    check_utf8(name, "member", info.filename)
    if not info.filename.endswith(".npy"):
        raise InputError(f"{name}: the member {member} is not an .npy array; {_FIX}")
    parts = PurePosixPath(info.filename).parts
    if "\\" in info.filename or ".." in parts or parts[0] == "/":
        raise InputError(f"{name}: the member {member} has a path that leads out of the archive; {_FIX}")
    if info.flag_bits & 1 or info.compress_type not in _METHODS:
        raise InputError(
            f"{name}: the member {member} is encrypted or packed in a way numpy never uses; {_FIX}"
        )


def _key(info: zipfile.ZipInfo) -> str:
    return info.filename.removesuffix(".npy")


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Header:
    """Read and check a member's header; no array is made."""
    key = _key(info)
    with refusing(f"{name}: the array {key!r}", _FIX), archive.open(info) as member:
        header = _read_header(member)  # type: ignore[arg-type]
        used = member.tell()
    if header.dtype.hasobject:
        raise InputError(
            f"{name}: the array {key!r} has dtype object, which is stored as a pickle. "
            "Loading a pickle can run code, so unpoison refuses it; "
            "save the array with a plain dtype (numbers or unicode strings)"
        )
    needed = used + header.dtype.itemsize * math.prod(header.shape)
    if needed != info.file_size:
        raise InputError(
            f"{name}: the array {key!r} says shape {header.shape} of {header.dtype}, {needed:,} bytes, "
            f"but {info.file_size:,} are stored; {_FIX}"
        )
    return header


def _read_header(member: BinaryIO) -> Header:
    version = npy_format.read_magic(member)
    if version == (1, 0):
        shape, fortran_order, dtype = npy_format.read_array_header_1_0(member)
    elif version == (2, 0):
        shape, fortran_order, dtype = npy_format.read_array_header_2_0(member)
    else:
        raise ValueError(f"unsupported .npy version {version}")
    return Header(shape, dtype, fortran_order)


def _read_mapped(member: IO[bytes], header: Header) -> NDArray[Any]:
    _read_header(member)  # type: ignore[arg-type]
    room = room_for((math.prod(header.shape) * header.dtype.itemsize,))
    filled = 0
    while filled < len(room) and (part := member.read(_PART)):
        room[filled : filled + len(part)] = np.frombuffer(part, dtype=np.uint8)
        filled += len(part)
    if filled < len(room):
        raise ValueError(f"ends after {filled:,} of {len(room):,} bytes")
    return room.view(header.dtype).reshape(header.shape, order="F" if header.fortran_order else "C")
