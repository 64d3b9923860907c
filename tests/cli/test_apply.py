from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from finished import finish, finished_run, save_overrides
from unpoison.data.load import LoadOptions, load
from unpoison.outputs import verify
from unpoison.reviewing import apply

from .builders import FORMS, call, manifest_rows, planted, run, tree


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_run("npz", tmp_path_factory.mktemp("apply"))


@pytest.fixture
def out(untouched: Path, tmp_path: Path) -> Path:
    """A run whose record names a source that stays where it is."""
    return Path(shutil.copytree(untouched, tmp_path / "out"))


def removed_ids(out: Path) -> list[str]:
    return [row["id"] for row in manifest_rows(out) if row["keep"] == "false"]


def kept_ids(out: Path) -> list[str]:
    return [row["id"] for row in manifest_rows(out) if row["keep"] == "true"]


def record(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "run.json").read_text()))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_rewritten_and_verifies(form: str, tmp_path: Path) -> None:
    out = finished_run(form, tmp_path)
    removed, kept = removed_ids(out), kept_ids(out)
    overrides = save_overrides(tmp_path / "o.json", out, keep=removed[:1], remove=kept[:2])
    done = call("apply", out, "--overrides", overrides, "--no-progress")
    assert (done.code, done.err) == (0, "")
    assert (
        "People decided about 3 of the samples: 1 that the run had removed is kept, 2 that it had kept are"
        in done.out
    )
    assert verify(out) == []
    by_id = {row["id"]: (row["keep"], row["decided_by"]) for row in manifest_rows(out)}
    assert by_id[removed[0]] == ("true", "review")
    assert by_id[kept[0]] == by_id[kept[1]] == ("false", "review")
    assert by_id[kept[2]] == ("true", "run")
    assert record(out)["result"]["n_removed"] == len(removed) + 1
    again = load_clean(out, form)
    assert len(again) == len(by_id) - len(removed) - 1
    if form != "folder":
        assert again.ids == tuple(kept_ids(out))


def load_clean(out: Path, form: str) -> Any:
    (place,) = (out / "clean").iterdir() if form != "folder" else [out / "clean"]
    table = form in ("csv", "tsv", "parquet")
    return load(place, options=LoadOptions(label="digit", id_column="key") if table else LoadOptions())


def test_a_hugging_face_dataset(tmp_path: Path) -> None:
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    datasets = pytest.importorskip("datasets", reason="the extra 'hub' is not installed")
    data = planted()
    datasets.disable_progress_bars()
    columns = {
        "pixels": data.images.reshape(240, -1)[:, 20].astype(float),
        "key": data.ids,
        "digit": data.names,
    }
    datasets.Dataset.from_dict(columns).save_to_disk(tmp_path / "set")
    datasets.enable_progress_bars()
    options = LoadOptions(label="digit", id_column="key")
    source = f"hf:{tmp_path / 'set'}"
    dataset = load(source, options=options)
    out = finish(dataset, tmp_path / "out", source=source, removed=[0, 1, 5], options=options)
    apply(out, save_overrides(tmp_path / "o.json", out, keep=[data.ids[1]], remove=[data.ids[7]]))
    assert verify(out) == []
    assert removed_ids(out) == [data.ids[i] for i in (0, 5, 7)]


def test_who_decided_what_is_kept(out: Path, tmp_path: Path) -> None:
    before = record(out)
    removed = removed_ids(out)
    overrides = save_overrides(tmp_path / "o.json", out, keep=removed[:2], remove=removed[2:3])
    assert call("apply", out, "--overrides", overrides, "-q").out == ""
    after = record(out)
    import hashlib

    review = after["review"]
    assert review["applied"] == [
        {
            "by": None,
            "overrides_sha256": hashlib.sha256(overrides.read_bytes()).hexdigest(),
            "keep": 2,
            "remove": 1,
            "version": after["tool"]["version"],
        }
    ]
    assert (review["n_decided"], review["n_put_back"], review["n_taken_out"]) == (3, 2, 0)
    assert after["result"]["verdict"] == before["result"]["verdict"], "the verdict is the run's"
    for part in ("data", "settings", "seed", "cost", "timings", "command", "source"):
        assert after[part] == before[part]
    rows = {row["id"]: row for row in manifest_rows(out)}
    assert rows[removed[2]]["decided_by"] == "review", "to agree with the run is to decide"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Reviewed." in page
    assert review["summary"] in page


def test_applied_twice_is_applied_once(out: Path, tmp_path: Path) -> None:
    overrides = save_overrides(tmp_path / "o.json", out, keep=removed_ids(out)[:1])
    apply(out, overrides)
    once = tree(out)
    apply(out, overrides)
    assert tree(out) == once


def test_a_second_review_goes_on_top_and_the_later_word_counts(out: Path, tmp_path: Path) -> None:
    first, second, third = removed_ids(out)[:3]
    kept = kept_ids(out)[0]
    apply(out, save_overrides(tmp_path / "1.json", out, keep=[first, second], remove=[kept]))
    apply(out, save_overrides(tmp_path / "2.json", out, keep=[third], remove=[first]))
    rows = {row["id"]: (row["keep"], row["decided_by"]) for row in manifest_rows(out)}
    assert rows[first] == ("false", "review")
    assert rows[second] == rows[third] == ("true", "review")
    assert rows[kept] == ("false", "review")
    assert len(record(out)["review"]["applied"]) == 2
    assert verify(out) == []


def test_reviewers_can_be_told_apart(out: Path, tmp_path: Path) -> None:
    first, second, third = removed_ids(out)[:3]
    both = save_overrides(tmp_path / "1.json", out, keep=[first, second])
    assert call("apply", out, "--overrides", both, "--by", "Ana: the 1st", "-q").code == 0
    again = save_overrides(tmp_path / "2.json", out, remove=[second], keep=[third])
    assert call("apply", out, "--overrides", again, "--by", "Bo", "-q").code == 0
    apply(out, save_overrides(tmp_path / "3.json", out, keep=[third]))
    rows = {row["id"]: row["decided_by"] for row in manifest_rows(out)}
    assert [rows[first], rows[second], rows[third]] == ["review: Ana: the 1st", "review: Bo", "review"]
    assert [entry["by"] for entry in record(out)["review"]["applied"]] == ["Ana: the 1st", "Bo", None]
    assert verify(out) == []
    assert "removed in a review by Bo (removed by the run)" in call("explain", out, second).out
    apply(out, both, by="Bo")
    assert [entry["by"] for entry in record(out)["review"]["applied"]] == ["Ana: the 1st", "Bo", None, "Bo"]


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\nb", "a\x1b[2J", "\u202e", "\udcff"])
def test_a_reviewer_needs_a_name_that_can_be_shown(name: str, out: Path, tmp_path: Path) -> None:
    before = tree(out)
    overrides = save_overrides(tmp_path / "o.json", out, keep=removed_ids(out)[:1])
    done = call("apply", out, "--overrides", overrides, "--by", name)
    assert (done.code, done.out) == (2, "")
    assert "must be 1 to 100 printable characters" in done.err
    assert done.err.rstrip("\n").isprintable()
    assert tree(out) == before


def test_no_decision_at_all_changes_no_decision(out: Path, tmp_path: Path) -> None:
    before = manifest_rows(out)
    assert call("apply", out, "--overrides", save_overrides(tmp_path / "o.json", out)).code == 0
    assert manifest_rows(out) == before
    assert verify(out) == []


BAD: dict[str, tuple[bytes, str]] = {
    "not JSON": (b"{", "is not JSON"),
    "not text": (b"\xff\xfe\x00", "is not JSON"),
    "too deep": (b"[" * 100_000, "is not JSON"),
    "a list": (b"[]", "holds no overrides"),
    "a number": (b"3", "holds no overrides"),
    "something else": (b'{"keep": ["a"]}', "holds no overrides"),
    "another version": (b'{"unpoison_overrides": 2}', "version 2"),
    "a version that is none": (b'{"unpoison_overrides": true}', "version True"),
    "no fingerprint": (b'{"unpoison_overrides": 1, "keep": []}', "no 'fingerprint'"),
    "a fingerprint that is none": (b'{"unpoison_overrides": 1, "fingerprint": 3}', "no 'fingerprint'"),
    "other data": (b'{"unpoison_overrides": 1, "fingerprint": "abc\\u001b[2J"}', "abc\\x1b[2J"),
    "an unknown entry": (b'{"unpoison_overrides": 1, "removed": []}', "unknown entry 'removed'"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_overrides_are_one_line_and_change_nothing(kind: str, out: Path, tmp_path: Path) -> None:
    content, says = BAD[kind]
    path = tmp_path / "o.json"
    path.write_bytes(content)
    refused(out, path, says)


def refused(out: Path, overrides: Path, says: str, *more: str) -> None:
    before = tree(out)
    done = call("apply", out, "--overrides", overrides, "--no-progress", *more)
    assert (done.code, done.out) == (2, ""), done.err
    assert says in done.err, done.err
    assert done.err.count("\n") == 1
    assert done.err.rstrip("\n").isprintable()
    assert tree(out) == before


@pytest.mark.parametrize("value", ['"row-000000"', "[3]", "{}", '[["a"]]', "[null]"])
@pytest.mark.parametrize("key", ["keep", "remove"])
def test_lists_that_are_none(key: str, value: str, out: Path, tmp_path: Path) -> None:
    path = save_overrides(tmp_path / "o.json", out)
    path.write_text(path.read_text()[:-1] + f', "{key}": {value}}}')
    refused(out, path, f"'{key}' must be a list of ids")


def test_ids_that_are_unknown_or_decided_both_ways(out: Path, tmp_path: Path) -> None:
    known = kept_ids(out)[0]
    nasty = "</script>\x1b[2J../../etc"
    path = save_overrides(tmp_path / "o.json", out, keep=[known], remove=["b", nasty])
    refused(out, path, "names 2 ids that these results do not have, the first '</script>\\x1b[2J../../etc'")
    path = save_overrides(tmp_path / "o.json", out, keep=[known], remove=[known])
    refused(out, path, f"'{known}' is in keep and in remove")


def test_a_file_that_is_not_there_or_no_file(out: Path, tmp_path: Path) -> None:
    refused(out, tmp_path / "absent.json", "cannot be opened")
    refused(out, tmp_path, "is a folder; give a file")
    done = call("apply", out / ("long" * 2000), "--overrides", tmp_path / "absent.json")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def test_the_source_moved(tmp_path: Path) -> None:
    out = finished_run("npz", tmp_path)
    overrides = save_overrides(tmp_path / "o.json", out, keep=removed_ids(out))
    (tmp_path / "digits set.npz").rename(tmp_path / "moved.npz")
    refused(out, overrides, "if the data was moved, say where it is with --source")
    done = call("apply", out, "--overrides", overrides, "--source", tmp_path / "moved.npz", "-q")
    assert (done.code, done.err) == (0, "")
    assert verify(out) == []
    assert removed_ids(out) == []


def test_the_source_changed(tmp_path: Path) -> None:
    out = finished_run("npz", tmp_path)
    overrides = save_overrides(tmp_path / "o.json", out, keep=removed_ids(out))
    path = tmp_path / "digits set.npz"
    with np.load(path, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    arrays["x"][0, 0, 0] ^= 1
    np.savez(path, **arrays)
    refused(out, overrides, "is not the data of this run any more")
    refused(out, overrides, "is not the data of this run any more", "--source", "digits")


@pytest.mark.parametrize("name", ["manifest.parquet", "evidence.npz"])
def test_results_that_were_changed_are_not_built_on(name: str, out: Path, tmp_path: Path) -> None:
    overrides = save_overrides(tmp_path / "o.json", out, keep=removed_ids(out))
    with (out / name).open("ab") as file:
        file.write(b"x")
    refused(out, overrides, f"{name}: cannot be used (was changed since the run wrote it)")


def test_what_is_no_finished_run(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "run.json").write_text('{"format_version": 1, "data": {}, "result": {}, "files": {}}')
    for name, says in (
        ("absent", "no such folder"),
        ("empty", "no finished run"),
        ("old", "format version 1"),
    ):
        done = call("apply", tmp_path / name, "--overrides", tmp_path / "o.json")
        assert (done.code, done.out) == (2, "")
        assert says in done.err


def test_options_of_the_run_that_nobody_knows(out: Path, tmp_path: Path) -> None:
    overrides = save_overrides(tmp_path / "o.json", out)
    content = record(out)
    content["input"]["nonsense"] = 3
    (out / "run.json").write_text(json.dumps(content))
    refused(out, overrides, "the data cannot be read again")
    (out / "run.json").write_text(json.dumps({**content, "source": {}}))
    refused(out, overrides, "name it with --source")


def test_images_are_linked_or_copied_as_the_run_did(tmp_path: Path) -> None:
    for copy in (False, True):
        place = tmp_path / str(copy)
        place.mkdir()
        out = finished_run("folder", place, copy=copy)
        apply(out, save_overrides(place / "o.json", out, keep=removed_ids(out)))
        (sample,) = (path for path in (out / "clean").rglob("sample 000.png"))
        assert (sample.stat().st_nlink == 1) == copy


def test_in_a_real_process_from_another_folder(tmp_path: Path) -> None:
    out = finished_run("csv", tmp_path)
    save_overrides(tmp_path / "o.json", out, keep=removed_ids(out)[:1])
    done = run("apply", "out", "--overrides", "o.json", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[1].strip().startswith("kept      229 of 240 samples in out")
