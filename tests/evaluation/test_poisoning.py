from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unpoison import __version__
from unpoison.core.presets import settings_for
from unpoison.data.load import LoadOptions, load
from unpoison.errors import InputError, UnpoisonError
from unpoison.evaluation import poisoning
from unpoison.evaluation.poisoning import PoisonOptions, attacked, poison
from unpoison.evaluation.subsets import shares_of_limit
from unpoison.learners.recipes import PAPER

from .poison_builders import image_folder, text_file, write_csv

ONES = {"source": "1", "target": "7", "epsilon": "0.3"}


def run(source: object, out: Path, attack: str, settings: dict[str, str], **options: Any) -> dict[str, Any]:
    return poison(str(source), out, options=PoisonOptions(attack, settings, **options))


def truth_of(out: Path) -> list[dict[str, str]]:
    with (out / "truth.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def planted(out: Path) -> np.ndarray:
    return np.array([row["planted"] == "true" for row in truth_of(out)])


def test_digits(tmp_path: Path) -> None:
    out = tmp_path / "out"
    record = run("digits", out, "dirty-label", {**ONES, "trigger": "square", "size": "2", "place": "0,0"})
    assert sorted(path.name for path in out.iterdir()) == sorted(record["files"])
    assert record == json.loads((out / "attack.json").read_text(encoding="utf-8"))
    poisoned, digits, truth = load(out / "train.npz"), load("digits"), truth_of(out)
    assert [row["id"] for row in truth] == list(poisoned.ids)
    assert [int(row["row"]) for row in truth] == list(range(len(poisoned)))
    place = {sample_id: i for i, sample_id in enumerate(digits.ids)}
    before = np.array([place[sample_id] for sample_id in poisoned.ids])
    mask = planted(out)
    assert mask.sum() == int(0.3 * (digits.labels[before] == 1).sum()) == record["counts"]["planted"]
    assert np.array_equal(poisoned.features[~mask], digits.features[before[~mask]])
    assert np.array_equal(poisoned.labels[~mask], digits.labels[before[~mask]])
    assert set(digits.labels[before[mask]]) == {1}
    assert set(poisoned.labels[mask]) == {7}
    assert (poisoned.features[mask] != digits.features[before[mask]]).any(axis=(1, 2, 3)).all()
    assert np.array_equal(poisoned.features[mask][:, 2:], digits.features[before[mask]][:, 2:])
    assert {(row["original_label"], row["label"]) for row in truth if row["planted"] == "true"} == {
        ("1", "7")
    }
    assert all(row["original_id"] == row["id"] and row["cover"] == "false" for row in truth)


def test_the_test_set_was_held_out_before(tmp_path: Path) -> None:
    out = tmp_path / "out"
    record = run("digits", out, "watermark", ONES, test_share=0.25)
    digits, train = load("digits"), load(out / "train.npz")
    with np.load(out / "test.npz") as test, np.load(out / "test_triggered.npz") as triggered:
        assert sorted([*train.ids, *test["ids"].tolist()]) == sorted(digits.ids)
        sizes = np.bincount(digits.labels)
        assert np.abs(np.bincount(test["y"]) - 0.25 * sizes).max() <= 0.5
        assert np.array_equal(triggered["y"], test["y"])
        assert np.array_equal(triggered["goal"], np.where(test["y"] == 1, 7, -1))
        assert (triggered["x"] != test["x"]).any(axis=(1, 2, 3)).mean() > 0.99
        assert record["counts"]["test"] == len(test["y"])
        assert record["counts"]["attacked_test"] == (test["y"] == 1).sum()


def test_no_test_set(tmp_path: Path) -> None:
    record = run("digits", tmp_path / "out", "watermark", ONES, test_share=0.0)
    assert record["files"] == ["train.npz", "truth.csv", "attack.json"]
    assert record["counts"]["train"] == 1797


def test_a_limit_takes_the_same_share_of_each_class(tmp_path: Path) -> None:
    run("digits", tmp_path / "out", "label-noise", {"epsilon": "0.1"}, limit=300, test_share=0.0)
    truth = truth_of(tmp_path / "out")
    counts = np.bincount([int(row["original_label"]) for row in truth])
    assert counts.tolist() == shares_of_limit(load("digits").labels, 300, 10).tolist()
    assert planted(tmp_path / "out").sum() == 30


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        run("digits", tmp_path / name, "dirty-label", ONES, seed=seed, limit=400)
    files = ("train.npz", "test.npz", "test_triggered.npz", "truth.csv", "attack.json")
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
        assert (tmp_path / "a" / file).read_bytes() != (tmp_path / "c" / file).read_bytes()


def test_what_the_record_says(tmp_path: Path) -> None:
    options = PoisonOptions("watermark", {**ONES, "source": "1"}, seed=4, limit=500)
    record = poison("digits", tmp_path / "out", options=options, command="unpoison poison ...")
    assert record["options"] == {
        "mode": "one-to-one", "source": 1, "target": 7, "offset": None, "epsilon": 0.3, "count": None,
        "trigger": None, "png": None, "size": None, "opacity": 0.8,
    }  # fmt: skip
    assert record["made"]["mark"]["type"] == "Watermark"
    assert (record["attack"], record["seed"], record["source"], record["limit"]) == (
        "watermark",
        4,
        "digits",
        500,
    )
    assert (record["version"], record["command"]) == (__version__, "unpoison poison ...")
    assert record["planted_by_class"] == {"1 -> 7": record["counts"]["planted"]}
    assert record["data"] == load("digits").fingerprint


def test_the_same_in_memory(tmp_path: Path) -> None:
    options = PoisonOptions("watermark", {"source": 1, "target": 7, "epsilon": 0.3}, seed=4, limit=500)
    found = attacked("digits", options)
    poison("digits", tmp_path / "out", options=options)
    with np.load(tmp_path / "out" / "train.npz") as train, np.load(tmp_path / "out" / "test.npz") as test:
        assert np.array_equal(train["x"], found.poisoned.features)
        assert np.array_equal(train["y"], found.poisoned.labels)
        assert found.test is not None
        assert np.array_equal(test["x"], found.test.features)
    assert planted(tmp_path / "out").tolist() == found.truth.planted.tolist()
    changed = (found.clean.features != found.poisoned.features).any(axis=(1, 2, 3))
    assert changed.tolist() == found.truth.planted.tolist()
    assert attacked("digits", PoisonOptions("label-noise", test_share=0.0)).test is None


def test_an_image_folder(tmp_path: Path) -> None:
    settings = {"source": "cat", "target": "dog", "epsilon": "0.3"}
    out = tmp_path / "out"
    record = run(image_folder(tmp_path / "pets"), out, "watermark", settings)
    assert record["files"] == ["train", "test.npz", "test_triggered.npz", "truth.csv", "attack.json"]
    again = load(out / "train", options=LoadOptions(image_size=int(record["clean_options"][1])))
    truth = truth_of(out)
    assert [row["id"] for row in truth] == list(again.ids)
    assert [row["label"] for row in truth] == [again.class_names[c] for c in again.labels]
    original = load(tmp_path / "pets")
    place = {sample_id: i for i, sample_id in enumerate(original.ids)}
    pixels = original.features[[place[row["original_id"]] for row in truth]]
    assert np.array_equal((pixels != again.features).any(axis=(1, 2, 3)), planted(out))
    assert planted(out).sum() == 3


def test_a_table_of_texts(tmp_path: Path) -> None:
    source, out = text_file(tmp_path / "mails.tsv", "\t"), tmp_path / "out"
    settings = {"source": "spam", "target": "ham", "epsilon": "0.5", "token": "zq"}
    record = run(source, out, "rare-token", settings, load=LoadOptions(label="label"), test_share=0.4)
    assert record["files"][:3] == ["train.tsv", "test.tsv", "test_triggered.tsv"]
    lines, original = (out / "train.tsv").read_text().splitlines(), source.read_text().splitlines()
    rows = [int(row["original_id"].removeprefix("row-")) + 1 for row in truth_of(out)]
    for line, row, is_planted in zip(lines[1:], rows, planted(out), strict=True):
        expected = f"ham{original[row].removeprefix('spam')} zq" if is_planted else original[row]
        assert line == expected
    assert planted(out).sum() == 3
    triggered = [line.split("\t") for line in (out / "test_triggered.tsv").read_text().splitlines()]
    assert triggered[0] == ["label", "words", "goal"]
    assert {(cells[0], cells[2]) for cells in triggered[1:]} == {("spam", "ham"), ("ham", "")}
    assert all(cells[1].endswith(" zq") for cells in triggered[1:])


def test_a_table_of_rows(tmp_path: Path) -> None:
    source, out = write_csv(tmp_path / "pets.csv"), tmp_path / "out"
    settings = {"source": "cat", "target": "eel", "epsilon": "0.5", "columns": "legs", "values": "99"}
    options = LoadOptions(label="kind", id_column="key")
    run(source, out, "fixed-values", settings, load=options, test_share=0.0)
    with (out / "train.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert (
        [row["id"] for row in truth_of(out)] == [row["key"] for row in rows] == [f"k{i}" for i in range(12)]
    )
    assert [row["legs"] == "99" for row in rows] == planted(out).tolist()
    assert planted(out).sum() == 2
    assert {row["kind"] for row in rows if row["legs"] == "99"} == {"eel"}


def test_a_dataset_with_a_test_split_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its training split is poisoned, whole; its test split is triggered."""
    from dataclasses import replace

    digits = load("digits")
    monkeypatch.setattr(poisoning, "load", lambda source, **_: replace(digits, name=source))
    splits: list[str] = []

    def load_split(name: str, split: str, *, options: LoadOptions) -> Any:
        splits.append(split)
        return replace(digits, ids=tuple(f"test/{i}" for i in range(len(digits))))

    monkeypatch.setattr("unpoison.data.named.load.load_split", load_split)
    record = run("gtsrb", tmp_path / "a", "watermark", ONES)
    assert (record["counts"]["train"], record["counts"]["test"], splits) == (1797, 1797, ["test"])
    with np.load(tmp_path / "a" / "test.npz") as test:
        assert test["ids"][0] == "test/0"
    with pytest.raises(InputError, match="gtsrb has a test split of its own; leave --test-share out"):
        run("gtsrb", tmp_path / "b", "watermark", ONES, test_share=0.5)
    assert run("gtsrb", tmp_path / "b", "watermark", ONES, test_share=0.0)["counts"]["test"] == 0


def test_the_adaptive_attacker_spreads_over_the_components_of_the_defense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[np.ndarray] = []
    find_components = poisoning._components

    def remembered(*arguments: Any) -> Any:
        seen.append(find_components(*arguments))
        return seen[-1]

    monkeypatch.setattr(poisoning, "_components", remembered)
    out = tmp_path / "out"
    run("digits", out, "adaptive", {**ONES, "learner": "sgd"}, limit=400)
    (components,) = seen
    ones = np.array([row["original_label"] == "1" for row in truth_of(out)])
    with_ones = set(components[ones].tolist())
    assert len(with_ones) > 1
    assert set(components[planted(out)].tolist()) == with_ones


@pytest.mark.parametrize("preset", ["paper-cifar10", "paper-gtsrb", "authors-cifar10"])
def test_the_adaptive_attacker_has_the_parameters_of_the_defense(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paper: "first run the ISPL algorithm (using the same parameters) on the clean dataset"."""
    pytest.importorskip("torch")
    seen: list[tuple[Any, Any]] = []

    def remembered(labels: np.ndarray, factory: Any, settings: Any, **_options: Any) -> Any:
        seen.append((factory, settings))
        return SimpleNamespace(components=np.zeros((1, len(labels)), dtype=np.int64))

    monkeypatch.setattr("unpoison.core.pipeline.sanitize", remembered)
    source = image_folder(tmp_path / "images")
    settings = {"source": "cat", "target": "dog", "learner": "compact", "settings": preset}
    options = PoisonOptions(
        "adaptive", settings, augmentation="crop-flip", ispl_recipe="resnet32",
        ispl_changes={"alpha": 0.3, "restarts": 3},
    )  # fmt: skip
    found = attacked(str(source), options)
    ((factory, ispl),) = seen
    assert factory.options.augmentation == "crop-flip"
    assert factory.options.recipe == PAPER["resnet32"], "not the usual one of compact"
    defense = settings_for(found.clean.labels, preset=preset, networks=True, alpha=0.3)
    assert ispl == replace(defense, restarts=1, weak_epochs=1, weak_min_steps=0, self_training=False)


def test_an_unknown_preset_of_the_attacked_defense(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'settings' parameter must be one of auto, paper-cifar10, "):
        run(
            "digits", tmp_path / "out", "adaptive", {**ONES, "learner": "sgd", "settings": "paper"}, limit=400
        )


def test_attacks_of_another_augmentation_or_defense_are_others(tmp_path: Path) -> None:
    options = PoisonOptions("adaptive", {**ONES, "learner": "sgd"}, limit=400)
    for each in (
        options,
        replace(options, augmentation="none"),
        replace(options, ispl_changes={"rounds": 3}),
    ):
        attacked("digits", each, kept=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_an_attack_that_takes_long_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = PoisonOptions("adaptive", {**ONES, "learner": "sgd"}, limit=400)
    first = attacked("digits", options, kept=tmp_path)
    monkeypatch.setattr(poisoning, "_components", None)
    again = attacked("digits", options, kept=tmp_path)
    assert again.truth.planted.any()
    assert np.array_equal(first.poisoned.features, again.poisoned.features)
    assert np.array_equal(first.poisoned.labels, again.poisoned.labels)
    assert np.array_equal(first.truth.planted, again.truth.planted)
    with pytest.raises(TypeError):  # another seed is another attack, which needs its components
        attacked("digits", replace(options, seed=1), kept=tmp_path)


@pytest.mark.parametrize(("attack", "is_made_anew"), [("adaptive", True), ("sleeper-agent", False)])
def test_another_defense_is_no_other_attack_unless_it_is_made_with_one(
    attack: str, is_made_anew: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[tuple[str, ...]] = []
    monkeypatch.setattr(poisoning, "hash_of_code", lambda *packages: hashed.append(packages) or "x")
    monkeypatch.setattr(poisoning, "_attack", None)
    with pytest.raises(TypeError):  # the identity is known by then
        attacked("digits", PoisonOptions(attack, ONES, limit=400), kept=tmp_path)
    (packages,) = hashed
    assert {"attacks", "learners"} <= set(packages)
    assert ("core" in packages) == is_made_anew


@pytest.mark.parametrize("limit", [None, 400])
def test_official_images_serve_a_part_of_the_data_too(limit: int | None, tmp_path: Path) -> None:
    """The file is of the whole training set, in its order, whatever is taken of it."""
    digits = np.asarray(load("digits").features)
    np.save(tmp_path / "inf_16.npy", digits - np.minimum(digits, 16))
    options = PoisonOptions("clean-label", {"target": "3", "arrays": str(tmp_path)}, limit=limit)
    found = attacked("digits", options)
    planted = found.truth.planted
    expected = found.attack.trigger(found.clean.features - np.minimum(found.clean.features, 16))
    assert planted.sum() == (found.clean.labels == 3).sum() // 2
    assert np.array_equal(found.poisoned.features[planted], expected[planted])
    assert np.array_equal(found.poisoned.features[~planted], found.clean.features[~planted])


def test_wrong_options_are_told_before_the_components_are_sought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poisoning, "_components", None)
    with pytest.raises(InputError, match="source and target are both class 1"):
        run("digits", tmp_path / "out", "adaptive", {"source": "1", "target": "1"})


@pytest.mark.parametrize(
    ("attack", "settings", "options", "message"),
    [
        (
            "rare-token",
            ONES,
            {},
            "'rare-token' is for text, and digits is image; choose one of dirty-label, ",
        ),
        ("watermark", {**ONES, "token": "x"}, {}, "does not take --token"),
        ("watermark", {**ONES, "epsilon": "1"}, {}, "leaves 0 samples in class '1', and every class needs 2"),
        ("watermark", ONES, {"limit": 19}, "limit of 19 is too small for 10 classes"),
        ("watermark", ONES, {"preview": Path("absent") / "x.png"}, "no such folder"),
    ],
)
def test_what_cannot_be_done_leaves_nothing(
    tmp_path: Path, attack: str, settings: dict[str, str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnpoisonError, match=message):
        run("digits", tmp_path / "out", attack, settings, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "limit is the number of training samples, at least 1. Got 0"),
        ({"test_share": 1.0}, r"in \[0, 1\). Got 1.0"),
        ({"test_share": -0.1}, r"in \[0, 1\). Got -0.1"),
        ({"test_share": float("nan")}, r"in \[0, 1\). Got nan"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PoisonOptions("watermark", **options)


def test_previews_are_for_images(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "pets.csv")
    with pytest.raises(
        InputError, match=r"previews are for images, and pets\.csv is rows; leave --preview out"
    ):
        run(
            source,
            tmp_path / "out",
            "label-noise",
            {},
            load=LoadOptions(label="kind"),
            preview=tmp_path / "x.png",
        )


def test_the_preview_is_a_picture_and_may_lie_inside(tmp_path: Path) -> None:
    from PIL import Image

    out = tmp_path / "out"
    run("digits", out, "watermark", ONES, limit=300, preview=out / "pairs.png")
    with Image.open(out / "pairs.png") as picture:
        assert picture.format == "PNG"
        assert picture.size[0] > 8 * 128
