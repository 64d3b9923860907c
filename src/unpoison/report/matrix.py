"""Who is removed: how many samples carry which label, and what the vote calls them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset

MAX_ROWS = 40
MAX_COLUMNS = 8


@dataclass(frozen=True)
class MatrixRow:
    """The removed samples of one label."""

    label: int
    samples: int
    """All samples of the label, kept or not."""
    removed: int
    called: tuple[int, ...]
    """How many are called what, in the order of the matrix's columns."""
    otherwise: int
    """How many are called something that has no column."""


@dataclass(frozen=True)
class Matrix:
    """Labels by what the vote calls their removed samples; both with the most removed first."""

    columns: tuple[int, ...]
    rows: tuple[MatrixRow, ...]
    n_more_rows: int
    untouched: tuple[int, ...]
    """Labels that lose nothing, largest first."""

    @property
    def has_others(self) -> bool:
        """Whether any row has samples that are called something without a column."""
        return any(row.otherwise for row in self.rows)


def removal_matrix(dataset: Dataset, result: Sanitization) -> Matrix:
    """Count the removed samples of every label by what they are called."""
    n_classes = len(dataset.class_names)
    samples = np.bincount(dataset.labels, minlength=n_classes)
    labels, called = dataset.labels[~result.keep], result.predicted[~result.keep]
    removed = np.bincount(labels, minlength=n_classes)
    votes = np.bincount(called[called >= 0], minlength=n_classes)
    columns = tuple(c for c in np.argsort(-votes, kind="stable").tolist()[:MAX_COLUMNS] if votes[c])
    touched = [c for c in np.lexsort((-samples, -removed)).tolist() if removed[c]]
    rows = []
    for label in touched[:MAX_ROWS]:
        own = np.bincount(called[(labels == label) & (called >= 0)], minlength=n_classes)
        counts = tuple(int(own[c]) for c in columns)
        rows.append(
            MatrixRow(
                label, int(samples[label]), int(removed[label]), counts, int(removed[label]) - sum(counts)
            )
        )
    untouched = [c for c in np.argsort(-samples, kind="stable").tolist() if not removed[c]]
    return Matrix(columns, tuple(rows), len(touched) - len(rows), tuple(untouched))
