from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, features

from unpoison.report import thumbnails

from .builders import decoded


@pytest.mark.parametrize("shape", [(5, 9), (5, 9, 1), (5, 9, 3), (5, 9, 4), (1, 1), (5, 9, 2)])
def test_small_pictures_are_exact(shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    shown = thumbnails.picture(image)
    assert shown.tiny
    expected = (
        image[:, :, 0] if len(shape) == 3 and shape[2] < 3 else image[..., :3] if len(shape) == 3 else image
    )
    assert np.array_equal(decoded(shown), expected)


@pytest.mark.parametrize("shape", [(300, 200, 3), (1, 4000), (4000, 1)])
def test_large_pictures_are_shrunk(shape: tuple[int, ...]) -> None:
    shown = thumbnails.picture(np.zeros(shape, dtype=np.uint8))
    assert not shown.tiny
    assert max(decoded(shown).shape[:2]) == thumbnails.CLOSE_SIDE


def photograph() -> NDArray[np.uint8]:
    """Smooth with some grain, as photographs are."""
    rng = np.random.default_rng(0)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((32, 32), Image.Resampling.BICUBIC)).astype(float)
    return np.clip(smooth + rng.normal(0, 4, (32, 32, 3)), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("has_webp", [True, False])
def test_pictures_that_need_not_be_exact_are_small_and_close(
    has_webp: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_webp:
        monkeypatch.setattr(features, "check", lambda _: False)
    image = photograph()
    small = thumbnails.encode(image, side=32, exact=False)
    assert small.startswith("webp;base64," if has_webp else "jpeg;base64,")
    assert len(small) < 0.6 * len(thumbnails.encode(image, side=32, exact=True))
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(small.split(",")[1]))))
    assert np.abs(pixels.astype(int) - image).mean() < 10
