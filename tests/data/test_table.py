from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unpoison.data.load import load
from unpoison.data.options import LoadOptions
from unpoison.errors import InputError

LABEL = LoadOptions(label="y")
CSV = "id,size,color,y\na,1,red,no\nb,2,blue,yes\nc,3,red,no\nd,4,blue,yes\n"


@pytest.fixture
def parquet_file(tmp_path):
    def write(**columns):
        path = tmp_path / "train.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    return write


def test_a_table_of_numbers_and_categories(text_file):
    dataset = load(text_file(CSV), options=LoadOptions(label="y", id_column="id"))
    assert dataset.name == "train.csv"
    assert dataset.kind == "rows"
    assert dataset.origin.form == "csv"
    assert dataset.class_names == ("no", "yes")
    assert dataset.labels.tolist() == [0, 1, 0, 1]
    assert dataset.ids == ("a", "b", "c", "d")
    assert dataset.sources == ("train.csv:2", "train.csv:3", "train.csv:4", "train.csv:5")
    assert dataset.sha256[0] == hashlib.sha256(b"a,1,red,no").hexdigest()
    assert dataset.features.shape == (4, 3)
    assert dataset.origin.preview(1).columns == (("id", "b"), ("size", "2"), ("color", "blue"), ("y", "yes"))


def test_rows_have_ids_where_no_column_names_them(text_file):
    assert load(text_file(CSV), options=LABEL).ids[:2] == ("row-000000", "row-000001")


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["10", "9", "10", "9"], ("9", "10")),
        (["b", "10", "b", "10"], ("10", "b")),
        (["-1", "+1"] * 2, ("-1", "+1")),
    ],
)
def test_class_names_are_sorted_as_numbers_where_all_are(text_file, labels, names):
    text = "x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    assert load(text_file(text), options=LABEL).class_names == names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"train.csv: name the column that holds the labels with --label; the columns are: 'id', 'size'"),
        (
            {"label": "Y"},
            r"train.csv: there is no column 'Y' for --label; the columns are: 'id', 'size', 'color', 'y'",
        ),
        ({"label": "y", "text": "t"}, r"train.csv: there is no column 't' for --text"),
        ({"label": "y", "id_column": "i"}, r"train.csv: there is no column 'i' for --id"),
        ({"label": "y", "id_column": "color"}, "train.csv: the id 'red' occurs more than once"),
    ],
)
def test_columns_that_are_not_there(text_file, options, message):
    with pytest.raises(InputError, match=message):
        load(text_file(CSV), options=LoadOptions(**options))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,a\n2, \n3,a\n", r"train.csv:3: the label \(column 'y'\) is empty"),
        ("x,y\n1,0\n2,nan\n3,1\n", r"train.csv:3: the label \(column 'y'\) is 'nan'"),
        ("x,y\n", "train.csv: no rows under the header"),
        ("x,y\n1,a\n2,a\n", "train.csv: only one class"),
        ("x,y\n1,a\n2,a\n3,b\n", "train.csv: class 'b' has 1 sample"),
        ("x,y\n1,a\n1,b\n1,a\n1,b\n", "train.csv: no column can be used as a feature.*'x'"),
        ("y\na\nb\na\nb\n", "train.csv: no column can be used as a feature.*none"),
    ],
)
def test_tables_that_cannot_be_used(text_file, text, message):
    with pytest.raises(InputError, match=message):
        load(text_file(text), options=LABEL)


def test_an_empty_id_is_named(text_file):
    text = CSV.replace("c,3", ",3")
    with pytest.raises(InputError, match=r"train.csv:4: the id \(column 'id'\) is empty"):
        load(text_file(text), options=LoadOptions(label="y", id_column="id"))


def test_labels_that_look_like_measurements(text_file):
    text = "x,y\n" + "".join(f"{i},{i / 7:.4f}\n" for i in range(80))
    with pytest.raises(
        InputError, match="the column 'y' has 80 distinct values in 80 rows and does not look like"
    ):
        load(text_file(text), options=LABEL)


def test_many_classes_are_fine(text_file):
    text = "x,y\n" + "".join(f"{i},class {i % 500}\n" for i in range(1500))
    assert len(load(text_file(text), options=LABEL).class_names) == 500


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_csv_round_trip_is_byte_for_byte(text_file, write_clean, end, bom):
    lines = [
        "x;y;note",
        "1;a;plain",
        '2;b;"quoted; with',
        'a second line"',
        '3;a;"say ""hi"""',
        "4;b;é",
        "5;a;",
        '6;b;"x"',
    ]
    data = bom + end.join(lines).encode()
    dataset = load(text_file(data), options=LABEL)
    clean, _ = write_clean(dataset, np.array([True, True, False, True, True, False]))
    kept = [*lines[:4], *lines[5:7], ""]
    assert (clean / "train.csv").read_bytes() == bom + end.join(kept).encode()
    again = load(clean / "train.csv", options=LABEL)
    assert again.sha256 == tuple(np.array(dataset.sha256)[[0, 1, 3, 4]])


def test_the_delimiter_that_only_the_label_reveals_can_be_checked(text_file, write_clean):
    text = "a, b, c;y\n" + "".join(f'"{i}";{"no" if i % 2 else "yes"}\n' for i in range(6))
    write_clean(load(text_file(text), options=LABEL), np.arange(6) > 1)


def test_a_suffix_in_capitals(text_file, write_clean):
    clean, _ = write_clean(load(text_file(CSV, "TRAIN.CSV"), options=LABEL), np.ones(4, dtype=bool))
    assert (clean / "TRAIN.CSV").exists()


def test_strange_file_names_survive(text_file, write_clean):
    dataset = load(text_file(CSV, '<b>\n"é:1[2].csv'), options=LABEL)
    assert dataset.sources[0] == '<b>\n"é:1[2].csv:2'
    write_clean(dataset, np.array([True, True, False, True]))


def test_text_is_shown_and_cut(text_file):
    text = "Label\tSMS\n" + "".join(
        f'{"ham" if i % 2 else "spam"}\tword {i} of many <b> "x\n' for i in range(10)
    )
    text += "ham\t" + "long " * 1000 + "\n"
    dataset = load(text_file(text, "sms.tsv"), options=LoadOptions(label="Label"))
    assert dataset.kind == "text"
    assert dataset.origin.form == "tsv"
    assert dataset.origin.preview(0).text == 'word 0 of many <b> "x'
    assert len(dataset.origin.preview(10).text) == 2003


def test_real_text(sms_spam, write_clean):
    dataset = load(sms_spam, options=LoadOptions(label="Label"))
    assert len(dataset) == 5574
    assert dataset.class_names == ("ham", "spam")
    assert dataset.kind == "text"
    assert dataset.features.shape[0] == 5574
    keep = np.arange(5574) % 10 > 0
    clean, _ = write_clean(dataset, keep)
    lines = sms_spam.read_bytes().splitlines(keepends=True)
    expected = lines[:1] + [line for line, kept in zip(lines[1:], keep, strict=True) if kept]
    assert (clean / "sms_spam.tsv").read_bytes() == b"".join(expected)


def test_parquet_round_trip(parquet_file, write_clean):
    path = parquet_file(
        size=[1.0, 2.0, 3.0, 4.0],
        color=["red", "blue", "red", "blue"],
        flag=[True, False, False, True],
        y=[1, 0, 1, 0],
        key=["a", "b", "c", "d"],
    )
    dataset = load(path, options=LoadOptions(label="y", id_column="key"))
    assert dataset.origin.form == "parquet"
    assert dataset.class_names == ("0", "1")
    assert dataset.ids == ("a", "b", "c", "d")
    assert dataset.sources[2] == "train.parquet[2]"
    assert dataset.features.shape == (4, 5)
    assert dataset.origin.preview(0).columns[0] == ("size", "1.0")
    keep = np.array([True, False, True, True])
    clean, _ = write_clean(dataset, keep)
    assert pq.read_schema(clean / "train.parquet") == pq.read_schema(path)
    assert pq.read_table(clean / "train.parquet") == pq.read_table(path).filter(pa.array(keep))


def test_parquet_text_and_pandas_index(parquet_file):
    columns = {"message": [f"word {i} and more words" for i in range(20)], "y": ["a", "b"] * 10}
    path = parquet_file(**columns, __index_level_0__=list(range(20)))
    dataset = load(path, options=LABEL)
    assert dataset.kind == "text"
    assert dataset.origin.preview(3).text == "word 3 and more words"
    assert dataset.features.shape == load(parquet_file(**columns), options=LABEL).features.shape


def test_null_in_a_numeric_parquet_column(parquet_file):
    path = parquet_file(size=[1.0, None, *range(98)], y=["a", "b"] * 50)
    with pytest.raises(InputError, match=r"^train.parquet\[1\]: the column 'size' is numeric but holds ''"):
        load(path, options=LABEL)


def test_null_labels_in_parquet(parquet_file):
    with pytest.raises(InputError, match=r"^train.parquet\[1\]: the label \(column 'y'\) is empty"):
        load(parquet_file(x=[1, 2, 3, 4], y=["a", None, "a", "b"]), options=LABEL)
    with pytest.raises(InputError, match=r"^train.parquet\[1\]: the label \(column 'y'\) is 'nan'"):
        load(parquet_file(x=[1, 2, 3, 4], y=[0.0, float("nan"), 1.0, 0.0]), options=LABEL)


def test_limits_hold_for_tables(text_file, parquet_file):
    options = LoadOptions(label="y", max_bytes=60)
    with pytest.raises(InputError, match=r"train.csv: needs about"):
        load(text_file(CSV), options=options)
    with pytest.raises(InputError, match=r"train.parquet: needs about"):
        load(parquet_file(x=[1, 2, 3, 4], y=["a", "b", "a", "b"]), options=options)
