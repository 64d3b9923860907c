from __future__ import annotations

import dataclasses

import pytest

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset, Preview
from unpoison.report.canaries import canaries, measured, missed

from .builders import judged, make


def with_canaries(result: Sanitization, *sizes: tuple[int, int]) -> Sanitization:
    """Groups of our own by size and number found, with labels 0, 1, ..."""
    notes = [{"label": i, "size": size, "found": found} for i, (size, found) in enumerate(sizes)]
    return dataclasses.replace(result, notes={**result.notes, "canaries": notes})


def large() -> Dataset:
    """Three classes of 1,500 samples."""
    return make("text", lambda i: Preview(text=f"text {i}"), n=4500)


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        (
            [(150, 150), (45, 45), (15, 0)],
            "Of our own 150, 45 and 15 planted samples, 150, 45 and 0 were found.",
        ),
        ([(150, 149)], "Of our own 150 planted samples, 149 were found."),
        ([(8, 1)], "Of our own 8 planted samples, 1 was found."),
        ([(12000, 12000), (3, 1)], "Of our own 12,000 and 3 planted samples, 12,000 and 1 were found."),
    ],
)
def test_what_was_found_in_one_sentence(sizes: list[tuple[int, int]], sentence: str) -> None:
    dataset = large()
    assert measured(canaries(dataset, with_canaries(judged(dataset, []), *sizes))) == sentence


def test_other_methods_have_none() -> None:
    dataset = large()
    for result in (judged(dataset, []), with_canaries(judged(dataset, []))):
        planted = canaries(dataset, result)
        assert (planted, measured(planted), missed(planted)) == ((), "", "")


def test_what_would_have_been_missed() -> None:
    dataset = large()

    def said(*sizes: tuple[int, int]) -> str:
        return missed(canaries(dataset, with_canaries(judged(dataset, []), *sizes)))

    helps = "A stronger network or more passes may find them."
    assert said((150, 135), (45, 45)) == ""
    assert said((150, 150), (45, 45), (15, 0)) == (
        f"Groups of about 15 samples, 1% of their class, would have been missed. {helps}"
    )
    assert said((150, 0), (45, 0), (15, 0)) == (
        "Groups of about 150, 45 and 15 samples, 10%, 3% and 1% of their class, would have been missed. "
        f"{helps}"
    )
    assert "10% of their class, would have been missed or found only in part." in said((150, 134))
    assert ", 0.5% of their class," in said((8, 0)), "not rounded to 1% or to nothing"
