"""``unpoison clean --summary FILE --sarif FILE``: what a pipeline shows to people and code hosts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unpoison.data.load import load

from .builders import call, manifest_rows, planted, poisoned_npz, run, tree, write_form


def results(path: Path) -> list[Any]:
    found: list[Any] = json.loads(path.read_bytes())["runs"][0]["results"]
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with digit images, cleaned from within into ``out``."""
    root = tmp_path_factory.mktemp("work")
    write_form("folder", root, planted())
    done = run(
        "clean", "digit images", "--out", "out", "--summary", "summary.md", "--sarif", "findings.sarif",
        "--fail-above", "0.01", cwd=root,
    )  # fmt: skip
    assert (done.code, done.err) == (1, ""), "found, and written all the same"
    return root


def test_what_is_removed_is_listed_by_the_paths_of_the_files(folder: Path) -> None:
    rows = manifest_rows(folder / "out")
    removed = {row["source"] for row in rows if row["keep"] == "false"}
    assert len(removed) == 12
    places = [result["locations"][0]["physicalLocation"] for result in results(folder / "findings.sarif")]
    assert {place["artifactLocation"]["uri"] for place in places} == {
        f"digit%20images/{source.replace(' ', '%20')}" for source in removed
    }
    for source in removed:
        assert (folder / "digit images" / source).is_file()


def test_the_summary_tells_the_same(folder: Path) -> None:
    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert text.startswith("## unpoison: 12 of 240 samples (5.0%) look planted\n")
    assert "| `seven` | 72 | 12 | 16.7% | `one` (" in text
    assert f"`{Path('out') / 'report.html'}`" in text


def test_the_results_are_as_they_were(folder: Path) -> None:
    assert call("verify", folder / "out").code == 0


def test_a_finished_run_writes_them_again(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "work", symlinks=True)
    work = tmp_path / "work"
    for name in ("summary.md", "findings.sarif"):
        (work / name).unlink()
    before = tree(work / "out")
    done = run(
        "clean", "digit images", "--out", "out", "--resume", "-q", "--summary", "summary.md", "--sarif",
        "findings.sarif", cwd=work,
    )  # fmt: skip
    assert (done.code, done.out, done.err) == (0, "", "")
    for name in ("summary.md", "findings.sarif"):
        assert (work / name).read_bytes() == (folder / name).read_bytes()
    assert tree(work / "out") == before


def test_tables_by_the_lines_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = planted()
    source, options = write_form("csv", tmp_path, data)
    monkeypatch.chdir(tmp_path)
    done = call("clean", source.name, "--out", "out", "--sarif", "findings.sarif", *options)
    assert (done.code, done.err) == (0, "")
    lines = source.read_text(encoding="utf-8").splitlines()
    found = results(tmp_path / "findings.sarif")
    keys = {key for key, bad in zip(data.ids, data.truth, strict=True) if bad}
    at = [lines[r["locations"][0]["physicalLocation"]["region"]["startLine"] - 1] for r in found]
    assert {line.partition(",")[0] for line in at} == keys


def test_nothing_found(tmp_path: Path, quick: None) -> None:
    digits = load("digits")
    chosen = np.flatnonzero(np.isin(digits.labels, [0, 1]))[:80]
    np.savez(tmp_path / "clean.npz", x=digits.features[chosen], y=digits.labels[chosen])
    done = call(
        "clean", tmp_path / "clean.npz", "--out", tmp_path / "out", "--fail-above", "0", "--json",
        "--summary", tmp_path / "s.md", "--sarif", tmp_path / "f.sarif",
    )  # fmt: skip
    assert (done.code, json.loads(done.out)["result"]["n_removed"]) == (0, 0)
    assert results(tmp_path / "f.sarif") == []
    assert (tmp_path / "s.md").read_text().startswith("## unpoison: nothing in 80 samples looks planted\n")


@pytest.mark.parametrize("option", ["--summary", "--sarif"])
def test_a_place_that_cannot_take_it_is_refused_before_the_run(option: str, tmp_path: Path) -> None:
    source = poisoned_npz(tmp_path)
    (tmp_path / "folder").mkdir()
    before = tree(tmp_path)
    for place, says in (
        (tmp_path / "folder", f"is a folder; name a file with {option}"),
        (tmp_path / "absent" / "file", "there is no folder"),
        (source, "belongs to the source"),
        (tmp_path / "out" / "file", "lies inside"),
    ):
        done = call("clean", source, "--out", tmp_path / "out", option, place)
        assert (done.code, done.out) == (2, "")
        assert says in done.err
        assert done.err.count("\n") == 1
        assert tree(tmp_path) == before


def test_a_run_that_fails_writes_neither(tmp_path: Path) -> None:
    done = call(
        "clean", "absent.csv", "--out", tmp_path / "out", "--summary", tmp_path / "s.md", "--sarif",
        tmp_path / "f.sarif",
    )  # fmt: skip
    assert done.code == 2
    assert tree(tmp_path) == {}
