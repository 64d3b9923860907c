"""Named random streams: a stream depends on its name and the root seed, never on who asked first."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from operator import index

import numpy as np


@dataclass(frozen=True)
class Seeds:
    """A tree of random streams under one root seed.

    >>> seeds = Seeds(7)
    >>> a = seeds.stream("restart", 2, "round", 5).integers(1000)
    >>> b = Seeds(7).within("restart", 2).stream("round", 5).integers(1000)
    >>> bool(a == b)
    True
    """

    root: int
    path: tuple[str | int, ...] = ()

    def within(self, *names: str | int) -> Seeds:
        """The subtree below ``names``."""
        return Seeds(self.root, self.path + names)

    def stream(self, *names: str | int) -> np.random.Generator:
        """A generator of its own for this name."""
        return np.random.default_rng(int.from_bytes(self._digest(names), "big"))

    def integer(self, *names: str | int) -> int:
        """A seed in ``0 .. 2**32 - 1`` for libraries that want a plain number (scikit-learn, torch)."""
        return int.from_bytes(self._digest(names)[:4], "big")

    def _digest(self, names: tuple[str | int, ...]) -> bytes:
        # repr keeps the string "1" and the number 1 apart, and the tuple keeps ("a", "b") from ("ab",);
        # index makes numpy's integers plain, whose repr is another
        path = tuple(name if isinstance(name, str) else index(name) for name in self.path + names)
        return hashlib.sha256(repr((index(self.root), path)).encode()).digest()
