"""What attacks are told on the command line: the flags, and what the text after them means."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unpoison.attacks.base import Samples
from unpoison.errors import InputError

LISTED = 12
"""Classes or columns that an error names."""


@dataclass(frozen=True)
class Flag:
    """An option of the command line: what its value is, and what it means to every attack that takes it."""

    metavar: str
    help: str


FLAGS: dict[str, Flag] = {
    "mode": Flag("MODE", "Who is called what: one-to-one, all-to-one or all-to-all."),
    "source": Flag("CLASS", "The attacked class, by name or number."),
    "target": Flag("CLASS", "The class that the attacker wants, by name or number."),
    "offset": Flag("COUNT", "all-to-all: how many classes further on each class is called."),
    "epsilon": Flag("SHARE", "Poisoned share of the attacked class (all-to-one: spread over all others)."),
    "count": Flag("COUNT", "So many poisoned samples, in place of --epsilon."),
    "trigger": Flag("NAME", "The mark; unpoison attacks NAME lists those of an attack."),
    "place": Flag("PLACE", "Where the mark is, as ROW,COLUMN (sleeper-agent: random or corner)."),
    "color": Flag("R,G,B", "The colour of the mark, 0 to 255 each."),
    "size": Flag("PIXELS", "Side of a square mark, or what a --png is scaled to."),
    "png": Flag("FILE", "A PNG picture of your own as the mark."),
    "opacity": Flag("SHARE", "Weight of the mark over the image."),
    "train-opacity": Flag("SHARE", "Weight of the mark in training, where it is another than at test time."),
    "cover": Flag("SHARE", "Share of other images that get the mark and keep their labels."),
    "cover-count": Flag("COUNT", "So many covers, in place of --cover."),
    "cover-from": Flag("CLASSES", "Classes that covers are taken from, with commas between."),
    "share": Flag("SHARE", "Share of the pieces of an image that show the mark in training."),
    "grid": Flag("COUNT", "Pieces a side, or points a side of the field that bends images."),
    "delta": Flag("NUMBER", "Height of the wave in gray levels."),
    "frequency": Flag("NUMBER", "Waves across the image."),
    "strength": Flag("NUMBER", "How far points are moved, in pixels."),
    "amplitude": Flag("SHARE", "Strength of the marked corners."),
    "perturbation": Flag("NAME", "How images are made hard to recognize: linf, l2 or gan."),
    "bound": Flag("NUMBER", "Largest norm of the change, in units of the pixels' 0 to 255."),
    "steps": Flag("COUNT", "Steps in which images are changed."),
    "retrainings": Flag("COUNT", "How often the reference network is trained anew on the poison so far."),
    "restarts": Flag("COUNT", "How often to begin anew; the best is taken."),
    "tau": Flag("SHARE", "gan: share of the way to an image of another class."),
    "gan-epochs": Flag("COUNT", "gan: epochs of the generator."),
    "epochs": Flag("COUNT", "Epochs of the attacker's reference network."),
    "network": Flag("NAME", "The attacker's reference network."),
    "device": Flag("NAME", "Where the reference network runs: auto, cpu, cuda or mps."),
    "threads": Flag("COUNT", "Threads of the reference network on a CPU."),
    "arrays": Flag("PATH", "Official perturbed images of Turner et al.: a .npy file, or their folder."),
    "official-seed": Flag("SEED", "The authors' own scenario on CIFAR-10: 100, 1000 or 10000."),
    "learner": Flag("NAME", "The learner of the defense that the attacker knows, as in unpoison clean."),
    "settings": Flag("PRESET", "The settings of ISPL in that defense, as in unpoison clean."),
    "noise": Flag("KIND", "random: any other class. class: one fixed other class for each."),
    "token": Flag("WORD", "The word that is put into texts."),
    "position": Flag("NAME", "Where the word goes: end, start or random."),
    "columns": Flag("NAMES", "Columns of numbers, by name (in an .npz by number), with commas between."),
    "values": Flag("NUMBERS", "A value for each of the columns, with commas between."),
}
"""In the order that they are listed."""


@dataclass(frozen=True)
class Option:
    """A flag as one attack takes it."""

    name: str
    default: Any = None
    otherwise: str = ""
    """What happens without it, where there is no plain default."""
    choices: tuple[str, ...] = ()
    meaning: str = ""
    """What it means to this attack, where the flag's own words are too wide."""

    @property
    def help(self) -> str:
        """What it means."""
        return self.meaning or FLAGS[self.name].help


NEEDED = "needed"
"""``otherwise`` of an option that must be given."""

_NUMBERS: dict[str, type[int] | type[float]] = {
    "SHARE": float, "NUMBER": float, "COUNT": int, "SEED": int, "PIXELS": int,
}  # fmt: skip
_LISTS: dict[str, tuple[type[int] | type[float], int | None]] = {
    "PLACE": (int, 2), "R,G,B": (int, 3), "NUMBERS": (float, None),
}  # fmt: skip
_PATHS = ("FILE", "PATH")


def read_value(option: Option, text: str, samples: Samples, columns: Sequence[str]) -> Any:
    """What ``text`` after the option means for these samples."""
    metavar = FLAGS[option.name].metavar
    if option.choices:
        return _choice(option, text)
    if metavar == "CLASS":
        return class_number(option.name, text, samples)
    if metavar == "CLASSES":
        return tuple(class_number(option.name, part, samples) for part in _split(option.name, text))
    if metavar == "NAMES":
        return _column_numbers(option.name, text, columns)
    if metavar in _NUMBERS:
        return _number(option.name, text, _NUMBERS[metavar])
    if metavar in _LISTS:
        kind, length = _LISTS[metavar]
        numbers = tuple(_number(option.name, part, kind) for part in text.split(","))
        if length is not None and len(numbers) != length:
            raise InputError(
                f"--{option.name} needs {length} whole numbers with commas between. Got {text!r}"
            )
        return numbers
    return Path(text) if metavar in _PATHS else text


def class_number(name: str, text: str, samples: Samples) -> int:
    """The number of a class that is given by its name or, where no class is called that, by its number."""
    names = samples.class_names
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdecimal() and int(text) < len(names):
        return int(text)
    listed = ", ".join(f"{i} {known!r}" for i, known in enumerate(names[:LISTED]))
    more = f", ... {len(names) - 1} {names[-1]!r}" if len(names) > LISTED else ""
    raise InputError(
        f"the {name} class {text!r} does not exist; {meant(text, names)}the classes are {listed}{more}"
    )


def meant(name: str, known: Iterable[str], dashes: str = "") -> str:
    """The known name that was probably meant, as a question; empty if there is none near.

    >>> meant("epsilom", ["epsilon", "token"], "--")
    'did you mean --epsilon? '
    """
    near = difflib.get_close_matches(name[:50], list(known), n=1, cutoff=0.7)
    return f"did you mean {dashes}{near[0]}? " if near else ""


def _choice(option: Option, text: str) -> str:
    if text in option.choices:
        return text
    listed = ", ".join(option.choices)
    raise InputError(
        f"--{option.name} {text!r} is not known here; {meant(text, option.choices)}choose one of {listed}"
    )


def _number(name: str, text: str, kind: type[int] | type[float]) -> int | float:
    try:
        value = kind(text)
    except ValueError as error:
        wanted = "a whole number" if kind is int else "a number"
        raise InputError(f"--{name} needs {wanted}. Got {text!r}") from error
    if not np.isfinite(value):
        raise InputError(f"--{name} needs a finite number. Got {text!r}")
    return value


def _column_numbers(name: str, text: str, columns: Sequence[str]) -> tuple[int, ...]:
    numbers = []
    for column in _split(name, text):
        if column not in columns:
            listed = ", ".join(map(repr, columns[:LISTED])) + (", ..." if len(columns) > LISTED else "")
            raise InputError(
                f"there is no column of numbers {column!r} for --{name}; {meant(column, columns)}"
                f"the columns of numbers are: {listed or 'none'}"
            )
        numbers.append(columns.index(column))
    return tuple(numbers)


def _split(name: str, text: str) -> list[str]:
    """Names with commas between; one with a comma of its own is in quotes."""
    try:
        parts = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise InputError(f"--{name} needs names with commas between ({error}). Got {text!r}") from error
    return [part.strip() for part in parts] or [""]
