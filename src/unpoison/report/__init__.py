"""The page a person reads after a run, and decides on: one HTML file, no network."""

from __future__ import annotations

from unpoison.report.page import render
from unpoison.report.text import printable

__all__ = ["render", "printable"]
