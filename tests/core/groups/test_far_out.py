from __future__ import annotations

import numpy as np
import pytest

from unpoison.core.groups.far_out import far_out


def class_with(n_far: int, *, n: int = 2000, distance: float = 9.0, seed: int = 0) -> np.ndarray:
    """On axes of different spread the first few samples lie far out along a direction of their own."""
    rng = np.random.default_rng(seed)
    view = rng.normal(size=(n, 40)) * np.linspace(3.0, 0.5, 40)
    direction = rng.normal(size=40)
    view[:n_far] += distance * direction / np.linalg.norm(direction)
    return view


@pytest.mark.parametrize("n_far", [10, 30, 100])
def test_a_few_that_lie_far_out_are_found_whole(n_far: int) -> None:
    found = far_out(class_with(n_far))
    best = max(found, key=lambda group: int(group[:n_far].sum()))
    assert best[:n_far].mean() > 0.9
    assert best[n_far:].sum() <= 2


def test_two_groups_along_two_directions() -> None:
    view = class_with(25)
    view[100:130, 7] += 20.0
    found = far_out(view)
    for members in (range(25), range(100, 130)):
        assert any(group[list(members)].mean() > 0.9 and group.sum() < 40 for group in found)


def test_in_a_round_cloud_there_is_hardly_anything() -> None:
    found = far_out(np.random.default_rng(0).normal(size=(2000, 40)))
    assert all(group.sum() < 20 for group in found)


@pytest.mark.parametrize("n", [0, 1, 9, 30])
def test_classes_that_are_too_small(n: int) -> None:
    view = np.random.default_rng(0).normal(size=(n, 40)) if n else np.zeros((0, 40))
    assert all(group.sum() >= 5 for group in far_out(view))


def test_a_view_that_does_not_vary() -> None:
    assert far_out(np.ones((100, 12))) == []


def test_the_same_view_gives_the_same_groups() -> None:
    view = class_with(25)
    assert all((one == other).all() for one, other in zip(far_out(view), far_out(view.copy()), strict=True))
