from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from .builders import call, poisoned_npz, run, tree

FINE = ": every file and every kept sample is as run.json records it\n"


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify")
    assert call("clean", poisoned_npz(root), "--out", root / "out", "-q").code == 0
    return root / "out"


@pytest.fixture
def results(untouched: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(untouched, tmp_path / "results"))


def test_fine(results: Path) -> None:
    before = tree(results)
    done = call("verify", results)
    assert (done.code, done.out, done.err) == (0, f"{results}{FINE}", "")
    assert tree(results) == before


def test_fine_in_a_real_process_from_another_place(results: Path) -> None:
    done = run("verify", results.name, cwd=results.parent)
    assert (done.code, done.out, done.err) == (0, f"{results.name}{FINE}", "")


def change_a_pixel(results: Path) -> None:
    path = results / "clean" / "poisoned.npz"
    with np.load(path, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    arrays["x"][3, 0, 0, 0] ^= 1
    np.savez(path, **arrays)


def edit(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(results: Path) -> None:
        content = (results / name).read_bytes()
        assert old in content
        (results / name).write_bytes(content.replace(old, new, 1))

    return change


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a kept sample": (change_a_pixel, "row-00000"),
    "a verdict": (edit("manifest.csv", b"false", b"true"), "manifest.csv was changed"),
    "the record": (
        edit("run.json", b'"n_removed": 12', b'"n_removed": 0'),
        "disagree about the number of removed",
    ),
    "the report": (edit("report.html", b"<html", b"<HTML"), "report.html was changed"),
    "no record": (lambda results: (results / "run.json").unlink(), "run.json is missing"),
    "no clean set": (lambda results: shutil.rmtree(results / "clean"), "clean/ is missing"),
    "no manifest": (lambda results: (results / "manifest.parquet").unlink(), "manifest.parquet is missing"),
    "a stray file": (
        lambda results: (results / "extra.txt").touch(),
        "'extra.txt' was not written by the run",
    ),
    "a stray sample": (lambda results: (results / "clean" / "b.npz").touch(), "'b.npz': extra"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_exit_code_1_and_named_on_stdout(kind: str, results: Path) -> None:
    damage, says = DAMAGE[kind]
    damage(results)
    done = call("verify", results)
    assert (done.code, done.err) == (1, "")
    *problems, last = done.out.splitlines()
    assert any(says in problem for problem in problems)
    assert last == f"{results}: {len(problems)} problem{'s' if len(problems) > 1 else ''} found"


@pytest.mark.parametrize("place", ["absent", "empty", "file", "unfinished"])
def test_what_is_no_output_is_exit_code_2(place: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "unfinished" / ".unpoison-work").mkdir(parents=True)
    done = call("verify", tmp_path / place)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {tmp_path / place}: ")
    assert done.err.count("\n") == 1
