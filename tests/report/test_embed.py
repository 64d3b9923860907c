from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.report import embed

from .builders import NASTY


@given(st.recursive(st.text(st.characters()) | st.integers() | st.none(), st.lists))
def test_json_survives_and_cannot_be_taken_for_markup(value: Any) -> None:
    text = embed.to_json(value)
    assert json.loads(text) == value
    assert re.fullmatch(r"[ -~]*", text)
    assert not set("<>&") & set(text)


@pytest.mark.parametrize("value", NASTY)
def test_nasty_text_survives(value: str) -> None:
    assert json.loads(embed.to_json(value)) == value


def test_no_number_that_json_has_not() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        embed.to_json(float("nan"))


def test_the_script_cannot_end_its_own_element() -> None:
    assert "</" not in embed.script()
    assert "<!--" not in embed.script()
    assert embed.script().isascii() or "\u2028" not in embed.script()
    assert "</" not in embed.style()
