"""Progress of long work, as plain events. The library emits them; only the command line draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """``done`` of ``total`` units of ``stage`` are finished; ``resumed`` of them came from checkpoints."""

    stage: str
    done: int
    total: int
    resumed: int = 0


Listener: TypeAlias = Callable[[Progress], None]


def ignore(event: Progress) -> None:
    """The listener of those who do not listen."""
