from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from unpoison.core.config import GroupSettings, IsplSettings
from unpoison.errors import InputError, UnpoisonError

NAN, INF = float("nan"), float("inf")

AT_LEAST_ONE = "a whole number of at least 1"
AT_LEAST_ZERO = "a whole number of at least 0"
FINITE = "a finite number"
NOT_ZERO, CLOSED, NOT_ONE = (f"a number in {text}" for text in ("(0, 1]", "[0, 1]", "[0, 1)"))

LIMITS: dict[type[Any], dict[str, str]] = {
    IsplSettings: {
        "rounds": AT_LEAST_ONE,
        "restarts": AT_LEAST_ONE,
        "first_epochs": AT_LEAST_ONE,
        "epochs": AT_LEAST_ONE,
        "weak_epochs": AT_LEAST_ONE,
        "self_training_updates": AT_LEAST_ONE,
        "self_training_interval": AT_LEAST_ONE,
        "min_steps": AT_LEAST_ZERO,
        "weak_min_steps": AT_LEAST_ZERO,
        "alpha": NOT_ZERO,
        "coverage": NOT_ZERO,
        "class_floor": CLOSED,
        "momentum": NOT_ONE,
        "self_training_momentum": NOT_ONE,
        "class_floor_of": "one of 'target', 'current'",
        "sampling": "one of 'per-class', 'binomial'",
        "first_training": "one of 'sample', 'half-then-all'",
        "weak_start": "one of 'fresh', 'component'",
        "voters": "one of 'all', 'outsiders'",
        "keep_rule": "one of 'mode-or-lower-half', 'two-votes', 'component'",
        "self_training": "one of True, False",
        "annealing": "one of True, False",
        "weak_annealing": "one of True, False",
        "beta_from": "one of '3p', 'fits'",
        "self_training_returns": "one of 'trained', 'updated'",
    },
    GroupSettings: {
        "met": FINITE,
        "kept": FINITE,
        "right_labels": "one of True, False",
        "canaries": "one of True, False",
        "epochs": AT_LEAST_ONE,
        "judge_epochs": AT_LEAST_ONE,
        "pairs": AT_LEAST_ONE,
        "min_steps": AT_LEAST_ZERO,
    },
}

BAD: dict[str, list[Any]] = {
    AT_LEAST_ONE: [0, -1, 1.0, "3", None, True, NAN],
    AT_LEAST_ZERO: [-1, 0.0, "0", None, False],
    FINITE: [NAN, INF, -INF, "6", None, True],
    NOT_ZERO: [0, 0.0, -0.1, 1.0000001, NAN, INF, "0.5", None, True],
    CLOSED: [-1e-9, 1.1, NAN, -INF, "1", None, False],
    NOT_ONE: [1, 1.0, -0.1, NAN, "0", None, True],
}
GOOD: dict[str, list[Any]] = {
    AT_LEAST_ONE: [1, 7],
    AT_LEAST_ZERO: [0, 5],
    FINITE: [-1, 0, 6.5],
    NOT_ZERO: [1e-9, 1, 1.0],
    CLOSED: [0, 1, 0.5],
    NOT_ONE: [0, 0.999],
}


def cases(table: dict[str, list[Any]], otherwise: list[Any]) -> list[Any]:
    return [
        pytest.param(kind, name, wanted, value, id=f"{kind.__name__}-{name}-{value!r}")
        for kind, limits in LIMITS.items()
        for name, wanted in limits.items()
        for value in table.get(wanted, otherwise)
    ]


def test_every_setting_has_a_limit_here() -> None:
    for kind, limits in LIMITS.items():
        assert {field.name for field in dataclasses.fields(kind)} == set(limits)


@pytest.mark.parametrize(("kind", "name", "wanted", "value"), cases(BAD, ["nonsense", None, 2, ""]))
def test_an_error_names_the_parameter_what_was_wanted_and_what_was_given(
    kind: type[Any], name: str, wanted: str, value: Any
) -> None:
    with pytest.raises(InputError) as caught:
        kind(**{name: value})
    assert str(caught.value) == (
        f"The {name!r} parameter of {kind.__name__} must be {wanted}. Got {value!r} instead."
    )
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, UnpoisonError)


@pytest.mark.parametrize(("kind", "name", "wanted", "value"), cases(GOOD, []))
def test_the_ends_of_each_interval(kind: type[Any], name: str, wanted: str, value: Any) -> None:
    assert getattr(kind(**{name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("class_floor_of", ("target", "current")),
        ("sampling", ("per-class", "binomial")),
        ("first_training", ("sample", "half-then-all")),
        ("beta_from", ("3p", "fits")),
        ("self_training_returns", ("trained", "updated")),
        ("weak_annealing", (True, False)),
        ("keep_rule", ("mode-or-lower-half", "two-votes", "component")),
        ("self_training", (True, False)),
    ],
)
def test_every_choice_can_be_made(name: str, choices: tuple[Any, ...]) -> None:
    for choice in choices:
        assert getattr(IsplSettings(**{name: choice}), name) == choice


@pytest.mark.parametrize("kind", list(LIMITS))
def test_settings_are_frozen_and_checked_again_when_changed(kind: type[Any]) -> None:
    settings = kind()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.epochs = 3
    with pytest.raises(InputError, match="'epochs'"):
        dataclasses.replace(settings, epochs=0)


@pytest.mark.parametrize(("kind", "method"), [(IsplSettings, "ispl"), (GroupSettings, "groups")])
def test_settings_as_plain_values_for_files(kind: type[Any], method: str) -> None:
    plain = kind().as_dict()
    assert plain.pop("method") == method
    assert kind(**json.loads(json.dumps(plain))) == kind()
