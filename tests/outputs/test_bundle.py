from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from unpoison.errors import InputError, OutputError
from unpoison.outputs import WORK_FOLDER, is_complete, prepare, write

from .builders import NASTY, RUN, KilledError, LineOrigin, killed_at, make_dataset, make_result, tree

EVERYTHING = {"clean", "evidence.npz", "manifest.csv", "manifest.parquet", "report.html", "run.json"}
N_MOVES = 6


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    directory = tmp_path_factory.mktemp("undisturbed")
    dataset = make_dataset()
    write(dataset, make_result(dataset), directory, run=RUN)
    return tree(directory)


def test_leaves_everything_and_nothing_else(tmp_path: Path) -> None:
    dataset = make_dataset()
    out = tmp_path / "out"
    assert write(dataset, make_result(dataset), out, run=RUN) == out
    assert names(out) == EVERYTHING
    assert names(tmp_path) == {"out"}
    assert is_complete(out)
    files = json.loads((out / "run.json").read_text())["files"]
    assert files == {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in ("evidence.npz", "manifest.csv", "manifest.parquet", "report.html", "clean/kept.csv")
    }
    assert (out / "clean" / "kept.csv").read_text().startswith("1\n2\n4\n5\n7\n")


def test_same_input_gives_same_bytes(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    dataset = make_dataset()
    write(dataset, make_result(dataset), tmp_path, run=RUN)
    assert tree(tmp_path) == undisturbed


def test_timing_does_not_reach_the_manifest(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    dataset = make_dataset()
    write(dataset, make_result(dataset), tmp_path, run=dataclasses.replace(RUN, seconds=99.0))
    found = tree(tmp_path)
    assert {name for name in found if found[name] != undisturbed[name]} == {"run.json", "report.html"}


def test_nasty_names_are_written(tmp_path: Path) -> None:
    dataset = make_dataset(
        2 * len(NASTY), names=NASTY, ids=[*NASTY, *(f"{v}2" for v in NASTY)], name="<b>\x1b\u202e"
    )
    write(dataset, make_result(dataset), tmp_path, run=RUN)
    assert names(tmp_path) == EVERYTHING


def test_nothing_removed_and_everything_removed(tmp_path: Path) -> None:
    dataset = make_dataset()
    write(dataset, make_result(dataset, []), tmp_path / "none", run=RUN)
    write(dataset, make_result(dataset, range(40)), tmp_path / "all", run=RUN)
    assert (tmp_path / "all" / "clean" / "kept.csv").read_text() == ""


def test_checkpoints_survive_a_failure_and_go_at_the_end(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    checkpoint = prepare(tmp_path, resume=False) / "round-1.npz"
    checkpoint.write_text("x")
    failing = make_dataset(origin=LineOrigin(fail=True))
    with pytest.raises(OutputError, match=r"No space left on device.*--resume"):
        write(failing, make_result(failing), tmp_path, run=RUN)
    assert names(tmp_path) == {WORK_FOLDER}
    assert names(tmp_path / WORK_FOLDER) == {"round-1.npz"}
    prepare(tmp_path, resume=True)
    dataset = make_dataset()
    write(dataset, make_result(dataset), tmp_path, run=RUN)
    assert tree(tmp_path) == undisturbed


def test_errors_raised_on_purpose_pass_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_kept(*_: Any) -> None:
        raise InputError("the source changed")

    monkeypatch.setattr(LineOrigin, "write_kept", write_kept)
    dataset = make_dataset()
    with pytest.raises(InputError, match="the source changed"):
        write(dataset, make_result(dataset), tmp_path, run=RUN)
    assert names(tmp_path) == {WORK_FOLDER}


@pytest.mark.parametrize("moves", range(N_MOVES))
def test_stopped_between_moves(tmp_path: Path, undisturbed: dict[str, bytes], moves: int) -> None:
    dataset = make_dataset()
    result = make_result(dataset)
    with killed_at(moves), pytest.raises(KilledError):
        write(dataset, result, tmp_path, run=RUN)
    assert not is_complete(tmp_path)
    assert len(names(tmp_path)) == moves + 1
    for name, data in tree(tmp_path).items():
        assert name.startswith(WORK_FOLDER) or data == undisturbed[name]
    prepare(tmp_path, resume=True)
    write(dataset, result, tmp_path, run=RUN)
    assert names(tmp_path) == EVERYTHING
    assert tree(tmp_path) == undisturbed


@pytest.mark.parametrize("moves", range(N_MOVES + 3))
def test_stopped_while_writing_over_a_whole_run(
    tmp_path: Path, undisturbed: dict[str, bytes], moves: int
) -> None:
    """Stopped once after ``run.json`` appeared, and again anywhere while that is repeated."""
    dataset = make_dataset()
    result = make_result(dataset)
    write(dataset, make_result(dataset, [1]), tmp_path, run=RUN)
    (tmp_path / WORK_FOLDER).mkdir()
    try:
        with killed_at(moves):
            write(dataset, result, tmp_path, run=RUN)
    except KilledError:
        # Either not begun and still the old run, or begun and not complete: never a mixture.
        assert is_complete(tmp_path) == (moves == 0)
        write(dataset, result, tmp_path, run=RUN)
    assert names(tmp_path) == EVERYTHING
    assert tree(tmp_path) == undisturbed


KILL = """
import os, sys
from pathlib import Path
from outputs_killed.builders import RUN, make_dataset, make_result
from unpoison.outputs import write

replace, left = os.replace, int(sys.argv[2])

def killing(*args, **kwargs):
    global left
    if left == 0:
        os._exit(9)
    left -= 1
    replace(*args, **kwargs)

os.replace = killing
dataset = make_dataset()
write(dataset, make_result(dataset), Path(sys.argv[1]), run=RUN)
"""


@pytest.mark.parametrize("moves", [0, 2, 4])
def test_killed_process(tmp_path: Path, undisturbed: dict[str, bytes], moves: int) -> None:
    """Without any clean-up of Python's: the staging folder stays, and the next run copes."""
    shutil.copytree(Path(__file__).parent, tmp_path / "outputs_killed", ignore=lambda *_: ["__pycache__"])
    out = tmp_path / "out"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", KILL, str(out), str(moves)],
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        capture_output=True,
    )
    assert done.returncode == 9, done.stderr.decode()
    assert not is_complete(out)
    assert len(list((out / WORK_FOLDER).glob("staging-*"))) == 1
    dataset = make_dataset()
    write(dataset, make_result(dataset), out, run=RUN)
    assert tree(out) == undisturbed


@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_never_writes_over_what_is_not_ours(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    dataset = make_dataset()
    with pytest.raises(OutputError, match=f"already holds '{name}'"):
        write(dataset, make_result(dataset), tmp_path, run=RUN)
    assert tree(tmp_path) == {name: b"mine"}


def test_never_follows_a_work_folder_outside(tmp_path: Path) -> None:
    outside, out = tmp_path / "outside", tmp_path / "out"
    (outside / "staging-x").mkdir(parents=True)
    out.mkdir()
    (out / WORK_FOLDER).symlink_to(outside)
    dataset = make_dataset()
    with pytest.raises(OutputError, match="not a folder of its own"):
        write(dataset, make_result(dataset), out, run=RUN)
    assert names(outside) == {"staging-x"}


def test_run_json_appears_last_and_after_flushing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append(Path(b).name), replace(a, b))[1])
    monkeypatch.setattr(os, "fsync", lambda descriptor: (steps.append("flush"), fsync(descriptor))[1])
    dataset = make_dataset()
    write(dataset, make_result(dataset), tmp_path, run=RUN)
    moves = [step for step in steps if step != "flush"]
    assert moves[-1] == "run.json"
    assert set(moves) == EVERYTHING
    first = steps.index(moves[0])
    assert steps[:first] == ["flush"] * 10  # seven files and three folders
    assert steps[-3:] == ["flush", "run.json", "flush"]
