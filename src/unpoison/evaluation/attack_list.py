"""What attacks there are, for the command line, which may not look into ``attacks`` itself."""

from __future__ import annotations

from unpoison.attacks.catalog import ATTACKS, FLAGS, NEEDED, Entry, find

__all__ = ["ATTACKS", "FLAGS", "NEEDED", "Entry", "find"]
