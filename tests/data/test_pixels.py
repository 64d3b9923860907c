from __future__ import annotations

import threading

import numpy as np
import pytest

from unpoison.data.images import Decoded
from unpoison.data.options import LoadOptions
from unpoison.data.pixels import decode_all, file_limit, in_threads, usual_size


@pytest.mark.parametrize(("sides", "size"), [([100, 200, 300], 32), ([8, 9, 500], 9), ([8, 9], 8)])
def test_the_usual_size_is_the_median_up_to_32(sides, size):
    assert usual_size(len(sides), sides.__getitem__) == size


@pytest.mark.parametrize(("gray", "channels"), [([True, True, True], 1), ([True, False, True], 3)])
def test_images_are_put_in_their_places(gray, channels):
    def decoded(index):
        return Decoded(np.full((4, 4, 3), index, dtype=np.uint8), gray[index]), f"hash {index}"

    pixels, hashes = decode_all(3, 4, decoded)
    assert pixels.shape == (3, 4, 4, channels)
    assert pixels[:, 0, 0, 0].tolist() == [0, 1, 2]
    assert pixels.flags.c_contiguous
    assert hashes == ("hash 0", "hash 1", "hash 2")


def test_results_come_in_order_and_the_first_error_wins():
    assert in_threads(lambda i: i * i, range(50)) == [i * i for i in range(50)]
    late = threading.Event()

    def work(index):
        if index == 1:
            late.wait(0.05)
        raise ValueError(f"item {index}")

    with pytest.raises(ValueError, match="item 0"):
        in_threads(work, range(4))


def test_a_file_may_hold_as_much_as_the_largest_image():
    assert file_limit(LoadOptions(max_pixels=100)) == 800 + 2**20
    assert file_limit(LoadOptions(max_pixels=100, max_bytes=50)) == 50
