from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unpoison.data.parquet import cell_text, hash_rows, read_parquet
from unpoison.errors import InputError

BIG = 2**30
WHEN = datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.UTC)


def written(tmp_path, table: pa.Table, **options):
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, **options)
    return path


def read(path, *, max_bytes: int = BIG):
    return read_parquet(path, "t.parquet", max_bytes=max_bytes)


ALL_TYPES = pa.table(
    {
        "bool": pa.array([True, None]),
        "int": pa.array([1, None], pa.int8()),
        "big": pa.array([2**63 + 1, None], pa.uint64()),
        "half": pa.array([np.float16(0.5), None], pa.float16()),
        "float": pa.array([0.1, float("nan")], pa.float32()),
        "string": pa.array(["é", None]),
        "large": pa.array(["x", ""], pa.large_string()),
        "bytes": pa.array([b"\xff\x00", None]),
        "fixed": pa.array([b"ab", None], pa.binary(2)),
        "words": pa.array(["a", None]).dictionary_encode(),
        "numbers": pa.array([7, None]).dictionary_encode(),
        "date": pa.array([WHEN.date(), None]),
        "time": pa.array([WHEN.time(), None]),
        "naive": pa.array([WHEN.replace(tzinfo=None), None], pa.timestamp("ns")),
        "zoned": pa.array([WHEN, None], pa.timestamp("us", "Europe/Paris")),
        "span": pa.array([datetime.timedelta(seconds=3), None]),
        "decimal": pa.array([decimal.Decimal("1.50"), None]),
        "null": pa.nulls(2),
    }
)


def test_every_plain_type_is_read(tmp_path):
    values = read(written(tmp_path, ALL_TYPES)).values()
    first = {column: cells[0] for column, cells in values.items()}
    assert first == {
        "bool": True,
        "int": 1,
        "big": 2**63 + 1,
        "half": 0.5,
        "float": pytest.approx(0.1),
        "string": "é",
        "large": "x",
        "bytes": "ff00",
        "fixed": "6162",
        "words": "a",
        "numbers": 7,
        "date": "2024-05-06",
        "time": "07:08:09.000000",
        "naive": "2024-05-06 07:08:09.000000000",
        "zoned": "2024-05-06 07:08:09.000000",
        "span": 3_000_000,
        "decimal": "1.50",
        "null": None,
    }


def test_every_plain_type_survives_being_written(tmp_path):
    rows = read(written(tmp_path, ALL_TYPES))
    (tmp_path / "out").mkdir()
    rows.write(np.array([False, True]), tmp_path / "out" / "t.parquet")
    again = read(tmp_path / "out" / "t.parquet")
    assert again.schema.equals(rows.schema, check_metadata=False)
    assert hash_rows(again.columns, again.values()) == hash_rows(rows.columns, rows.values())[1:]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    ],
)
def test_nested_columns_are_refused(tmp_path, column):
    with pytest.raises(InputError, match=r"t.parquet: the column 'deep' has type .* drop the column"):
        read(written(tmp_path, pa.table({"deep": column})))


def test_duplicate_columns_are_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(InputError, match=r"t.parquet: the column name 'a' occurs more than once"):
        read(written(tmp_path, table))


def test_stored_size_is_bounded(tmp_path):
    path = written(tmp_path, pa.table({"a": np.zeros(100_000)}), use_dictionary=False)
    with pytest.raises(InputError, match=r"t.parquet: needs about .* limit of 100,000 \(max_bytes\)"):
        read(path, max_bytes=100_000)


def test_run_lengths_cannot_hide_the_number_of_rows(tmp_path):
    path = written(tmp_path, pa.table({"a": np.zeros(1_000_000, dtype=bool)}))
    assert path.stat().st_size < 50_000
    with pytest.raises(InputError, match=r"t.parquet: needs about 64,"):
        read(path, max_bytes=10**7)


def test_dictionaries_cannot_hide_the_size_of_strings(tmp_path):
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), pa.array(["x" * 100_000]))
    path = written(tmp_path, pa.table({"a": long}), store_schema=False)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(InputError, match=r"t.parquet: needs about 500,000,000 bytes"):
        read(path, max_bytes=10**8)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 100, b"hello"])
def test_what_is_no_parquet_is_refused(tmp_path, content):
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"t.parquet cannot be read .* not a Parquet file or it is damaged"):
        read(tmp_path / "t.parquet")


def test_a_cut_file_is_refused(tmp_path):
    path = written(tmp_path, pa.table({"a": np.arange(1000)}))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"t.parquet cannot be read"):
        read(path)


def test_strings_that_are_not_utf8_are_refused(tmp_path):
    bad = pa.array([b"\xff", b"ok"]).view(pa.string())
    with pytest.raises(InputError, match=r"t.parquet cannot be read"):
        read(written(tmp_path, pa.table({"a": bad}))).values()


def test_hashes_know_null_from_empty_and_one_column_from_another():
    def sha(row):
        return hash_rows(list(row), {column: [value] for column, value in row.items()})[0]

    rows = [{"a": None}, {"a": ""}, {"a": "1"}, {"a": 1}, {"a": 1.0}, {"a": True}, {"b": 1}, {"a": 1, "b": 1}]
    assert len({sha(row) for row in rows}) == len(rows)
    assert sha({"a": 1, "b": 2}) == sha({"b": 2, "a": 1})


@pytest.mark.parametrize(("value", "text"), [(None, ""), (0.1, "0.1"), (3, "3"), (True, "True"), ("x", "x")])
def test_cell_text(value, text):
    assert cell_text(value) == text
