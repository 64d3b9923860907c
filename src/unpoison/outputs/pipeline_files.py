"""Files for pipelines: a summary in Markdown and findings as SARIF, beside the folder of the results.

They are made from what the folder holds, so a resumed run can write them too.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from unpoison.data.load import HUB_PREFIX
from unpoison.data.named.catalog import NAMES
from unpoison.errors import OutputError
from unpoison.outputs import manifest, place, sarif, summary
from unpoison.outputs.record import Record, dump
from unpoison.report.text import printable


@dataclass(frozen=True)
class PipelineFiles:
    """Where the files of a run on ``source`` into ``out`` are to be; None for those not asked for."""

    source: str
    out: Path
    summary: Path | None = None
    sarif: Path | None = None

    def check(self) -> None:
        """Refuse places that cannot take a file, before a run takes its time."""
        for option, path in self._asked():
            try:
                _check_place(option, path, out=self.out, source=local_source(self.source))
            except (OSError, ValueError) as error:  # ValueError: a null byte in the path
                raise _refused(option, path, error) from error
        if self.summary and self.sarif and self.summary.resolve() == self.sarif.resolve():
            raise OutputError(f"{place.show(self.sarif)}: is given for --summary and --sarif; name two files")

    def write(self, record: Record) -> None:
        """Write them for the complete run in ``out``; files that were there before are replaced."""
        for option, path in self._asked():
            content = self._summary(record) if option == "--summary" else self._sarif(record)
            try:
                _replace(path.resolve(), content)
            except OSError as error:
                raise _refused(option, path, error, then=" and run again with --resume") from error

    def _asked(self) -> list[tuple[str, Path]]:
        given = (("--summary", self.summary), ("--sarif", self.sarif))
        return [(option, path) for option, path in given if path is not None]

    def _summary(self, record: Record) -> bytes:
        return summary.build(record, out=self.out).encode("utf-8")

    def _sarif(self, record: Record) -> bytes:
        path = self.out / place.MANIFEST_PARQUET
        try:
            table = manifest.read_parquet(path)
        except (OSError, OutputError, pa.ArrowException) as error:
            raise OutputError(
                f"{place.show(path)}: {printable(str(error), 200)}; see what is wrong with unpoison verify"
            ) from error
        return dump(sarif.build(record, table, source=local_source(self.source)))


def local_source(source: str) -> Path | None:
    """The file or folder that is meant by ``source``; None for a name of a dataset."""
    local = source.removeprefix(HUB_PREFIX)
    try:
        return Path(local) if source not in NAMES and local and Path(local).exists() else None
    except (OSError, ValueError):  # no name that a file could have
        return None


def _check_place(option: str, path: Path, *, out: Path, source: Path | None) -> None:
    real = path.resolve()
    if real.is_dir():
        raise OutputError(f"{place.show(path)}: is a folder; name a file with {option}")
    if real.exists() and not real.is_file():
        raise OutputError(f"{place.show(path)}: is no plain file; name another with {option}")
    if real.is_relative_to(out.resolve()):
        raise OutputError(
            f"{place.show(path)}: lies inside {place.show(out)}, which holds nothing but the results; name a "
            f"file outside with {option}"
        )
    if source is not None and real.is_relative_to(source.resolve()):
        raise OutputError(
            f"{place.show(path)}: belongs to the source {place.show(source)}; name another file with {option}"
        )
    if not real.parent.is_dir():
        raise OutputError(
            f"{place.show(path)}: there is no folder {place.show(real.parent)}; make it, or name another "
            f"file with {option}"
        )
    probe = _beside(real)
    probe.touch(exist_ok=False)
    probe.unlink()


def _replace(path: Path, content: bytes) -> None:
    """All of the new content, or the file as it was."""
    partial = _beside(path)
    try:
        with partial.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".unpoison-{secrets.token_hex(8)}")


def _refused(option: str, path: Path, error: Exception, *, then: str = "") -> OutputError:
    reason = getattr(error, "strerror", None) or str(error)
    return OutputError(
        f"{place.show(path)}: cannot be written ({reason}); name another file with {option}{then}"
    )
