"""The components that a run found, and which voter agrees with the labels of which of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.types import IndexArray, LabelArray

GROUPING = ("groups", "expansion", "out-of-subset")
"""Methods whose components are candidate groups, numbered from 1 on, and the rest; the last two in folders
that earlier versions wrote."""
MAX_COMPONENTS = 24
MAX_VOTERS = 32


@dataclass(frozen=True)
class Component:
    """A set of samples that a run found to belong together."""

    name: str
    labels: tuple[int, ...]
    """Those that its samples carry."""
    size: int
    removed: int
    agreement: tuple[float | None, ...]
    """For each voter the share of the samples it was asked about whose label it gives; None if none."""


@dataclass(frozen=True)
class VoteMatrix:
    """Components by voters."""

    components: tuple[Component, ...]
    n_more_components: int
    voters: tuple[str, ...]
    n_more_voters: int


def vote_matrix(labels: LabelArray, result: Sanitization, *, method: str) -> VoteMatrix:
    """The components of every restart with their sizes, and how each voter votes on them."""
    found = _components(result, method)
    voters = result.votes.voters if result.votes is not None else ()
    shown = [
        Component(
            name=name,
            labels=tuple(np.unique(labels[members]).tolist()),
            size=len(members),
            removed=int((~result.keep[members]).sum()),
            agreement=_agreement(labels, result, members),
        )
        for name, members in found[:MAX_COMPONENTS]
    ]
    return VoteMatrix(
        components=tuple(shown),
        n_more_components=len(found) - len(shown),
        voters=voters[:MAX_VOTERS],
        n_more_voters=max(0, len(voters) - MAX_VOTERS),
    )


def component_name(restart: int, value: int, *, n_restarts: int, method: str) -> str:
    """A component in words; the methods number them differently."""
    if method in GROUPING:
        return f"group {value}" if value else "the rest"
    name = f"round {value + 1}" if value >= 0 else "left over"
    return f"restart {restart + 1}, {name}" if n_restarts > 1 else name


def _components(result: Sanitization, method: str) -> list[tuple[str, IndexArray]]:
    return [
        (
            component_name(restart, value, n_restarts=len(result.components), method=method),
            np.flatnonzero(row == value),
        )
        for restart, row in enumerate(result.components)
        for value in np.unique(row).tolist()
    ]


def _agreement(labels: LabelArray, result: Sanitization, members: IndexArray) -> tuple[float | None, ...]:
    if result.votes is None:
        return ()
    asked = result.votes.asked[:MAX_VOTERS, members]
    right = (result.votes.predictions[:MAX_VOTERS, members] == labels[members]) & asked
    return tuple(
        hits / n if n else None
        for hits, n in zip(right.sum(axis=1).tolist(), asked.sum(axis=1).tolist(), strict=True)
    )
