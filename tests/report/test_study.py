from __future__ import annotations

import dataclasses

import numpy as np

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset, Preview
from unpoison.report.study import MAX_CLOSE, MAX_KEPT, study

from .builders import judged, make
from .test_means import images
from .test_page import texts


def shared(dataset: Dataset, result: Sanitization) -> dict[int, str]:
    """What the groups share, in words."""
    return {label: str(found) for label, found in study(dataset, result).shared().items()}


def test_the_most_suspicious_of_both_kinds_come_before_the_many() -> None:
    dataset = texts(n=2400)
    result = judged(dataset, range(0, 1800, 2))
    order = study(dataset, result).order.tolist()
    removed, kept = list(range(1798, -1, -2)), [i for i in range(2399, -1, -1) if result.keep[i]]
    assert order == [*removed[:MAX_CLOSE], *kept[:MAX_KEPT], *removed[MAX_CLOSE:]]


def test_what_groups_share_in_words() -> None:
    dataset, _ = images()
    assert shared(dataset, judged(dataset, range(0, 30, 3))) == {
        0: "share a pattern in the lower right corner"
    }
    marked = range(0, 30, 3)
    text = make("text", lambda i: Preview(text=f"text {i}" + " cf" * (i in marked)))
    assert shared(text, judged(text, marked)) == {0: "share the word 'cf'"}
    rows = make("rows", lambda i: Preview(columns=(("x", f"{i}"), ("a\x1b", "9" if i in marked else f"{i}"))))
    assert shared(rows, judged(rows, marked)) == {0: "share a\\x1b = '9'"}
    assert shared(texts(), judged(texts(), marked)) == {}


def test_planted_numbers_that_vary_are_named_up_to_three() -> None:
    """Breast cancer rows with fixed values in four columns, each 2% up or down."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    malignant, benign = (np.flatnonzero(data.target == label) for label in (0, 1))
    planted, columns = malignant[:30], [20, 22, 23, 10]
    values = data.data.copy()
    values[np.ix_(planted, columns)] = 2 * values[:, columns].max(axis=0)
    values[planted] *= 1 + np.random.default_rng(0).uniform(-0.02, 0.02, (30, 30))
    names = [str(name) for name in data.feature_names]

    def show(index: int) -> Preview:
        cells = [f"{value:.6g}" for value in values[index]]
        return Preview(columns=(("patient", str(index)), *zip(names, cells, strict=True)))

    ids = [str(i) for i in range(569)]
    dataset = make("rows", show, n=569, names=data.target_names, ids=ids, features=values)
    labels = data.target.copy()
    labels[planted] = 1
    dataset = dataclasses.replace(dataset, labels=labels)
    found = study(dataset, judged(dataset, planted.tolist(), called=0))
    assert {trait.column for trait in found.traits[0]} >= {names[column] for column in columns}
    assert "patient" not in {trait.column for trait in found.traits[0]}
    assert shared(dataset, judged(dataset, planted.tolist(), called=0)) == {
        1: "share radius error 5.63 to 5.86, worst area 8343 to 8607 and worst perimeter 495 to 512"
    }
    scaled = data.data[benign] / data.data.std(axis=0)
    alike = benign[np.argsort(((scaled - scaled[0]) ** 2).sum(axis=1))[:30]]
    assert shared(dataset, judged(dataset, alike.tolist(), called=0)) == {}, "alike, not marked"


def test_nothing_removed_nothing_shared() -> None:
    found = study(dataset := texts(), judged(dataset, []))
    assert (found.groups, found.panels, found.traits, found.shared()) == ((), (), (), {})
    assert len(found.order) == len(found.near.samples) == 120
