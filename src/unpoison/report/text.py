"""Words and numbers for people. Names come from whoever made the data, so none is shown as it is."""

from __future__ import annotations

NAME_LIMIT = 60
"""Characters of a name shown where it stands."""

TITLE_LIMIT = 300
"""Characters of a name in the tooltip: enough to tell two apart, bounded so that a page stays small."""

_PLAIN_SPACES = frozenset(" \u3000")


def neutral(text: str) -> str:
    r"""``text`` with every invisible character written out: controls, bidi overrides, zero-width, surrogates.

    >>> neutral("cat\x1b[2J\u202egpj.exe")
    'cat\\x1b[2J\\u202egpj.exe'
    """
    if text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character.isprintable() or character in _PLAIN_SPACES:
        return character
    return character.encode("unicode_escape").decode("ascii")


def printable(text: str, limit: int = NAME_LIMIT) -> str:
    """``text`` made :func:`neutral` and at most ``limit`` characters long, cut in the middle.

    The middle goes because the start and the end of a file name say more.

    >>> printable("train/stop_sign/0000000000000000000000017.png", limit=20)
    'train/stop…00017.png'
    """
    if len(text) > 2 * limit:  # a name of a megabyte is not worth walking through
        text = text[:limit] + text[-limit:]
        return _cut(neutral(text), limit)
    shown = neutral(text)
    return shown if len(shown) <= limit else _cut(shown, limit)


def _cut(text: str, limit: int) -> str:
    tail = (limit - 1) // 2
    head = limit - 1 - tail
    return text[:head] + "…" + text[len(text) - tail :]


def excerpt(text: str, limit: int = 400) -> str:
    """The beginning of a longer text on one line, :func:`neutral`, at most ``limit`` characters."""
    start = text[: 4 * limit]
    shown = neutral(" ".join(start.split()))
    if len(shown) <= limit and len(start) == len(text):
        return shown
    return shown[: limit - 1] + "…"


def count(number: int) -> str:
    """A whole number with thousands set apart.

    >>> count(26640)
    '26,640'
    """
    return f"{number:,}"


def percent(fraction: float) -> str:
    """A share in words that never rounds something to nothing, nor nearly all to all.

    >>> percent(41 / 26640), percent(1 / 26640), percent(0.9999)
    ('0.2%', 'under 0.1%', 'over 99.9%')
    """
    if fraction <= 0 or fraction >= 1:
        return f"{fraction:.0%}"
    if fraction < 0.0005:
        return "under 0.1%"
    if fraction >= 0.9995:
        return "over 99.9%"
    return f"{fraction:.1%}"


def duration(seconds: float) -> str:
    """A time span in the largest fitting units.

    >>> duration(4.21), duration(192), duration(7322)
    ('4.2 s', '3 min 12 s', '2 h 2 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
