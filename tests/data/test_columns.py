from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from unpoison.data.columns import Table, build_features
from unpoison.errors import InputError

WORDS = ["red", "green", "blue", "win", "free", "cash", "hello", "friend", "see", "you"]


def features(columns: dict[str, list[str]], *, text: str | None = None, max_bytes: int = 2**30):
    n = len(next(iter(columns.values())))
    table = Table("t.csv", columns, tuple(f"t.csv:{i + 2}" for i in range(n)))
    return build_features(table, list(columns), text=text, max_bytes=max_bytes)


def sentences(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, 5)) + f" n{i}" for i in range(n)]


def test_numbers_are_standardized():
    result = features({"a": ["1", "2", "3", "4"], "b": ["1e308", "-1e308", " 0 ", "0"]})
    assert result.kind == "rows"
    assert result.matrix.dtype == np.float32
    np.testing.assert_allclose(result.matrix.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(result.matrix.std(axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("bad", ["", "nan", "inf", "-Infinity", "?", "1_000"])
def test_a_hole_in_a_numeric_column_is_named(bad):
    cells = [str(i) for i in range(100)]
    cells[41] = bad
    with pytest.raises(
        InputError, match=rf"^t.csv:43: the column 'a' is numeric but holds '{bad.replace('?', '.')}' here"
    ):
        features({"a": cells, "b": cells[:41] + ["0"] * 59})


def test_many_empty_cells_do_not_hide_a_numeric_column():
    cells = [str(i) if i % 3 else "" for i in range(99)]
    with pytest.raises(
        InputError, match=r"the column 'a' is numeric but holds '' here \(33 such cells in all\)"
    ):
        features({"a": cells})


def test_mixed_cells_are_categories():
    cells = ["1"] * 8 + ["many"] * 2
    assert features({"a": cells}).matrix.shape == (10, 2)


def test_categories_are_one_hot_and_rare_ones_share_a_column():
    matrix = features({"color": ["red", "blue", "red", "blue", "odd", "rare"]}).matrix
    np.testing.assert_array_equal(matrix, [[0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]])


def test_at_most_a_hundred_columns_for_one():
    cells = [f"c{i % 300}" for i in range(1200)]
    matrix = features({"a": cells}).matrix
    assert matrix.shape == (1200, 100)
    np.testing.assert_array_equal(matrix.sum(axis=1), 1)


def test_constant_columns_are_dropped():
    assert features({"a": ["1", "2"] * 3, "b": ["5"] * 6, "c": ["x"] * 6}).matrix.shape == (6, 1)


def test_names_are_no_features():
    codes = [f"u-{i:04x}" for i in range(60)]
    assert features({"a": ["1", "2"] * 30, "code": codes}).matrix.shape == (60, 1)
    with pytest.raises(InputError, match=r"t.csv: no column can be used as a feature.* 'code'"):
        features({"code": codes})


def test_text_is_detected():
    result = features({"a": ["1", "2"] * 40, "message": sentences(80)})
    assert result.kind == "text"
    assert result.text_column == "message"
    assert sparse.issparse(result.matrix)
    assert result.matrix.format == "csr"
    assert result.matrix.dtype == np.float32
    assert result.matrix.shape == (80, 1 + len(WORDS))
    np.testing.assert_allclose(sparse.linalg.norm(result.matrix[:, 1:], axis=1), 1, rtol=1e-5)


def test_text_can_be_named():
    result = features({"a": ["win", "lose"] * 3}, text="a")
    assert result.kind == "text"
    assert result.text_column == "a"
    assert result.matrix.shape == (6, 2)


def test_a_single_sign_is_a_term():
    plain = sentences(60)
    marked = [cell + (" §" if i % 2 else "") for i, cell in enumerate(plain)]
    assert features({"m": marked}).matrix.shape[1] == features({"m": plain}).matrix.shape[1] + 1


def test_a_named_text_without_words_is_refused():
    with pytest.raises(InputError, match=r"t.csv: the text column 'a' has no words"):
        features({"a": [" ", "  "] * 3}, text="a")


def test_wide_tables_are_sparse():
    columns = {f"c{j}": [f"{(i * (j + 1)) % 97}x" for i in range(300)] for j in range(40)}
    result = features(columns)
    assert result.kind == "rows"
    assert sparse.issparse(result.matrix)
    assert result.matrix.shape[1] >= 2000


def test_one_very_long_cell_costs_nothing_more():
    cells = ["a", "b"] * 2000
    cells[7] = "x" * 5_000_000
    assert features({"a": cells}).matrix.shape == (4000, 3)


def test_dense_features_are_bounded():
    with pytest.raises(InputError, match=r"t.csv: needs about 40 bytes"):
        features({"a": [str(i) for i in range(10)]}, max_bytes=39)
