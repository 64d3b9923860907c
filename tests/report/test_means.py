from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset, Preview
from unpoison.report import means
from unpoison.report.groups import suspect_groups

from .builders import decoded, judged, make


def images(channels: int = 1, *, n: int = 120, side: int = 8) -> tuple[Dataset, NDArray[np.uint8]]:
    """Class 0 is dark, 1 middle, 2 bright; the removed 0, 3, ... are of class 1 with a bright corner."""
    pixels = np.empty((n, side, side, channels), dtype=np.uint8)
    pixels[:] = (np.arange(n) % 3 * 60 + 20)[:, None, None, None]
    pixels[0:30:3] = 80
    pixels[0:30:3, -2:, -2:] = 255
    return make("image", lambda i: Preview(image=pixels[i, :, :, 0]), n=n, features=pixels), pixels


def panels(dataset: Dataset, result: Sanitization) -> list[means.MeanPanel]:
    return means.mean_panels(dataset, result, suspect_groups(dataset.labels, result))


def test_moments_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(means, "_CHUNK_BYTES", 3000)
    features = np.random.default_rng(0).integers(0, 256, (50, 4, 4, 3), dtype=np.uint8)
    found = means.moments(features, np.arange(3, 47))
    assert np.allclose(found.mean, features[3:47].mean(axis=0))
    assert np.allclose(found.spread, features[3:47].std(axis=0))


def test_difference_is_stretched_around_grey() -> None:
    pixels, factor = means.difference(np.array([[0.0, -1.0], [0.5, 0.0]]))
    assert factor == 127.0
    assert pixels.tolist() == [[128, 1], [192, 128]]
    assert means.difference(np.zeros((2, 2)))[1] == 1.0


def test_what_belongs_to_one_of_the_classes_is_no_mark() -> None:
    first, second = np.array([5.0, 5.0, -5.0, 5.0]), np.array([3.0, -3.0, -7.0, 0.0])
    assert means.differs_from_both(first, second).tolist() == [3.0, 0.0, -5.0, 0.0]


@pytest.mark.parametrize("channels", [1, 3])
def test_panel_shows_the_trigger_and_says_where(channels: int) -> None:
    dataset, _ = images(channels)
    (panel,) = panels(dataset, judged(dataset, range(0, 30, 3)))
    assert (panel.suspects.label, panel.suspects.called, len(panel.suspects.members)) == (0, 1, 10)
    assert panel.place == "in the lower right corner"
    assert panel.as_called is not None
    assert panel.mark is not None
    for shown in (panel.as_called.difference, panel.mark):
        gap = decoded(shown).reshape(8, 8, -1)[..., 0].astype(int)
        assert (gap[-2:, -2:] > 250).all()
    gap = decoded(panel.as_called.difference).reshape(8, 8, -1)[..., 0].astype(int)
    gap[-2:, -2:] = 128
    assert (gap == 128).all()
    assert panel.same_label is not None
    assert decoded(panel.same_label.kept).max() == 20


def test_agreeing_models_and_a_class_gone() -> None:
    dataset, _ = images()
    (panel,) = panels(dataset, judged(dataset, range(0, 30, 3), called=0))
    assert panel.as_called is None
    assert panel.same_label is not None
    (panel,) = panels(dataset, judged(dataset, range(0, 120, 3), called=-1))
    assert (panel.as_called, panel.same_label, panel.mark, panel.place) == (None, None, None, None)


def test_a_group_called_many_things_is_compared_with_their_mixture() -> None:
    dataset, _ = images()
    result = judged(dataset, range(0, 30, 3))
    result.predicted[0:30:3] = [1, 2, 1, 2, -1, 1, 2, 1, 2, -1]
    (panel,) = panels(dataset, result)
    assert panel.suspects.called == -1
    assert panel.as_called is not None
    assert set(decoded(panel.as_called.kept).ravel().tolist()) == {110}, "half 80 and half 140"


def test_no_panels_without_a_removed_group_of_images() -> None:
    dataset, _ = images()
    assert panels(dataset, judged(dataset, [0])) == []
    assert panels(dataset, judged(dataset, [])) == []
    rows = make("rows", lambda _: Preview(columns=()))
    assert panels(rows, judged(rows, [0, 3])) == []
