from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from unpoison.data.named import cache as cache_module
from unpoison.data.named.cache import (
    Record,
    cache_folder,
    check,
    check_replaceable,
    locked,
    publish,
    read_record,
    staging,
)
from unpoison.data.named.origins import SourceFile
from unpoison.errors import InputError, OutputError

TEXT_SHA256 = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
RECORD = Record("gtsrb", "a place", (SourceFile("a.zip", "0" * 64, official=True),), {"train/a": TEXT_SHA256})


def put(record: Record = RECORD) -> Path:
    with staging(record.name) as folder:
        (folder / "train").mkdir()
        (folder / "train" / "a").write_text("text")
        return publish(record, folder)


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("UNPOISON_CACHE", "/somewhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.setenv("UNPOISON_CACHE", "~/mine")
    assert cache_folder() == Path("/home/me/mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNPOISON_CACHE", "relative")
    assert cache_folder() == tmp_path / "relative"
    monkeypatch.setenv("UNPOISON_CACHE", "")
    assert cache_folder() == Path("/shared/unpoison")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path("/home/me/.cache/unpoison")


def test_a_user_without_a_home(monkeypatch):
    monkeypatch.delenv("UNPOISON_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache_module.Path, "home", homeless)
    with pytest.raises(InputError, match="name one in UNPOISON_CACHE"):
        cache_folder()


def test_a_record_comes_back(cache):
    assert read_record("gtsrb") is None
    assert put() == cache / "gtsrb"
    assert read_record("gtsrb") == RECORD
    assert (cache / "gtsrb" / "train" / "a").read_text() == "text"
    assert [path.name for path in cache.iterdir()] == ["gtsrb"]
    assert json.loads((cache / "gtsrb" / "dataset.json").read_text())["sources"][0]["official"] is True
    assert (cache / "gtsrb").stat().st_mode & 0o777 == 0o755


def test_official_only_if_every_file_is():
    assert RECORD.official
    other = SourceFile("b", "1" * 64, official=False)
    assert not Record("x", "y", (*RECORD.sources, other), {}).official


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 2, "name": "gtsrb"}', "[" * 99_999])
def test_a_damaged_record_is_an_input_error_with_the_way_out(cache, content):
    put()
    (cache / "gtsrb" / "dataset.json").write_text(content)
    with pytest.raises(
        InputError, match=r"dataset.json cannot be read .* run: unpoison data fetch gtsrb --force"
    ):
        read_record("gtsrb")
    assert check("gtsrb")[0].startswith("gtsrb: ")


def test_a_record_of_another_dataset_is_refused(cache):
    put().rename(cache / "cifar10")
    with pytest.raises(InputError, match="name 'gtsrb'"):
        read_record("cifar10")


def test_check(cache):
    assert check("gtsrb") == ["gtsrb: not in the cache; run: unpoison data fetch gtsrb"]
    folder = put()
    assert check("gtsrb") == []
    (folder / ".DS_Store").touch()
    assert check("gtsrb") == []
    (folder / "extra").touch()
    (folder / "train" / "a").write_text("changed")
    assert check("gtsrb") == ["gtsrb: 'train/a' changed", "gtsrb: 'extra' is extra"]
    (folder / "extra").unlink()
    (folder / "train" / "a").unlink()
    assert check("gtsrb") == ["gtsrb: 'train/a' is missing"]
    (folder / "train" / "a").symlink_to("/etc/passwd")
    assert "cannot be opened" in check("gtsrb")[0]


def test_a_staging_folder_goes_away_whatever_happens(cache):
    def fail() -> None:
        with staging("gtsrb") as folder:
            (folder / "a").touch()
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail()
    assert list(cache.iterdir()) == []


def test_an_earlier_dataset_is_replaced(cache):
    (put() / "old").touch()
    put()
    assert not (cache / "gtsrb" / "old").exists()
    assert [path.name for path in cache.iterdir()] == ["gtsrb"]


@pytest.mark.parametrize("what", ["folder", "file", "link"])
def test_what_unpoison_did_not_write_is_never_replaced(cache, tmp_path, what):
    """UNPOISON_CACHE may name a folder in which someone keeps data of the same name."""
    cache.mkdir()
    mine = cache / "gtsrb"
    if what == "folder":
        mine.mkdir()
        (mine / "precious").touch()
    elif what == "file":
        mine.touch()
    else:
        mine.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match=r"gtsrb: is in the way .* UNPOISON_CACHE"):
        check_replaceable("gtsrb")
    with pytest.raises(OutputError, match="is in the way"):
        put()
    assert os.path.lexists(mine)


def test_a_cache_that_cannot_be_made(cache):
    cache.touch()
    assert read_record("gtsrb") is None
    with pytest.raises(OutputError, match="cannot write"):
        put()
    with pytest.raises(OutputError, match="cannot write"), locked("gtsrb"):
        pass


def test_only_one_fetch_at_a_time(cache):
    pytest.importorskip("fcntl", reason="this system has no such locks")
    with locked("gtsrb"):
        with pytest.raises(InputError, match="gtsrb is being fetched by another process"), locked("gtsrb"):
            pass
        with locked("cifar10"):
            pass
    with locked("gtsrb"):
        pass


def test_what_a_killed_fetch_left_is_removed_by_the_next(cache):
    pytest.importorskip("fcntl", reason="this system has no such locks")
    (cache / ".gtsrb-abc" / "train").mkdir(parents=True)
    (cache / ".cifar10-abc").mkdir()
    put()
    with locked("gtsrb"):
        assert sorted(path.name for path in cache.iterdir()) == [".cifar10-abc", ".gtsrb.lock", "gtsrb"]
    shutil.rmtree(cache)
