"""The axes of what a model sees along which a class varies unlike the other classes."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from unpoison.core.sampling import class_members
from unpoison.types import FloatArray, LabelArray

EVENED = 0.1
"""Added to how much the other classes vary along any direction, as a part of the mean over directions."""
FAINT = 1e-9
"""Axes with less than this part of the variance of the first are rounding errors."""


def axes_by_class(
    view: NDArray[np.floating], labels: LabelArray, *, axes: int, only: Collection[int]
) -> NDArray[np.float32]:
    """What a model sees of each sample (a row each), on the axes along which its class varies unlike others.

    What makes photographs of anything differ, such as light or background, varies in every class. A trigger
    varies in the classes that it was planted in. ``only`` names the classes that are wanted; the rows of
    others are 0.
    """
    spread = view.std(axis=0)
    centred = (view / (spread + 1e-3 * max(float(spread.mean()), 1e-12))).astype(np.float64)
    classes = class_members(labels)
    for members in classes:
        centred[members] -= centred[members].mean(axis=0)
    scatter = centred.T @ centred
    found = np.zeros((len(view), axes), dtype=np.float32)
    for members in classes:
        if int(labels[members[0]]) not in only:
            continue
        own = centred[members]
        others = (scatter - own.T @ own) / max(len(view) - len(members), 1)
        part = leading_axes(own @ _evening(others), axes)[0]
        found[members, : part.shape[1]] = part
    return found


def leading_axes(view: FloatArray, axes: int) -> tuple[FloatArray, FloatArray]:
    """Coordinates on the leading axes of the centred rows, and the variance along each."""
    centred = view - view.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    variances, directions = variances[::-1][:axes], directions[:, ::-1][:, :axes]
    real = variances > FAINT * max(float(variances[0]), np.finfo(np.float64).tiny)
    directions = directions[:, real]
    # the sign of an eigenvector is arbitrary; fix it so that results do not depend on the library
    strongest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[strongest, np.arange(directions.shape[1])])
    return centred @ directions, variances[real]


def _evening(variation: FloatArray) -> FloatArray:
    """The matrix after which what varies like ``variation`` varies as much in every direction."""
    variances, directions = np.linalg.eigh(variation)
    floor = EVENED * float(np.maximum(variances, 0.0).mean())
    if floor <= np.finfo(np.float64).tiny:  # there is no other class, or it does not vary
        return np.eye(len(variation))
    evened: FloatArray = directions / np.sqrt(np.maximum(variances, 0.0) + floor)
    return evened
