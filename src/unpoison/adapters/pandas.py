"""pandas: a DataFrame in, the same with the columns ``keep`` and ``suspicion`` out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unpoison.adapters.judging import Samples, judge, refuse_taken
from unpoison.data.columns import Table, build_features
from unpoison.data.files import refusing
from unpoison.data.options import DEFAULT_MAX_BYTES
from unpoison.data.table import find_column, read_labels
from unpoison.errors import InputError
from unpoison.estimator import IncompatibilityClustering

if TYPE_CHECKING:
    from pandas import DataFrame

NAME = "the frame"


def judged(
    frame: DataFrame,
    cleaner: IncompatibilityClustering | None = None,
    *,
    label: str,
    text: str | None = None,
) -> DataFrame:
    """The frame, index and all, with ``keep`` (train on it) and ``suspicion`` (0 to 1) for every row.

    ``cleaner`` is fitted on the frame, or taken as it is where it was fitted already; without one it is the
    usual of ``unpoison clean``. See :func:`samples` for ``label`` and ``text``.

    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).frame
    >>> judged(wine, label="target").columns[-2:].tolist()
    ['keep', 'suspicion']
    """
    refuse_taken(frame.columns, NAME)
    fitted = judge(cleaner, len(frame), lambda: samples(frame, label=label, text=text))
    return frame.assign(keep=fitted.keep_, suspicion=fitted.suspicion_)


def samples(frame: DataFrame, *, label: str, text: str | None = None) -> Samples:
    """Features and labels of a frame, as of a table in a file.

    Columns of numbers are standardized, those of few strings become categories, those that read like text
    are vectorized; ``text`` names one that is text whatever it looks like.
    """
    table = _table(frame)
    find_column(NAME, table.columns, label, "label=")
    if text is not None:
        find_column(NAME, table.columns, text, "text=")
    labels, names = read_labels(table, label)
    columns = [column for column in table.columns if column != label]
    features = build_features(table, columns, text=text, max_bytes=DEFAULT_MAX_BYTES)
    return features.matrix, np.array(names)[labels]


def _table(frame: DataFrame) -> Table:
    """The cells as text, in the way of a Parquet file with the same columns."""
    import pyarrow as pa

    from unpoison.data.parquet import ParquetTable, cell_text, is_plain

    if len(frame) == 0:
        raise InputError(f"{NAME} has no rows; add samples")
    names = [str(column) for column in frame.columns]
    if len(set(names)) != len(names):
        raise InputError(f"{NAME} has two columns of one name; rename one. The columns are: {names}")
    with refusing(NAME, "turn every column into numbers or strings"):
        arrow = pa.Table.from_pandas(frame.set_axis(names, axis=1), preserve_index=False)
    for field in arrow.schema:
        if not is_plain(field.type):
            raise InputError(
                f"{NAME}: the column {field.name!r} holds {field.type}; drop it or turn it "
                "into numbers or strings"
            )
    values: dict[str, list[Any]] = ParquetTable(NAME, arrow, arrow.schema).values()
    cells = {column: [cell_text(value) for value in given] for column, given in values.items()}
    return Table(NAME, cells, tuple(f"row {name!r}" for name in frame.index))
