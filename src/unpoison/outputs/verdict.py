"""The result in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.report.canaries import canaries, missed
from unpoison.report.certainty import WEAK_VOTE
from unpoison.report.shared import listed
from unpoison.report.text import count, percent, printable

Pair: TypeAlias = tuple[int, int]
"""A label, and what models that did not train on the samples call them."""

_NAMED_PAIRS = 3
_NAMED_SHARE = 0.1
_MOST = 0.8


def verdict(dataset: Dataset, result: Sanitization, *, shared: Mapping[int, str] | None = None) -> str:
    """What was found, in one plain sentence without markup, safe to print on a terminal.

    ``shared`` says for a label what its removed samples have in common: ``share the word 'cf'``.
    """
    n, n_removed = len(dataset), result.n_removed
    if n_removed == 0:
        return f"Nothing in {count(n)} samples looks planted."
    look = "looks" if n_removed == 1 else "look"
    head = f"{count(n_removed)} of {count(n)} samples ({percent(result.removed_fraction)}) {look} planted"
    return f"{head}: {_detail(dataset, result, shared or {})}."


def caution(dataset: Dataset, result: Sanitization) -> str | None:
    """What to know before believing the verdict, or None."""
    planted = canaries(dataset, result)
    trust = missed(planted) if planted else _about_weak_votes(result)
    said = (trust, _about_undecided(dataset, result))
    return " ".join(sentence for sentence in said if sentence) or None


def _about_weak_votes(result: Sanitization) -> str:
    accuracy = result.notes.get("vote_accuracy")
    if accuracy is None or accuracy >= WEAK_VOTE:
        return ""
    return (
        f"The learner explains only {percent(accuracy)} of the samples, so this verdict is weak evidence "
        "either way; try a stronger learner."
    )


def _about_undecided(dataset: Dataset, result: Sanitization) -> str:
    """Groups of which it was measured that they may be planted or not."""
    undecided = [group for group in result.groups if group.undecided]
    if not undecided:
        return ""
    labels = sorted({group.label for group in undecided})
    names = [f"'{printable(dataset.class_names[label], 40)}'" for label in labels[:_NAMED_PAIRS]]
    n_more = len(labels) - len(names)
    groups, were = ("group", "was") if len(undecided) == 1 else ("groups", "were")
    classes = "class" if len(names) + n_more == 1 else "classes"
    whose = listed([*names, f"{count(n_more)} more"] if n_more else names)
    which = "it" if len(undecided) == 1 else "them"
    return (
        f"{count(len(undecided))} {groups} of the {classes} {whose} could not be decided and {were} kept. "
        f"Look at {which}: the report says what was measured, and the column component_1 of the manifest has "
        "the number of each sample's group."
    )


def removed_pairs(dataset: Dataset, result: Sanitization) -> list[tuple[Pair, int]]:
    """How many removed samples carry which label and are called what, largest first.

    Groups speak for their members, and the only one of a label for all that went with it; without removed
    groups, every sample speaks for itself.
    """
    pairs: Counter[Pair] = Counter()
    went = [group for group in result.groups if group.removed]
    n_groups = Counter(group.label for group in went)
    for group in went:
        n_removed = int((~result.keep & (dataset.labels == group.label)).sum())
        alone = n_groups[group.label] == 1
        pairs[(group.label, group.called)] += max(group.size, n_removed) if alone else group.size
    if not pairs:
        removed = np.flatnonzero(~result.keep)
        pairs.update((int(dataset.labels[i]), int(result.predicted[i])) for i in removed)
    return sorted(pairs.items(), key=lambda item: (-item[1], item[0]))


def _detail(dataset: Dataset, result: Sanitization, shared: Mapping[int, str]) -> str:
    pairs = removed_pairs(dataset, result)
    total = max(result.n_removed, sum(size for _, size in pairs))
    first, size = pairs[0]
    phrase = _phrase(dataset, result, first, size)
    if total == 1:
        return f"it is {phrase}{_witness([first], one=True)}"
    if size >= _MOST * total or len(pairs) == 1:
        amount = "all" if size == total else "most" if 2 * size > total else count(size)
        also = f", and {shared[first[0]]}" if first[0] in shared else ""
        return f"{amount} are {phrase}{_witness([first])}{also}"
    named = [item for item in pairs[:_NAMED_PAIRS] if item[1] >= _NAMED_SHARE * total]
    if 2 * sum(part for _, part in named) <= total:
        return _scattered(dataset, result)
    return _listed(dataset, result, named, total, shared)


def _listed(
    dataset: Dataset,
    result: Sanitization,
    named: list[tuple[Pair, int]],
    total: int,
    shared: Mapping[int, str],
) -> str:
    parts = [f"{count(part)} are {_phrase(dataset, result, pair, part)}" for pair, part in named]
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    listed += _witness([pair for pair, _ in named])
    rest = total - sum(part for _, part in named)
    others = f"; the other {count(rest)} vary" if rest else ""
    common = [label for (label, _), _ in named if label in shared]
    if not common:
        return f"{listed}{others}"
    if len(named) == 1:
        return f"{listed}, and {shared[common[0]]}{others}"
    name = printable(dataset.class_names[common[0]], 40)
    return f"{listed}{others}; those labelled '{name}' {shared[common[0]]}"


def _scattered(dataset: Dataset, result: Sanitization) -> str:
    counts = np.bincount(dataset.labels[~result.keep], minlength=len(dataset.class_names))
    top = int(counts.argmax())
    n_labels = int((counts > 0).sum())
    name = printable(dataset.class_names[top], 40)
    if n_labels == 1:
        return f"all are labelled '{name}', and models that did not train on them call them different things"
    return f"they carry {count(n_labels)} different labels, most often '{name}' ({count(int(counts[top]))})"


def _phrase(dataset: Dataset, result: Sanitization, pair: Pair, size: int) -> str:
    label, called = pair
    labelled = f"labelled '{printable(dataset.class_names[label], 40)}'"
    if called in (label, -1):
        return labelled
    # a group is called what most of its members are
    n_called = int((~result.keep & (dataset.labels == label) & (result.predicted == called)).sum())
    mostly = "mostly " if n_called < size else ""
    return f"{labelled} and {mostly}called '{printable(dataset.class_names[called], 40)}'"


def _witness(pairs: list[Pair], *, one: bool = False) -> str:
    if all(called in (label, -1) for label, called in pairs):
        return ""
    return f" by models that did not train on {'it' if one else 'them'}"
