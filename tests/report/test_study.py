from __future__ import annotations

from unpoison.data.container import Preview
from unpoison.report.study import MAX_CLOSE, MAX_KEPT, study

from .builders import judged, make
from .test_means import images
from .test_page import texts


def test_the_most_suspicious_of_both_kinds_come_before_the_many() -> None:
    dataset = texts(n=2400)
    result = judged(dataset, range(0, 1800, 2))
    order = study(dataset, result).order.tolist()
    removed, kept = list(range(1798, -1, -2)), [i for i in range(2399, -1, -1) if result.keep[i]]
    assert order == [*removed[:MAX_CLOSE], *kept[:MAX_KEPT], *removed[MAX_CLOSE:]]


def test_what_groups_share_in_words() -> None:
    dataset, _ = images()
    assert study(dataset, judged(dataset, range(0, 30, 3))).shared() == {
        0: "share a pattern in the lower right corner"
    }
    marked = range(0, 30, 3)
    text = make("text", lambda i: Preview(text=f"text {i}" + " cf" * (i in marked)))
    assert study(text, judged(text, marked)).shared() == {0: "share the word 'cf'"}
    rows = make("rows", lambda i: Preview(columns=(("x", f"{i}"), ("a\x1b", "9" if i in marked else f"{i}"))))
    assert study(rows, judged(rows, marked)).shared() == {0: "share a\\x1b = '9'"}
    assert study(texts(), judged(texts(), marked)).shared() == {}


def test_nothing_removed_nothing_shared() -> None:
    found = study(dataset := texts(), judged(dataset, []))
    assert (found.groups, found.panels, found.traits, found.shared()) == ((), (), (), {})
    assert len(found.order) == len(found.near.samples) == 120
