"""Names for the arrays that pass between the parts of unpoison."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

IndexArray: TypeAlias = NDArray[np.int64]
"""Positions of samples in the dataset, shape ``(m,)``."""

LabelArray: TypeAlias = NDArray[np.int64]
"""One class number per sample, ``0 .. n_classes - 1``."""

FloatArray: TypeAlias = NDArray[np.float64]
"""Real numbers: losses, probabilities, suspicion."""

BoolArray: TypeAlias = NDArray[np.bool_]
"""One truth value per sample, such as ``keep``."""

Arrays: TypeAlias = dict[str, NDArray[np.generic]]
"""A named bundle of arrays: what one task returns and one checkpoint holds."""
