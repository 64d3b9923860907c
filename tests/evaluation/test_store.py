from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from unpoison import __version__
from unpoison.errors import OutputError
from unpoison.evaluation.store import Store, digest_of, machine

NAME = "laptop/some-scenario/ispl-seed0"
RECORD = {"task": {"seed": 0}, "result": {"tmr": 0.25}, "provenance": {"seconds": 1.5}}
FAILED = {"task": {"seed": 0}, "error": {"type": "ValueError", "message": "no"}, "provenance": {}, "tries": 2}
SOURCE = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def test_what_is_saved_is_read_back(store: Store) -> None:
    store.save(NAME, RECORD)
    assert store.listing().done == {NAME}
    reading = store.results([NAME, "laptop/absent/ispl-seed0"])
    assert reading.records == {NAME: RECORD}
    assert reading.damaged == ()
    assert json.loads((store.folder / f"{NAME}.json").read_text()) == RECORD


def test_a_folder_that_is_not_there_is_empty(store: Store) -> None:
    assert store.listing().done == store.listing().failed == frozenset()
    assert store.plan() == frozenset()
    assert store.owner() is None
    assert not store.folder.exists()


def test_a_failure_lies_beside_and_goes_with_success(store: Store) -> None:
    store.save_failure(NAME, FAILED)
    assert store.listing().failed == {NAME}
    assert store.listing().done == frozenset()
    assert store.failures([NAME]).records == {NAME: FAILED}
    store.save(NAME, RECORD)
    assert store.listing().failed == frozenset()
    assert [path.name for path in store.folder.rglob("*seed0*")] == ["ispl-seed0.json"]


def test_a_result_counts_even_if_the_failure_was_left(store: Store) -> None:
    store.save(NAME, RECORD)
    store.save_failure(NAME, FAILED)
    assert store.listing().done == {NAME}
    assert store.listing().failed == frozenset()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b'{"task": {}, "result": 3, "provenance": {}}', b"[" * 100_000],
    ids=["empty", "cut", "binary", "list", "no result", "deep"],
)
def test_a_damaged_file_is_told_and_not_there(content: bytes, store: Store) -> None:
    store.save(NAME, RECORD)
    path = store.folder / f"{NAME}.json"
    path.write_bytes(content)
    reading = store.results([NAME])
    assert reading.records == {}
    (line,) = reading.damaged
    assert str(path) in line
    assert "counts as not there" in line


def test_other_files_are_no_results(store: Store) -> None:
    store.save(NAME, RECORD)
    (store.folder / "laptop" / "notes.txt").touch()
    (store.folder / ".partial-7").touch()
    (store.folder / ".hidden").mkdir()
    (store.folder / ".hidden" / "a.json").touch()
    assert store.listing().done == {NAME}


def test_a_write_that_fails_leaves_what_was_there(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(NAME, RECORD)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\)"):
            store.save(NAME, {**RECORD, "result": {"tmr": 1.0}})
    assert store.results([NAME]).records == {NAME: RECORD}
    with store.lock():
        assert list(store.folder.glob(".partial-*")) == []


def test_not_a_number_is_refused_and_nothing_escapes_to_a_terminal(store: Store) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.save(NAME, {**RECORD, "result": {"tmr": float("nan")}})
    store.save_failure(NAME, {**FAILED, "error": {"message": "\x1b[31m\u202e"}})
    assert (store.folder / f"{NAME}.failed.json").read_bytes().isascii()


def test_the_plan_grows(store: Store) -> None:
    store.extend_plan(["b", "a"])
    store.extend_plan(["c", "a"])
    assert store.plan() == {"a", "b", "c"}
    assert (store.folder / "plan.txt").read_text() == "a\nb\nc\n"
    (store.folder / "plan.txt").write_bytes(b"\xff")
    assert store.plan() == frozenset()


def test_one_run_at_a_time(store: Store) -> None:
    with store.lock():
        assert store.owner() == f"process {os.getpid()} on {socket.gethostname()}"
        with (
            pytest.raises(OutputError, match=f"in use by another run .process {os.getpid()} on .*--out"),
            Store(store.folder).lock(),
        ):
            pass
        assert store.owner() is not None
    assert store.owner() is None
    with store.lock():
        pass


HOLD = """
import sys, time
from pathlib import Path
from unpoison.evaluation.store import Store

with Store(Path(sys.argv[1])).lock():
    print("locked", flush=True)
    time.sleep(120)
"""


def test_the_lock_of_a_dead_process_is_taken_over(store: Store) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, store.folder],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(OutputError, match=f"process {holder.pid} "), store.lock():
            pass
        holder.kill()
    assert (store.folder / ".lock").read_text() != ""
    assert store.owner() is None
    with store.lock():
        assert store.owner() == f"process {os.getpid()} on {socket.gethostname()}"


@pytest.mark.parametrize("name", ["file", "file/below", "null\0byte"])
def test_a_folder_that_cannot_be_used(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(OutputError, match=r"cannot be used for the results .*--out"),
        Store(tmp_path / name).lock(),
    ):
        pass


def test_a_file_in_place_of_the_folder_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be read"):
        Store(tmp_path / "file").listing()


def test_any_change_of_the_code_shows(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    files = {"a.py": "x = 1", "inner/b.py": "y = 2"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    seen = [digest_of(tmp_path)]
    (tmp_path / "notes.txt").write_text("no code")
    assert digest_of(tmp_path) == seen[0]
    (tmp_path / "inner" / "b.py").write_text("y = 3")
    seen.append(digest_of(tmp_path))
    (tmp_path / "a.py").rename(tmp_path / "c.py")
    seen.append(digest_of(tmp_path))
    assert len(set(seen)) == 3
    assert all(re.fullmatch("[0-9a-f]{12}", digest) for digest in seen)


def test_the_machine_says_what_numbers_depend_on() -> None:
    found = machine()
    assert found["version"] == __version__
    assert found["code"] == digest_of(SOURCE / "unpoison")
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["hardware"]["cpus"] == os.cpu_count()
    assert found["hardware"]["model"]
    assert json.loads(json.dumps(found)) == found
