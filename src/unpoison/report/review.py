"""What people decided after a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.types import BoolArray


@dataclass(frozen=True)
class Review:
    """The decision about every sample, and which of them a person made."""

    keep: BoolArray
    decided: BoolArray
    """True where a person decided, whether or not the run had said the same."""
    by: Mapping[int, str] = field(default_factory=dict)
    """Who decided about a sample, by its position, where a name was given."""

    @classmethod
    def none(cls, result: Sanitization) -> Review:
        """The run's own decisions, before anyone looked."""
        return cls(result.keep, np.zeros_like(result.keep))

    def put_back(self, run_keep: BoolArray) -> int:
        """How many samples the run removed and a person kept."""
        return int((self.decided & self.keep & ~run_keep).sum())

    def taken_out(self, run_keep: BoolArray) -> int:
        """How many samples the run kept and a person removed."""
        return int((self.decided & ~self.keep & run_keep).sum())
