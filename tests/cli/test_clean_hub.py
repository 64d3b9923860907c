"""``unpoison clean hf:...`` from end to end, on a dataset in a folder."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from .builders import Planted, call, manifest_bytes, manifest_rows, planted, run, tree

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")  # read when datasets is imported
datasets = pytest.importorskip("datasets", reason="the extra 'hub' (Hugging Face datasets) is not installed")

pytestmark = pytest.mark.usefixtures("quick")


def png(image: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image[..., 0]).save(stream, "PNG")
    return stream.getvalue()


def write_dict(folder: Path, data: Planted) -> Path:
    names = sorted(set(data.names))
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "back": datasets.Image(),
            "key": datasets.Value("string"),
            "digit": datasets.ClassLabel(names=[*names, "unused"]),
        }
    )
    cells = [{"bytes": png(image), "path": None} for image in data.images]
    digits = [names.index(name) for name in data.names]
    columns = {"image": cells, "back": cells[::-1], "key": data.ids, "digit": digits}
    split = datasets.Dataset.from_dict(columns, features=features)
    datasets.disable_progress_bars()
    datasets.DatasetDict({"old": split.select(range(10)), "new": split}).save_to_disk(folder)
    datasets.enable_progress_bars()
    return folder


@pytest.fixture
def source(tmp_path: Path) -> str:
    return f"hf:{write_dict(tmp_path / 'digit set', planted())}"


OPTIONS = ("--split", "new", "--image", "image", "--id", "key", "--no-progress")


def test_clean_verify_and_clean_again(source: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = call("clean", source, "--out", out, *OPTIONS)
    assert (done.code, done.err) == (0, "")
    rows = manifest_rows(out)
    data = planted()
    assert [row["id"] for row in rows] == data.ids
    assert [row["label"] for row in rows] == data.names
    assert rows[3]["source"] == "digit set[new][3]"
    record = json.loads((out / "run.json").read_text())
    assert record["data"]["form"] == "hub"
    assert {"clean/state.json", "clean/dataset_info.json"} < set(record["files"])
    assert "load_from_disk" in (out / "report.html").read_text()
    assert call("verify", out).code == 0
    kept = datasets.load_from_disk(out / "clean")
    assert kept["key"][:] == [row["id"] for row in rows if row["keep"] == "true"]
    again = call(
        "clean", f"hf:{out / 'clean'}", "--out", tmp_path / "again", "--image", "image", "--no-progress"
    )
    assert again.code == 0, again.err


def test_two_runs_give_the_same_bytes(source: str, tmp_path: Path) -> None:
    outs = [tmp_path / "one", tmp_path / "two"]
    for out in outs:
        assert call("clean", source, "--out", out, *OPTIONS).code == 0
    assert manifest_bytes(outs[0]) == manifest_bytes(outs[1])
    assert tree(outs[0] / "clean") == tree(outs[1] / "clean")


def test_verify_finds_a_change_that_no_sample_shows(source: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call("clean", source, "--out", out, *OPTIONS)
    info = out / "clean" / "dataset_info.json"
    info.write_text(info.read_text().replace('"license": ""', '"license": "none"'))
    done = call("verify", out)
    assert (done.code, "clean/dataset_info.json was changed" in done.out) == (1, True)


def test_bad_input_is_one_line(source: str, tmp_path: Path) -> None:
    for arguments, words in (
        ((source,), "The splits are: 'old', 'new'"),
        ((source, "--split", "new"), "with --image: 'image', 'back'"),
        (("hf:user/name",), "tried load_dataset('user/name')"),
        (("hf:nothing",), "nothing on the hub has such a name"),
        (("digits", "--split", "new"), "--split and --image are for those"),
    ):
        done = call("clean", *arguments, "--out", tmp_path / "out")
        assert (done.code, done.out) == (2, "")
        assert words in done.err
        assert done.err.count("\n") == 1
        assert not (tmp_path / "out").exists()


def test_the_program_prints_nothing_of_datasets(source: str, tmp_path: Path) -> None:
    done = run(
        "clean", source, "--out", tmp_path / "out", *OPTIONS, "--quiet", HF_HOME=str(tmp_path / "home")
    )
    assert (done.code, done.out, done.err) == (0, "", "")
