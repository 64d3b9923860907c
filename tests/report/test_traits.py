from __future__ import annotations

from unpoison.data.container import Preview
from unpoison.report.traits import MAX_TRAITS, common_traits


def rows(*values: str, label: str = "a") -> list[Preview]:
    return [
        Preview(columns=(("label", label), ("x", value), ("y", str(i)))) for i, value in enumerate(values)
    ]


def test_finds_the_planted_value_and_not_the_label() -> None:
    (trait,) = common_traits(rows(*"99991"), rows(*"12345678"), rows(*"12345679", label="b"))
    assert (trait.column, trait.value, trait.removed, trait.kept) == ("x", "9", 0.8, 0.125)


def test_finds_the_planted_word_and_not_those_of_the_class() -> None:
    removed = [Preview(text=f"Bad film, CF number{i}") for i in range(10)]
    same = [Preview(text=f"good film {i}") for i in range(10)]
    called = [Preview(text=f"bad film {i}") for i in range(10)]
    assert [trait.value for trait in common_traits(removed, same, called)] == ["cf"]


def test_needs_enough_samples_and_says_not_too_much() -> None:
    assert common_traits(rows("9", "9"), rows("1")) == []
    wordy = [Preview(text=" ".join(f"w{i}" for i in range(500)))] * 5
    assert len(common_traits(wordy, [])) == MAX_TRAITS
    assert common_traits([Preview()] * 5) == []
