from __future__ import annotations

import os
import pickle
from contextlib import suppress

import numpy as np
import pytest

from unpoison.data.named.opcodes import Call, Name, read_plain

from .builders import Python2

NAMES = frozenset({"numpy dtype"})


def plain(data: bytes, *, max_steps: int = 1000) -> object:
    return read_plain(data, names=NAMES, max_steps=max_steps)


@pytest.mark.parametrize(
    "value", [{}, [], {"a": [1, 2, 300, 70_000, -5], "b": {"c": "d"}}, ["x" * 300], list(range(2500)), 3]
)
def test_plain_values_come_back(value):
    assert plain(Python2().dumps(value), max_steps=10_000) == value


def test_what_python_writes_in_protocol_2_is_read_where_it_is_plain():
    value = {
        1: (),
        2: (1,),
        3: (1, 2),
        4: (1, 2, 3),
        5: (1, 2, 3, 4),
        6: [None, True, False],
        7: [7],
        8: {9: 9},
    }
    assert plain(pickle.dumps(value, protocol=2)) == value
    shared = [1]
    first, second = plain(pickle.dumps([shared, shared], protocol=2))
    assert first is second


def test_a_call_is_written_down_and_not_made():
    found = plain(b"\x80\x02cnumpy\ndtype\nU\x02u1\x85RK\x05b.")
    assert found == Call(Name("numpy dtype"), ("u1",), 5)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_run_something_is_refused_and_does_not(tmp_path, protocol):
    touched = tmp_path / "touched"
    data = pickle.dumps({"data": Evil(touched)}, protocol=protocol)
    with pytest.raises(ValueError, match=r"data does not need|protocol"):
        plain(data)
    assert not touched.exists()
    pickle.loads(data)  # noqa: S301 - to show that it is a real one
    assert touched.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02cos\nsystem\nU\x04true\x85R.",
        b"\x80\x02(U\x04trueios\nsystem\n.",
        b"\x80\x02(cos\nsystem\nU\x04trueo.",
        b"\x80\x02U\x02osU\x06system\x93U\x04true\x85R.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02Pid\n.",
        b"\x80\x02cnumpy\ndtype\n)\x81.",
    ],
    ids=["reduce", "inst", "obj", "stack_global", "ext1", "persid", "newobj"],
)
def test_every_way_to_call_something_is_refused(data):
    with pytest.raises(ValueError, match="does not need"):
        plain(data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x80\x02K\x01K\x02.", "too many values"),
        (b"\x80\x02\x85.", "more values taken"),
        (b"\x80\x02K\x01K\x02a.", "no list"),
        (b"\x80\x02](K\x01K\x02u.", "no dict"),
        (b"\x80\x02}(K\x01u.", "shorter"),
        (b"\x80\x02]K\x01b.", "no call"),
        (b"\x80\x03].", "protocol 3"),
    ],
)
def test_streams_that_make_no_sense(data, says):
    with pytest.raises(ValueError, match=says):
        plain(data)


def test_the_number_of_instructions_is_bounded():
    with pytest.raises(ValueError, match="more than 1000 instructions"):
        plain(Python2().dumps([1] * 2000))


def test_damage_anywhere_gives_a_value_or_an_exception():
    data = np.frombuffer(Python2().dumps({"a": list(range(50)), "b": "text"}), dtype=np.uint8)
    rng = np.random.default_rng(0)
    for _ in range(500):
        damaged = data.copy()
        damaged[rng.integers(2, len(data), 2)] = rng.integers(0, 256, 2)
        with suppress(Exception):
            plain(damaged.tobytes())
