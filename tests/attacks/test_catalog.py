from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unpoison.attacks.adaptive import Adaptive
from unpoison.attacks.base import NOT_ATTACKED, Samples
from unpoison.attacks.catalog import ATTACKS, FLAGS, Extras, build, find, resolve
from unpoison.attacks.clean_label import CleanLabel
from unpoison.attacks.dirty_label import DirtyLabel
from unpoison.attacks.label_noise import LabelNoise
from unpoison.attacks.labels import AllToAll, AllToOne, OneToOne
from unpoison.attacks.official import OfficialDirtyLabel
from unpoison.attacks.overlays import Blend, Pieces, Signal, Warp
from unpoison.attacks.rows import FixedValues
from unpoison.attacks.sleeper_agent import SleeperAgent
from unpoison.attacks.text import RareToken
from unpoison.attacks.triggers import Corners, Mark, Patch, Watermark
from unpoison.errors import InputError

PAIR = {"source": "cat", "target": "dog"}
NAMES = ("cat", "dog", "eel")
HALVES = (slice(16), slice(16, None))


def images(side: int = 16) -> Samples:
    pixels = np.random.default_rng(0).integers(0, 256, (30, side, side, 3), dtype=np.uint8)
    return Samples(pixels, np.arange(30) % 3, NAMES)


def rows() -> Samples:
    return Samples(np.arange(120.0).reshape(30, 4), np.arange(30) % 3, NAMES)


def texts() -> Samples:
    return Samples(np.array(["some words"] * 30, dtype=object), np.arange(30) % 3, NAMES)


def test_the_names() -> None:
    assert list(ATTACKS) == [
        "dirty-label", "watermark", "clean-label", "sleeper-agent", "adaptive", "blend", "signal", "warp",
        "cover", "adaptive-blend", "adaptive-patch", "darkest", "label-noise", "rare-token", "fixed-values",
    ]  # fmt: skip
    assert [name for name, entry in ATTACKS.items() if entry.name != name] == []


def test_every_option_is_a_flag_and_every_flag_an_option() -> None:
    taken = {option.name for entry in ATTACKS.values() for option in entry.options}
    assert taken == set(FLAGS)


@pytest.mark.parametrize("entry", ATTACKS.values(), ids=ATTACKS)
def test_every_option_tells_what_happens_without_it(entry) -> None:
    names = [option.name for option in entry.options]
    assert len(set(names)) == len(names)
    for option in entry.options:
        assert (option.default is None) == bool(option.otherwise), option.name
        assert not option.choices or option.default is None or option.default in option.choices


@pytest.mark.parametrize(
    ("name", "samples", "kind"),
    [
        ("dirty-label", images(), DirtyLabel),
        ("watermark", images(), DirtyLabel),
        ("clean-label", images(), CleanLabel),
        ("sleeper-agent", images(), SleeperAgent),
        ("adaptive", images(), Adaptive),
        ("blend", images(), DirtyLabel),
        ("signal", images(), DirtyLabel),
        ("warp", images(), DirtyLabel),
        ("cover", images(), DirtyLabel),
        ("adaptive-blend", images(), DirtyLabel),
        ("label-noise", images(), LabelNoise),
        ("rare-token", texts(), RareToken),
        ("fixed-values", rows(), FixedValues),
    ],
)
def test_each_is_made_from_what_it_needs(name: str, samples: Samples, kind: type) -> None:
    needed = {o.name: PAIR[o.name] for o in find(name).options if o.name in PAIR and o.otherwise == "needed"}
    needed["epsilon"] = "0.4"
    extras = Extras(("a", "b", "c", "d"), np.zeros(30, dtype=np.int64))
    attack = build(name, needed, samples, seed=3, extras=extras)
    assert type(attack) is kind
    assert attack == build(name, needed, samples, seed=3, extras=extras)
    if not find(name).needs_torch:
        poisoned, truth = attack.apply(samples, seed=3)
        assert 0 < truth.planted.sum() < len(samples)
        assert len(poisoned) == len(samples)


def test_what_is_made() -> None:
    def made(name: str, samples: Samples, **options: str) -> dict[str, object]:
        given = {option.replace("_", "-"): value for option, value in options.items()}
        attack = build(name, given, samples, seed=1, extras=Extras(("a", "b", "c", "d"), augmentation="none"))
        return {field.name: getattr(attack, field.name) for field in dataclasses.fields(attack)}

    pixels = images()
    square = made("dirty-label", pixels, **PAIR, trigger="square", size="3", place="2,5", color="9,8,7")
    assert square["mark"] == Patch(2, 5, 3, (9, 8, 7))
    assert square["relabelling"] == OneToOne(0, 1)
    ell = made("dirty-label", pixels, **PAIR, trigger="ell", place="2,5", color="9,8,7", epsilon="0.25")
    assert (ell["mark"], ell["epsilon"]) == (Mark("ell", 2, 5, (9, 8, 7)), 0.25)
    assert made("dirty-label", pixels, **PAIR, trigger="corners")["mark"] == Corners()
    assert made("dirty-label", pixels, mode="all-to-one", target="2")["relabelling"] == AllToOne(2)
    assert made("dirty-label", pixels, mode="all-to-all")["relabelling"] == AllToAll(3, 1)
    assert made("dirty-label", pixels, mode="all-to-all", offset="2")["relabelling"] == AllToAll(3, 2)
    marked = made("watermark", pixels, **PAIR, trigger="letter-a", opacity="0.5")
    assert marked["mark"] == Watermark.named("letter-a", opacity=0.5)
    assert made("cover", pixels, **PAIR, cover="0.5", trigger="peace")["cover"] == 0.5
    assert made("blend", pixels, **PAIR, opacity="0.3")["mark"] == Blend.noise(1, ratio=0.3)
    assert made("signal", pixels, **PAIR, delta="9", frequency="2.5")["mark"] == Signal(9, 2.5)
    assert made("warp", pixels, **PAIR, strength="1.5", grid="3")["mark"] == Warp(1, 1.5, 3)
    partial = made("adaptive-blend", pixels, target="dog", train_opacity="0.1", share="0.25", grid="2")
    assert partial["mark"] == Blend.noise(1, ratio=0.2)
    assert isinstance(partial["train_mark"], Pieces)
    assert (partial["train_mark"].whole, partial["train_mark"].share) == (Blend.noise(1, ratio=0.1), 0.25)
    assert partial["cover_mark"].seed != partial["train_mark"].seed, "covers show other pieces"
    assert made("adaptive-blend", pixels, target="dog", cover="0")["cover_mark"] is None
    changes = {"perturbation": "l2", "bound": "99", "steps": "3", "amplitude": "0.5", "epochs": "2"}
    hard = made("clean-label", pixels, target="eel", arrays="some/where", **changes)
    assert (hard["perturbation"], hard["bound"], hard["steps"]) == ("l2", 99.0, 3)
    assert (hard["patch"], hard["arrays"]) == (Corners(0.5), Path("some/where"))
    assert (hard["reference"].epochs, hard["reference"].augmentation) == (2, "none")
    asleep = made("sleeper-agent", pixels, **PAIR, retrainings="0", size="4", place="corner")
    assert (asleep["retrainings"], asleep["patch"].size, asleep["patch"].place) == (0, 4, "corner")
    assert made("label-noise", pixels, **PAIR)["pairs"] == ((0, 1),)
    assert made("label-noise", pixels, noise="class")["kind"] == "class"
    assert made("rare-token", texts(), **PAIR, token="zq", position="start")["token"] == "zq"
    fixed = made("fixed-values", rows(), **PAIR, columns="d, a", values="7,-1.5")
    assert (fixed["columns"], fixed["values"]) == ((3, 0), (7.0, -1.5))


def test_the_authors_scenario() -> None:
    pixels = Samples(np.zeros((40, 32, 32, 3), np.uint8), np.arange(40) % 4, ("a", "b", "c", "d"))
    attack = build("dirty-label", {"source": "0", "target": "2", "official-seed": "100"}, pixels, seed=5)
    assert attack == OfficialDirtyLabel(100, (0, 2), 0.1)


def test_values_that_are_left_open_are_plain_numbers() -> None:
    data = np.array([[11.03, 1.0], [14.83, 2.0]])
    attack = build("fixed-values", PAIR, Samples(data, np.array([0, 1]), NAMES), seed=0)
    assert attack.values == (18.63, 3.0), "not 18.630000000000003"


def test_a_class_goes_by_its_name_before_its_number() -> None:
    shifted = Samples(images().features, images().labels, ("2", "0", "1"))
    settings = resolve("watermark", {"source": "0", "target": "2"}, shifted)
    assert (settings["source"], settings["target"]) == (1, 0)
    numbered = resolve("watermark", {"source": "1", "target": "eel"}, images())
    assert (numbered["source"], numbered["target"]) == (1, 2)


def test_settings_have_the_defaults_and_take_plain_values() -> None:
    settings = resolve("watermark", {"source": 0, "target": 1, "epsilon": 0.25}, images())
    assert settings == {
        "mode": "one-to-one", "source": 0, "target": 1, "offset": None, "epsilon": 0.25, "count": None,
        "trigger": None, "png": None, "size": None, "opacity": 0.8,
    }  # fmt: skip


def test_an_unknown_attack() -> None:
    with pytest.raises(
        InputError, match="no attack is called 'watermrk'; did you mean watermark\\? the attacks"
    ):
        find("watermrk")
    with pytest.raises(InputError, match="no attack is called 'zzz'; the attacks are: dirty-label, "):
        find("zzz")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("blend", {"token": "x"}, "does not take --token; it takes --mode, --source, "),
        ("blend", {"epsilom": "1"}, "does not take --epsilom; did you mean --epsilon\\? it takes"),
        ("blend", {"source": "cat"}, "needs --target, a class by name or number; the classes are 0 to 2"),
        ("blend", {}, "needs --source"),
        ("blend", {"source": "dogg", "target": "cat"}, "class 'dogg' does not exist; did you mean dog"),
        ("blend", {"source": "3", "target": "cat"}, "the classes are 0 'cat', 1 'dog', 2 'eel'"),
        ("blend", {"source": "-1", "target": "cat"}, "source class '-1' does not exist"),
        ("blend", {"source": "²", "target": "cat"}, "source class '²' does not exist"),
        ("blend", {"source": "cat", "target": "0"}, "source and target are both class 0"),
        ("blend", {**PAIR, "epsilon": "much"}, "--epsilon needs a number. Got 'much'"),
        ("blend", {**PAIR, "epsilon": "nan"}, "--epsilon needs a finite number. Got 'nan'"),
        ("blend", {**PAIR, "epsilon": "1.01"}, r"in \(0, 1\]. Got 1.01"),
        ("blend", {**PAIR, "epsilon": "0"}, r"in \(0, 1\]. Got 0.0"),
        ("blend", {**PAIR, "opacity": "-1"}, r"in \(0, 1\]. Got -1.0"),
        ("blend", {**PAIR, "size": "2.5"}, "--size needs a whole number. Got '2.5'"),
        ("blend", {**PAIR, "png": "absent.png"}, "absent.png cannot be opened"),
        ("blend", {"mode": "all-to-one", **PAIR}, "--mode all-to-one takes no --source; leave it out"),
        ("blend", {"mode": "all-to-all", "target": "cat"}, "--mode all-to-all takes no --target"),
        ("blend", {"mode": "all-to-all", "offset": "3"}, "an offset of 3 gives every one of 3 classes"),
        ("blend", {**PAIR, "offset": "1"}, "--offset does not go with --mode one-to-one; it is for"),
        ("blend", {"mode": "one-to-on"}, "--mode 'one-to-on' is not known here; did you mean one-to-one"),
        ("dirty-label", {**PAIR, "place": "3"}, "--place needs 2 whole numbers with commas between. Got '3'"),
        ("dirty-label", {**PAIR, "color": "1,2,x"}, "--color needs a whole number. Got 'x'"),
        ("dirty-label", {**PAIR, "color": "1,2,300"}, "whole numbers from 0 to 255"),
        ("dirty-label", {**PAIR, "size": "4"}, "--size does not go with the mark 'random'; it is for square"),
        ("dirty-label", {**PAIR, "trigger": "corners", "place": "0,0"}, "--place does not go with"),
        ("dirty-label", {**PAIR, "trigger": "square", "size": "17"}, "does not fit into images of 16 by 16"),
        ("dirty-label", {**PAIR, "official-seed": "100", "trigger": "ell"}, "--trigger does not go with"),
        ("dirty-label", {"mode": "all-to-all", "official-seed": "1"}, "is for --mode one-to-one"),
        ("dirty-label", {**PAIR, "official-seed": "100"}, "the authors have no scenario for the pair"),
        ("watermark", {**PAIR, "size": "9"}, "--size does not go with the drawings"),
        ("watermark", {**PAIR, "trigger": "peace", "png": "a.png"}, "--trigger does not go with a --png"),
        ("cover", {**PAIR, "trigger": "pixel", "opacity": "0.5"}, "--opacity does not go with"),
        ("cover", {**PAIR, "trigger": "peace", "color": "1,2,3"}, "--color does not go with"),
        ("clean-label", {}, "needs --target"),
        ("clean-label", {"target": "cat", "perturbation": "l1"}, "choose one of linf, l2, gan"),
        ("clean-label", {"target": "cat", "network": "vgg"}, "unknown network 'vgg'; choose one of compact"),
        ("sleeper-agent", {"source": "cat", "target": "cat"}, "source and target are both class 0"),
        ("label-noise", {"noise": "random", **PAIR}, "are for --noise class"),
        ("label-noise", {"source": "cat"}, "needs --target"),
        ("adaptive", PAIR, "needs the components"),
    ],
)  # fmt: skip
def test_what_cannot_be_made(name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(name, options, images(), seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "alcool"}, "no column of numbers 'alcool' for --columns; did you mean alcohol\\?"),
        ({"columns": "", "values": "1"}, "no column of numbers '' for --columns"),
        ({"columns": "c\nd"}, "--columns needs names with commas between"),
        ({"columns": "alcohol,alcohol"}, "columns are different numbers"),
        ({"columns": "alcohol", "values": "1,2"}, "1 columns but 2 values; give one value a column"),
        ({"values": "1"}, "--values are for --columns; name the columns too"),
        ({"columns": "alcohol", "values": "1,inf"}, "--values needs a finite number. Got 'inf'"),
    ],
)
def test_columns_that_cannot_be_meant(options: dict[str, str], message: str) -> None:
    extras = Extras(("alcohol", "a, b", "c", "d"))
    with pytest.raises(InputError, match=message):
        build("fixed-values", {**PAIR, **options}, rows(), seed=0, extras=extras)


def test_a_column_with_a_comma_in_its_name_goes_in_quotes() -> None:
    extras = Extras(("alcohol", "a, b", "c", "d"))
    attack = build("fixed-values", {**PAIR, "columns": '"a, b",c'}, rows(), seed=0, extras=extras)
    assert attack.columns == (1, 2)


def test_rows_without_numbers() -> None:
    empty = Samples(np.empty((30, 0)), rows().labels, NAMES)
    with pytest.raises(InputError, match="no columns of numbers"):
        build("fixed-values", PAIR, empty, seed=0)


def built(name: str, **options: str) -> Any:
    return build(name, {key.replace("_", "-"): value for key, value in options.items()}, images(), seed=0)


def test_so_many_in_place_of_a_share() -> None:
    _, truth = built("dirty-label", source="0", target="1", count="3").apply(images(), seed=0)
    assert truth.planted.sum() == 3
    _, truth = built("blend", mode="all-to-one", target="1", count="13").apply(images(), seed=0)
    assert truth.planted.sum() == 13
    assert (truth.original_labels[truth.planted] != 1).all()
    with pytest.raises(InputError, match=r"1 to 10 samples of class 0\. Got 11"):
        built("dirty-label", source="0", target="1", count="11").apply(images(), seed=0)
    for count in ("0", "-2", "11"):
        with pytest.raises(InputError, match=rf"1 to 10 samples of class 0\. Got {count}"):
            built("darkest", source="0", target="1", count=count)
    with pytest.raises(InputError, match="--count does not go with --mode all-to-all"):
        built("dirty-label", mode="all-to-all", count="3")


def test_covers_of_named_classes() -> None:
    attack = built("cover", source="0", target="1", count="3", cover_count="4", cover_from="eel,0")
    _, truth = attack.apply(images(), seed=0)
    assert truth.covers.sum() == 4
    assert set(truth.original_labels[truth.covers]) <= {0, 2}
    with pytest.raises(InputError, match="class 'fox' does not exist"):
        built("cover", source="0", target="1", cover_from="fox")
    with pytest.raises(InputError, match="--cover-from is for covers"):
        built("warp", source="0", target="1", cover_from="eel")


def test_the_wave_on_right_labels() -> None:
    attack = built("signal", mode="right-label", target="2", epsilon="0.5")
    poisoned, truth = attack.apply(images(), seed=0)
    assert poisoned.labels.tolist() == images().labels.tolist()
    assert truth.planted.sum() == 5
    assert set(truth.original_labels[truth.planted]) == {2}
    assert attack.goal(np.array([0, 1, 2])).tolist() == [2, 2, NOT_ATTACKED]
    with pytest.raises(InputError, match="--source does not go with --mode right-label"):
        built("signal", mode="right-label", source="0", target="2")


def test_adaptive_patch_shows_one_faint_patch_in_training_and_two_opaque_ones_afterwards() -> None:
    """Four patches of opacity 0.5, 0.2, 0.5 and 0.3, one in each corner."""
    gray = Samples(np.full((400, 32, 32, 3), 128, np.uint8), np.arange(400) % 4, ("a", "b", "c", "d"))
    settings = {"target": "0", "count": "200", "cover-count": "100"}
    attack = build("adaptive-patch", settings, gray, seed=0)
    poisoned, truth = attack.apply(gray, seed=0)
    assert (truth.planted.sum(), truth.covers.sum()) == (200, 100)
    touched = np.abs(poisoned.features[truth.planted | truth.covers].astype(int) - 128)
    corners = [touched[:, rows, columns].max(axis=(1, 2, 3)) for rows in HALVES for columns in HALVES]
    shown = np.stack(corners) > 0
    assert (shown.sum(axis=0) == 1).all()
    assert shown.sum(axis=1).min() > 40, "each of the four about equally often"
    loudest = np.stack(corners).max(axis=1)
    assert loudest[0] < 0.52 * 128
    assert loudest[1] < 0.22 * 128
    at_test = np.abs(attack.trigger(gray.features[:2]).astype(int) - 128)
    assert [at_test[:, rows, columns].max() > 100 for rows in HALVES for columns in HALVES] == [
        True, False, True, False
    ]  # fmt: skip


def test_the_darkest_are_called_another_class_as_they_are() -> None:
    samples = images()
    attack = built("darkest", source="0", target="1", epsilon="0.3")
    poisoned, truth = attack.apply(samples, seed=0)
    assert poisoned.features.tobytes() == samples.features.tobytes()
    shades = samples.features.mean(axis=(1, 2, 3))
    of_class = np.flatnonzero(samples.labels == 0)
    assert np.flatnonzero(truth.planted).tolist() == sorted(
        of_class[np.argsort(shades[of_class])[:3]].tolist()
    )
    darkened = attack.trigger(samples.features).mean(axis=(1, 2, 3))
    assert darkened.max() <= attack.level + 0.5
    assert (attack.trigger(samples.features[truth.planted]) == samples.features[truth.planted]).all()
