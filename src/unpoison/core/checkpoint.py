"""Finished tasks on disk, so that a killed run goes on where it stopped and ends with the same bits."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Protocol

import numpy as np

from unpoison.errors import CheckpointError
from unpoison.types import Arrays

MEMBERS = "members"
"""The array in a checkpoint that lists the others: a damaged archive may lose one without an error."""


class Checkpoints(Protocol):
    """Where the results of tasks are kept, by task name."""

    def load(self, name: str) -> Arrays | None:
        """The result of a task that finished before, or None."""
        ...

    def save(self, name: str, arrays: Arrays) -> None:
        """Keep the result of a task."""
        ...


class NoCheckpoints:
    """Keeps nothing."""

    def load(self, name: str) -> Arrays | None:  # noqa: ARG002
        """Nothing was kept."""
        return None

    def save(self, name: str, arrays: Arrays) -> None:
        """Keep nothing."""


class FolderCheckpoints:
    """One ``.npz`` a finished task in ``directory``, written under a temporary name and renamed.

    ``identity`` (data fingerprint, settings, learner, seed) is kept beside them. A folder that was written
    by another run is refused: mixing the rounds of two runs would give a result that is neither.
    """

    def __init__(self, directory: Path, *, identity: dict[str, object]) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        record = directory / "identity.json"
        if record.exists():
            _check_identity(record, identity)
        else:
            _write_atomically(record, json.dumps(identity, indent=1, sort_keys=True).encode())

    @classmethod
    def named_after(cls, identity: dict[str, object], *, parent: Path) -> FolderCheckpoints:
        """In a folder of ``parent`` whose name follows from the identity: one for every run there may be."""
        name = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]
        return cls(parent / name, identity=identity)

    def load(self, name: str) -> Arrays | None:
        """The saved result, or None where there is none or the file cannot be read."""
        path = self._path(name)
        try:
            # opened here, since numpy leaves a damaged archive that it opened itself open
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return {key: stored[key] for key in stored[MEMBERS].tolist()}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile):
            # a disk that lied about a write: the task is simply done again
            path.unlink(missing_ok=True)
            return None

    def save(self, name: str, arrays: Arrays) -> None:
        """Write the result so that it is either there whole or not at all."""
        if MEMBERS in arrays:
            raise ValueError(f"{MEMBERS!r} is taken: it lists what a checkpoint holds")
        path = self._path(name)
        partial = path.with_suffix(f".partial-{os.getpid()}")
        with partial.open("wb") as file:
            members: Arrays = {**arrays, MEMBERS: np.array(list(arrays))}
            np.savez(file, **members)  # type: ignore[arg-type]  # numpy's stub wants one type for all
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.npz"


def check_same(found: dict[str, object], wanted: dict[str, object], *, where: str) -> None:
    """Refuse to go on with what another run left, naming the first difference."""
    plain = json.loads(json.dumps(wanted))
    different = sorted(key for key in {*found, *plain} if found.get(key) != plain.get(key))
    if different:
        key = different[0]
        raise CheckpointError(
            f"{where} belongs to another run: {key} was {found.get(key)!r} and is {plain.get(key)!r} now. "
            f"Use the same {key}, or start anew in an empty folder."
        )


def _check_identity(record: Path, identity: dict[str, object]) -> None:
    try:
        found = dict(json.loads(record.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{record} cannot be read ({error}). Remove the folder and start anew."
        ) from error
    check_same(found, identity, where=str(record.parent))


def _write_atomically(path: Path, content: bytes) -> None:
    partial = path.with_suffix(f".partial-{os.getpid()}")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
