from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unpoison.errors import OutputError
from unpoison.outputs import manifest

from .builders import NASTY, make_dataset, make_result


def read_csv(path: Path) -> list[list[str]]:
    limit = csv.field_size_limit(10_000_000)
    try:
        return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8"), newline="")))
    finally:
        csv.field_size_limit(limit)


def test_columns_and_values(tmp_path: Path) -> None:
    dataset = make_dataset(6)
    manifest.write_csv(manifest.build(dataset, make_result(dataset, [0])), tmp_path / "m.csv")
    header, first, second, *_ = read_csv(tmp_path / "m.csv")
    assert header == [
        *("id", "source", "label", "keep", "decided_by", "suspicion", "predicted", "component_1"),
        *("component_2", "sha256"),
    ]
    assert first == [
        *("pets/0000", "pets/0000.txt", "cat", "false", "run", "0.500000", "dog", "4", "-1"),
        dataset.sha256[0],
    ]
    assert second[3:7] == ["true", "run", "0.026667", "dog"]


def test_csv_uses_plain_line_ends(tmp_path: Path) -> None:
    dataset = make_dataset(6)
    manifest.write_csv(manifest.build(dataset, make_result(dataset, [0])), tmp_path / "m.csv")
    data = (tmp_path / "m.csv").read_bytes()
    assert b"\r" not in data
    assert data.count(b"\n") == 7
    assert data.endswith(b"\n")


def test_bytes_are_deterministic_and_free_of_timing(tmp_path: Path) -> None:
    dataset = make_dataset(50)
    for name in ("one", "two"):
        table = manifest.build(dataset, make_result(dataset))
        manifest.write_csv(table, tmp_path / f"{name}.csv")
        manifest.write_parquet(table, tmp_path / f"{name}.parquet")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


def test_negative_zero_is_zero() -> None:
    dataset = make_dataset(6)
    result = make_result(dataset, [])
    result.suspicion[:] = [-1e-12, -0.0, 0.0, 1e-12, 1.0, 0.1234565]
    lines = [line.split(b",")[5] for line in manifest.csv_lines(manifest.build(dataset, result))]
    assert lines[1:6] == [b"0.000000"] * 4 + [b"1.000000"]


def test_pandas_reads_both_alike(tmp_path: Path) -> None:
    dataset = make_dataset(30)
    table = manifest.build(dataset, make_result(dataset))
    manifest.write_csv(table, tmp_path / "m.csv")
    manifest.write_parquet(table, tmp_path / "m.parquet")
    left, right = pd.read_csv(tmp_path / "m.csv"), pq.read_table(tmp_path / "m.parquet").to_pydict()
    assert {name: left[name].tolist() for name in left} == right
    assert left["keep"].dtype == bool


def test_nasty_values_round_trip(tmp_path: Path) -> None:
    dataset = make_dataset(len(NASTY) * 2, names=NASTY, ids=[*NASTY, *(f"{v}2" for v in NASTY)])
    table = manifest.build(dataset, make_result(dataset))
    manifest.write_csv(table, tmp_path / "m.csv")
    manifest.write_parquet(table, tmp_path / "m.parquet")
    rows = read_csv(tmp_path / "m.csv")[1:]
    assert [row[0] for row in rows] == list(dataset.ids)
    assert [row[2] for row in rows] == [*NASTY, *NASTY]
    assert manifest.read_parquet(tmp_path / "m.parquet").equals(table)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=6, max_size=8, unique=True))
def test_any_text_round_trips(tmp_path: Path, ids: list[str]) -> None:
    dataset = make_dataset(len(ids), ids=ids)
    manifest.write_csv(manifest.build(dataset, make_result(dataset, [1])), tmp_path / "m.csv")
    assert [row[0] for row in read_csv(tmp_path / "m.csv")[1:]] == ids


def test_no_vote_has_no_name() -> None:
    dataset = make_dataset(6)
    table = manifest.build(dataset, make_result(dataset, [0], called=-1))
    assert table["predicted"][0].as_py() == ""


def test_no_restarts(tmp_path: Path) -> None:
    dataset = make_dataset(6)
    result = dataclasses.replace(make_result(dataset, [0]), components=np.empty((0, 6), dtype=np.int64))
    manifest.write_parquet(manifest.build(dataset, result), tmp_path / "m.parquet")
    assert manifest.read_parquet(tmp_path / "m.parquet").num_columns == 8


def test_refuses_names_that_are_not_unicode() -> None:
    dataset = make_dataset(6, ids=["a", "b", "c\udcff", "d", "e", "f"])
    with pytest.raises(OutputError, match=r"the id 'c\\udcff' is not Unicode; rename it"):
        manifest.build(dataset, make_result(dataset, [0]))


def test_refuses_a_result_of_another_dataset() -> None:
    with pytest.raises(OutputError, match=r"pets: keep has shape \(9,\) for 6 samples"):
        manifest.build(make_dataset(6), make_result(make_dataset(9)))


def test_refuses_suspicion_that_is_no_number() -> None:
    dataset = make_dataset(6)
    result = make_result(dataset, [0])
    result.suspicion[2] = np.nan
    with pytest.raises(OutputError, match="the suspicion of 'pets/0002' is not a number"):
        manifest.build(dataset, result)
