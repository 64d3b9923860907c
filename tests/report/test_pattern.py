from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from unpoison.report.means import differs_from_both, moments
from unpoison.report.pattern import find_pattern

PLACES = {
    (1, 1): "in the upper left corner",
    (1, 14): "at the upper edge",
    (1, 27): "in the upper right corner",
    (14, 1): "at the left edge",
    (14, 14): "in the middle",
    (14, 27): "at the right edge",
    (27, 1): "in the lower left corner",
    (27, 14): "at the lower edge",
    (27, 27): "in the lower right corner",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_patch_is_found_where_it_is(place: tuple[int, int], channels: int) -> None:
    rng = np.random.default_rng(0)
    mark = rng.normal(0, 3, (32, 32, channels))
    mark[place[0] : place[0] + 4, place[1] : place[1] + 4] += 100
    assert find_pattern(mark, np.full(mark.shape, 50.0), size=20) == PLACES[place]


def test_a_single_pixel_is_a_pattern() -> None:
    mark = np.zeros((32, 32, 3))
    mark[30, 2] = -120
    assert find_pattern(mark, np.full(mark.shape, 50.0), size=20) == "in the lower left corner"


def test_what_is_everywhere_smooth_weak_or_of_too_few_is_none() -> None:
    rng = np.random.default_rng(0)
    spread = np.full((32, 32, 3), 50.0)
    lighting = np.linspace(-60, 60, 32)[:, None, None] * np.ones((32, 32, 3))
    assert find_pattern(lighting, spread, size=50) is None
    assert find_pattern(rng.normal(0, 40, (32, 32, 3)), spread, size=50) is None
    weak = np.zeros((32, 32, 3))
    weak[:4, :4] = 10
    assert find_pattern(weak, spread, size=20) is None
    strong = 10 * weak
    assert find_pattern(strong, spread, size=20) is not None
    assert find_pattern(strong, spread, size=4) is None
    assert find_pattern(np.zeros((32, 32, 3)), np.zeros((32, 32, 3)), size=20) is None
    assert find_pattern(np.full((2, 2, 1), 9.0), np.ones((2, 2, 1)), size=20) is None


def test_of_real_images_drawn_at_random_few_are_given_a_pattern_and_of_marked_ones_most() -> None:
    """Digits of one class put among another, without and with a bright patch in the corner."""
    bunch = load_digits()
    images = (bunch.images * 15)[..., None]
    rng = np.random.default_rng(0)
    claimed, found = 0, 0
    for _ in range(40):
        own, other = rng.choice(10, 2, replace=False)
        members = np.flatnonzero(bunch.target == own)
        group = rng.choice(members, 25, replace=False)
        called = moments(images, np.setdiff1d(members, group))
        label = moments(images, np.flatnonzero(bunch.target == other))
        spread = np.sqrt((called.spread**2 + label.spread**2) / 2)
        for patch in (False, True):
            marked = images[group].copy()
            if patch:
                marked[:, -2:, -2:] = 240
            mean = marked.mean(axis=0)
            place = find_pattern(
                differs_from_both(mean - called.mean, mean - label.mean), spread, size=len(group)
            )
            claimed += not patch and place is not None
            found += patch and place == "in the lower right corner"
    assert claimed <= 3
    assert found >= 30
