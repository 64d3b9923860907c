from __future__ import annotations

import numpy as np

from unpoison.core.groups.axes import axes_by_class


def test_axes_are_those_of_each_class() -> None:
    labels = np.repeat([0, 1], 50)
    rng = np.random.default_rng(0)
    view = np.zeros((100, 6))
    view[:50, 2] += rng.normal(size=50) * 5.0
    view[50:, 4] += rng.normal(size=50) * 5.0
    found = axes_by_class(view, labels, axes=3, only=(0, 1))
    assert found.shape == (100, 3)
    for members, column in ((slice(0, 50), 2), (slice(50, 100), 4)):
        assert abs(np.corrcoef(found[members, 0], view[members, column])[0, 1]) > 0.99


def test_what_varies_in_every_class_does_not_come_first() -> None:
    labels = np.repeat([0, 1, 2], 100)
    view = np.random.default_rng(0).normal(size=(300, 6))
    view[:, 1] *= 9.0  # the light, say
    view[:20, 4] += 3.0  # of class 0 alone
    view[:20, 5] += 3.0
    first = axes_by_class(view, labels, axes=2, only=(0,))[:100, 0]
    assert abs(np.corrcoef(first, view[:100, 4] + view[:100, 5])[0, 1]) > 0.9


def test_fewer_columns_than_axes_leave_zeros() -> None:
    found = axes_by_class(
        np.random.default_rng(0).normal(size=(30, 2)), np.zeros(30, dtype=int), axes=5, only=(0,)
    )
    assert found.shape == (30, 5)
    assert not found[:, 2:].any()
    nothing = axes_by_class(np.zeros((4, 2)), np.array([0, 0, 1, 1]), axes=5, only=(0, 1))
    assert np.isfinite(nothing).all()


def test_of_classes_that_are_not_asked_for_there_is_nothing() -> None:
    view = np.random.default_rng(0).normal(size=(60, 4))
    labels = np.repeat([0, 1, 2], 20)
    found = axes_by_class(view, labels, axes=3, only=(1,))
    assert found[20:40].any(axis=1).all()
    assert not found[:20].any()
    assert not found[40:].any()
    np.testing.assert_array_equal(found[20:40], axes_by_class(view, labels, axes=3, only=(0, 1))[20:40])
