"""What the page carries inside: its style, its script and its data, which cannot be mistaken for markup."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

from markupsafe import Markup

SCRIPTS = ("samples.js", "marks.js", "gallery.js", "start.js")
"""The page's script, in the order the parts are put together."""

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def to_json(value: Any) -> str:
    """``value`` as JSON in printable ASCII without ``<``, ``>`` and ``&``.

    So no text can end the element it stands in or open a comment, and U+2028 is an escape like any other.

    >>> to_json("</script><!--\\u2028")
    '"\\\\u003c/script\\\\u003e\\\\u003c!--\\\\u2028"'
    """
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def as_markup(json_text: str) -> Markup:
    """JSON made by :func:`to_json`, for the template to put in as it is."""
    return Markup(json_text)


@cache
def style() -> Markup:
    """The page's style sheet."""
    return Markup(_read("page.css"))


@cache
def script() -> Markup:
    """The page's script."""
    parts = [_read(name) for name in SCRIPTS]
    return Markup('"use strict";\n' + "\n".join(parts))


def content_policy() -> str:
    """What the page may do: show its own style and pictures, run this very script, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(script().encode("utf-8")).digest()).decode("ascii")
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _read(name: str) -> str:
    return resources.files("unpoison.report").joinpath("web", name).read_text(encoding="utf-8")
