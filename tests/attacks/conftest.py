from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from unpoison.attacks.base import Samples
from unpoison.attacks.reference import ReferenceOptions


@pytest.fixture(scope="module")
def trained_once() -> Iterator[None]:
    """The same network is trained once for all tests of a file."""
    train, known = ReferenceOptions.train, {}

    def remembered(options: ReferenceOptions, samples: Samples, *, seed: int) -> Any:
        key = (options, samples.features.tobytes(), seed)
        if key not in known:
            known[key] = train(options, samples, seed=seed)
        return known[key]

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(ReferenceOptions, "train", remembered)
        yield
