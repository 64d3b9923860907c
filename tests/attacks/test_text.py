from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.attacks.base import Samples
from unpoison.attacks.labels import OneToOne
from unpoison.attacks.text import RareToken, TokenTrigger
from unpoison.errors import InputError


def texts(*values: object) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def test_places() -> None:
    given = texts("win a prize", "", "one")
    assert TokenTrigger("cf", "end")(given).tolist() == ["win a prize cf", "cf", "one cf"]
    assert TokenTrigger("cf", "start")(given).tolist() == ["cf win a prize", "cf", "cf one"]
    assert given.tolist() == ["win a prize", "", "one"]


@given(st.text())
def test_a_random_place_adds_one_word_and_keeps_the_rest(text: str) -> None:
    (marked,) = TokenTrigger("cf", "random")(texts(text)).tolist()
    words = marked.split(" ")
    assert "cf" in words
    places = [i for i, word in enumerate(words) if word == "cf"]
    rests = [" ".join([*words[:i], *words[i + 1 :]]) for i in places]
    assert text in rests
    assert marked == TokenTrigger("cf", "random")(texts(text))[0], "the same text, the same place"


def test_a_random_place_differs_between_texts() -> None:
    many = texts(*(f"number {i} of a few words" for i in range(200)))
    places = [text.split(" ").index("cf") for text in TokenTrigger("cf", "random")(many)]
    assert sorted(set(places)) == [0, 1, 2, 3, 4, 5, 6]


def test_long_texts_are_not_cut() -> None:
    labels = np.array([0, 0, 1])
    samples = Samples.numbered(texts("a", "b", "c"), labels)
    poisoned, truth = RareToken(OneToOne(0, 1), 1.0, token="x" * 50).apply(samples, seed=0)
    assert poisoned.features.tolist() == ["a " + "x" * 50, "b " + "x" * 50, "c"]
    assert poisoned.labels.tolist() == [1, 1, 1]
    assert truth.planted.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"token": "two words"}, "one word without blanks. Got 'two words'"),
        ({"token": ""}, "Got ''"),
        ({"token": "cf "}, "Got 'cf '"),
        ({"position": "middle"}, "one of end, start, random. Got 'middle'"),
        ({"epsilon": 0.0}, "epsilon .* Got 0.0"),
    ],
)
def test_bad_options(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        RareToken(**{"relabelling": OneToOne(0, 1), "epsilon": 0.1, **options})


@pytest.mark.parametrize(
    ("features", "named"),
    [
        (np.array(["a", "b"]), "got <U1 of shape"),
        (np.zeros((2, 3)), "got float64"),
        (texts("a", 5), "sample 1 is int, not a text"),
        (texts(None, "b"), "sample 0 is NoneType"),
    ],
)
def test_what_is_no_text_is_refused(features: np.ndarray, named: str) -> None:
    attack = RareToken(OneToOne(0, 1), 1.0)
    with pytest.raises(InputError, match=named):
        attack.apply(Samples.numbered(features, np.array([0, 1])), seed=0)
    with pytest.raises(InputError, match=named):
        attack.trigger(features)
