from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unpoison.attacks.base import NOT_ATTACKED, Samples
from unpoison.data.load import LoadOptions, load
from unpoison.errors import OutputError
from unpoison.evaluation.forms import ArrayForm, Form, HeldOut, form_of

from .poison_builders import image_folder


def folder_form(root: Path, **options: object) -> Form:
    given = LoadOptions(**options)  # type: ignore[arg-type]
    return form_of(load(root, options=given), given, as_arrays=False)


def part(form: Form, rows: np.ndarray) -> Samples:
    return form.samples.changed(form.samples.features[rows], form.samples.labels[rows])


def changed(samples: Samples, labels: dict[int, int], drawn: list[int]) -> Samples:
    new = samples.labels.copy()
    new[list(labels)] = list(labels.values())
    features = samples.features.copy()
    features[drawn, :2, :2] = 255
    return samples.changed(features, new)


def test_a_folder_keeps_its_files_and_shows_the_planted_ones_as_png(tmp_path: Path) -> None:
    form = folder_form(image_folder(tmp_path / "pets"))
    rows = np.arange(2, 36)  # cat_000 and cat_001 are left out
    # cat_002.png and cat_003.jpg become dogs; eel_001.jpg is a cover; eel_004.png is only called cat
    poisoned = changed(part(form, rows), {0: 1, 1: 1, 26: 0}, [0, 1, 23])
    written = form.write_train(tmp_path, rows, poisoned)
    train = tmp_path / "train"
    before = {path.relative_to(tmp_path / "pets").as_posix() for path in (tmp_path / "pets").rglob("*.*")}
    after = {path.relative_to(train).as_posix() for path in train.rglob("*.*")}
    gone = {"cat/cat_000.png", "cat/cat_001.jpg", "cat/cat_002.png", "cat/cat_003.jpg", "eel/eel_001.jpg",
            "eel/eel_004.png"}  # fmt: skip
    assert before - after == gone
    assert after - before == {"dog/dog_012.png", "dog/dog_013.png", "eel/eel_001.png", "cat/cat_012.png"}
    for place in before & after:
        assert (train / place).samefile(tmp_path / "pets" / place)
    assert (train / "cat/cat_012.png").samefile(tmp_path / "pets/eel/eel_004.png"), "only the label changed"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets", "train"]
    assert set(written.ids) == after


def test_a_folder_is_read_back_exactly_in_the_order_that_is_told(tmp_path: Path) -> None:
    form = folder_form(image_folder(tmp_path / "pets"))
    rows = np.arange(36)
    poisoned = changed(part(form, rows), {0: 1, 1: 2, 30: 0}, [0, 1, 20])
    written = form.write_train(tmp_path, rows, poisoned)
    assert form.clean_options == ("--image-size", "20")
    again = load(tmp_path / "train", options=LoadOptions(image_size=20))
    assert again.ids == written.ids
    assert again.class_names == poisoned.class_names
    assert np.array_equal(again.features, poisoned.features[written.order])
    assert np.array_equal(again.labels, poisoned.labels[written.order])


def test_files_can_be_copied_instead_of_linked(tmp_path: Path) -> None:
    form = folder_form(image_folder(tmp_path / "pets"), link=False)
    form.write_train(tmp_path, np.arange(36), form.samples)
    path = tmp_path / "train" / "cat" / "cat_000.png"
    assert not path.samefile(tmp_path / "pets" / "cat" / "cat_000.png")
    assert path.read_bytes() == (tmp_path / "pets" / "cat" / "cat_000.png").read_bytes()


def test_names_without_numbers_and_folders_in_folders(tmp_path: Path) -> None:
    root = image_folder(tmp_path / "pets", names="deep/{i:03d}")
    for place in ("cat/deep/000.png", "dog/deep/000.png"):
        (root / place).rename((root / place).with_name("name.png"))
    form = folder_form(root)
    rows = np.arange(36)
    first = form.ids.index("cat/deep/name.png")
    written = form.write_train(tmp_path, rows, changed(form.samples, {first: 1}, [first]))
    assert "dog/deep/name_2.png" in written.ids


def test_gray_images_stay_gray(tmp_path: Path) -> None:
    for path in image_folder(tmp_path / "pets").rglob("*.*"):
        Image.open(path).convert("L").save(path)
    form = folder_form(tmp_path / "pets")
    poisoned = changed(form.samples, {0: 1}, [0])
    written = form.write_train(tmp_path, np.arange(36), poisoned)
    again = load(tmp_path / "train", options=LoadOptions(image_size=20))
    assert again.features.shape == (36, 20, 20, 1)
    assert np.array_equal(again.features, poisoned.features[written.order])


def test_a_file_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    form = folder_form(image_folder(tmp_path / "pets"))
    Image.new("RGB", (20, 20)).save(tmp_path / "pets" / "cat" / "cat_004.png")
    with pytest.raises(OutputError, match="changed since it was loaded"):
        form.write_train(tmp_path, np.arange(36), form.samples)


def test_rows_of_an_archive_keep_their_number_type_where_it_fits(tmp_path: Path) -> None:
    x = np.arange(40, dtype=np.int16).reshape(10, 4)
    np.savez(tmp_path / "rows.npz", x=x, y=np.arange(10) % 2)
    form = form_of(load(tmp_path / "rows.npz"), LoadOptions(), as_arrays=False)
    assert isinstance(form, ArrayForm)
    assert (form.kind, form.columns, form.samples.features.dtype) == (
        "rows",
        ("0", "1", "2", "3"),
        np.float64,
    )
    rows = np.array([0, 1, 5, 6])
    for value, dtype in ((99.0, np.int16), (99.5, np.float64)):
        features = form.samples.features[rows]
        features[2, 1] = value
        out = tmp_path / str(value)
        out.mkdir()
        written = form.write_train(out, rows, Samples(features, np.array([0, 1, 0, 1]), ("0", "1")))
        again = load(out / "train.npz")
        with np.load(out / "train.npz", allow_pickle=False) as arrays:
            assert arrays["x"].dtype == dtype
            assert arrays["x"][2, 1] == value
            assert (arrays["x"][[0, 1, 3]] == x[[0, 1, 6]]).all()
        assert again.ids == written.ids == ("row-000000", "row-000001", "row-000005", "row-000006")
        assert again.class_names == ("0", "1")


def test_the_test_set_as_archives(tmp_path: Path) -> None:
    dataset = load("digits")
    form = form_of(dataset, LoadOptions(), as_arrays=True)
    rows = np.arange(20)
    test = HeldOut(part(form, rows), dataset.ids[:20], rows)
    goal = np.where(test.samples.labels == 3, 5, NOT_ATTACKED)
    triggered = 255 - test.samples.features
    assert form.write_test(tmp_path, test, triggered, goal) == ("test.npz", "test_triggered.npz")
    with np.load(tmp_path / "test.npz", allow_pickle=False) as clean:
        assert np.array_equal(clean["x"], dataset.features[:20])
        assert np.array_equal(clean["y"], dataset.labels[:20])
        assert clean["ids"].tolist() == list(dataset.ids[:20])
    with np.load(tmp_path / "test_triggered.npz", allow_pickle=False) as attacked:
        assert np.array_equal(attacked["x"], triggered)
        assert np.array_equal(attacked["y"], dataset.labels[:20])
        assert np.array_equal(attacked["goal"], goal)


def test_without_anything_to_attack_there_is_no_triggered_set(tmp_path: Path) -> None:
    form = form_of(load("digits"), LoadOptions(), as_arrays=True)
    test = HeldOut(part(form, np.arange(5)), form.ids[:5], np.arange(5))
    nothing = np.full(5, NOT_ATTACKED)
    assert form.write_test(tmp_path, test, test.samples.features, nothing) == ("test.npz",)
    assert [path.name for path in tmp_path.iterdir()] == ["test.npz"]


def test_clean_is_told_how_images_are_varied_where_an_archive_does_not_say(tmp_path: Path) -> None:
    from dataclasses import replace

    dataset = load("digits")
    assert form_of(dataset, LoadOptions(), as_arrays=True).clean_options == ()
    mirrored = replace(dataset, augmentation="crop-flip")
    assert form_of(mirrored, LoadOptions(), as_arrays=True).clean_options == ("--augment", "crop-flip")
