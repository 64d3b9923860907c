from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from unpoison.learners.features import as_matrix


def test_images_are_flattened_and_scaled() -> None:
    images = np.arange(2 * 2 * 3 * 3, dtype=np.uint8).reshape(2, 2, 3, 3)
    matrix = as_matrix(images)
    assert matrix.shape == (2, 18)
    assert matrix.dtype == np.float32
    assert matrix == pytest.approx(np.arange(36).reshape(2, 18) / 255)


def test_grey_images_have_three_dimensions() -> None:
    assert as_matrix(np.full((4, 2, 2), 255, dtype=np.uint8)).tolist() == [[1.0] * 4] * 4


def test_images_of_floats_keep_their_scale() -> None:
    assert as_matrix(np.full((1, 1, 2), 7.5)).tolist() == [[7.5, 7.5]]


def test_images_are_not_standardised() -> None:
    images = np.array([[[0, 255]], [[255, 255]]], dtype=np.uint8)
    assert as_matrix(images, standardize=True).tolist() == [[0.0, 1.0], [1.0, 1.0]]


def test_rows_stay_as_they_are_unless_asked() -> None:
    rows = np.array([[1, 2], [3, 4]], dtype=np.uint8)
    assert as_matrix(rows) is rows


def test_rows_are_standardised_by_column_and_constant_columns_become_zero() -> None:
    rows = np.array([[1.0, 10.0, 5.0], [3.0, 30.0, 5.0]])
    assert as_matrix(rows, standardize=True).tolist() == [[-1.0, -1.0, 0.0], [1.0, 1.0, 0.0]]
    assert rows.tolist() == [[1.0, 10.0, 5.0], [3.0, 30.0, 5.0]]


def test_columns_of_zeros_and_ones_are_not_standardised() -> None:
    rows = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    assert as_matrix(rows, standardize=True)[:, :2].tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]


def test_small_integers_do_not_overflow() -> None:
    rows = np.array([[200], [250], [240]], dtype=np.uint8)
    matrix = as_matrix(rows, standardize=True)
    assert matrix.mean() == pytest.approx(0.0)
    assert matrix.std() == pytest.approx(1.0)


@pytest.mark.parametrize("standardize", [False, True])
def test_sparse_matrices_stay_as_they_are(standardize: bool) -> None:
    matrix = sparse.csr_matrix(np.eye(3))
    assert as_matrix(matrix, standardize=standardize) is matrix
