"""Small real files to read, and a way to send a dataset out and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unpoison.data.container import Dataset
from unpoison.data.verify import ExpectedSample, check_clean


@pytest.fixture
def expected_of() -> Callable[[Dataset, np.ndarray], list[ExpectedSample]]:
    """The manifest of the kept samples."""

    def build(dataset: Dataset, keep: np.ndarray) -> list[ExpectedSample]:
        return [
            ExpectedSample(
                dataset.ids[i], dataset.sources[i], dataset.class_names[dataset.labels[i]], dataset.sha256[i]
            )
            for i in np.flatnonzero(keep)
        ]

    return build


@pytest.fixture
def write_clean(tmp_path, expected_of):
    """Write the kept samples, check that the clean set is found in order, and return where it is."""

    def write(dataset: Dataset, keep: np.ndarray) -> tuple[Path, list[ExpectedSample]]:
        directory = tmp_path / "clean"
        directory.mkdir()
        dataset.origin.write_kept(keep, directory)
        expected = expected_of(dataset, keep)
        assert check_clean(dataset.origin.form, directory, expected) == []
        return directory, expected

    return write


@pytest.fixture
def image_folder(tmp_path) -> Path:
    """Two classes of four distinct colour images of 40 x 48 pixels, PNG and JPEG, one in a subfolder."""
    root = tmp_path / "signs"
    rng = np.random.default_rng(0)
    for class_name in ("stop", "yield"):
        for i in range(4):
            place = root / class_name / ("more" if i == 3 else "") / f"{i}.{'jpg' if i == 1 else 'png'}"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (48, 40, 3), dtype=np.uint8)).save(place)
    return root


@pytest.fixture
def npz_file(tmp_path):
    """Write arrays to ``train.npz`` and give its path."""

    def write(**arrays) -> Path:
        path = tmp_path / "train.npz"
        np.savez(path, **arrays)
        return path

    return write


@pytest.fixture
def text_file(tmp_path):
    """Write text or bytes to a file and give its path."""

    def write(content: str | bytes, name: str = "train.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
