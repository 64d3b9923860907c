"""The result in one sentence."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.report.text import count, percent, printable

Pair: TypeAlias = tuple[int, int]
"""A label, and what models that did not train on the samples call them."""

WEAK_VOTE = 0.7
"""Where fewer samples than this get their own label by vote, the learner cannot tell odd from planted."""

_NAMED_PAIRS = 3
_MOST = 0.8


def verdict(dataset: Dataset, result: Sanitization) -> str:
    """What was found, in one plain sentence without markup, safe to print on a terminal."""
    n, n_removed = len(dataset), result.n_removed
    if n_removed == 0:
        return f"Nothing in {count(n)} samples looks planted."
    look = "looks" if n_removed == 1 else "look"
    head = f"{count(n_removed)} of {count(n)} samples ({percent(result.removed_fraction)}) {look} planted"
    return f"{head}: {_detail(dataset, result)}."


def caution(result: Sanitization) -> str | None:
    """What to know before believing the verdict, or None."""
    accuracy = result.notes.get("vote_accuracy")
    if accuracy is None or accuracy >= WEAK_VOTE:
        return None
    return (
        f"The learner explains only {percent(accuracy)} of the samples, so this verdict is weak evidence "
        "either way; try a stronger learner."
    )


def removed_pairs(dataset: Dataset, result: Sanitization) -> list[tuple[Pair, int]]:
    """How many removed samples carry which label and are called what, largest first.

    Groups speak for their members; without removed groups, every sample speaks for itself.
    """
    pairs: Counter[Pair] = Counter()
    for group in result.groups:
        if group.removed:
            pairs[(group.label, group.called)] += group.size
    if not pairs:
        removed = np.flatnonzero(~result.keep)
        pairs.update((int(dataset.labels[i]), int(result.predicted[i])) for i in removed)
    return sorted(pairs.items(), key=lambda item: (-item[1], item[0]))


def _detail(dataset: Dataset, result: Sanitization) -> str:
    pairs = removed_pairs(dataset, result)
    total = max(result.n_removed, sum(size for _, size in pairs))
    named = pairs[:_NAMED_PAIRS]
    first, size = pairs[0]
    if total == 1:
        return f"it is {_phrase(dataset, first)}{_witness([first], one=True)}"
    if size >= _MOST * total or len(pairs) == 1:
        amount = "all" if size == total else "most" if 2 * size > total else count(size)
        return f"{amount} are {_phrase(dataset, first)}{_witness([first])}"
    covered = sum(part for _, part in named)
    if 2 * covered <= total:
        return _scattered(dataset, result)
    parts = [f"{count(part)} are {_phrase(dataset, pair)}" for pair, part in named]
    listed = ", ".join(parts[:-1]) + f" and {parts[-1]}" + _witness([pair for pair, _ in named])
    rest = total - covered
    return f"{listed}; the other {count(rest)} vary" if rest else listed


def _scattered(dataset: Dataset, result: Sanitization) -> str:
    counts = np.bincount(dataset.labels[~result.keep], minlength=len(dataset.class_names))
    top = int(counts.argmax())
    n_labels = int((counts > 0).sum())
    name = printable(dataset.class_names[top], 40)
    if n_labels == 1:
        return f"all are labelled '{name}', and models that did not train on them call them different things"
    return f"they carry {count(n_labels)} different labels, most often '{name}' ({count(int(counts[top]))})"


def _phrase(dataset: Dataset, pair: Pair) -> str:
    label, called = pair
    labelled = f"labelled '{printable(dataset.class_names[label], 40)}'"
    if called in (label, -1):
        return labelled
    return f"{labelled} and called '{printable(dataset.class_names[called], 40)}'"


def _witness(pairs: list[Pair], *, one: bool = False) -> str:
    if all(called in (label, -1) for label, called in pairs):
        return ""
    return f" by models that did not train on {'it' if one else 'them'}"
