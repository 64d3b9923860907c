from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.core.groups.large_groups import ERROR, SMALLEST_GROUP, Cut, groups_apart
from unpoison.types import FloatArray

LARGEST = 1 / 3


def cloud(n: int = 400, dims: int = 30, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(n, dims)) * np.geomspace(3.0, 0.3, dims)


def with_group(size: int, distance: float, seed: int = 0) -> FloatArray:
    """The first ``size`` samples lie together, along an axis on which the others vary little."""
    view = cloud(seed=seed)
    view[:size, 12] += distance
    return view


def sharpest_cut(view: FloatArray, *, axes: int) -> Cut:
    return groups_apart(view, axes=axes, largest=LARGEST)[0]


@pytest.mark.parametrize("size", [12, 40, 100])
@pytest.mark.parametrize("seed", range(3))
def test_a_group_that_stands_apart_is_found_to_the_sample(size: int, seed: int) -> None:
    cut = sharpest_cut(with_group(size, 12.0, seed), axes=20)
    assert np.flatnonzero(cut.group).tolist() == list(range(size))
    assert cut.sharpness > 0.35


@pytest.mark.parametrize("seed", range(5))
def test_one_cloud_has_no_sharp_group(seed: int) -> None:
    assert sharpest_cut(cloud(seed=seed), axes=20).sharpness < 0.4


@pytest.mark.parametrize("seed", range(3))
def test_variety_of_degree_is_not_sharp(seed: int) -> None:
    view = cloud(seed=seed)
    view[:, 5] += np.linspace(0.0, 20.0, len(view))  # from one end to the other without a gap
    assert sharpest_cut(view, axes=20).sharpness < 0.45


def test_the_direction_need_not_be_an_axis() -> None:
    view = cloud()
    view[:30] += 4.0 * np.random.default_rng(1).choice([-1.0, 1.0], size=view.shape[1])
    cut = sharpest_cut(view, axes=25)
    assert np.flatnonzero(cut.group).tolist() == list(range(30))


def test_most_of_a_class_is_not_a_group() -> None:
    view = with_group(180, 12.0)
    cut = sharpest_cut(view, axes=20)
    assert cut.group.sum() <= LARGEST * len(view)
    assert cut.sharpness < 0.5


def test_a_few_odd_samples_are_not_a_group() -> None:
    cut = sharpest_cut(with_group(SMALLEST_GROUP - 1, 40.0), axes=20)
    assert not cut.group[: SMALLEST_GROUP - 1].all() or cut.group.sum() >= SMALLEST_GROUP
    assert cut.sharpness < 0.6


@pytest.mark.parametrize("view", [np.zeros((20, 4)), np.ones((1, 4)), np.zeros((3, 1))])
def test_nothing_to_tell_apart(view: FloatArray) -> None:
    assert groups_apart(view, axes=5, largest=LARGEST) == []


def test_two_groups_of_a_class_are_both_found() -> None:
    view = with_group(40, 14.0)
    view[40:55, 9] -= 14.0
    found = [np.flatnonzero(cut.group).tolist() for cut in groups_apart(view, axes=20, largest=LARGEST)[:8]]
    assert list(range(40)) in found
    assert list(range(40, 55)) in found


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-3, 1e3), st.integers(0, 50))
def test_scale_shift_and_order_do_not_matter(scale: float, seed: int) -> None:
    view = with_group(40, 12.0)
    order = np.random.default_rng(seed).permutation(len(view))
    cut = sharpest_cut(view[order] * scale + seed, axes=20)
    assert sorted(order[cut.group].tolist()) == list(range(40))


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_a_normal_distribution_cut_anywhere_has_no_sharpness(share: float) -> None:
    """On one axis the search ends at some cut of it; what is taken off for chance is put back."""
    view = np.random.default_rng(0).normal(size=(20_000, 1))
    (*_, last) = groups_apart(view, axes=1, largest=share)
    assert last.sharpness + ERROR / np.sqrt(last.group.sum()) == pytest.approx(0.0, abs=0.03)


def test_two_points_are_as_sharp_as_can_be() -> None:
    view = np.zeros((200, 2))
    view[:50, 1] = 1.0
    (cut,) = groups_apart(view, axes=1, largest=0.5)
    assert np.flatnonzero(cut.group).tolist() == list(range(50))
    assert cut.sharpness == pytest.approx(1.0 - ERROR / np.sqrt(50))
