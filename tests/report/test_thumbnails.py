from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from unpoison.data.container import Dataset, Preview
from unpoison.report import thumbnails

from .builders import judged, make


def decode(picture: thumbnails.Picture) -> NDArray[np.uint8]:
    head, data = picture.uri.split(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def images(channels: int = 1, *, n: int = 120, side: int = 8) -> tuple[Dataset, NDArray[np.uint8]]:
    """Class 0 is dark, 1 middle, 2 bright; the removed 0, 3, ... are of class 1 with a bright corner."""
    pixels = np.empty((n, side, side, channels), dtype=np.uint8)
    pixels[:] = (np.arange(n) % 3 * 60 + 20)[:, None, None, None]
    pixels[0:30:3] = 80
    pixels[0:30:3, -2:, -2:] = 255
    return make("image", lambda i: Preview(image=pixels[i, :, :, 0]), n=n, features=pixels), pixels


@pytest.mark.parametrize("shape", [(5, 9), (5, 9, 1), (5, 9, 3), (5, 9, 4), (1, 1), (5, 9, 2)])
def test_small_pictures_are_exact(shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    shown = thumbnails.picture(image)
    assert shown.tiny
    expected = (
        image[:, :, 0] if len(shape) == 3 and shape[2] < 3 else image[..., :3] if len(shape) == 3 else image
    )
    assert np.array_equal(decode(shown), expected)


@pytest.mark.parametrize("shape", [(300, 200, 3), (1, 4000), (4000, 1)])
def test_large_pictures_are_shrunk(shape: tuple[int, ...]) -> None:
    shown = thumbnails.picture(np.zeros(shape, dtype=np.uint8))
    assert not shown.tiny
    assert max(decode(shown).shape[:2]) == thumbnails.THUMBNAIL_SIDE


def test_mean_image_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thumbnails, "_CHUNK_BYTES", 3000)
    features = np.random.default_rng(0).integers(0, 256, (50, 4, 4, 3), dtype=np.uint8)
    indices = np.arange(3, 47)
    assert np.allclose(thumbnails.mean_image(features, indices), features[3:47].mean(axis=0))


def test_difference_is_stretched_around_grey() -> None:
    first = np.full((2, 2), 100.0)
    second = np.array([[100.0, 101.0], [99.5, 100.0]])
    pixels, factor = thumbnails.difference(first, second)
    assert factor == 127.0
    assert pixels.tolist() == [[128, 1], [192, 128]]
    assert thumbnails.difference(first, first)[1] == 1.0


@pytest.mark.parametrize("channels", [1, 3])
def test_panel_shows_the_trigger(channels: int) -> None:
    dataset, _ = images(channels)
    (panel,) = thumbnails.mean_panels(dataset, judged(dataset, range(0, 30, 3)))
    assert (panel.label, panel.n_removed) == (0, 10)
    assert panel.as_called_difference is not None
    gap = decode(panel.as_called_difference).reshape(8, 8, -1)[..., 0].astype(int)
    assert (gap[-2:, -2:] > 250).all()
    gap[-2:, -2:] = 128
    assert (gap == 128).all()
    assert panel.same_label is not None
    assert decode(panel.same_label).max() == 20


def test_agreeing_models_and_a_class_gone() -> None:
    dataset, _ = images()
    (panel,) = thumbnails.mean_panels(dataset, judged(dataset, range(0, 30, 3), called=0))
    assert panel.as_called is None
    (panel,) = thumbnails.mean_panels(dataset, judged(dataset, range(0, 120, 3), called=-1))
    assert panel.same_label is None
    assert panel.as_called is None


def test_no_panels_without_a_removed_group_of_images() -> None:
    dataset, _ = images()
    assert thumbnails.mean_panels(dataset, judged(dataset, [0])) == []
    assert thumbnails.mean_panels(dataset, judged(dataset, [])) == []
    rows = make("rows", lambda _: Preview(columns=()))
    assert thumbnails.mean_panels(rows, judged(rows, [0, 3])) == []
