from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from unpoison.core.config import IsplSettings
from unpoison.core.learner import Assessment
from unpoison.core.pipeline import sanitize

from .fakes import CentroidFactory, two_blobs


def test_an_assessment_is_frozen() -> None:
    assessment = Assessment(np.zeros(1), np.zeros(1, dtype=np.int64), np.ones(1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        assessment.losses = np.ones(1)  # type: ignore[misc]


def test_the_protocol_is_all_that_a_learner_needs_for_ispl() -> None:
    """Every model is a fresh one, with a seed of its own, and only fit, assess and cost are used."""
    rows, labels = two_blobs()
    factory = CentroidFactory(rows, labels)
    result = sanitize(labels, factory, IsplSettings(rounds=2, restarts=2), seed=3)
    assert len(factory.seeds_asked) == 4 + 4 + 1
    assert len(set(factory.seeds_asked)) == 4 + 4 + 1
    assert result.keep.shape == labels.shape


def test_the_core_needs_numpy_only() -> None:
    heavy = "{'sklearn', 'scipy', 'joblib', 'torch', 'click', 'rich', 'PIL', 'jinja2', 'pyarrow', 'pandas'}"
    code = (
        "import sys, unpoison.core.pipeline, unpoison.core.presets\n"
        f"found = {heavy} & {{name.split('.')[0] for name in sys.modules}}\n"
        "sys.exit(', '.join(sorted(found)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert done.returncode == 0
