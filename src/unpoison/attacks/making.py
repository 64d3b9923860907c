"""How each attack is made from the settings of the command line.

The attacks are imported where they are made: listing them must cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import Attack, Samples
from unpoison.errors import InputError
from unpoison.seeds import Seeds

if TYPE_CHECKING:
    from unpoison.attacks.labels import Relabelling
    from unpoison.attacks.overlays import Blend
    from unpoison.attacks.reference import ReferenceOptions
    from unpoison.attacks.triggers import Mark, Patch, Trigger

ONE_TO_ONE, ALL_TO_ONE, ALL_TO_ALL = MODES = ("one-to-one", "all-to-one", "all-to-all")
RIGHT_LABEL = "right-label"
"""A mode of ``signal``: marked images of the target class keep their labels."""
MARKS = ("random", "pixel", "pattern", "ell", "square", "corner", "corners")
DRAWINGS = ("peace", "letter-a", "bullet-holes", "patch")
PATCH_OPACITIES = (0.5, 0.2, 0.5, 0.3)
"""Of the four patches of ``adaptive-patch`` in training (Qi et al., 2023);"""
TEST_PATCHES = (0, 2)
"""those that are shown at test time, opaque."""
USUAL_COLUMNS = 3


@dataclass(frozen=True)
class Extras:
    """What the source tells besides its samples, for the attacks that need it."""

    columns: tuple[str, ...] = ()
    """Names of the columns of rows."""
    components: NDArray[np.int64] | None = None
    """The defense's component of each clean sample."""
    augmentation: str = "crop"
    """How images are varied when a network is trained on them."""
    part: tuple[tuple[int, ...], int] | None = None
    """Where the samples are in the source, and how many it has; None: they are all of it."""


@dataclass(frozen=True)
class Order:
    """What is to be made: an attack's settings, the samples it is for, and the seed for what is left open."""

    settings: Mapping[str, Any]
    samples: Samples
    seed: int
    extras: Extras = field(default_factory=Extras)

    def __getitem__(self, name: str) -> Any:
        return self.settings[name]

    def get(self, name: str) -> Any:
        """A setting, or None where the attack has none of that name."""
        return self.settings.get(name)


def dirty_label(order: Order) -> Attack:
    """Images with a mark, called another class; with covers where they are asked for."""
    from unpoison.attacks.dirty_label import DirtyLabel

    if order.get("official-seed") is not None:
        return _official(order)
    return DirtyLabel(_relabelling(order), order["epsilon"], _mark(order), **_covers(order))


def watermark(order: Order) -> Attack:
    """Images with a drawing or a picture of the user's, called another class."""
    from unpoison.attacks.dirty_label import DirtyLabel
    from unpoison.attacks.triggers import Watermark

    png, name, size = order["png"], order["trigger"], order["size"]
    if png is None:
        _refuse("the drawings, which have 8 pixels a side; it is for --png", size=size)
        mark = Watermark.named(name or DRAWINGS[0], opacity=order["opacity"])
    else:
        _refuse("a --png, which is a mark itself", trigger=name)
        mark = Watermark.from_png(png, size=8 if size is None else size, opacity=order["opacity"])
    return DirtyLabel(_relabelling(order), order["epsilon"], mark)


def adaptive(order: Order) -> Attack:
    """A mark on a share of every component."""
    from unpoison.attacks.adaptive import Adaptive

    if order.extras.components is None:
        raise InputError(
            "the attack 'adaptive' needs the components that the defense finds on the clean data"
        )
    return Adaptive(_relabelling(order), order["epsilon"], _mark(order), order.extras.components)


def blend(order: Order) -> Attack:
    """A picture over the whole image."""
    from unpoison.attacks.dirty_label import DirtyLabel

    return DirtyLabel(_relabelling(order), order["epsilon"], _blend(order, order["opacity"]))


def adaptive_blend(order: Order) -> Attack:
    """Parts of a faint picture in training, with covers; the whole of it at test time."""
    from unpoison.attacks.dirty_label import DirtyLabel
    from unpoison.attacks.overlays import Pieces

    weak, seeds = _blend(order, order["train-opacity"]), Seeds(order.seed).within("adaptive-blend")

    def pieces(of: str) -> Pieces:
        return Pieces(weak, seeds.integer(of), order["share"], order["grid"])

    return DirtyLabel(
        _relabelling(order, mode=ALL_TO_ONE),
        order["epsilon"],
        _blend(order, order["opacity"]),
        train_mark=pieces("planted"),
        **_covers(order, pieces("covers")),
    )


def adaptive_patch(order: Order) -> Attack:
    """One of four faint patches on each image in training, with covers; two of them, opaque, at test time."""
    from unpoison.attacks.dirty_label import DirtyLabel
    from unpoison.attacks.triggers import OneOf, Together, Watermark

    def patch(number: int, opacity: float) -> Watermark:
        drawing = Watermark.named(DRAWINGS[number], opacity=opacity)
        return replace(drawing, is_low=number >= 2, is_right=number % 2 == 1)

    faint = tuple(patch(number, opacity) for number, opacity in enumerate(PATCH_OPACITIES))
    seeds = Seeds(order.seed).within("adaptive-patch")
    return DirtyLabel(
        _relabelling(order, mode=ALL_TO_ONE),
        order["epsilon"],
        Together(tuple(patch(number, 1.0) for number in TEST_PATCHES)),
        train_mark=OneOf(faint, seeds.integer("planted")),
        **_covers(order, OneOf(faint, seeds.integer("covers"))),
    )


def _covers(order: Order, mark: Trigger | None = None) -> dict[str, Any]:
    """What ``DirtyLabel`` is told of covers; ``mark`` is theirs, if it is not that of the planted."""
    cover, count = order.get("cover") or 0.0, order.get("cover-count")
    has_any = cover > 0.0 or count is not None
    if not has_any and order.get("cover-from"):
        raise InputError("--cover-from is for covers; say how many, with --cover or --cover-count")
    return {
        "cover": cover,
        "cover_count": count,
        "cover_from": order.get("cover-from") or (),
        "cover_mark": mark if has_any else None,
    }


def signal(order: Order) -> Attack:
    """A wave."""
    from unpoison.attacks.dirty_label import DirtyLabel, RightLabel
    from unpoison.attacks.overlays import Signal

    mark = Signal(order["delta"], order["frequency"])
    if order["mode"] == RIGHT_LABEL:
        _refuse(f"--mode {RIGHT_LABEL}", source=order["source"], offset=order["offset"])
        return RightLabel(_needed(order, "target"), order["epsilon"], mark, order["count"])
    return DirtyLabel(_relabelling(order), order["epsilon"], mark)


def warp(order: Order) -> Attack:
    """A bend."""
    from unpoison.attacks.dirty_label import DirtyLabel
    from unpoison.attacks.overlays import Warp

    mark = Warp(order.seed, order["strength"], order["grid"])
    noisy = replace(mark, noise_seed=order.seed)
    return DirtyLabel(_relabelling(order), order["epsilon"], mark, **_covers(order, noisy))


def darkest(order: Order) -> Attack:
    """The darkest images of a class, as they are, called another."""
    from unpoison.attacks.dirty_label import Darkest
    from unpoison.attacks.labels import OneToOne

    pair = OneToOne(_needed(order, "source"), _needed(order, "target"), order["count"])
    return Darkest.of(order.samples, pair, order["epsilon"])


def clean_label(order: Order) -> Attack:
    """Images made hard to recognize, with marked corners."""
    from unpoison.attacks.clean_label import CleanLabel, Part
    from unpoison.attacks.triggers import Corners

    return CleanLabel(
        target=_needed(order, "target"),
        epsilon=order["epsilon"],
        perturbation=order["perturbation"],
        bound=order["bound"],
        steps=order["steps"],
        reference=_reference(order),
        tau=order["tau"],
        gan_epochs=order["gan-epochs"],
        arrays=order["arrays"],
        patch=Corners(order["amplitude"]),
        part=None if order.extras.part is None or order["arrays"] is None else Part(*order.extras.part),
    )


def sleeper_agent(order: Order) -> Attack:
    """Images that pull a network toward a backdoor whose trigger they do not show."""
    from unpoison.attacks.sleeper_agent import ColorPatch, SleeperAgent

    return SleeperAgent(
        source=_needed(order, "source"),
        target=_needed(order, "target"),
        epsilon=order["epsilon"],
        bound=order["bound"],
        steps=order["steps"],
        retrainings=order["retrainings"],
        restarts=order["restarts"],
        reference=_reference(order),
        patch=ColorPatch(order["size"], order.seed, order["place"]),
    )


def label_noise(order: Order) -> Attack:
    """Wrong labels."""
    from unpoison.attacks.label_noise import LabelNoise

    noise = order["noise"]
    if order["source"] is None and order["target"] is None:
        return LabelNoise(order["epsilon"], noise or "random")
    if noise == "random":
        raise InputError("--source and --target are for --noise class; leave them out, or change --noise")
    pair = (_needed(order, "source"), _needed(order, "target"))
    return LabelNoise(order["epsilon"], "class", pairs=(pair,))


def rare_token(order: Order) -> Attack:
    """A word in texts."""
    from unpoison.attacks.text import RareToken

    return RareToken(_relabelling(order), order["epsilon"], order["token"], order["position"])


def fixed_values(order: Order) -> Attack:
    """Values in columns."""
    from unpoison.attacks.rows import FixedValues, fitting_values

    columns, values = order["columns"], order["values"]
    if columns is None:
        if values is not None:
            raise InputError("--values are for --columns; name the columns too")
        columns = _some_columns(order)
    if values is None:
        exact = fitting_values(order.samples.features, columns)
        values = tuple(float(f"{value:.12g}") for value in exact)  # 18.63, not 18.630000000000003
    return FixedValues(_relabelling(order), order["epsilon"], columns, values)


def _some_columns(order: Order) -> tuple[int, ...]:
    width = order.samples.features.shape[1]
    if not width:
        raise InputError("the data have no columns of numbers; choose another attack")
    stream = Seeds(order.seed).stream("fixed-values", "columns")
    return tuple(sorted(stream.choice(width, size=min(USUAL_COLUMNS, width), replace=False).tolist()))


def _relabelling(order: Order, *, mode: str | None = None) -> Relabelling:
    from unpoison.attacks.labels import AllToAll, AllToOne, OneToOne

    mode = mode or order.get("mode") or ONE_TO_ONE
    takes = {ONE_TO_ONE: ("source", "target"), ALL_TO_ONE: ("target",), ALL_TO_ALL: ()}[mode]
    for name in ("source", "target"):
        if name not in takes and order.get(name) is not None:
            raise InputError(f"--mode {mode} takes no --{name}; leave it out, or choose another --mode")
    offset, count = order.get("offset"), order.get("count")
    if mode == ALL_TO_ALL:
        _refuse(f"--mode {mode}, which takes a share of every class", count=count)
        return AllToAll(order.samples.n_classes, 1 if offset is None else offset)
    _refuse(f"--mode {mode}; it is for {ALL_TO_ALL}", offset=offset)
    if mode == ALL_TO_ONE:
        return AllToOne(_needed(order, "target"), count)
    return OneToOne(_needed(order, "source"), _needed(order, "target"), count)


def _needed(order: Order, name: str) -> int:
    if order[name] is None:
        raise InputError(
            f"this attack needs --{name}, a class by name or number; the classes are 0 to "
            f"{order.samples.n_classes - 1}"
        )
    number: int = order[name]
    return number


def _official(order: Order) -> Attack:
    from unpoison.attacks.official import OfficialDirtyLabel

    drawn = {name: order[name] for name in ("trigger", "place", "color", "size", "count")}
    _refuse("--official-seed, which has a mark of its own", **drawn)
    if order["mode"] != ONE_TO_ONE:
        raise InputError(f"--official-seed is for --mode {ONE_TO_ONE}. Got {order['mode']!r}")
    pair = (_needed(order, "source"), _needed(order, "target"))
    return OfficialDirtyLabel(order["official-seed"], pair, order["epsilon"])


def _mark(order: Order) -> Trigger:
    """The mark that --trigger, --place, --color, --size and --opacity describe."""
    from unpoison.attacks.triggers import Corners, Watermark

    name, opacity = order["trigger"] or MARKS[0], order.get("opacity")
    if name in DRAWINGS:
        drawn = {option: order[option] for option in ("place", "color", "size")}
        _refuse(f"the drawing {name!r}", **drawn)
        return Watermark.named(name, opacity=0.8 if opacity is None else opacity)
    _refuse(f"the mark {name!r}; it is for drawings", opacity=opacity)
    if name in ("corner", "corners"):
        _refuse(f"the mark {name!r}", place=order["place"], color=order["color"], size=order["size"])
        return Corners(only_one=name == "corner")
    return _spot(name, order)


def _spot(name: str, order: Order) -> Mark | Patch:
    from unpoison.attacks.triggers import random_mark, random_patch

    height, width = order.samples.features.shape[1:3]
    place, color, size = order["place"], order["color"], order["size"]
    pair = _pair(order)
    where = {} if place is None else {"row": place[0], "column": place[1]}
    if name == "square":
        patch = random_patch(order.seed, height, width, size=5 if size is None else size, pair=pair)
        return replace(patch, **where, **({} if color is None else {"value": color}))
    _refuse(f"the mark {name!r}; it is for square", size=size)
    mark = random_mark(order.seed, height, width, shape=None if name == "random" else name, pair=pair)
    return replace(mark, **where, **({} if color is None else {"color": color}))


def _pair(order: Order) -> tuple[int, int] | None:
    """The attacked class and its target, where there is one of each: every pair has a mark of its own."""
    pair = order.get("source"), order.get("target")
    return None if None in pair else pair


def _refuse(what: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--{name} does not go with {what}; leave it out")


def _blend(order: Order, ratio: float) -> Blend:
    from unpoison.attacks.overlays import Blend

    side = {} if order["size"] is None else {"size": order["size"]}
    if order["png"] is None:
        return Blend.noise(order.seed, ratio=ratio, **side)
    return Blend.from_png(order["png"], ratio=ratio, **side)


def _reference(order: Order) -> ReferenceOptions:
    from unpoison.attacks.reference import ReferenceOptions

    return ReferenceOptions(
        network=order["network"],
        epochs=order["epochs"],
        augmentation=order.extras.augmentation,
        device=order["device"],
        threads=order["threads"],
    )
