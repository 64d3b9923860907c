"""Turning the columns of a table into features.

A column becomes

- numbers, standardized, if every cell is a finite number;
- TF-IDF weights of its words, if it reads like text (3 words or more on average, mostly distinct) or is
  named as text;
- one 0/1 column for each category otherwise.

Columns that hold one value only say nothing and are dropped. So are columns of strings, not text, that are
nearly all distinct (names, codes): a category of one sample cannot be learned.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unpoison.data.container import Kind
from unpoison.data.files import check_budget, shown
from unpoison.data.records import is_number
from unpoison.errors import InputError
from unpoison.types import FloatArray

NUMERIC_FRACTION = 0.95
"""A column with at least this part of numbers among its filled cells is meant to be numeric."""
FILLED_FRACTION = 0.5
TEXT_WORDS = 3.0
TEXT_DISTINCT = 0.5
NAME_DISTINCT = 0.9
NAME_ROWS = 50
MAX_CATEGORIES = 100
MAX_TERMS = 20_000
MAX_DENSE_FEATURES = 2_000
TERM_PATTERN = r"(?u)\w+|[^\w\s]"
"""Words of any length, and single signs: a trigger may be one odd sign."""


@dataclass(frozen=True)
class Table:
    """The cells of a table as text, column by column, and where each row stands in its file."""

    name: str
    columns: Mapping[str, Sequence[str]]
    sources: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class Features:
    """What a learner gets from a table, and the column a person would read."""

    kind: Kind
    matrix: Any
    text_column: str | None


def build_features(table: Table, columns: Sequence[str], *, text: str | None, max_bytes: int) -> Features:
    """Features from the named columns; ``text`` names one that is text whatever it looks like."""
    blocks: list[Any] = []
    text_columns: list[str] = []
    for column in columns:
        is_text, block = _column_block(table, column, named_text=column == text)
        if block is not None:
            blocks.append(block)
            if is_text:
                text_columns.append(column)
    if not blocks:
        raise InputError(
            f"{table.name}: no column can be used as a feature; columns with one value and columns of "
            f"distinct names are not. The columns tried are: {', '.join(map(repr, columns)) or 'none'}"
        )
    preferred = text if text is not None else next(iter(text_columns), None)
    matrix = _join(table, blocks, dense=not text_columns, max_bytes=max_bytes)
    return Features("text" if text_columns else "rows", matrix, preferred)


def _column_block(table: Table, column: str, *, named_text: bool) -> tuple[bool, Any]:
    """Whether a column is text, and its part of the features or None where it is no feature."""
    cells = table.columns[column]
    if named_text:
        block = _text_block(cells)
        if block is None:
            raise InputError(f"{table.name}: the text column {column!r} has no words that occur twice")
        return True, block
    distinct = len(set(cells))
    if distinct == 1:
        return False, None
    numbers = _numbers(table, column)
    if numbers is not None:
        return False, _numeric_block(numbers)
    if _reads_like_text(cells, distinct):
        return True, _text_block(cells)
    if distinct > NAME_DISTINCT * len(cells) and len(cells) > NAME_ROWS:
        return False, None
    return False, _category_block(cells)


def _numbers(table: Table, column: str) -> FloatArray | None:
    """The column as finite numbers, or None if it is not meant to be numeric."""
    cells = table.columns[column]
    values = _plain_numbers(cells)
    if values is not None:
        return values
    numeric = [is_number(cell) for cell in cells]
    filled = sum(bool(cell.strip()) for cell in cells)
    if filled < FILLED_FRACTION * len(cells) or sum(numeric) < NUMERIC_FRACTION * filled:
        return None
    wrong = [i for i, good in enumerate(numeric) if not good or not math.isfinite(float(cells[i]))]
    raise InputError(
        f"{shown(table.sources[wrong[0]])}: the column {column!r} is numeric but holds "
        f"{cells[wrong[0]][:100]!r} here ({len(wrong)} such cells in all); fill them with numbers, "
        "or drop the rows or the column"
    )


def _plain_numbers(cells: Sequence[str]) -> FloatArray | None:
    """The cells as finite numbers, or None if any is not one."""
    try:
        values = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
    except ValueError:
        return None
    underscores = any("_" in cell for cell in cells)  # which is_number refuses
    return values if np.isfinite(values).all() and not underscores else None


def _numeric_block(values: FloatArray) -> NDArray[np.float32] | None:
    # dividing by the largest first keeps the sums of huge numbers finite
    largest = np.abs(values).max()
    scaled = values / largest if largest > 0 else values
    deviation = scaled.std()
    if deviation == 0:
        return None
    standard: NDArray[np.float32] = ((scaled - scaled.mean()) / deviation).astype(np.float32)
    return standard[:, np.newaxis]


def _reads_like_text(cells: Sequence[str], distinct: int) -> bool:
    words = sum(len(cell.split()) for cell in cells)
    return words >= TEXT_WORDS * len(cells) and distinct > TEXT_DISTINCT * len(cells)


def _text_block(cells: Sequence[str]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        sublinear_tf=True,
        max_features=MAX_TERMS,
        min_df=2 if len(cells) >= 50 else 1,
        norm="l2",
        token_pattern=TERM_PATTERN,
        dtype=np.float32,
    )
    try:
        return vectorizer.fit_transform(cells)
    except ValueError:  # no term is left
        return None


def _category_block(cells: Sequence[str]) -> Any:
    """One column a category; rare ones, and those beyond the most frequent, share the last."""
    frequent = sorted((-count, cell) for cell, count in Counter(cells).items() if count >= 2)
    names = sorted(cell for _, cell in frequent[: MAX_CATEGORIES - 1])
    number = {cell: i for i, cell in enumerate(names)}
    codes = np.array([number.get(cell, len(names)) for cell in cells], dtype=np.int64)
    width = int(codes.max()) + 1
    if width < 2:
        return None
    ones = np.ones(len(cells), dtype=np.float32)
    return sparse.csr_matrix((ones, (np.arange(len(cells)), codes)), shape=(len(cells), width))


def _join(table: Table, blocks: list[Any], *, dense: bool, max_bytes: int) -> Any:
    width = sum(block.shape[1] for block in blocks)
    if dense and width < MAX_DENSE_FEATURES:
        check_budget(table.name, len(table) * width * 4, max_bytes)
        parts = [block.toarray() if sparse.issparse(block) else block for block in blocks]
        return np.ascontiguousarray(np.hstack(parts), dtype=np.float32)
    matrix = sparse.hstack([sparse.csr_matrix(block) for block in blocks], format="csr", dtype=np.float32)
    matrix.sort_indices()
    return matrix
