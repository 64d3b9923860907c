"""From whatever a dataset holds to the two-dimensional matrix that scikit-learn wants."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_matrix(features: Any, *, standardize: bool = False) -> Any:
    """One row a sample: images are flattened and scaled to 0..1; rows and sparse matrices stay as they are.

    With ``standardize``, dense rows get mean 0 and variance 1 a column, over all samples, once: the few
    samples of a subset would give every model another scale. Columns of 0 and 1 stay as they are: a rare
    category would weigh the more, the fewer samples have it.

    >>> as_matrix(np.full((2, 2, 2, 1), 255, dtype=np.uint8)).tolist()
    [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """
    if getattr(features, "ndim", 2) > 2:
        flat = features.reshape(len(features), -1)
        return flat.astype(np.float32) / np.float32(255) if flat.dtype == np.uint8 else flat
    if not standardize or hasattr(features, "tocsr"):
        return features
    columns = np.asarray(features, dtype=np.float64)
    spread = columns.std(axis=0)
    is_flag = ((columns == 0.0) | (columns == 1.0)).all(axis=0) & (spread > 0)
    standard = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.where(is_flag, columns, standard)
