from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unpoison.errors import OutputError
from unpoison.outputs import WORK_FOLDER, manifest, verify, write
from unpoison.outputs.bundle import hash_file

from .builders import NASTY, RUN, make_dataset, make_result


@dataclass(frozen=True)
class ExpectedSample:
    id: str
    source: str
    label: str
    sha256: str


def check_clean(form: str, directory: Path, expected: Sequence[ExpectedSample]) -> list[str]:
    """The counterpart of the builders' LineOrigin, in the place of the loaders' own check."""
    assert form == "csv"
    lines = (directory / "kept.csv").read_text().splitlines()
    wanted = [sample.id.rsplit("/", 1)[-1].lstrip("0") or "0" for sample in expected]
    return [] if lines == wanted else ["kept.csv has other rows than the manifest\x1b[2J"]


@pytest.fixture(autouse=True)
def _own_check(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("unpoison.data.verify")
    module.ExpectedSample = ExpectedSample  # type: ignore[attr-defined]
    module.check_clean = check_clean  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "unpoison.data.verify", module)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    dataset = make_dataset()
    return write(dataset, make_result(dataset), tmp_path / "out", run=RUN)


def edit_record(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    record = json.loads((out / "run.json").read_text())
    change(record)
    (out / "run.json").write_text(json.dumps(record))


def rehash(out: Path) -> None:
    """Hide a change as far as the hashes go."""
    edit_record(out, lambda record: record["files"].update({n: hash_file(out / n) for n in record["files"]}))


def edit_parquet(out: Path, column: str, value: Any) -> None:
    table = pq.read_table(out / "manifest.parquet")
    values = [value, *table[column].to_pylist()[1:]]
    position = table.column_names.index(column)
    field = table.schema.field(column)
    changed = table.set_column(position, field, pa.array(values, type=field.type))
    manifest.write_parquet(changed, out / "manifest.parquet")


def test_fresh_results_are_fine(out: Path) -> None:
    assert verify(out) == []


def test_results_with_nasty_names_are_fine(tmp_path: Path) -> None:
    ids = [f"{name[:50]}/{i}" for i, name in enumerate([*NASTY, *NASTY])]
    dataset = make_dataset(len(ids), names=NASTY, ids=ids)
    write(dataset, make_result(dataset), tmp_path, run=RUN)
    assert verify(tmp_path) == []


@pytest.mark.parametrize("name", ["evidence.npz", "manifest.csv", "manifest.parquet", "report.html"])
def test_missing_file(out: Path, name: str) -> None:
    (out / name).unlink()
    assert verify(out) == [f"{name} is missing or not a plain file"]


def test_missing_record(out: Path) -> None:
    (out / "run.json").unlink()
    problems = verify(out)
    assert problems[0].startswith("run.json is missing")
    assert problems[1:] == ["clean/ cannot be checked: run.json does not say which form it has"]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"\xff\xfe\x00", b"[" * 100_000, b"[]", b"null", b"3", b'"x"', b"{}", b"NaN"),
        *(b'{"format_version": 2, "files": 3, "data": [], "result": "x"}',),
        *(b'{"format_version": 1}', b'{"format_version": "\\u001b[2J"}'),
        *(b'{"format_version": 2, "data": {"form": 3, "classes": [1, null]}}',),
        *(b'{"format_version": 2, "data": {"classes": [{"name": 1, "samples": 1e999}]}}',),
    ],
    ids=lambda content: content[:60].decode("latin-1"),
)
def test_damaged_record_is_reported_and_never_raises(out: Path, content: bytes) -> None:
    (out / "run.json").write_bytes(content)
    problems = verify(out)
    assert problems
    assert all(problem.isprintable() for problem in problems)


@pytest.mark.parametrize("name", ["evidence.npz", "manifest.csv", "manifest.parquet", "report.html"])
def test_changed_file(out: Path, name: str) -> None:
    with (out / name).open("ab") as file:
        file.write(b"\n")
    assert any(problem.startswith(f"{name} was changed") for problem in verify(out))


def test_missing_hash(out: Path) -> None:
    edit_record(out, lambda record: record["files"].pop("report.html"))
    assert verify(out) == ["run.json has no hash for report.html"]


def test_csv_differs_with_matching_hashes(out: Path) -> None:
    text = (out / "manifest.csv").read_text()
    (out / "manifest.csv").write_text(text.replace('"pets/0005.txt"', '"pets/0006.txt"'))
    rehash(out)
    assert verify(out) == ["manifest.csv and manifest.parquet disagree from row 6 on (id 'pets/0005')"]


def test_csv_with_other_columns_or_more_or_fewer_rows(out: Path) -> None:
    text = (out / "manifest.csv").read_text()
    (out / "manifest.csv").write_text("x" + text)
    rehash(out)
    assert verify(out) == ["manifest.csv and manifest.parquet have different columns"]
    (out / "manifest.csv").write_text(text + text.splitlines()[-1])
    rehash(out)
    assert verify(out) == ["manifest.csv has more rows than manifest.parquet"]
    (out / "manifest.csv").write_text("".join(text.splitlines(keepends=True)[:-1]))
    rehash(out)
    assert verify(out) == ["manifest.csv and manifest.parquet disagree from row 40 on (id 'pets/0039')"]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 50, bytes(5000)])
def test_damaged_parquet(out: Path, content: bytes) -> None:
    (out / "manifest.parquet").write_bytes(content)
    rehash(out)
    problems = verify(out)
    assert len(problems) == 1
    assert problems[0].startswith("manifest.parquet cannot be read")


def test_parquet_with_flipped_bytes_never_raises(out: Path) -> None:
    good = (out / "manifest.parquet").read_bytes()
    for position in range(0, len(good), 37):
        bad = bytearray(good)
        bad[position] ^= 0xFF
        (out / "manifest.parquet").write_bytes(bytes(bad))
        assert verify(out)


def test_parquet_that_is_no_manifest(out: Path) -> None:
    pq.write_table(pa.table({"id": ["a"]}), out / "manifest.parquet")
    rehash(out)
    assert verify(out) == ["manifest.parquet cannot be read: has other columns than a manifest"]


def test_parquet_with_empty_cells(out: Path) -> None:
    edit_parquet(out, "label", None)
    rehash(out)
    assert verify(out) == ["manifest.parquet cannot be read: has empty cells, which a manifest never has"]


def test_decision_changed_in_both_manifests(out: Path) -> None:
    edit_parquet(out, "keep", True)
    manifest.write_csv(manifest.read_parquet(out / "manifest.parquet"), out / "manifest.csv")
    rehash(out)
    assert verify(out) == [
        "run.json and the manifest disagree about the number of removed samples",
        "run.json and the manifest disagree about the removed fraction",
        "run.json and the manifest disagree about the removed samples of each class",
        "1 decisions of the manifest are neither the run's nor a reviewer's",
        "kept.csv has other rows than the manifest\\x1b[2J",
    ]


def test_label_changed_in_both_manifests(out: Path) -> None:
    edit_parquet(out, "label", "bird")
    manifest.write_csv(manifest.read_parquet(out / "manifest.parquet"), out / "manifest.csv")
    rehash(out)
    assert verify(out) == [
        "run.json and the manifest disagree about the samples of each class",
        "run.json and the manifest disagree about the removed samples of each class",
        "run.json and the manifest disagree about the fingerprint of the data",
    ]


def test_number_changed_in_record(out: Path) -> None:
    edit_record(out, lambda record: record["data"].update(n=41))
    assert verify(out) == ["run.json and the manifest disagree about the number of samples"]


def test_clean_changed_missing_or_replaced(out: Path) -> None:
    (out / "clean" / "kept.csv").write_text("0\n")
    changed, other_rows = verify(out)
    assert changed.startswith("clean/kept.csv was changed: its sha256 is ")
    assert other_rows == "kept.csv has other rows than the manifest\\x1b[2J"
    (out / "clean" / "kept.csv").unlink()
    assert verify(out)[0].startswith("clean/ cannot be checked: ")
    (out / "clean").rename(out.parent / "elsewhere")
    assert verify(out) == ["clean/ is missing or not a folder"]
    (out / "clean").symlink_to(out.parent / "elsewhere")
    assert verify(out) == ["clean/ is missing or not a folder"]


def test_a_reviewer_that_nobody_knows_of(out: Path) -> None:
    edit_parquet(out, "decided_by", "review")
    manifest.write_csv(manifest.read_parquet(out / "manifest.parquet"), out / "manifest.csv")
    rehash(out)
    assert verify(out) == ["run.json and the manifest disagree about the review (decided: 1)"]
    for who in ("someone\x1b", "review: someone\x1b", "review: ", "reviewer: Ana", ""):
        edit_parquet(out, "decided_by", who)
        rehash(out)
        assert verify(out) == [
            "manifest.parquet cannot be read: names others than 'run' and 'review' in decided_by"
        ]


def test_a_name_that_the_record_does_not_have(out: Path) -> None:
    edit_parquet(out, "decided_by", "review: Ana")
    manifest.write_csv(manifest.read_parquet(out / "manifest.parquet"), out / "manifest.csv")
    applied = [{"by": None}, {"by": "Bo"}, 3]
    edit_record(out, lambda record: record.update(review={"n_decided": 1, "applied": applied}))
    rehash(out)
    assert verify(out) == ["the manifest names the reviewer 'Ana', run.json does not"]
    edit_record(out, lambda record: record["review"]["applied"].append({"by": "Ana"}))
    assert verify(out) == []


def test_a_review_that_did_not_happen(out: Path) -> None:
    edit_record(out, lambda record: record.update(review={"n_decided": 2, "n_put_back": 1}))
    assert verify(out) == [
        "run.json and the manifest disagree about the review (decided: 0)",
        "run.json and the manifest disagree about the review (put_back: 0)",
    ]


def test_damaged_evidence(out: Path) -> None:
    for content in (b"", b"PK", bytes(3000)):
        (out / "evidence.npz").write_bytes(content)
        rehash(out)
        (problem,) = verify(out)
        assert problem.startswith("evidence.npz cannot be read: evidence.npz")


def test_strays(out: Path) -> None:
    (out / "evil\x1b[2J.exe").touch()
    (out / WORK_FOLDER).mkdir()
    assert verify(out) == [
        "'evil\\x1b[2J.exe' was not written by the run",
        ".unpoison-work is left over from an interrupted run; it can be deleted",
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "name", ["evidence.npz", "manifest.csv", "manifest.parquet", "report.html", "run.json"]
)
def test_never_waits_on_a_pipe(out: Path, name: str) -> None:
    (out / name).unlink()
    os.mkfifo(out / name)
    assert any(name in problem for problem in verify(out))


def test_what_is_no_output_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no such folder"):
        verify(tmp_path / "none")
    with pytest.raises(OutputError, match="holds no results of unpoison"):
        verify(tmp_path)
    (tmp_path / WORK_FOLDER).mkdir()
    with pytest.raises(OutputError, match="unfinished run"):
        verify(tmp_path)
