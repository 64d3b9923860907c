from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.core.comovement import Split
from unpoison.core.standing_apart import SMALLEST_GROUP, axes_by_class, groups_apart, grown, sharpness
from unpoison.types import BoolArray, FloatArray


def cloud(n: int = 400, dims: int = 30, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(n, dims)) * np.geomspace(3.0, 0.3, dims)


def with_group(size: int, distance: float, seed: int = 0) -> FloatArray:
    """The first ``size`` samples lie together, along an axis on which the others vary little."""
    view = cloud(seed=seed)
    view[:size, 12] += distance
    return view


def sharpest_split(view: FloatArray, *, axes: int) -> Split:
    return groups_apart(view, axes=axes)[0]


@pytest.mark.parametrize("size", [12, 40, 100])
@pytest.mark.parametrize("seed", range(3))
def test_a_group_that_stands_apart_is_found_to_the_sample(size: int, seed: int) -> None:
    split = sharpest_split(with_group(size, 12.0, seed), axes=20)
    assert np.flatnonzero(split.group).tolist() == list(range(size))
    assert split.separation > 0.35
    assert split.halo.sum() <= 4


@pytest.mark.parametrize("seed", range(5))
def test_one_cloud_has_no_sharp_group(seed: int) -> None:
    assert sharpest_split(cloud(seed=seed), axes=20).separation < 0.4


@pytest.mark.parametrize("seed", range(3))
def test_variety_of_degree_is_not_sharp(seed: int) -> None:
    view = cloud(seed=seed)
    view[:, 5] += np.linspace(0.0, 20.0, len(view))  # from one end to the other without a gap
    assert sharpest_split(view, axes=20).separation < 0.45


def test_the_direction_need_not_be_an_axis() -> None:
    view = cloud()
    view[:30] += 4.0 * np.random.default_rng(1).choice([-1.0, 1.0], size=view.shape[1])
    split = sharpest_split(view, axes=25)
    assert np.flatnonzero(split.group).tolist() == list(range(30))


def test_who_is_some_of_the_way_is_in_the_halo() -> None:
    view = with_group(40, 14.0)
    view[40:44, 12] += 5.5
    split = sharpest_split(view, axes=20)
    assert split.group[:40].all()
    assert not split.group[40:].any()
    assert split.halo[40:44].all()
    assert not (split.halo & split.group).any()


def test_most_of_a_class_is_not_a_group() -> None:
    view = with_group(180, 12.0)
    split = sharpest_split(view, axes=20)
    assert split.group.sum() <= len(view) / 3
    assert split.separation < 0.5


def test_a_few_odd_samples_are_not_a_group() -> None:
    split = sharpest_split(with_group(SMALLEST_GROUP - 1, 40.0), axes=20)
    assert not split.group[: SMALLEST_GROUP - 1].all() or split.group.sum() >= SMALLEST_GROUP
    assert split.separation < 0.6


@pytest.mark.parametrize("view", [np.zeros((20, 4)), np.ones((1, 4)), np.zeros((3, 1))])
def test_nothing_to_tell_apart(view: FloatArray) -> None:
    assert groups_apart(view, axes=5) == []


def test_two_groups_of_a_class_are_both_found() -> None:
    view = with_group(40, 14.0)
    view[40:55, 9] -= 14.0
    found = [np.flatnonzero(split.group).tolist() for split in groups_apart(view, axes=20)[:8]]
    assert list(range(40)) in found
    assert list(range(40, 55)) in found


def test_a_hint_leads_to_a_group_that_lies_along_no_axis() -> None:
    view = np.random.default_rng(2).normal(size=(400, 20))
    view[:16] += 1.2 * np.random.default_rng(52).choice([-1.0, 1.0], size=20)
    hint = np.zeros(400, dtype=bool)
    hint[4:22] = True

    def is_found(*hints: BoolArray) -> bool:
        groups = [np.flatnonzero(split.group).tolist() for split in groups_apart(view, axes=20, hints=hints)]
        return list(range(16)) in groups

    assert is_found(hint)
    assert not is_found()


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-3, 1e3), st.integers(0, 50))
def test_scale_shift_and_order_do_not_matter(scale: float, seed: int) -> None:
    view = with_group(40, 12.0)
    order = np.random.default_rng(seed).permutation(len(view))
    split = sharpest_split(view[order] * scale + seed, axes=20)
    assert sorted(order[split.group].tolist()) == list(range(40))


@given(st.floats(0.001, 0.5))
def test_a_normal_distribution_cut_anywhere_has_no_sharpness(share: float) -> None:
    values = np.sort(np.random.default_rng(0).normal(size=20_000))
    size = max(1, round(share * len(values)))
    parts = values[:-size], values[-size:]
    within = sum(((part - part.mean()) ** 2).sum() for part in parts)
    separation = 1.0 - within / ((values - values.mean()) ** 2).sum()
    assert sharpness(separation, size / len(values)) == pytest.approx(0.0, abs=0.03)


def test_axes_are_those_of_each_class() -> None:
    labels = np.repeat([0, 1], 50)
    rng = np.random.default_rng(0)
    view = np.zeros((100, 6))
    view[:50, 2] += rng.normal(size=50) * 5.0
    view[50:, 4] += rng.normal(size=50) * 5.0
    found = axes_by_class(view, labels, axes=3)
    assert found.shape == (100, 3)
    for members, column in ((slice(0, 50), 2), (slice(50, 100), 4)):
        assert abs(np.corrcoef(found[members, 0], view[members, column])[0, 1]) > 0.99


def test_what_varies_in_every_class_does_not_come_first() -> None:
    labels = np.repeat([0, 1, 2], 100)
    view = np.random.default_rng(0).normal(size=(300, 6))
    view[:, 1] *= 9.0  # the light, say
    view[:20, 4] += 3.0  # of class 0 alone
    view[:20, 5] += 3.0
    first = axes_by_class(view, labels, axes=2)[:100, 0]
    assert abs(np.corrcoef(first, view[:100, 4] + view[:100, 5])[0, 1]) > 0.9


def test_fewer_columns_than_axes_leave_zeros() -> None:
    found = axes_by_class(np.random.default_rng(0).normal(size=(30, 2)), np.zeros(30, dtype=int), axes=5)
    assert found.shape == (30, 5)
    assert not found[:, 2:].any()
    assert np.isfinite(axes_by_class(np.zeros((4, 2)), np.array([0, 0, 1, 1]), axes=5)).all()


def _with_stragglers(seed: int, *, axes: int = 40) -> tuple[FloatArray, BoolArray]:
    """A class of 300 in which 40 are marked along many axes a little; the search has cut off 12 of them."""
    rng = np.random.default_rng(seed)
    view = rng.normal(size=(300, axes))
    view[:40, :30] += 1.2
    found = np.zeros(300, dtype=bool)
    found[:28] = True
    return view, found


@pytest.mark.parametrize("seed", range(5))
def test_a_group_takes_in_its_stragglers_and_hardly_anyone_else(seed: int) -> None:
    view, found = _with_stragglers(seed)
    taken = grown(view, found)
    assert taken[found].all()
    assert taken[28:40].sum() >= 10
    assert taken[40:].sum() <= 13


@pytest.mark.parametrize("seed", range(3))
def test_a_group_of_nothing_in_common_takes_in_few(seed: int) -> None:
    """With nearly as many axes as samples any few lie apart: each is placed by those found without it."""
    view = np.random.default_rng(seed).normal(size=(120, 100))
    found = np.arange(120) < 8
    assert grown(view, found)[8:].sum() <= 12


def test_growing_does_not_depend_on_scale_or_place() -> None:
    view, found = _with_stragglers(1)
    np.testing.assert_array_equal(grown(view, found), grown(50.0 * view + 7.0, found))


@pytest.mark.parametrize("n", [10, 12, 30])
def test_small_classes_can_grow_a_group(n: int) -> None:
    for seed in range(40):
        view = np.random.default_rng(seed).normal(size=(n, 8))
        found = np.arange(n) < 5
        taken = grown(view, found)
        assert taken[found].all()


def test_nobody_is_taken_in_where_hardly_anyone_is_left() -> None:
    view = np.random.default_rng(0).normal(size=(12, 4))
    found = np.arange(12) < 10
    np.testing.assert_array_equal(grown(view, found), found)


def test_where_all_are_alike_nobody_is_taken_in() -> None:
    found = np.arange(20) < 5
    np.testing.assert_array_equal(grown(np.zeros((20, 3)), found), found)


def test_two_points_are_told_apart() -> None:
    view = np.zeros((20, 3))
    view[:8, 1] = 2.0
    np.testing.assert_array_equal(grown(view, np.arange(20) < 6), np.arange(20) < 8)
