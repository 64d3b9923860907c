from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from unpoison.attacks.base import NOT_ATTACKED
from unpoison.data.load import LoadOptions, load
from unpoison.errors import InputError
from unpoison.evaluation.forms import Form, HeldOut, form_of

from .poison_builders import N, cells, text_file, write_csv


def form_for(path: Path, **options: Any) -> Form:
    given = LoadOptions(**{"label": "kind", **options})
    return form_of(load(path, options=given), given, as_arrays=False)


def planted(form: Form, rows: np.ndarray, row: int, *, weight: float, legs: float, label: int) -> Any:
    samples = form.samples
    features, labels = samples.features[rows].copy(), samples.labels[rows].copy()
    features[row], labels[row] = (weight, legs), label
    return samples.changed(features, labels)


def test_rows_are_the_columns_of_numbers(tmp_path: Path) -> None:
    form = form_for(write_csv(tmp_path / "pets.csv"), id_column="key")
    assert (form.kind, form.columns, form.train_name) == ("rows", ("weight", "legs"), "train.csv")
    assert form.clean_options == ("--label", "kind", "--id", "key")
    assert form.samples.features.tolist() == [[i / 4, i % 5] for i in range(N)]
    assert form.samples.class_names == ("cat", "dog", "eel")


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [None, ""])
def test_untouched_records_stay_byte_for_byte(
    tmp_path: Path, quoting: int, end: str, last: str | None
) -> None:
    path = write_csv(tmp_path / "pets.csv", end=end, last=last, quoting=quoting)
    form = form_for(path)
    rows = np.array([0, 1, 2, 4, 6, 7, 11])
    out = planted(form, rows, 3, weight=7.5, legs=9.0, label=2)
    written = form.write_train(tmp_path, rows, out)
    before = path.read_bytes().split(end.encode())
    after = (tmp_path / "train.csv").read_bytes().split(end.encode())
    expected = [before[0], *(before[row + 1] for row in rows)]
    changed = (
        b'"k4","7.5","9","red, ""soft""","eel"'
        if quoting == csv.QUOTE_ALL
        else b'k4,7.5,9,"red, ""soft""",eel'
    )
    expected[4] = changed
    assert after == expected + ([b""] if last is None else [])
    assert written.ids == tuple(f"row-{i:06d}" for i in range(7)), "as whoever reads the file numbers them"
    again = form_for(tmp_path / "train.csv")
    assert again.ids == written.ids
    assert again.samples.features.tolist() == out.features.tolist()


def test_words_in_quotes_and_numbers_without(tmp_path: Path) -> None:
    path = tmp_path / "pets.csv"
    path.write_text('"kind","n"\n"a",1\n"a",2\n"b",3\n"b",4\n', encoding="utf-8")
    form = form_for(path)
    samples = form.samples
    out = samples.changed(samples.features + np.array([[0.5], [0], [0], [0]]), np.array([1, 0, 1, 1]))
    form.write_train(tmp_path, np.arange(4), out)
    assert (tmp_path / "train.csv").read_text() == '"kind","n"\n"b",1.5\n"a",2\n"b",3\n"b",4\n'


def test_the_test_set_of_a_table(tmp_path: Path) -> None:
    form = form_for(write_csv(tmp_path / "pets.csv", end="\r\n"), id_column="key")
    rows = np.array([0, 3, 4])
    test = HeldOut(planted(form, rows, 0, weight=0.0, legs=0.0, label=0), ("k0", "k3", "k4"), rows)
    triggered = form.samples.features[rows].copy()
    triggered[:, 0] = 99
    names = form.write_test(tmp_path, test, triggered, np.array([1, 1, NOT_ATTACKED]))
    assert names == ("test.csv", "test_triggered.csv")
    assert (tmp_path / "test.csv").read_bytes().split(b"\r\n")[1:3] == [
        b'k0,0.0,0,"red, ""soft""",cat',
        b"k3,0.75,3,gray,cat",
    ]
    with (tmp_path / "test_triggered.csv").open(newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert [(row["weight"], row["kind"], row["goal"]) for row in read] == [
        ("99.0", "cat", "dog"), ("99.0", "cat", "dog"), ("99.0", "dog", ""),
    ]  # fmt: skip


def test_a_column_called_goal_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "pets.csv"
    path.write_text("kind,goal\n" + "".join(f"{'ab'[i % 2]},{i}\n" for i in range(6)), encoding="utf-8")
    form = form_for(path)
    test = HeldOut(form.samples, form.ids, np.arange(6))
    form.write_test(tmp_path, test, form.samples.features, np.zeros(6, dtype=np.int64))
    assert (tmp_path / "test_triggered.csv").read_text().splitlines()[:2] == ["kind,goal,goal_", "a,0,a"]


@pytest.mark.parametrize(("suffix", "delimiter"), [("tsv", "\t"), ("csv", ";")])
def test_texts(tmp_path: Path, suffix: str, delimiter: str) -> None:
    path = text_file(tmp_path / f"mails.{suffix}", delimiter)
    form = form_for(path, label="label")
    assert (form.kind, form.columns, form.train_name) == ("text", (), f"train.{suffix}")
    assert form.clean_options == ("--label", "label", "--text", "words")
    samples = form.samples
    assert samples.features.dtype == object
    features, labels = samples.features.copy(), samples.labels.copy()
    features[1], labels[1] = features[1] + " cf", 0
    form.write_train(tmp_path, np.arange(20), samples.changed(features, labels))
    before, after = path.read_text().splitlines(), (tmp_path / f"train.{suffix}").read_text().splitlines()
    assert [i for i in range(21) if before[i] != after[i]] == [2]
    assert after[2] == f"ham{delimiter}message number 1 call now cf"


def test_a_tsv_cannot_hold_a_tab(tmp_path: Path) -> None:
    form = form_for(text_file(tmp_path / "mails.tsv", "\t"), label="label")
    features = form.samples.features.copy()
    features[0] = "a\tb"
    with pytest.raises(InputError, match="holds a tab or line end"):
        form.write_train(tmp_path, np.arange(20), form.samples.changed(features, form.samples.labels))


def parquet_file(path: Path) -> Path:
    rows = cells()
    table = pa.table(
        {
            "key": [row[0] for row in rows],
            "weight": pa.array([float(row[1]) for row in rows], pa.float32()),
            "legs": pa.array([int(row[2]) for row in rows], pa.int8()),
            "coat": pa.array([row[3] for row in rows]).dictionary_encode(),
            "kind": pa.array([i % 3 for i in range(N)], pa.int16()),
        }
    )
    parquet.write_table(table, path)
    return path


def test_parquet_keeps_its_schema(tmp_path: Path) -> None:
    path = parquet_file(tmp_path / "pets.parquet")
    form = form_for(path)
    rows = np.array([0, 1, 4, 6, 9, 11])
    form.write_train(tmp_path, rows, planted(form, rows, 2, weight=7.5, legs=9.0, label=2))
    before, after = parquet.read_table(path), parquet.read_table(tmp_path / "train.parquet")
    assert after.schema.equals(before.schema)
    expected = before.take(rows).to_pylist()
    expected[2] |= {"weight": 7.5, "legs": 9, "kind": 2}
    assert after.to_pylist() == expected
    test = HeldOut(form.samples, form.ids, np.arange(N))
    goal = np.where(form.samples.labels == 0, 1, NOT_ATTACKED)
    assert form.write_test(tmp_path, test, form.samples.features, goal) == (
        "test.parquet", "test_triggered.parquet",
    )  # fmt: skip
    triggered = parquet.read_table(tmp_path / "test_triggered.parquet")
    assert triggered.schema.field("goal").type == pa.int16()
    assert triggered.column("goal").to_pylist()[:4] == [1, None, None, 1]


def test_a_value_that_a_column_cannot_hold(tmp_path: Path) -> None:
    form = form_for(parquet_file(tmp_path / "pets.parquet"))
    for legs in (9.5, 1000.0):
        out = planted(form, np.arange(N), 0, weight=1.0, legs=legs, label=1)
        with pytest.raises(InputError, match=r"'legs' is int8 and cannot hold .* choose other --values"):
            form.write_train(tmp_path, np.arange(N), out)
