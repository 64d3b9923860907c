from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from unpoison.errors import OutputError
from unpoison.outputs import WORK_FOLDER, is_complete, prepare


def refuse(directory: Path, match: str, *, resume: bool = False, source: Path | None = None) -> None:
    with pytest.raises(OutputError, match=match) as caught:
        prepare(directory, resume=resume, source=source)
    message = str(caught.value)
    assert message.isprintable()
    assert any(remedy in message for remedy in ("--out", "--resume", "remove"))


@pytest.mark.parametrize("resume", [False, True])
def test_makes_a_new_folder(tmp_path: Path, resume: bool) -> None:
    work = prepare(tmp_path / "a" / "b", resume=resume)
    assert work == tmp_path / "a" / "b" / WORK_FOLDER
    assert list(work.iterdir()) == []


def test_takes_an_empty_folder_and_one_whose_run_never_began(tmp_path: Path) -> None:
    prepare(tmp_path, resume=False)
    prepare(tmp_path, resume=False)


def test_takes_a_link_to_a_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    prepare(tmp_path / "link", resume=False)
    assert (tmp_path / "real" / WORK_FOLDER).is_dir()


@pytest.mark.parametrize("resume", [False, True])
def test_refuses_a_folder_with_other_things(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    refuse(tmp_path, "is not empty", resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_refuses_an_unfinished_run_without_resume(tmp_path: Path) -> None:
    (prepare(tmp_path, resume=False) / "round-1.npz").write_text("x")
    refuse(tmp_path, "unfinished run; continue it with --resume")
    prepare(tmp_path, resume=True)
    assert (tmp_path / WORK_FOLDER / "round-1.npz").exists()


def test_resumes_in_the_middle_of_publishing(tmp_path: Path) -> None:
    prepare(tmp_path, resume=False)
    (tmp_path / "clean").mkdir()
    (tmp_path / "manifest.parquet").touch()
    prepare(tmp_path, resume=True)
    assert not is_complete(tmp_path)


def test_refuses_to_resume_beside_other_things(tmp_path: Path) -> None:
    prepare(tmp_path, resume=False)
    (tmp_path / "notes\x1b.txt").touch()
    refuse(tmp_path, r"notes\\x1b", resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_refuses_a_finished_run(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "run.json").touch()
    assert is_complete(tmp_path)
    refuse(tmp_path, "holds a finished run", resume=resume)


def test_refuses_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refuse(tmp_path / "file", "is a file")
    refuse(tmp_path / "file" / "below", "cannot be used")


def test_refuses_a_link_to_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    refuse(tmp_path / "link", "link to nowhere")


@pytest.mark.parametrize("resume", [False, True])
def test_refuses_a_work_folder_that_leads_outside(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / WORK_FOLDER).symlink_to(tmp_path / "outside")
    refuse(tmp_path / "out", "not a folder of its own", resume=resume)


def test_refuses_impossible_names(tmp_path: Path) -> None:
    refuse(tmp_path / ("x" * 5000), "cannot be used")
    refuse(tmp_path / "null\0byte", "cannot be used")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="everything is writable for root")
def test_refuses_a_folder_that_is_not_writable(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    refuse(tmp_path / "out", "Permission denied")
    tmp_path.chmod(0o700)


def test_names_the_reason_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def touch(self: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "touch", touch)
    refuse(tmp_path, "Read-only file system")


def test_refuses_to_mix_source_and_results(tmp_path: Path) -> None:
    source = tmp_path / "data" / "train"
    source.mkdir(parents=True)
    refuse(source / "out", "lies inside the source", source=source)
    refuse(source, "is the source itself", source=source)
    refuse(tmp_path / "data", "contains the source", source=source)
    (tmp_path / "alias").symlink_to(source)
    refuse(tmp_path / "alias" / "out", "lies inside the source", source=source)
    assert list(source.iterdir()) == []
    prepare(tmp_path / "data" / "train-clean", resume=False, source=source)


def test_a_source_file_may_lie_beside_the_results(tmp_path: Path) -> None:
    (tmp_path / "data.csv").touch()
    prepare(tmp_path / "out", resume=False, source=tmp_path / "data.csv")
