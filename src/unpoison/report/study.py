"""What is found by looking at the samples themselves: computed once, for ``run.json`` and for the page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset, Preview
from unpoison.errors import UnpoisonError
from unpoison.report.groups import Suspects, suspect_groups
from unpoison.report.means import MeanPanel, mean_panels
from unpoison.report.neighbours import Neighbours, nearest_kept
from unpoison.report.shared import Shared
from unpoison.report.traits import Trait, common_traits
from unpoison.types import IndexArray

MAX_CLOSE = 500
"""Removed samples that come first, with the best pictures."""
MAX_KEPT = 200
"""Kept samples with the highest suspicion that are shown."""
MAX_NEIGHBOURED = 2000
"""Samples whose nearest kept neighbours are looked for."""
MAX_LOOKED_AT = 100
"""Samples of a group, and of what it is compared with, that are read to tell what the group shares."""


@dataclass(frozen=True)
class Study:
    """What the suspicious samples have in common, and which kept ones are like them."""

    groups: tuple[Suspects, ...]
    panels: tuple[MeanPanel, ...]
    """The averages of each group of images, in the order of ``groups``; empty for other data."""
    traits: tuple[tuple[Trait, ...], ...]
    """The words or values that each group shares; empty tuples for images."""
    order: IndexArray
    """The removed and the most suspicious kept samples, those first that are most worth a look."""
    near: Neighbours

    def shared(self) -> dict[int, Shared]:
        """For each label whose group shares something, what that is."""
        found = {panel.suspects.label: Shared(pattern=panel.place) for panel in self.panels if panel.place}
        for group, traits in zip(self.groups, self.traits, strict=True):
            if traits:
                found[group.label] = Shared(traits=traits)
        return found


def study(dataset: Dataset, result: Sanitization) -> Study:
    """Look at the groups of removed samples, and find the neighbours of the most suspicious."""
    groups = suspect_groups(dataset.labels, result)
    order = _most_worth_a_look(result)
    return Study(
        groups=tuple(groups),
        panels=tuple(mean_panels(dataset, result, groups)),
        traits=tuple(_traits(dataset, result, group) for group in groups),
        order=order,
        near=nearest_kept(dataset, result, order[:MAX_NEIGHBOURED]),
    )


def preview(dataset: Dataset, index: int) -> Preview:
    """The sample as a person looks at it; empty where it cannot be shown, which must not cost the report."""
    try:
        return dataset.origin.preview(index)
    except (OSError, UnpoisonError, ValueError):
        return Preview()


def _most_worth_a_look(result: Sanitization) -> IndexArray:
    removed = _by_suspicion(result, np.flatnonzero(~result.keep))
    kept = _by_suspicion(result, np.flatnonzero(result.keep))[:MAX_KEPT]
    return np.concatenate([removed[:MAX_CLOSE], kept, removed[MAX_CLOSE:]])


def _by_suspicion(result: Sanitization, indices: IndexArray) -> IndexArray:
    """Highest first, ties in the order of the dataset."""
    order: IndexArray = indices[np.argsort(-result.suspicion[indices], kind="stable")]
    return order


def _traits(dataset: Dataset, result: Sanitization, group: Suspects) -> tuple[Trait, ...]:
    """What the rows or texts of a group share; images have their averages instead."""
    if dataset.kind == "image":
        return ()
    of_label = np.flatnonzero(result.keep & (dataset.labels == group.label))
    of_called = np.flatnonzero(result.keep & np.isin(dataset.labels, result.predicted[group.members]))
    chosen = [_evenly(indices) for indices in (_by_suspicion(result, group.members), of_label, of_called)]
    looked_at = [[preview(dataset, int(index)) for index in indices] for indices in chosen]
    return tuple(common_traits(*looked_at, without=_ids(dataset, chosen[0], looked_at[0])))


def _evenly(indices: IndexArray) -> IndexArray:
    """As many as are looked at, from the first to the last."""
    if len(indices) <= MAX_LOOKED_AT:
        return indices
    return indices[np.linspace(0, len(indices) - 1, MAX_LOOKED_AT, dtype=np.int64)]


def _ids(dataset: Dataset, indices: IndexArray, previews: list[Preview]) -> set[str]:
    """The columns that hold nothing but the ids of the samples."""
    cells = [
        {column for column, cell in seen.columns or () if cell == dataset.ids[index]}
        for index, seen in zip(indices.tolist(), previews, strict=True)
    ]
    return set.intersection(*cells) if cells else set()
