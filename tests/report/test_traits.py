from __future__ import annotations

import pytest

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


def measured(*values: object) -> list[Preview]:
    return [Preview(columns=(("row", f"{i}"), ("worst perimeter", f"{v}"))) for i, v in enumerate(values)]


KEPT = measured(*(80 + i for i in range(60)))


def test_finds_planted_numbers_that_are_not_quite_the_same() -> None:
    (trait,) = common_traits(measured(*(396 + 2 * i for i in range(9))), KEPT, KEPT)
    assert (trait.column, trait.value, trait.removed, trait.kept) == ("worst perimeter", "396 to 412", 1, 0)
    assert str(trait) == "worst perimeter 396 to 412"


def test_a_column_is_named_once_by_its_value_or_its_range() -> None:
    (trait,) = common_traits(measured(*[400] * 6, 401, 402), KEPT)
    assert (str(trait), trait.removed) == ("worst perimeter = '400'", 0.75)


@pytest.mark.parametrize("odd", ["", "none", "nan", "inf", "1e400", "-1e308"])
def test_what_is_not_a_number_has_no_range(odd: str) -> None:
    assert common_traits(measured(*(396 + i for i in range(9)), odd), KEPT) == []
    assert len(common_traits(measured(*(396 + i for i in range(9))), [*KEPT, *measured(odd)])) == 1


def test_columns_that_mean_nothing_are_left_out() -> None:
    later = [Preview(columns=(("row", f"{500 + i}"),)) for i in range(9)]
    assert [trait.column for trait in common_traits(later, KEPT)] == ["row"]
    assert common_traits(later, KEPT, without={"row"}) == []
