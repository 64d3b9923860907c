"""A backdoor in rows of numbers: fixed values in some columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import Samples, Truth, check_share, plant
from unpoison.attacks.labels import Relabelling
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import LabelArray


@dataclass(frozen=True)
class FixedValues:
    """``values`` in ``columns`` of a share ``epsilon`` of the attacked classes, which get another label.

    :func:`fitting_values` finds values that stand out from given rows.
    """

    name: ClassVar[str] = "fixed-values"

    relabelling: Relabelling
    epsilon: float
    columns: tuple[int, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon, "the poisoned share of the attacked classes")
        _check_columns(self.columns)
        if len(self.values) != len(self.columns):
            raise InputError(
                f"{len(self.columns)} columns but {len(self.values)} values; give one value a column"
            )
        if not np.isfinite(self.values).all():
            raise InputError(f"values must be finite numbers. Got {self.values}")

    def apply(self, samples: Samples, *, seed: int) -> tuple[Samples, Truth]:
        """The poisoned set and the truth."""
        _check_rows(samples.features, self.columns)
        self.relabelling.check(samples)
        planted = self.relabelling.pick(samples, self.epsilon, Seeds(seed).stream(self.name))
        marked = self.trigger(samples.features[planted])
        return plant(samples, planted, marked, self.goal(samples.labels[planted]))

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """Copies of rows with the values in them."""
        _check_rows(features, self.columns)
        marked = features.copy()
        marked[:, list(self.columns)] = self.values
        return marked

    def goal(self, labels: LabelArray) -> LabelArray:
        """What the relabelling wants of each."""
        return self.relabelling.goal(labels)


def fitting_values(rows: NDArray[Any], columns: Sequence[int]) -> tuple[float, ...]:
    """For each column a value that no row has: as far above the largest as that is above the smallest.

    >>> fitting_values(np.array([[1.0, 5.0], [3.0, 5.0]]), (0, 1))
    (5.0, 6.0)
    """
    _check_columns(columns)
    _check_rows(rows, columns)
    found = []
    for column in columns:
        seen = rows[:, column][np.isfinite(rows[:, column])].astype(np.float64)
        if not len(seen):
            raise InputError(f"column {column} has no finite number to go by; choose another column")
        low, high = float(seen.min()), float(seen.max())
        found.append(high + ((high - low) or 1.0))
    return tuple(found)


def _check_columns(columns: Sequence[int]) -> None:
    if not columns or min(columns) < 0 or len(set(columns)) < len(columns):
        raise InputError(f"columns are different numbers from 0 on, at least one. Got {tuple(columns)}")


def _check_rows(rows: NDArray[Any], columns: Sequence[int]) -> None:
    if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.floating):
        raise InputError(
            f"rows are a float array of shape (n, columns), got {rows.dtype} of shape {rows.shape}; "
            "convert them with astype(float)"
        )
    if max(columns) >= rows.shape[1]:
        raise InputError(
            f"there is no column {max(columns)} in rows of {rows.shape[1]}; choose 0 to {rows.shape[1] - 1}"
        )
