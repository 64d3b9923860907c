from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.seeds import Seeds


def draw(seeds: Seeds, *names: Any) -> list[int]:
    return seeds.stream(*names).integers(0, 2**62, size=4).tolist()


NAMES = st.lists(st.one_of(st.integers(), st.text(max_size=5)), min_size=1, max_size=4)


def test_streams_are_fixed_for_ever() -> None:
    """Results are promised bit for bit: a change here changes every result."""
    assert Seeds(7).integer("restart", 2, "round", 5) == 1824033612
    assert Seeds(0).within("a").stream("b").integers(1000, size=3).tolist() == [183, 562, 194]


@settings(deadline=None)
@given(NAMES)
def test_a_stream_does_not_depend_on_what_was_asked_before(names: list[Any]) -> None:
    seeds = Seeds(1)
    expected = draw(seeds, *names)
    draw(seeds, "something", "else")
    seeds.stream(*names).random(100)
    seeds.within("a").integer("b")
    assert draw(seeds, *names) == expected
    assert draw(Seeds(1), *names) == expected


@settings(deadline=None)
@given(NAMES, NAMES)
def test_other_names_give_other_streams(left: list[Any], right: list[Any]) -> None:
    assert (draw(Seeds(1), *left) == draw(Seeds(1), *right)) == (left == right)


@pytest.mark.parametrize(
    ("left", "right"),
    list(
        combinations(
            [("a", "b"), ("ab",), ("a, b",), ("a', 'b",), ("b", "a"), (1,), ("1",), (1, 1), (11,), ()], 2
        )
    ),
)
def test_names_that_look_alike_are_told_apart(left: tuple[Any, ...], right: tuple[Any, ...]) -> None:
    assert draw(Seeds(3), *left) != draw(Seeds(3), *right)
    assert Seeds(3).integer(*left) != Seeds(3).integer(*right)


@settings(deadline=None)
@given(NAMES, NAMES)
def test_a_subtree_is_a_longer_name(outer: list[Any], inner: list[Any]) -> None:
    assert draw(Seeds(5).within(*outer), *inner) == draw(Seeds(5), *outer, *inner)
    assert Seeds(5).within(*outer).integer(*inner) == Seeds(5).integer(*outer, *inner)


def test_another_root_gives_other_streams() -> None:
    roots = [0, 1, -1, 2**31, 2**40]
    assert len({tuple(draw(Seeds(root), "a")) for root in roots}) == len(roots)
    assert draw(Seeds(1), 2) != draw(Seeds(12))


def test_numpys_integers_are_integers() -> None:
    assert draw(Seeds(np.int64(7)), "a", np.int32(3)) == draw(Seeds(7), "a", 3)  # type: ignore[arg-type]


@settings(deadline=None)
@given(NAMES)
def test_integers_fit_where_libraries_want_them(names: list[Any]) -> None:
    number = Seeds(0).integer(*names)
    assert type(number) is int
    assert 0 <= number < 2**32


def test_streams_are_random() -> None:
    values = np.array([Seeds(0).stream("x", i).random() for i in range(2000)])
    assert abs(values.mean() - 0.5) < 0.03
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.1
