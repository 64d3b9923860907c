"""What the removed samples of one label have in common, in words."""

from __future__ import annotations

from dataclasses import dataclass

from unpoison.report.traits import Trait

MAX_NAMED = 3
"""Columns that are named in one sentence."""

_AS_STRONG = 0.2
"""Traits are named together if their leads differ by no more than this."""


@dataclass(frozen=True)
class Shared:
    """A mark that was found: a pattern in a place of the picture, or traits of rows or texts."""

    pattern: str | None = None
    """Where the pattern is: ``in the upper left corner``."""
    traits: tuple[Trait, ...] = ()
    """Strongest first."""

    @property
    def named(self) -> tuple[Trait, ...]:
        """The traits worth a sentence: one word of texts, of rows the columns that are about as strong."""
        if not self.traits:
            return ()
        first = self.traits[0]
        strong = [trait for trait in self.traits if trait.lead >= first.lead - _AS_STRONG]
        return tuple(strong[: 1 if first.column is None else MAX_NAMED])

    def __str__(self) -> str:
        """As the verdict says it: ``share the word 'cf'``."""
        if self.pattern is not None:
            return f"share a pattern {self.pattern}"
        return f"share {listed([str(trait) for trait in self.named])}"


def listed(parts: list[str]) -> str:
    """``a, b and c``."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
