from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.attacks.triggers import SHAPES, Corners, Mark, Patch, random_mark, random_patch
from unpoison.errors import InputError

RED = (200, 10, 30)


def images(n: int = 2, height: int = 5, width: int = 4, channels: int = 3) -> np.ndarray:
    return np.zeros((n, height, width, channels), dtype=np.uint8)


class TestPatch:
    def test_a_square_in_its_place_and_nothing_else(self) -> None:
        marked = Patch(row=1, column=2, size=2, value=200)(images())
        expected = images()
        expected[:, 1:3, 2:4, :] = 200
        assert marked.dtype == np.uint8
        assert (marked == expected).all()

    def test_the_default_is_a_bright_corner(self) -> None:
        marked = Patch()(images(channels=1))
        assert marked[0, :, :, 0].tolist() == [[255, 255, 0, 0], [255, 255, 0, 0], *[[0] * 4] * 3]

    def test_a_colour_and_its_shade_in_gray(self) -> None:
        assert Patch(value=RED)(images())[1, 1, 1].tolist() == [200, 10, 30]
        assert Patch(value=RED)(images(channels=1))[1, 1, 1].tolist() == [80]

    def test_a_patch_may_fill_the_image(self) -> None:
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
    def test_a_patch_that_does_not_fit_is_refused(self, patch: Patch) -> None:
        with pytest.raises(InputError, match="does not fit into images of 5 by 4"):
            patch(images())

    @pytest.mark.parametrize("value", [256, -1, 0.5, (1, 2), (1, 2, 300)])
    def test_a_value_that_is_no_colour_is_refused(self, value: Any) -> None:
        with pytest.raises(InputError, match=r"from 0 to 255. Got"):
            Patch(value=value)


class TestMark:
    @pytest.mark.parametrize(
        ("shape", "drawing"),
        [
            ("pixel", ["....", "....", "..#.", "....", "...."]),
            ("pattern", ["....", ".#.#", "..#.", ".#.#", "...."]),
            ("ell", ["....", "....", "..##", "..#.", "...."]),
        ],
    )
    def test_shapes(self, shape: str, drawing: list[str]) -> None:
        drawn = np.array([[cell == "#" for cell in row] for row in drawing])
        marked = Mark(shape, 2, 2, RED)(images())
        assert (marked == np.where(drawn[:, :, None], RED, 0)).all()
        gray = Mark(shape, 2, 2, RED)(images(channels=1))
        assert (gray[:, :, :, 0] == np.where(drawn, 80, 0)).all()

    @pytest.mark.parametrize(
        ("mark", "named"),
        [
            (Mark("pixel", 5, 0, RED), "'pixel' of 1 by 1 pixels at row 5, column 0"),
            (Mark("pixel", 0, -1, RED), "row 0, column -1"),
            (Mark("pattern", 0, 1, RED), "'pattern' of 3 by 3 pixels at row 0"),
            (Mark("pattern", 1, 3, RED), "column 3"),
            (Mark("ell", 4, 0, RED), "'ell' of 2 by 2 pixels at row 4"),
            (Mark("ell", 0, 3, RED), "column 3"),
        ],
    )
    def test_out_of_sight(self, mark: Mark, named: str) -> None:
        with pytest.raises(InputError, match=f"{named}.*does not fit into images of 5 by 4"):
            mark(images())

    def test_bad_options(self) -> None:
        with pytest.raises(InputError, match="no mark 'star'; choose one of pixel, pattern, ell"):
            Mark("star", 0, 0, RED)
        with pytest.raises(InputError, match=r"color is .* Got \(0, 0, 256\)"):
            Mark("pixel", 0, 0, (0, 0, 256))


class TestRandom:
    @given(seed=st.integers(0, 2**32), height=st.integers(3, 40), width=st.integers(3, 40))
    def test_a_mark_is_in_sight(self, seed: int, height: int, width: int) -> None:
        mark = random_mark(seed, height, width)
        blank = np.full((1, height, width, 3), (np.array(mark.color) + 1) % 256, dtype=np.uint8)
        assert (mark(blank) != blank).any(axis=3).sum() == len(SHAPES[mark.shape])
        assert mark == random_mark(seed, height, width)

    def test_every_shape_place_and_colour(self) -> None:
        marks = [random_mark(seed, 4, 5) for seed in range(600)]
        places: dict[str, set[tuple[int, int]]] = {}
        for mark in marks:
            places.setdefault(mark.shape, set()).add((mark.row, mark.column))
        n_places = {shape: len(found) for shape, found in places.items()}
        assert n_places == {"pixel": 20, "pattern": 6, "ell": 12}
        counts = [sum(mark.shape == shape for mark in marks) for shape in SHAPES]
        assert min(counts) > 150
        colors = np.array([mark.color for mark in marks])
        assert colors.min() == 0
        assert colors.max() == 255
        assert (abs(colors.mean(axis=0) - 127.5) < 12).all()

    def test_a_given_shape_keeps_the_colour(self) -> None:
        free = random_mark(3, 32, 32)
        for shape in SHAPES:
            assert random_mark(3, 32, 32, shape=shape).color == free.color

    def test_every_pair_of_classes_has_a_mark_of_its_own(self) -> None:
        """As in the authors' generator, which draws one for each pair in turn."""
        pairs = [(0, 2), (1, 2), (1, 0), (2, 13), (38, 4), (31, 24), (15, 29), (9, 18)]
        for draw in (random_mark, random_patch):
            marks = [draw(seed, 32, 32, pair=pair) for seed in range(3) for pair in pairs]
            assert len(set(marks)) == 24
            assert marks == [draw(seed, 32, 32, pair=pair) for seed in range(3) for pair in pairs]

    def test_a_patch_is_in_sight(self) -> None:
        patches = [random_patch(seed, 8, 6) for seed in range(200)]
        everywhere = {(row, column) for row in range(4) for column in range(2)}
        assert {(patch.row, patch.column) for patch in patches} == everywhere
        assert {patch.size for patch in patches} == {5}
        assert len({patch.value for patch in patches}) > 190

    def test_no_room(self) -> None:
        with pytest.raises(InputError, match="'pattern' does not fit into images of 2 by 9"):
            random_mark(0, 2, 9, shape="pattern")
        with pytest.raises(InputError, match="patch of 5 pixels does not fit into images of 4 by 9"):
            random_patch(0, 4, 9)
        with pytest.raises(InputError, match="no mark 'dot'"):
            random_mark(0, 9, 9, shape="dot")


class TestCorners:
    def test_four_checkerboards_mirrored_left_to_right(self) -> None:
        """Turner et al.: black and white, but the inner upper cell of each is black."""
        marked = Corners()(np.full((1, 8, 7, 1), 9, dtype=np.uint8))[0, :, :, 0]
        left = [[255, 0, 0], [0, 255, 0], [255, 0, 255]]
        right = [row[::-1] for row in left]
        assert marked[:3, :3].tolist() == marked[-3:, :3].tolist() == left
        assert marked[:3, -3:].tolist() == marked[-3:, -3:].tolist() == right
        assert (marked[3:5] == 9).all()
        assert (marked[:, 3] == 9).all()

    def test_a_reduced_amplitude_is_added_and_taken_away(self) -> None:
        marked = Corners(0.2)(np.full((1, 6, 6, 3), 230, dtype=np.uint8))
        assert marked[0, :3, :3, 1].tolist() == [[255, 179, 179], [179, 255, 179], [255, 179, 255]]

    def test_bad_options(self) -> None:
        with pytest.raises(InputError, match=r"amplitude .* Got 1.5"):
            Corners(1.5)
        with pytest.raises(InputError, match="3 by 3 pixels do not fit into images of 5 by 8"):
            Corners()(images(height=5, width=8))
