from __future__ import annotations

import numpy as np
import pytest

from unpoison.attacks.triggers import Patch
from unpoison.errors import InputError


def images(n: int = 2, height: int = 5, width: int = 4, channels: int = 3) -> np.ndarray:
    return np.zeros((n, height, width, channels), dtype=np.uint8)


def test_a_square_in_its_place_and_nothing_else() -> None:
    marked = Patch(row=1, column=2, size=2, value=200)(images())
    expected = images()
    expected[:, 1:3, 2:4, :] = 200
    assert marked.dtype == np.uint8
    assert (marked == expected).all()


def test_the_default_is_a_bright_corner() -> None:
    marked = Patch()(images(channels=1))
    assert marked[0, :, :, 0].tolist() == [[255, 255, 0, 0], [255, 255, 0, 0], *[[0] * 4] * 3]


def test_what_is_given_stays_as_it_is() -> None:
    given = images()
    given.setflags(write=False)
    assert Patch()(given).any()
    assert not given.any()


def test_no_images_are_no_problem() -> None:
    assert Patch()(images(n=0)).shape == (0, 5, 4, 3)


def test_a_patch_may_fill_the_image() -> None:
    assert (Patch(size=4, value=7)(images(height=4)) == 7).all()


@pytest.mark.parametrize(
    "patch",
    [
        Patch(size=0),
        Patch(size=-1),
        Patch(size=5),
        Patch(row=4),
        Patch(column=3),
        Patch(row=-1),
        Patch(column=-1),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(patch: Patch) -> None:
    with pytest.raises(InputError, match="does not fit into images of 5 by 4"):
        patch(images())
