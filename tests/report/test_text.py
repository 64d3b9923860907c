from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.report import text


def test_examples() -> None:
    assert doctest.testmod(text).failed == 0


@given(st.text(st.characters()), st.integers(1, 50))
def test_printable_is_printable_and_short(value: str, limit: int) -> None:
    shown = text.printable(value, limit)
    assert shown.replace("\u3000", "").isprintable()
    assert len(shown) <= limit
    assert text.neutral(shown) == shown


@given(st.text(st.characters()), st.integers(1, 50))
def test_excerpt_is_printable_and_short(value: str, limit: int) -> None:
    shown = text.excerpt(value, limit)
    assert shown.replace("\u3000", "").isprintable()
    assert len(shown) <= limit


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        ("\0", "\\x00"),
        ("\u202e", "\\u202e"),
        ("\u200b", "\\u200b"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\u65e5\u672c\u3000\u05d0 é 🐈", "\u65e5\u672c\u3000\u05d0 é 🐈"),
        ("a\nb\tc", "a\\nb\\tc"),
    ],
)
def test_printable_shows_the_invisible(value: str, shown: str) -> None:
    assert text.printable(value) == shown


def test_printable_keeps_both_ends() -> None:
    shown = text.printable("start" + "x" * 10_000_000 + "end", 30)
    assert shown.startswith("start")
    assert shown.endswith("end")
    assert len(shown) == 30


def test_excerpt_is_one_line_and_marks_the_cut() -> None:
    assert text.excerpt("a\n b\t c") == "a b c"
    assert text.excerpt("word " * 1000, 20) == "word word word word…"
    assert text.excerpt(" " * 10_000 + "x", 20) == "…"


@pytest.mark.parametrize(
    ("fraction", "shown"), [(0, "0%"), (1, "100%"), (0.5, "50.0%"), (0.99951, "over 99.9%")]
)
def test_percent(fraction: float, shown: str) -> None:
    assert text.percent(fraction) == shown
