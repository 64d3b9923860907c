from __future__ import annotations

import numpy as np
import pytest

from unpoison.data.named.splits import check_count, write_split
from unpoison.errors import InputError

from .builders import SMALL, images, labels

SPEC = SMALL["fashion-mnist"]


def test_the_same_samples_give_the_same_bytes(tmp_path, written):
    for folder in (tmp_path, written):
        write_split(folder, SPEC, "test", images(20, 28, 28, 1), labels(20).astype(np.uint8))
    assert (tmp_path / "test.npz").read_bytes() == (written / "test.npz").read_bytes()
    with np.load(written / "test.npz", allow_pickle=False) as found:
        assert found["y"].dtype == np.int64
        assert found["ids"][19] == "fashion-mnist/test/00019"


def test_nothing_is_written_that_does_not_fit(written):
    x, y = images(20, 28, 28, 1), labels(20)
    for wrong in (
        lambda: write_split(written, SPEC, "train", x, y),
        lambda: write_split(written, SPEC, "test", x[..., 0], y),
        lambda: write_split(written, SPEC, "test", x, y[:19]),
        lambda: write_split(written, SPEC, "test", x, y, track=y[:19]),
        lambda: write_split(written, SPEC, "test", x, y.astype(str)),
    ):
        with pytest.raises(InputError, match=r"fashion-mnist: "):
            wrong()
    assert list(written.iterdir()) == []


def test_counts():
    assert check_count(SPEC, "train", 30) == 30
    with pytest.raises(InputError, match="29 train images found where there are 30; give the folder with"):
        check_count(SPEC, "train", 29)
