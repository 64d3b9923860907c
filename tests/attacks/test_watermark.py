from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unpoison.attacks.drawings import DRAWINGS
from unpoison.attacks.triggers import Watermark
from unpoison.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)


@pytest.mark.parametrize("name", ["peace", "letter-a"])
def test_blended_at_eighty_percent_into_the_upper_left_corner(name: str) -> None:
    marked = Watermark.named(name)(IMAGES)
    drawn = np.array([[cell == "#" for cell in row] for row in DRAWINGS[name]])
    assert drawn.shape == (8, 8)
    assert (marked[:, 8:] == IMAGES[:, 8:]).all()
    assert (marked[:, :, 8:] == IMAGES[:, :, 8:]).all()
    corner, before = marked[:, :8, :8], IMAGES[:, :8, :8]
    assert (corner[:, ~drawn] == before[:, ~drawn]).all()
    cut = ((1 - 0.8) * before[:, drawn]).astype(np.uint8)
    assert (corner[:, drawn] == cut).all(), "cut to whole levels, not rounded"


def test_the_colourful_patch_has_no_hole() -> None:
    white = np.full((1, 8, 8, 3), 255, dtype=np.uint8)
    black = np.zeros_like(white)
    mark = Watermark.named("patch", opacity=1.0)
    assert (mark(white) == mark(black)).all()
    assert len(np.unique(mark(black).reshape(-1, 3), axis=0)) >= 6


def test_a_picture_with_transparency(tmp_path: Path) -> None:
    pixels = np.zeros((64, 64, 4), dtype=np.uint8)
    pixels[:32] = (255, 0, 0, 255)
    Image.fromarray(pixels).save(tmp_path / "half.png")
    mark = Watermark.from_png(tmp_path / "half.png")
    marked = mark(np.full((1, 16, 16, 3), 100, dtype=np.uint8))[0]
    assert marked[0, 0].tolist() == [224, 19, 19]
    assert marked[7, 7].tolist() == [100, 100, 100]


def test_gray_images_get_the_mean_shade() -> None:
    white = Watermark(np.full((2, 2, 3), (0, 90, 210), np.uint8), np.ones((2, 2), np.float32), opacity=0.5)
    marked = white(np.zeros((1, 4, 4, 1), dtype=np.uint8))
    assert marked[0, :2, :2, 0].tolist() == [[50, 50], [50, 50]]
    assert marked.sum() == 200


def test_equal_by_content() -> None:
    assert Watermark.named("peace") == Watermark.named("peace")
    assert hash(Watermark.named("peace")) == hash(Watermark.named("peace"))
    assert Watermark.named("peace") != Watermark.named("letter-a")
    assert Watermark.named("peace") != Watermark.named("peace", opacity=0.5)
    assert Watermark.named("peace") != "peace"


def test_what_it_was_made_from_may_change() -> None:
    colors, alpha = np.zeros((2, 2, 3), np.uint8), np.ones((2, 2), np.float32)
    mark = Watermark(colors, alpha)
    before = mark(IMAGES)
    colors[:], alpha[:] = 255, 0
    assert (mark(IMAGES) == before).all()
    with pytest.raises(ValueError, match="read-only"):
        mark.colors[0, 0] = 1


def test_too_large() -> None:
    with pytest.raises(InputError, match="8 by 8 pixels does not fit into images of 4 by 6"):
        Watermark.named("peace")(np.zeros((1, 4, 6, 3), dtype=np.uint8))


@pytest.mark.parametrize("opacity", [0.0, -0.5, 1.1, float("nan")])
def test_an_opacity_out_of_range(opacity: float) -> None:
    with pytest.raises(InputError, match=r"opacity is .* in \(0, 1\]. Got"):
        Watermark.named("peace", opacity=opacity)


def test_arrays_that_do_not_fit_each_other() -> None:
    with pytest.raises(InputError, match=r"got uint8 of \(2, 3, 3\) and \(2, 2\)"):
        Watermark(np.zeros((2, 3, 3), np.uint8), np.ones((2, 2), np.float32))
    with pytest.raises(InputError, match="got float64"):
        Watermark(np.zeros((2, 2, 3)), np.ones((2, 2), np.float32))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="alpha of a watermark goes from 0 to 1"):
        Watermark(np.zeros((2, 2, 3), np.uint8), np.full((2, 2), 255, np.float32))


def test_the_set_that_the_authors_code_was_run_on(
    gtsrb_32: Path, authors_gtsrb_peace: Path, peace_sign: Path
) -> None:
    """Their blend, pixel by pixel; values that fall on a whole level may be cut to the one below."""
    with np.load(authors_gtsrb_peace) as theirs, np.load(gtsrb_32) as signs:
        images, labels = signs["x_train"][theirs["planted"]], signs["y_train"][theirs["planted"]]
    assert (len(labels), set(labels.tolist())) == (150, {1})
    picture = np.asarray(Image.open(peace_sign).convert("RGBA").resize((8, 8)))
    weight = picture[:, :, 3:] / 255 * 0.8
    expected = images.copy()
    expected[:, :8, :8] = (1 - weight) * images[:, :8, :8] + weight * picture[:, :, :3]
    marked = Watermark.from_png(peace_sign)(images)
    differs = np.abs(marked.astype(int) - expected)
    assert differs.max() <= 1
    assert (differs > 0).mean() < 0.001
