from __future__ import annotations

import numpy as np

from unpoison.report import matrix
from unpoison.report.matrix import removal_matrix

from .builders import judged
from .test_page import texts


def test_counts_every_removed_sample_once() -> None:
    dataset = texts()
    result = judged(dataset, [0, 3, 6, 9, 1])
    result.predicted[[0, 3, 6, 9, 1]] = [1, 1, 2, -1, 2]
    found = removal_matrix(dataset, result)
    assert found.columns == (1, 2)
    assert [(r.label, r.samples, r.removed, r.called, r.otherwise) for r in found.rows] == [
        (0, 40, 4, (2, 1), 1),
        (1, 40, 1, (0, 1), 0),
    ]
    assert (found.untouched, found.n_more_rows, found.has_others) == ((2,), 0, True)


def test_many_classes_are_bounded() -> None:
    dataset = texts(n=400, names=[str(i) for i in range(100)])
    result = judged(dataset, range(200))
    result.predicted[:200] = np.arange(200)[::-1] % 100
    found = removal_matrix(dataset, result)
    assert len(found.columns) == matrix.MAX_COLUMNS
    assert (len(found.rows), found.n_more_rows) == (matrix.MAX_ROWS, 60)
    assert all(sum(row.called) + row.otherwise == row.removed == 2 for row in found.rows)


def test_nothing_removed() -> None:
    dataset = texts()
    found = removal_matrix(dataset, judged(dataset, []))
    assert (found.columns, found.rows, found.untouched) == ((), (), (0, 1, 2))
