"""Digits as images of 16 by 16."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from unpoison.attacks.base import Samples


def first_digits(n: int) -> Samples:
    data = load_digits()
    images = (15 * data.images[:n]).astype(np.uint8).repeat(2, axis=1).repeat(2, axis=2)[..., None]
    return Samples(images, data.target[:n].astype(np.int64), tuple("0123456789"))
