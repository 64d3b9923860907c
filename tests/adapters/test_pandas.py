from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison.adapters.pandas import judged, samples
from unpoison.errors import InputError

from .builders import EXPECTED, N, labels, quick, rows

pandas = pytest.importorskip("pandas")


def frame(**columns: Any) -> Any:
    """Rows with odd names for an index, and labels that are words."""
    made = pandas.DataFrame(rows(), columns=["a", "b", "c"], index=[f"row {i % 150}" for i in range(N)])
    return made.assign(kind=np.array(["cat", "dog"])[labels()], **columns)


def test_the_frame_comes_back_with_the_verdict() -> None:
    given = frame()
    found = judged(given, quick(), label="kind")
    assert found.columns.tolist() == ["a", "b", "c", "kind", "keep", "suspicion"]
    assert np.array_equal(found["keep"], EXPECTED)
    assert found["keep"].dtype == bool
    assert set(found["suspicion"].nlargest(3).index) == set(given.index[~EXPECTED])
    pandas.testing.assert_frame_equal(found[given.columns], given)
    pandas.testing.assert_frame_equal(given, frame())


def test_a_fitted_cleaner_tells_the_same() -> None:
    X, y = samples(frame(), label="kind")
    cleaner = quick().fit(X, y)
    found = judged(frame(), cleaner, label="kind")
    pandas.testing.assert_frame_equal(found, judged(frame(), quick(), label="kind"))
    assert cleaner.predicted_[~EXPECTED].tolist() == np.array(["dog", "cat"])[labels()[~EXPECTED]].tolist()


def test_the_same_features_as_from_a_file(tmp_path: Any) -> None:
    from unpoison.data.load import load
    from unpoison.data.options import LoadOptions

    words = frame(color=np.array(["red", "green", "blue"])[np.arange(N) % 3], count=np.arange(N))
    words.to_csv(tmp_path / "frame.csv", index=False)
    loaded = load(tmp_path / "frame.csv", options=LoadOptions(label="kind"))
    X, y = samples(words, label="kind")
    assert np.array_equal(X, loaded.features)
    assert y.tolist() == [loaded.class_names[label] for label in loaded.labels]


def test_text_columns_are_vectorized() -> None:
    given = frame(note=[f"{'win cash now' if i % 2 else 'see you soon'} {i % 7}" for i in range(N)])
    X, _ = samples(given[["note", "kind"]], label="kind", text="note")
    assert hasattr(X, "tocsr")
    assert X.shape[0] == N


@pytest.mark.parametrize(
    "column",
    [
        pandas.Series(pandas.Categorical(["x", "y"] * (N // 2))),
        pandas.Series(pandas.date_range("2026-01-01", periods=N)),
        pandas.Series([1, 2] * (N // 2), dtype="Int64"),
        pandas.Series([True, False] * (N // 2)),
    ],
    ids=["category", "date", "nullable", "bool"],
)
def test_columns_of_every_kind(column: Any) -> None:
    found = judged(
        frame(more=column.to_numpy() if column.dtype != "category" else column.array), quick(), label="kind"
    )
    assert found["keep"].shape == (N,)


def test_columns_may_be_numbers() -> None:
    given = pandas.DataFrame(np.column_stack([rows(), labels()]))
    found = judged(given.astype({3: int}), quick(), label="3")
    assert np.array_equal(found["keep"], EXPECTED)
    assert found.columns.tolist() == [0, 1, 2, 3, "keep", "suspicion"]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda f: f.assign(keep=1), {}, "the frame has a column 'keep' already"),
        (
            lambda f: f,
            {"label": "species"},
            "no column 'species' for label=; the columns are: 'a', 'b', 'c', 'kind'",
        ),
        (lambda f: f, {"text": "prose"}, "no column 'prose' for text="),
        (lambda f: f.iloc[:0], {}, "the frame has no rows"),
        (lambda f: f.assign(a=[[1]] * N), {}, "the frame: the column 'a' holds list"),
        (
            lambda f: f.assign(a=[1, "x"] * (N // 2)),
            {},
            "the frame cannot be read .*; turn every column into",
        ),
        (lambda f: f.assign(kind=None), {}, "row 'row 0': the label .* is empty"),
        (lambda f: f.assign(a=np.r_[np.nan, np.arange(N - 1)]), {}, "row .row 0.: the column .a. is numeric"),
        (lambda f: f.set_axis(["a", "a", "c", "kind"], axis=1), {}, "two columns of one name"),
    ],
    ids=["taken", "label", "text", "empty", "lists", "mixed", "no label", "nan", "twice"],
)
def test_bad_frames_are_named(change: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        judged(change(frame()), quick(), **({"label": "kind"} | options))
