"""Small poisoned sets of real digits in every form, and two ways to run the program on them."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from PIL import Image

from unpoison.attacks.base import Samples
from unpoison.attacks.dirty_label import DirtyLabel
from unpoison.attacks.triggers import Patch
from unpoison.cli.app import main
from unpoison.data.load import load

SOURCE_ROOT = Path(__file__).resolve().parents[2] / "src"
DIGITS = (0, 1, 4, 7)
NAMES = {0: "zero", 1: "one", 4: "four", 7: "seven"}
FORMS = ("npz", "csv", "tsv", "parquet", "folder")


@dataclass(frozen=True)
class Planted:
    """Digits 0, 1, 4 and 7; some ones carry a bright patch and are called seven."""

    images: np.ndarray
    labels: np.ndarray
    truth: np.ndarray

    @property
    def names(self) -> list[str]:
        return [NAMES[label] for label in self.labels.tolist()]

    @property
    def ids(self) -> list[str]:
        return [f"sample {i:03d}" for i in range(len(self.labels))]


def planted(*, per_class: int = 60, share: float = 0.2) -> Planted:
    digits = load("digits")
    chosen = np.sort(np.concatenate([np.flatnonzero(digits.labels == c)[:per_class] for c in DIGITS]))
    attack = DirtyLabel.one_to_one(source=1, target=7, epsilon=share, mark=Patch())
    poisoned, truth = attack.apply(Samples.numbered(digits.features[chosen], digits.labels[chosen]), seed=0)
    return Planted(poisoned.features, poisoned.labels, truth.planted)


def poisoned_npz(directory: Path, *, per_class: int = 60) -> Path:
    """Images and numbers as labels, nothing else: what ``unpoison clean`` mostly sees."""
    data = planted(per_class=per_class)
    path = directory / "poisoned.npz"
    np.savez(path, x=data.images, y=data.labels)
    return path


def write_form(form: str, directory: Path, data: Planted) -> tuple[Path, list[str]]:
    """``data`` in one form, with names and ids of its own; the path, and the options that it needs."""
    if form == "npz":
        path = directory / "digits set.npz"
        np.savez(path, x=data.images, y=np.array(data.names), ids=np.array(data.ids))
        return path, []
    if form == "folder":
        return _write_folder(directory / "digit images", data), []
    options = ["--label", "digit", "--id", "key"]
    header = ["key", "digit", *(f"pixel {i}" for i in range(64))]
    rows = [
        [key, name, *image.reshape(-1).tolist()]
        for key, name, image in zip(data.ids, data.names, data.images, strict=True)
    ]
    path = directory / f"digits set.{form}"
    if form == "parquet":
        import pyarrow as pa
        from pyarrow import parquet

        columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
        parquet.write_table(pa.table(columns), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter="\t" if form == "tsv" else ",").writerows([header, *rows])
    return path, options


def _write_folder(root: Path, data: Planted) -> Path:
    for key, name, image in zip(data.ids, data.names, data.images, strict=True):
        place = root / name / f"{key}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[..., 0]).save(place)
    return root


@dataclass(frozen=True)
class Outcome:
    """How a run of the program ended and what it printed where."""

    code: int
    out: str
    err: str


def call(*arguments: str | Path) -> Outcome:
    """The program in this process, through its entry point."""
    argv = ["unpoison", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        mock.patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    assert isinstance(code, int)
    return Outcome(code, out.getvalue(), err.getvalue())


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "unpoison", *map(str, arguments)]


def environment(**changes: str) -> dict[str, str]:
    """This process's, with the package importable from its source."""
    above = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(SOURCE_ROOT), *([above] if above else [])])
    return {**os.environ, "PYTHONPATH": path, **changes}


def run(*arguments: str | Path, cwd: Path | None = None, **variables: str) -> Outcome:
    """The program in a process of its own."""
    done = subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def manifest_bytes(out: Path) -> tuple[bytes, bytes]:
    return (out / "manifest.csv").read_bytes(), (out / "manifest.parquet").read_bytes()


def manifest_rows(out: Path) -> list[dict[str, str]]:
    with (out / "manifest.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tree(root: Path) -> dict[str, bytes | None]:
    """Every path below ``root`` with its bytes; None for folders."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }
