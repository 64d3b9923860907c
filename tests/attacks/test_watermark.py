from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unpoison.attacks.dirty_label import DirtyLabel
from unpoison.attacks.triggers import PEACE, Watermark
from unpoison.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)


def test_blended_at_eighty_percent_into_the_upper_left_corner() -> None:
    marked = Watermark.peace()(IMAGES)
    drawn = np.array([[cell == "#" for cell in row] for row in PEACE])
    assert drawn.shape == (8, 8)
    assert (marked[:, 8:] == IMAGES[:, 8:]).all()
    assert (marked[:, :, 8:] == IMAGES[:, :, 8:]).all()
    corner, before = marked[:, :8, :8], IMAGES[:, :8, :8]
    assert (corner[:, ~drawn] == before[:, ~drawn]).all()
    assert (np.abs(corner[:, drawn] - 0.2 * before[:, drawn]) <= 0.5).all()


def test_a_picture_with_transparency(tmp_path: Path) -> None:
    pixels = np.zeros((64, 64, 4), dtype=np.uint8)
    pixels[:32] = (255, 0, 0, 255)
    Image.fromarray(pixels).save(tmp_path / "half.png")
    mark = Watermark.from_png(tmp_path / "half.png")
    marked = mark(np.full((1, 16, 16, 3), 100, dtype=np.uint8))[0]
    assert marked[0, 0].tolist() == [224, 20, 20]
    assert marked[7, 7].tolist() == [100, 100, 100]


def test_gray_images_get_the_mean_shade() -> None:
    white = Watermark(np.full((2, 2, 3), (0, 90, 210), np.uint8), np.ones((2, 2), np.float32), opacity=0.5)
    marked = white(np.zeros((1, 4, 4, 1), dtype=np.uint8))
    assert marked[0, :2, :2, 0].tolist() == [[50, 50], [50, 50]]
    assert marked.sum() == 200


def test_what_is_given_stays_as_it_is() -> None:
    images = IMAGES.copy()
    images.flags.writeable = False
    Watermark.peace()(images)
    assert (images == IMAGES).all()


def test_as_a_dirty_label_trigger() -> None:
    labels = np.array([0, 0, 1, 1, 1])
    poisoned = DirtyLabel(0, 1, 1.0, Watermark.peace()).apply(IMAGES, labels, seed=0)
    assert poisoned.truth.tolist() == [True, True, False, False, False]
    assert (poisoned.images[0] == Watermark.peace()(IMAGES[:1])[0]).all()


def test_too_large() -> None:
    with pytest.raises(InputError, match="8 by 8 pixels does not fit into images of 4 by 6"):
        Watermark.peace()(np.zeros((1, 4, 6, 3), dtype=np.uint8))
