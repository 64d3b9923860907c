"""What a group is made of, by what it is called and by how classes are mistaken for one another.

A model that confuses cats and dogs calls many dogs cats. That a group of dogs is called cats says little
then, and that it is called ships says much. So the calls of a group are explained as a mixture of the calls
of the classes, the shares found by expectation maximisation (Saerens, Latinne and Decaestecker 2002).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.types import FloatArray, LabelArray

STEPS = 200
PRIOR = 0.5
"""Calls added to those of each class, spread over all classes: what was never seen is not impossible."""


def calls_by_class(called: NDArray[np.integer], labels: LabelArray, *, n_classes: int) -> FloatArray:
    """How often samples of each class (a row) are called each class (a column)."""
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (labels, called), 1.0)
    return counts


def composition(called: NDArray[np.integer], calls: FloatArray) -> FloatArray:
    """The share of each class in a group whose samples are ``called`` so; ``calls`` as above.

    >>> calls = np.array([[80.0, 20.0], [20.0, 80.0]])
    >>> composition(np.array([0] * 80 + [1] * 20), calls).round(1).tolist()
    [1.0, 0.0]
    """
    n_classes = len(calls)
    likely = (calls + PRIOR / n_classes) / (calls.sum(axis=1, keepdims=True) + PRIOR)
    counts = np.bincount(called, minlength=n_classes)
    shares: FloatArray = np.full(n_classes, 1.0 / n_classes)
    for _ in range(STEPS):
        joint = shares[:, None] * likely
        shares = (joint / joint.sum(axis=0) * counts).sum(axis=1) / counts.sum()
    return shares
