"""Colours that can be told apart, in the light and in the dark (WCAG 2.1, 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re

import pytest

from unpoison.report.embed import style

READ = (
    ("text", "page"),
    ("text", "card"),
    ("text", "removed-soft"),
    ("text", "kept-soft"),
    ("soft", "page"),
    ("soft", "card"),
    ("removed", "card"),
    ("removed", "removed-soft"),
    ("kept", "card"),
    ("kept", "kept-soft"),
    ("unsure", "card"),
    ("unsure", "unsure-soft"),
    ("card", "kept"),
    ("card", "removed"),
)
SEEN = (("edge", "card"), ("kept", "page"))


def blocks() -> list[dict[str, str]]:
    """The colours of the light, the chosen dark and the system's dark."""
    found = re.findall(r"\{([^{}]*--page:[^{}]*)\}", style())
    return [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+);", block)) for block in found]


def luminance(color: str) -> float:
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_text_can_be_read_and_controls_can_be_seen(theme: int) -> None:
    colors = blocks()[theme]
    assert all(contrast(colors[a], colors[b]) >= 4.5 for a, b in READ)
    assert all(contrast(colors[a], colors[b]) >= 3 for a, b in SEEN)


def test_dark_is_one_dark() -> None:
    light, chosen, by_system = blocks()
    assert chosen == by_system != light
