from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from unpoison.data.container import Dataset, check_classes, check_unique
from unpoison.errors import InputError


def make(**changes) -> Dataset:
    fields = {
        "name": "toy",
        "kind": "rows",
        "features": np.zeros((4, 2), dtype=np.float32),
        "labels": np.array([0, 1, 0, 1]),
        "class_names": ("a", "b"),
        "ids": ("w", "x", "y", "z"),
        "sources": ("1", "2", "3", "4"),
        "sha256": ("h1", "h2", "h3", "h4"),
        "origin": None,
    }
    return Dataset(**(fields | changes))


def test_a_good_dataset_has_a_length_and_a_stable_fingerprint():
    dataset = make()
    assert len(dataset) == 4
    assert dataset.fingerprint == make().fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        {"ids": ("w", "x", "y", "other")},
        {"labels": np.array([1, 1, 0, 0])},
        {"class_names": ("a", "c")},
        {"sha256": ("h1", "h2", "h3", "other")},
    ],
)
def test_the_fingerprint_depends_on_ids_labels_and_content(changes):
    assert make(**changes).fingerprint != make().fingerprint


@pytest.mark.parametrize("field", ["ids", "sources", "sha256"])
def test_lengths_must_match(field):
    with pytest.raises(InputError, match=f"toy: 3 {field} for 4 labels"):
        make(**{field: ("1", "2", "3")})


def test_features_must_match_the_labels():
    with pytest.raises(InputError, match="toy: 3 samples but 4 labels"):
        make(features=np.zeros((3, 2)))


def test_duplicate_ids_are_named():
    with pytest.raises(InputError, match="toy: the id 'b' occurs more than once"):
        check_unique("toy", ["a", "b", "c", "b"])


@pytest.mark.parametrize(
    ("labels", "names", "message"),
    [
        ([], ("a", "b"), "no samples"),
        ([0, 0, 2, 2], ("a", "b", "c"), "class 'b' is empty"),
        ([0, 0, 2, 2], ("a", "b"), "label 2 has no class name"),
        ([0, 0], ("a",), "only one class"),
        ([0, 0, 1], ("a", "b"), "class 'b' has 1 sample"),
    ],
)
def test_label_sets_that_cannot_be_used(labels, names, message):
    with pytest.raises(InputError, match=message):
        check_classes("toy", np.array(labels, dtype=np.int64), names)


def test_importing_the_container_loads_no_heavy_package():
    code = (
        "import sys, unpoison.data.container; "
        "print([m for m in ('sklearn', 'scipy', 'pyarrow', 'PIL') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
