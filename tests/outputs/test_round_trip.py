"""Real data of every form: loaded, written, verified, changed and caught."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from unpoison.data.container import Dataset
from unpoison.data.load import LoadOptions, load
from unpoison.outputs import verify, write

from .builders import RUN, make_result


def folder(path: Path) -> Dataset:
    rng = np.random.default_rng(0)
    for i in range(24):
        place = path / "data" / ("<b>cat</b>" if i % 2 else "dog\x1b")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)).save(place / f"=1+{i}.png")
    return load(path / "data")


def table(path: Path, separator: str) -> Dataset:
    name = path / ("data.csv" if separator == "," else "data.tsv")
    rows = [separator.join((f"{i}.5", f"words number {i}", "ab"[i % 2])) for i in range(24)]
    name.write_text("\n".join([separator.join(("=x", "note", "kind")), *rows]) + "\n")
    return load(name, options=LoadOptions(label="kind"))


def parquet(path: Path) -> Dataset:
    columns = {"x": [float(i) for i in range(24)], "kind": ["ab"[i % 2] for i in range(24)]}
    pq.write_table(pa.table(columns), path / "data.parquet")
    return load(path / "data.parquet", options=LoadOptions(label="kind"))


def npz(path: Path) -> Dataset:
    x = np.random.default_rng(0).integers(0, 256, (24, 6, 6), dtype=np.uint8)
    np.savez(path / "data.npz", x=x, y=np.arange(24) % 2)
    return load(path / "data.npz")


MAKERS = {
    "folder": folder,
    "csv": lambda path: table(path, ","),
    "tsv": lambda path: table(path, "\t"),
    "parquet": parquet,
    "npz": npz,
    "digits": lambda _: load("digits"),
}


@pytest.mark.parametrize("form", MAKERS)
def test_written_results_verify_until_changed(tmp_path: Path, form: str) -> None:
    dataset = MAKERS[form](tmp_path)
    out = write(dataset, make_result(dataset), tmp_path / "out", run=RUN)
    assert verify(out) == []
    victim = next(path for path in sorted((out / "clean").rglob("*")) if path.is_file())
    content = victim.read_bytes()
    victim.unlink()
    assert verify(out)
    victim.write_bytes(content[: len(content) // 2])
    assert verify(out)
    victim.write_bytes(content)
    assert verify(out) == []
    (out / "clean" / "extra.txt").write_text("x")
    problems = verify(out)
    assert problems
    assert all(problem.isprintable() for problem in problems)


def test_a_changed_header_is_caught(tmp_path: Path) -> None:
    out = write(dataset := table(tmp_path, ","), make_result(dataset), tmp_path / "out", run=RUN)
    written = out / "clean" / "data.csv"
    written.write_text(written.read_text().replace("note", "text", 1))
    (problem,) = verify(out)
    assert problem.startswith("clean/data.csv was changed: its sha256 is ")
