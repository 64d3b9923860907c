"""From whatever a dataset holds to the two-dimensional matrix that scikit-learn wants."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_matrix(features: Any) -> Any:
    """One row a sample: images are flattened and scaled to 0..1; rows and sparse matrices stay as they are.

    >>> as_matrix(np.full((2, 2, 2, 1), 255, dtype=np.uint8)).tolist()
    [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """
    if getattr(features, "ndim", 2) <= 2:
        return features
    flat = features.reshape(len(features), -1)
    return flat.astype(np.float32) / np.float32(255) if flat.dtype == np.uint8 else flat
