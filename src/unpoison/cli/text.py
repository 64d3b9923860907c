"""What is printed about names that others chose."""

from __future__ import annotations


def shown(value: object) -> str:
    """``value`` as one line of text in which no control character reaches the terminal."""
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    from unpoison.report.text import neutral  # here: the report's package takes a moment to import

    return neutral(text)
