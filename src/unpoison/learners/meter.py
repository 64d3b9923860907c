"""What a learner has spent so far."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from unpoison.core.result import Cost


@dataclass
class Meter:
    """Counts passes, floating-point operations and seconds."""

    flops_forward: float = 0.0
    """Operations to pass one sample forward; training one takes about three times as many. 0 if unknown."""
    trained: int = 0
    scored: int = 0
    seconds: float = 0.0

    @contextmanager
    def running(self, *, trained: int = 0, scored: int = 0) -> Iterator[None]:
        """Time a piece of work, and count it when it is done."""
        started = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - started
        self.trained += trained
        self.scored += scored

    @property
    def cost(self) -> Cost:
        """The sum so far."""
        flops = self.flops_forward * (3 * self.trained + self.scored)
        return Cost(self.trained, self.scored, seconds=self.seconds, flops=flops)
