"""The page a person reads after a run: one HTML file, no network, no script."""

from __future__ import annotations

from unpoison.report.page import render
from unpoison.report.text import printable

__all__ = ["render", "printable"]
