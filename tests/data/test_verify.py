from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unpoison.data.load import load
from unpoison.data.options import LoadOptions
from unpoison.data.verify import ExpectedSample, check_clean

LABEL = LoadOptions(label="y")
ROWS = [(i, "ab"[i % 2]) for i in range(8)]


@pytest.fixture
def clean_folder(image_folder, write_clean):
    return write_clean(load(image_folder, options=LoadOptions(link=False)), np.arange(8) != 2)


@pytest.fixture
def clean_file(request, tmp_path, write_clean):
    """A clean set of each form that is one file: rows 1 to 7 of 8."""
    form = request.param
    path = tmp_path / f"train.{form}"
    if form == "npz":
        y = np.array([label for _, label in ROWS])
        np.savez(path, x=np.arange(16.0).reshape(8, 2), y=y, ids=np.array(list("stuvwxyz")))
    elif form == "parquet":
        pq.write_table(pa.table({"x": [x for x, _ in ROWS], "y": [y for _, y in ROWS]}), path)
    else:
        mark = "," if form == "csv" else "\t"
        path.write_text(f"x{mark}y\n" + "".join(f"{x}{mark}{y}\n" for x, y in ROWS))
    dataset = load(path, options=LABEL)
    clean, expected = write_clean(dataset, np.arange(8) > 0)
    return form, clean, expected


FILE_FORMS = pytest.mark.parametrize("clean_file", ["npz", "csv", "tsv", "parquet"], indirect=True)


def rewrite(form, path, change):
    """Change the rows of a clean file; ``change`` gets and gives a list of (x, y)."""
    if form == "npz":
        with np.load(path, allow_pickle=False) as found:
            arrays = {key: found[key] for key in found}
        rows = change(list(zip(arrays["x"].tolist(), arrays["y"].tolist(), strict=True)))
        n = len(rows)
        ids = np.resize(arrays["ids"], n)
        np.savez(
            path, x=np.array([np.resize(x, 2) for x, _ in rows]), y=np.array([y for _, y in rows]), ids=ids
        )
    elif form == "parquet":
        rows = change([tuple(row.values()) for row in pq.read_table(path).to_pylist()])
        pq.write_table(pa.table({"x": [x for x, _ in rows], "y": [y for _, y in rows]}), path)
    else:
        mark = "," if form == "csv" else "\t"
        header, *lines = path.read_text().splitlines()
        rows = change([tuple(line.split(mark)) for line in lines])
        path.write_text("\n".join([header, *(f"{x}{mark}{y}" for x, y in rows), ""]))


def test_a_changed_image(clean_folder):
    directory, expected = clean_folder
    (directory / "stop/1.jpg").write_bytes(b"other")
    assert check_clean("folder", directory, expected) == ["'stop/1.jpg': changed"]


def test_a_missing_image(clean_folder):
    directory, expected = clean_folder
    (directory / "yield/more/3.png").unlink()
    assert check_clean("folder", directory, expected) == ["'yield/more/3.png': missing"]


@pytest.mark.parametrize("place", ["stop/extra.png", "stop/.hidden.png", "extra.txt", "third/new.png"])
def test_an_extra_file(clean_folder, place):
    directory, expected = clean_folder
    (directory / place).parent.mkdir(exist_ok=True)
    shutil.copy(directory / "stop/0.png", directory / place)
    assert check_clean("folder", directory, expected) == [f"{place!r}: extra, not in the manifest"]


def test_what_operating_systems_leave_is_no_problem(clean_folder):
    directory, expected = clean_folder
    (directory / "stop/.DS_Store").write_bytes(b"")
    (directory / "Thumbs.db").write_bytes(b"")
    assert check_clean("folder", directory, expected) == []


def test_links_are_not_followed(clean_folder, image_folder):
    directory, expected = clean_folder
    (directory / "stop/0.png").unlink()
    (directory / "stop/0.png").symlink_to(image_folder / "stop/0.png")
    (problem,) = check_clean("folder", directory, expected)
    assert problem.startswith("'stop/0.png' cannot be opened")
    shutil.rmtree(directory / "yield")
    (directory / "yield").symlink_to(image_folder / "yield")
    assert "'yield': extra, not in the manifest" in check_clean("folder", directory, expected)


def test_a_manifest_cannot_point_out_of_the_directory(clean_folder, tmp_path):
    directory, expected = clean_folder
    (tmp_path / "secret").write_text("secret")
    outside = [
        dataclasses.replace(expected[0], id=source, source=source)
        for source in ("../secret", str(tmp_path / "secret"), "stop/../../secret")
    ]
    problems = check_clean("folder", directory, [*expected, *outside])
    assert problems == [f"{sample.source!r}: missing" for sample in outside]


def test_a_folder_that_contradicts_the_label(clean_folder):
    directory, expected = clean_folder
    wrong = [dataclasses.replace(expected[0], label="yield"), *expected[1:]]
    (problem,) = check_clean("folder", directory, wrong)
    assert "the manifest says label 'yield'" in problem


def test_many_problems_are_cut(clean_folder):
    directory, expected = clean_folder
    for i in range(30):
        (directory / f"stop/extra{i:02d}.png").write_bytes(b"")
    problems = check_clean("folder", directory, expected)
    assert len(problems) == 21
    assert problems[-1] == "and 10 more"


@FILE_FORMS
def test_a_changed_sample(clean_file):
    form, directory, expected = clean_file
    rewrite(form, directory / f"train.{form}", lambda rows: [*rows[:3], (rows[0][0], rows[3][1]), *rows[4:]])
    problems = check_clean(form, directory, expected)
    assert problems == [f"{expected[3].id!r} ({expected[3].source}): changed"]


@FILE_FORMS
def test_a_changed_label(clean_file):
    form, directory, expected = clean_file
    rewrite(form, directory / f"train.{form}", lambda rows: [(rows[0][0], "a"), *rows[1:]])
    problems = check_clean(form, directory, expected)
    assert f"{expected[0].id!r} ({expected[0].source}): changed" in problems


@FILE_FORMS
def test_a_missing_sample(clean_file):
    form, directory, expected = clean_file
    rewrite(form, directory / f"train.{form}", lambda rows: [*rows[:2], *rows[3:]])
    problems = check_clean(form, directory, expected)
    assert problems == [
        f"train.{form}: holds 6 samples, the manifest 7",
        f"{expected[2].id!r} ({expected[2].source}): missing or changed",
    ]


@FILE_FORMS
def test_an_extra_sample(clean_file):
    form, directory, expected = clean_file
    rewrite(form, directory / f"train.{form}", lambda rows: [*rows, rows[0]])
    problems = check_clean(form, directory, expected)
    assert problems[0] == f"train.{form}: holds 8 samples, the manifest 7"
    assert problems[1].startswith(f"train.{form}: sample ")
    assert len(problems) == 2


@FILE_FORMS
def test_swapped_samples(clean_file):
    form, directory, expected = clean_file
    rewrite(form, directory / f"train.{form}", lambda rows: rows[::-1])
    assert check_clean(form, directory, expected)


@FILE_FORMS
def test_a_manifest_with_another_label(clean_file):
    form, directory, expected = clean_file
    wrong = [*expected[:-1], dataclasses.replace(expected[-1], label="other")]
    (problem,) = check_clean(form, directory, wrong)
    assert "label" in problem


@FILE_FORMS
def test_missing_extra_and_linked_files(clean_file, tmp_path):
    form, directory, expected = clean_file
    file = directory / f"train.{form}"
    (directory / "more.txt").write_text("x")
    assert check_clean(form, directory, expected) == ["'more.txt': extra, not in the manifest"]
    (directory / "more.txt").unlink()
    file.rename(tmp_path / "moved")
    assert check_clean(form, directory, expected) == [f"train.{form}: missing"]
    file.symlink_to(tmp_path / "moved")
    (problem,) = check_clean(form, directory, expected)
    assert problem.startswith(f"train.{form} cannot be opened")


@FILE_FORMS
def test_damage_is_a_problem_and_never_an_exception(clean_file):
    form, directory, expected = clean_file
    file = directory / f"train.{form}"
    data = np.frombuffer(file.read_bytes(), dtype=np.uint8)
    rng = np.random.default_rng(0)
    for content in (b"", b"\0", b"\xff" * 50, data[: len(data) // 2].tobytes()):
        file.write_bytes(content)
        problems = check_clean(form, directory, expected)
        assert problems
        assert all("\n" not in problem for problem in problems)
    for _ in range(30):
        damaged = data.copy()
        damaged[rng.integers(0, len(data), 3)] = rng.integers(0, 256, 3)
        file.write_bytes(damaged.tobytes())
        check_clean(form, directory, expected)


@pytest.mark.parametrize("clean_file", ["npz"], indirect=True)
def test_an_id_that_was_changed(clean_file):
    form, directory, expected = clean_file
    wrong = [dataclasses.replace(expected[0], id="other"), *expected[1:]]
    (problem,) = check_clean(form, directory, wrong)
    assert problem == "'other' (train.npz[1]): the file says the id is 't'"


def test_odd_manifests(tmp_path):
    sample = ExpectedSample("a", "train.npz[0]", "x", "0" * 64)
    assert check_clean("pickle", tmp_path, [sample]) == [
        "the form 'pickle' is not one of folder, hub, npz, csv, tsv, parquet"
    ]
    (problem,) = check_clean("npz", tmp_path / "absent", [sample])
    assert "absent" in problem
    (problem,) = check_clean("folder", tmp_path / "absent", [sample])
    assert "absent" in problem
    two = [sample, dataclasses.replace(sample, source="other.npz[1]")]
    assert check_clean("npz", tmp_path, two) == ["the manifest names 2 files where a npz set is one file"]
    assert check_clean("csv", tmp_path, [dataclasses.replace(sample, source="")]) == ["'': missing"]
    assert check_clean("csv", tmp_path, [])


@pytest.mark.parametrize("form", ["csv", "npz"])
def test_a_clean_set_of_nothing(form, tmp_path, write_clean):
    path = tmp_path / f"train.{form}"
    if form == "csv":
        path.write_text("x,y\n1,a\n2,b\n3,a\n4,b\n")
    else:
        np.savez(path, x=np.zeros((4, 2)), y=[0, 1, 0, 1])
    directory, expected = write_clean(load(path, options=LABEL), np.zeros(4, dtype=bool))
    assert expected == []
    assert [file.name for file in directory.iterdir()] == [f"train.{form}"]
