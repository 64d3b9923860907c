from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from unpoison.errors import OutputError
from unpoison.outputs import manifest, pipeline_files
from unpoison.outputs import record as records
from unpoison.outputs.pipeline_files import PipelineFiles, local_source

from .builders import RUN, make_dataset, make_result


@pytest.fixture
def record(tmp_path: Path) -> Any:
    """Of a run whose manifest is in ``out``."""
    dataset = make_dataset()
    result = make_result(dataset)
    (tmp_path / "out").mkdir()
    manifest.write_parquet(manifest.build(dataset, result), tmp_path / "out" / "manifest.parquet")
    return records.build(dataset, result, run=RUN)


def files(root: Path, **names: Path) -> PipelineFiles:
    return PipelineFiles("digits", root / "out", **names)


def test_both_are_written(tmp_path: Path, record: Any) -> None:
    asked = files(tmp_path, summary=tmp_path / "s.md", sarif=tmp_path / "f.sarif")
    asked.check()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    asked.write(record)
    assert (tmp_path / "s.md").read_text(encoding="utf-8").startswith("## unpoison: 3 of 40")
    assert len(json.loads((tmp_path / "f.sarif").read_bytes())["runs"][0]["results"]) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.sarif", "out", "s.md"]


def test_nothing_is_asked_for(tmp_path: Path) -> None:
    files(tmp_path).check()
    files(tmp_path).write({})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_is_replaced_and_its_link_stays(tmp_path: Path, record: Any) -> None:
    (tmp_path / "old.md").write_text("old")
    (tmp_path / "link.md").symlink_to("old.md")
    asked = files(tmp_path, summary=tmp_path / "link.md")
    asked.check()
    asked.write(record)
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "old.md").read_text(encoding="utf-8").startswith("## unpoison")


def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "s.md").write_text("old")
    monkeypatch.setattr(pipeline_files.os, "fsync", full)
    with pytest.raises(OutputError, match=r"s\.md: cannot be written \(No space left.*again with --resume"):
        files(tmp_path, summary=tmp_path / "s.md").write(record)
    assert (tmp_path / "s.md").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "s.md"]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_others_may_read_it_as_any_file(tmp_path: Path, record: Any) -> None:
    files(tmp_path, summary=tmp_path / "s.md").write(record)
    (tmp_path / "other").touch()
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("s.md", "other")}
    assert len(modes) == 1


def places(root: Path) -> dict[str, tuple[Path, str]]:
    (root / "folder").mkdir()
    (root / "data").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(root / "pipe")
    return {
        "a folder": (root / "folder", "folder: is a folder; name a file with --summary"),
        "a pipe": (root / "pipe", "pipe: is no plain file; name another with --summary"),
        "no folder above": (root / "no" / "s.md", "there is no folder .*no; make it, or name another"),
        "in the results": (root / "out" / "s.md", "lies inside .*out, which holds nothing but the results"),
        "the results": (root / "out", "lies inside .*out"),
        "in the source": (root / "data" / "s.md", "belongs to the source .*data; name another file"),
        "the source": (root / "data.csv", "belongs to the source .*data.csv"),
        "a name that is too long": (root / ("long" * 100), "cannot be written"),
        "a null byte": (Path(f"{root}/a\0b"), "cannot be written"),
    }


@pytest.mark.parametrize("case", [
    "a folder", "a pipe", "no folder above", "in the results", "the results", "in the source", "the source",
    "a name that is too long", "a null byte",
])  # fmt: skip
def test_places_that_cannot_take_it(case: str, tmp_path: Path) -> None:
    path, message = places(tmp_path)[case]
    source = tmp_path / "data"
    if case == "the source":
        source = tmp_path / "data.csv"
        source.write_text("a,b\n")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputError, match=message):
        PipelineFiles(str(source), tmp_path / "out", summary=path).check()
    assert sorted(tmp_path.rglob("*")) == before


def test_one_file_for_both_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is given for --summary and --sarif; name two files"):
        files(tmp_path, summary=tmp_path / "a", sarif=tmp_path / "." / "a").check()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is forbidden here")
def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(OutputError, match="cannot be written"):
        files(tmp_path, sarif=tmp_path / "locked" / "f.sarif").check()


@pytest.mark.parametrize("content", [None, b"not parquet"])
def test_a_manifest_that_cannot_be_read(content: bytes | None, tmp_path: Path, record: Any) -> None:
    path = tmp_path / "out" / "manifest.parquet"
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(OutputError, match=r"manifest\.parquet: .*unpoison verify"):
        files(tmp_path, sarif=tmp_path / "f.sarif").write(record)
    assert not (tmp_path / "f.sarif").exists()


def test_which_sources_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert local_source("digits") is None
    assert local_source("./digits") == Path("digits")
    assert local_source("hf:digits") == Path("digits")
    for name in ("hf:user/name", "absent.csv", "", "hf:", "a\0b", "long" * 2000):
        assert local_source(name) is None
