"""Reading tar, zip and gz files that may be hostile, member by member.

No member's path may leave the archive, no member may be a link or a device, and what comes out is counted
while it is unpacked: the sizes that an archive states about itself are not believed.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from unpoison.data.files import check_utf8, open_regular, refusing, shown, writing
from unpoison.errors import InputError
from unpoison.events import Listener, Progress, ignore

_FIX = "it is damaged or of another form; get it again"
_PIECE = 2**20
_LARGEST_READ = 2**22
"""The tar reader takes a whole extended header at once: this is the most that one may say it needs."""
_XZ_MEMORY = 2**28
"""What an xz file may ask of the decoder; ``xz -9`` asks for a quarter of it."""
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True)
class Limits:
    """What an archive may hold at most: members, and bytes once unpacked."""

    total_bytes: int
    members: int = 50_000


@dataclass(frozen=True)
class Member:
    """A regular file inside a tar archive. Read it before asking for the next one."""

    name: str
    archive: str
    stream: IO[bytes]

    def read(self) -> bytes:
        """Everything in it."""
        return b"".join(self._pieces())

    def save(self, target: Path) -> None:
        """Write it to ``target``, which must not exist."""
        with writing(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.writelines(self._pieces())

    def _pieces(self) -> Iterator[bytes]:
        with refusing(f"{self.archive}: {self.name!r}", _FIX):
            while piece := self.stream.read(_PIECE):
                yield piece


def tar_members(path: Path, name: str, *, limits: Limits, listener: Listener = ignore) -> Iterator[Member]:
    """The regular files of a tar archive, plain or packed with gzip or xz, in the order they are stored."""
    with open_regular(path, name) as stream:
        size = os.fstat(stream.fileno()).st_size
        with refusing(name, _FIX):
            forward = _Forward(_inflated(stream), name, limits.total_bytes)
            archive = tarfile.open(fileobj=cast(IO[bytes], forward), mode="r:")  # noqa: SIM115
        with archive:
            seen: set[str] = set()
            while (info := _next(archive, name)) is not None:
                _check_tar_member(info, name)
                _check_new(info.name, seen, name, limits)
                if not info.isdir():
                    yield Member(info.name, name, cast(IO[bytes], archive.extractfile(info)))
                listener(Progress(f"read {name}", stream.tell(), size))


class ZipReader:
    """An open zip archive whose members have all been checked; ``names`` are its regular files."""

    def __init__(self, archive: zipfile.ZipFile, name: str, limits: Limits, listener: Listener) -> None:
        self._archive = archive
        self._name = name
        self._limit = limits.total_bytes
        self._given = 0
        self._listener = listener
        self._packed = [0, max(1, sum(info.compress_size for info in archive.infolist()))]
        self.names = tuple(info.filename for info in archive.infolist() if not info.is_dir())

    def read(self, member: str) -> bytes:
        """Everything in one file."""
        pieces = []
        with refusing(f"{self._name}: {member!r}", _FIX), self._archive.open(member) as stream:
            while piece := stream.read(_PIECE):
                self._given += len(piece)
                _check_size(self._name, self._given, self._limit)
                pieces.append(piece)
        self._packed[0] += self._archive.getinfo(member).compress_size
        self._listener(Progress(f"read {self._name}", min(self._packed), self._packed[1]))
        return b"".join(pieces)


@contextmanager
def open_zip(path: Path, name: str, *, limits: Limits, listener: Listener = ignore) -> Iterator[ZipReader]:
    """Open a zip archive and check the names and kinds of all its members."""
    with open_regular(path, name) as stream:
        with refusing(name, _FIX):
            archive = zipfile.ZipFile(stream)
        with archive:
            seen: set[str] = set()
            for info in archive.infolist():
                _check_zip_member(info, name)
                _check_new(info.filename, seen, name, limits)
            yield ZipReader(archive, name, limits, listener)


def read_maybe_gz(path: Path, name: str, *, max_bytes: int) -> bytes:
    """The content of a file, unpacked if it is packed with gzip."""
    with open_regular(path, name) as stream, refusing(name, _FIX):
        packed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        data = gzip.GzipFile(fileobj=stream).read(max_bytes + 1) if packed else stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise InputError(f"{name}: holds more than the {max_bytes:,} bytes it should; {_FIX}")
    return data


class _Forward:
    """A stream that is only read forward, counts what it gives, and stops at a limit."""

    def __init__(self, stream: IO[bytes], name: str, limit: int) -> None:
        self._stream = stream
        self._name = name
        self._limit = limit
        self._position = 0

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LARGEST_READ:
            raise InputError(f"{self._name}: a header in it says it takes {size:,} bytes; {_FIX}")
        data = self._stream.read(size)
        self._position += len(data)
        _check_size(self._name, self._position, self._limit)
        return data

    def seek(self, offset: int) -> int:
        if offset < self._position:
            raise io.UnsupportedOperation("an archive is read from front to back")
        while self._position < offset and self.read(min(_PIECE, offset - self._position)):
            pass
        return self._position

    def tell(self) -> int:
        return self._position


class _Xz(io.RawIOBase):
    """An xz stream unpacked within a bounded memory, for which the standard reader has no option."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._decoder.eof:
            packed = self._stream.read(_PIECE) if self._decoder.needs_input else b""
            if self._decoder.needs_input and not packed:
                raise EOFError("the file ends too early")
            data = self._decoder.decompress(packed, max_length=len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
        return 0


def _inflated(stream: IO[bytes]) -> IO[bytes]:
    """The stream unpacked, by what its first bytes say rather than by the name of the file."""
    start = stream.read(6)
    stream.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.GzipFile(fileobj=stream))
    if start == b"\xfd7zXZ\x00":
        return cast(IO[bytes], io.BufferedReader(_Xz(stream), _PIECE))
    return stream


def _next(archive: tarfile.TarFile, name: str) -> tarfile.TarInfo | None:
    with refusing(name, _FIX):
        return archive.next()


def _check_tar_member(info: tarfile.TarInfo, name: str) -> None:
    _check_path(info.name, name)
    if info.issym() or info.islnk():
        raise InputError(f"{name}: {info.name!r} is a link; archives with links are not unpacked")
    # a sparse file is stored small and comes out as large as it likes
    if info.issparse() or not (info.isreg() or info.isdir()):
        raise InputError(f"{name}: {info.name!r} is neither a plain file nor a folder; {_FIX}")


def _check_zip_member(info: zipfile.ZipInfo, name: str) -> None:
    _check_path(info.orig_filename, name)
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        raise InputError(f"{name}: {info.filename!r} is a link; archives with links are not unpacked")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise InputError(f"{name}: {info.filename!r} is neither a plain file nor a folder; {_FIX}")
    if info.flag_bits & 1 or info.compress_type not in _ZIP_METHODS:
        raise InputError(f"{name}: {info.filename!r} is encrypted or packed in an unusual way; {_FIX}")


def _check_path(member: str, name: str) -> None:
    """Refuse every path that could lead somewhere else on any system."""
    check_utf8(name, "member", member)
    absolute = member.startswith("/") or _DRIVE.match(member) is not None
    if not member or absolute or ".." in PurePosixPath(member).parts or "\\" in member or "\0" in member:
        raise InputError(
            f"{name}: the member {shown(member)} has a path that leads out of the archive; {_FIX}"
        )


def _check_new(member: str, seen: set[str], name: str, limits: Limits) -> None:
    plain = str(PurePosixPath(member))  # "./a" and "a/" are "a"
    if plain in seen:
        raise InputError(f"{name}: the member {shown(member)} occurs more than once; {_FIX}")
    seen.add(plain)
    if len(seen) > limits.members:
        raise InputError(f"{name}: holds more than {limits.members:,} members; it is another file, or a bomb")


def _check_size(name: str, size: int, limit: int) -> None:
    if size > limit:
        raise InputError(f"{name}: unpacks to more than {limit:,} bytes; it is another file, or a bomb")
