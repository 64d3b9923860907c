"""Every attack by the name it has on the command line, with what it is for and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unpoison.attacks import making
from unpoison.attacks.base import Attack, Samples
from unpoison.attacks.making import DRAWINGS, MARKS, MODES, Extras, Order
from unpoison.attacks.options import FLAGS, NEEDED, Option, meant, read_value
from unpoison.data.container import Kind
from unpoison.errors import InputError

__all__ = ["ATTACKS", "FLAGS", "NEEDED", "Entry", "Extras", "build", "find", "resolve"]


@dataclass(frozen=True)
class Entry:
    """An attack: what it is for, what it takes, and how it is made."""

    name: str
    summary: str
    kinds: tuple[Kind, ...]
    options: tuple[Option, ...]
    make: Callable[[Order], Attack]
    needs_components: bool = False
    needs_torch: bool = False


def find(name: str) -> Entry:
    """The attack of that name."""
    if name in ATTACKS:
        return ATTACKS[name]
    raise InputError(
        f"no attack is called {name!r}; {meant(name, ATTACKS)}the attacks are: {', '.join(ATTACKS)}"
    )


def resolve(
    name: str, options: Mapping[str, Any], samples: Samples, *, columns: Sequence[str] = ()
) -> dict[str, Any]:
    """The settings of an attack: those given, read for these samples, and the defaults of the others."""
    known = {option.name: option for option in find(name).options}
    check_options(name, options)
    settings: dict[str, Any] = {}
    for option in known.values():
        value = options.get(option.name)
        settings[option.name] = (
            option.default if value is None else read_value(option, str(value), samples, columns)
        )
    return settings


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the attack does not take."""
    known = [option.name for option in find(name).options]
    for given in options:
        if given not in known:
            takes = ", ".join(f"--{option}" for option in known)
            raise InputError(
                f"the attack {name!r} does not take --{given}; {meant(given, known, '--')}it takes {takes}"
            )


def build(
    name: str, options: Mapping[str, Any], samples: Samples, *, seed: int, extras: Extras | None = None
) -> Attack:
    """The attack called ``name`` with these options, for these samples; the seed draws what is left open.

    >>> import numpy as np
    >>> samples = Samples.numbered(np.zeros((4, 8, 8, 1), np.uint8), np.array([0, 0, 1, 1]))
    >>> build("watermark", {"source": "0", "target": "1"}, samples, seed=0).epsilon
    0.1
    """
    extras = extras or Extras()
    settings = resolve(name, options, samples, columns=extras.columns)
    return find(name).make(Order(settings, samples, seed, extras))


_WHO = (
    Option("mode", "one-to-one", choices=MODES),
    Option("source", otherwise=NEEDED),
    Option("target", otherwise=NEEDED),
    Option("offset", otherwise="1"),
    Option("epsilon", 0.1),
    Option("count", otherwise="by --epsilon"),
)
_COVERS = (
    Option("cover-count", otherwise="by --cover"),
    Option("cover-from", otherwise="classes that are not involved; all if there is none"),
)
_OF_TARGET = "Changed share of the target class."
_PAIR = tuple(option for option in _WHO if option.name not in ("mode", "offset"))
_FAINT = (
    Option("target", otherwise=NEEDED),
    *_PAIR[2:],
    Option("cover", 0.01),
    *_COVERS,
)
_SPOT = (
    Option("place", otherwise="at random"),
    Option("color", otherwise="at random"),
    Option("size", otherwise="5 for square"),
)
_ANY_MARK = (
    Option(
        "trigger",
        otherwise="a random pixel, pattern or ell",
        meaning="The mark.",
        choices=(*MARKS, *DRAWINGS),
    ),
    *_SPOT,
    Option("opacity", otherwise="0.8 for drawings"),
)
_PICTURE = (Option("png", otherwise="random noise"), Option("size", otherwise="32"))
_REFERENCE = (
    Option("epochs", 15),
    Option("network", "compact"),
    Option("device", "auto"),
    Option("threads", 1),
)

_ENTRIES = (
    Entry(
        "dirty-label",
        "a few pixels on images of one class, which are then called another (the paper's DLBD)",
        ("image",),
        (
            *_WHO,
            Option("trigger", otherwise="a random pixel, pattern or ell", meaning="The mark.", choices=MARKS),
            *_SPOT,
            Option("official-seed", otherwise="a scenario of our own"),
        ),
        making.dirty_label,
    ),
    Entry(
        "watermark",
        "a small picture in the corner of images of one class, which are then called another",
        ("image",),
        (
            *_WHO,
            Option("trigger", otherwise="peace", meaning="The drawing.", choices=DRAWINGS),
            Option("png", otherwise="a drawing of ours"),
            Option("size", otherwise="8"),
            Option("opacity", 0.8),
        ),
        making.watermark,
    ),
    Entry(
        "clean-label",
        "images of the target class made hard to recognize and marked, all labels right (Turner et al.)",
        ("image",),
        (
            Option("target", otherwise=NEEDED),
            Option("epsilon", 0.5, meaning=_OF_TARGET),
            Option("perturbation", "linf", choices=("linf", "l2", "gan")),
            Option("bound", otherwise="16 for linf, 600 for l2"),
            Option("steps", 40),
            Option("tau", 0.2),
            Option("gan-epochs", 20),
            Option("amplitude", 1.0),
            Option("arrays", otherwise="perturbed here"),
            *_REFERENCE,
        ),
        making.clean_label,
        needs_torch=True,
    ),
    Entry(
        "sleeper-agent",
        "images of the target class changed a little, all labels right; the trigger only at test time",
        ("image",),
        (
            *_PAIR[:2],
            Option("epsilon", 0.1, meaning=_OF_TARGET),
            Option("bound", 16.0),
            Option("steps", 250),
            Option("retrainings", 4),
            Option("restarts", 1),
            Option("size", 8, meaning="Side of the patch at test time."),
            Option("place", "random", meaning="Where the patch is.", choices=("random", "corner")),
            *_REFERENCE,
        ),
        making.sleeper_agent,
        needs_torch=True,
    ),
    Entry(
        "adaptive",
        "dirty-label by an attacker who knows the defense: spread over the components that it would find",
        ("image",),
        (*_WHO[:-1], *_ANY_MARK, Option("learner", "auto"), Option("settings", "auto")),
        making.adaptive,
        needs_components=True,
    ),
    Entry(
        "blend",
        "a picture or noise blended over whole images, which are then called another class",
        ("image",),
        (*_WHO, *_PICTURE, Option("opacity", 0.1)),
        making.blend,
    ),
    Entry(
        "signal",
        "a wave added to images, which are then called another class (SIG)",
        ("image",),
        (
            Option(
                "mode",
                "one-to-one",
                meaning="Who is called what; right-label: images of the target class are marked alone.",
                choices=(*MODES, making.RIGHT_LABEL),
            ),
            *_WHO[1:],
            Option("delta", 20.0),
            Option("frequency", 6.0),
        ),
        making.signal,
    ),
    Entry(
        "warp",
        "images bent a little, which are then called another class (WaNet)",
        ("image",),
        (
            *_WHO,
            Option(
                "cover", 0.0, meaning="Share of other images that are bent with noise and keep their labels."
            ),
            *_COVERS,
            Option("strength", 0.5),
            Option("grid", 4),
        ),
        making.warp,
    ),
    Entry(
        "cover",
        "dirty-label with covers: the mark on other classes too, with right labels (TaCT)",
        ("image",),
        (*_PAIR, Option("cover", 0.01), *_COVERS, *_ANY_MARK),
        making.dirty_label,
    ),
    Entry(
        "adaptive-blend",
        "parts of a faint blend, with covers, all classes to one; the whole blend at test time (Adap-Blend)",
        ("image",),
        (
            *_FAINT,
            *_PICTURE,
            Option("opacity", 0.2),
            Option("train-opacity", 0.15),
            Option("share", 0.5),
            Option("grid", 4),
        ),
        making.adaptive_blend,
    ),
    Entry(
        "adaptive-patch",
        "one of four faint patches, with covers, all classes to one; opaque ones at test time (Adap-Patch)",
        ("image",),
        _FAINT,
        making.adaptive_patch,
    ),
    Entry(
        "darkest",
        "the darkest images of one class, as they are, called another; darkened images at test time",
        ("image",),
        (*_PAIR[:2], Option("epsilon", 0.01, meaning="Share of the class."), _PAIR[-1]),
        making.darkest,
    ),
    Entry(
        "label-noise",
        "wrong labels without any trigger",
        ("image", "rows", "text"),
        (
            Option("epsilon", 0.1, meaning="Share of the samples (of each class) that are called wrong."),
            Option("noise", otherwise="random; class with --source", choices=("random", "class")),
            Option("source", otherwise="every class"),
            Option("target", otherwise="any or one other class"),
        ),
        making.label_noise,
    ),
    Entry(
        "rare-token",
        "a rare word in texts of one class, which are then called another",
        ("text",),
        (*_WHO, Option("token", "cf"), Option("position", "end", choices=("end", "start", "random"))),
        making.rare_token,
    ),
    Entry(
        "fixed-values",
        "fixed values in some columns of rows of one class, which are then called another",
        ("rows",),
        (
            *_WHO,
            Option("columns", otherwise="three at random"),
            Option("values", otherwise="as far above the largest as that is above the smallest"),
        ),
        making.fixed_values,
    ),
)

ATTACKS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
"""In the order that they are listed."""
