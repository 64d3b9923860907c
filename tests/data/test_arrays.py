from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

from unpoison.data.arrays import hash_samples
from unpoison.data.load import load
from unpoison.data.options import LoadOptions
from unpoison.errors import InputError, OutputError

RNG = partial(np.random.default_rng, 0)
Y = np.array([0, 1, 0, 1])


def pixels(*shape: int) -> np.ndarray:
    return RNG().integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("keys", [("x", "y"), ("X", "y"), ("x_train", "y_train"), ("X_train", "y_train")])
def test_the_usual_key_names_are_found(npz_file, keys):
    dataset = load(npz_file(**dict(zip(keys, (pixels(4, 5, 5, 3), Y), strict=True))))
    assert dataset.kind == "image"
    assert dataset.name == "train.npz"
    np.testing.assert_array_equal(dataset.features, pixels(4, 5, 5, 3))
    np.testing.assert_array_equal(dataset.labels, Y)
    assert dataset.class_names == ("0", "1")
    assert dataset.ids[:2] == ("row-000000", "row-000001")
    assert dataset.sources[3] == "train.npz[3]"


def test_gray_images_get_a_channel(npz_file):
    assert load(npz_file(x=pixels(4, 5, 6), y=Y)).features.shape == (4, 5, 6, 1)


def test_alpha_is_composited_on_white(npz_file):
    x = pixels(4, 2, 2, 4)
    x[0, 0, 0] = (1, 2, 3, 0)
    x[1, 0, 0] = (1, 2, 3, 255)
    features = load(npz_file(x=x, y=Y)).features
    assert features.shape == (4, 2, 2, 3)
    np.testing.assert_array_equal(features[0, 0, 0], [255, 255, 255])
    np.testing.assert_array_equal(features[1, 0, 0], [1, 2, 3])


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: (x / 255).astype(np.float32),
        lambda x: x / 255,
        lambda x: x.astype(np.float64),
        lambda x: x.astype(np.int64),
    ],
)
def test_other_number_types_become_bytes(npz_file, convert):
    x = pixels(4, 3, 3, 3)
    features = load(npz_file(x=convert(x), y=Y)).features
    assert features.dtype == np.uint8
    np.testing.assert_array_equal(features, x)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint8, bool])
def test_two_dimensions_are_rows(npz_file, dtype):
    x = RNG().integers(0, 2, (4, 3)).astype(dtype)
    dataset = load(npz_file(x=x, y=Y))
    assert dataset.kind == "rows"
    assert dataset.features.dtype == np.float32
    np.testing.assert_array_equal(dataset.features, x.astype(np.float32))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_rows_must_be_finite(npz_file, value):
    x = np.zeros((4, 3))
    x[2, 1] = value
    with pytest.raises(InputError, match=rf"train.npz: x: sample 2, column 1 is {value!s:.3}"):
        load(npz_file(x=x, y=Y))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((4, 3, 3)), r"x is float64 of shape \(4, 3, 3\); give images as uint8"),
        (np.zeros(4), r"x is float64 of shape \(4,\)"),
        (
            pixels(4, 3, 8, 8),
            r"x has shape \(4, 3, 8, 8\); .* channels, must be 1, 3 or 4; move the channels last",
        ),
        (pixels(4, 8, 8, 2), r"x has shape \(4, 8, 8, 2\); the last number, channels, must be 1, 3 or 4$"),
        (np.zeros((4, 2, 2, 3)) - 1.5, "x has pixels from -1.5 to 0.0; scale them"),
        (np.full((4, 2, 2, 3), 256), "x has pixels from 0 to 256; scale them"),
        (np.full((4, 2, 2, 3), np.nan), "x: sample 0 has the pixel nan"),
        (np.zeros((4, 2), dtype=complex), "x has dtype complex128; samples must be numbers"),
        (np.array([["a", "b"]] * 4), "x has dtype <U1"),
        (np.zeros((4, 0)), r"x has shape \(4, 0\); its samples are empty"),
        (np.zeros((3, 2)), r"x has shape \(3, 2\) but y has 4 labels"),
        (np.array(3.0), r"x has shape \(\) but y has 4 labels"),
    ],
)
def test_samples_that_cannot_be_used(npz_file, x, message):
    with pytest.raises(InputError, match=f"train.npz: {message}"):
        load(npz_file(x=x, y=Y))


@pytest.mark.parametrize(
    ("y", "names", "labels"),
    [
        (np.array([10, 9, 10, 9], dtype=np.uint8), ("9", "10"), [1, 0, 1, 0]),
        (np.array([-1.0, 1.0, -1.0, 1.0]), ("-1", "1"), [0, 1, 0, 1]),
        (np.array(["spam", "hâm", "spam", "hâm"]), ("hâm", "spam"), [1, 0, 1, 0]),
        (np.array([True, False, True, False]), ("0", "1"), [1, 0, 1, 0]),
    ],
)
def test_labels_of_many_types(npz_file, y, names, labels):
    dataset = load(npz_file(x=pixels(4, 2, 2), y=y))
    assert dataset.class_names == names
    assert dataset.labels.tolist() == labels
    assert dataset.labels.dtype == np.int64


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([0, 1, np.nan, 1]), r"y\[2\] is nan, which is no class label"),
        (np.array([0, 1, 0.5, 1]), r"y\[2\] is 0.5, which is no class label"),
        (np.array([[0], [1], [0], [1]]), r"y has shape \(4, 1\); labels must have one dimension"),
        (np.array([b"a", b"b", b"a", b"b"]), r"y has dtype \|S1; labels must be"),
        (np.array(["a", "", "a", ""]), r"y\[0\] is empty"),
        (np.array(["a", "\udcff", "a", "\udcff"]), r"'\\udcff' is not valid Unicode"),
        (np.array([0, 0, 0, 0]), "only one class"),
        (np.array([0, 0, 0, 1]), "class '1' has 1 sample"),
    ],
)
def test_labels_that_cannot_be_used(npz_file, y, message):
    with pytest.raises(InputError, match=f"train.npz.*{message}"):
        load(npz_file(x=pixels(4, 2, 2), y=y))


def test_characters_beyond_unicode_are_refused(npz_file):
    y = np.array([97, 0xFFFFFFFF, 97, 0xFFFFFFFF], dtype=np.uint32).view("<U1")
    with pytest.raises(InputError, match=r"train.npz: y"):
        load(npz_file(x=pixels(4, 2, 2), y=y))


def test_class_names_name_the_numbers(npz_file):
    dataset = load(npz_file(x=pixels(4, 2, 2), y=Y, class_names=np.array(["stop", "go"])))
    assert dataset.class_names == ("stop", "go")
    assert dataset.labels.tolist() == [0, 1, 0, 1]


def test_class_names_order_the_strings(npz_file):
    y = np.array(["go", "stop", "go", "stop"])
    dataset = load(npz_file(x=pixels(4, 2, 2), y=y, class_names=np.array(["stop", "go"])))
    assert dataset.labels.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("y", "names", "message"),
    [
        (Y, ["a", "b", "c"], "class 'c' is empty"),
        (Y + 1, ["a", "b"], r"y has the label 2, but class_names has 2"),
        (Y - 1, ["a", "b"], r"y has the label -1, but class_names has 2"),
        (np.array(["a", "z", "a", "z"]), ["a", "b"], "the label 'z', which is not in class_names"),
        (Y, ["a", "a"], "class_names holds a name more than once"),
        (Y, [["a", "b"]], r"class_names is <U1 of shape \(1, 2\)"),
    ],
)
def test_class_names_that_do_not_fit(npz_file, y, names, message):
    with pytest.raises(InputError, match=f"train.npz.*{message}"):
        load(npz_file(x=pixels(4, 2, 2), y=y, class_names=np.array(names)))


def test_ids_are_used(npz_file):
    ids = np.array(["<b>", "two\nlines", '"q"', "é"])
    assert load(npz_file(x=pixels(4, 2, 2), y=Y, ids=ids)).ids == tuple(ids)
    assert load(npz_file(x=pixels(4, 2, 2), y=Y, ids=np.arange(4))).ids == ("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "b", "c"], "the id 'b' occurs more than once"),
        (["a", "b"], r"ids has shape \(2,\); there are 4 samples"),
        (["a", "b", "", "c"], r"ids\[2\] is empty"),
        ([0.5, 1.5, 2.5, 3.5], "ids is float64"),
    ],
)
def test_ids_that_cannot_be_used(npz_file, ids, message):
    with pytest.raises(InputError, match=f"train.npz: {message}"):
        load(npz_file(x=pixels(4, 2, 2), y=Y, ids=np.array(ids)))


def test_missing_and_ambiguous_keys(npz_file):
    with pytest.raises(InputError, match=r"train.npz: no arrays 'x' and 'y' .* the keys are: 'images', 'y'"):
        load(npz_file(images=pixels(4, 2, 2), y=Y))
    with pytest.raises(InputError, match=r"train.npz: .*'x_train'.*keep one"):
        load(npz_file(x=pixels(4, 2, 2), y=Y, x_train=pixels(4, 2, 2), y_train=Y))


def test_object_arrays_are_refused(npz_file):
    with pytest.raises(InputError, match=r"train.npz: the array 'y' has dtype object"):
        load(npz_file(x=pixels(4, 2, 2), y=np.array(["a", 1, "a", 1], dtype=object)))


def test_empty_samples_without_bytes_are_bounded(npz_file):
    path = npz_file(x=np.zeros((10**7, 0)), y=np.zeros(10**7, dtype=np.uint8))
    with pytest.raises(InputError, match=r"train.npz: needs about 2,560,000,000 bytes"):
        load(path, options=LoadOptions(max_bytes=2**30))


def test_the_limit_on_bytes_holds(npz_file):
    path = npz_file(x=pixels(4, 50, 50, 3), y=Y)
    with pytest.raises(InputError, match=r"train.npz: needs about .* limit of 1,000 \(max_bytes\)"):
        load(path, options=LoadOptions(max_bytes=1000))


def test_round_trip_filters_what_belongs_to_samples(npz_file, write_clean):
    keep = np.array([True, False, True, True, True, False])
    arrays = {
        "x_train": pixels(6, 3, 3, 3),
        "y_train": np.array([0, 0, 0, 1, 1, 1]),
        "ids": np.array(list("abcdef")),
        "track_train": np.arange(6),
        "class_names": np.array(["n", "m"]),
        "x_test": pixels(6, 3, 3, 3),
        "y_test": np.arange(6),
        "settings": np.array(3.5),
    }
    dataset = load(npz_file(**arrays))
    clean, _ = write_clean(dataset, keep)
    with np.load(clean / "train.npz", allow_pickle=False) as found:
        assert list(found) == list(arrays)
        for key, array in arrays.items():
            per_sample = key in ("x_train", "y_train", "ids", "track_train")
            np.testing.assert_array_equal(found[key], array[keep] if per_sample else array)
    again = load(clean / "train.npz")
    assert again.ids == ("a", "c", "d", "e")
    np.testing.assert_array_equal(again.features, dataset.features[keep])
    assert again.sha256 == tuple(np.array(dataset.sha256)[keep])
    assert again.class_names == dataset.class_names


def test_float_images_are_written_back_as_they_came(npz_file, write_clean):
    x = RNG().random((4, 3, 3, 3))
    clean, _ = write_clean(load(npz_file(x=x, y=Y)), np.array([True, True, False, False]))
    with np.load(clean / "train.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["x"], x[:2])
        assert found["x"].dtype == x.dtype


def test_keeping_nothing_is_possible(npz_file, write_clean):
    clean, _ = write_clean(load(npz_file(x=pixels(4, 2, 2), y=Y)), np.zeros(4, dtype=bool))
    assert (clean / "train.npz").exists()


def test_the_clean_file_is_the_same_each_time(npz_file, tmp_path):
    dataset = load(npz_file(x=pixels(4, 2, 2), y=Y))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        dataset.origin.write_kept(np.ones(4, dtype=bool), tmp_path / name)
    assert (tmp_path / "a/train.npz").read_bytes() == (tmp_path / "b/train.npz").read_bytes()


def test_a_file_that_changed_is_not_written(npz_file, tmp_path):
    dataset = load(npz_file(x=pixels(4, 2, 2), y=Y))
    npz_file(x=pixels(4, 2, 2), y=1 - Y)
    with pytest.raises(OutputError, match=r"train.npz changed since it was loaded"):
        dataset.origin.write_kept(np.ones(4, dtype=bool), tmp_path / "train.npz")


def test_a_link_to_a_file_keeps_the_name_it_was_given(npz_file, tmp_path, write_clean):
    npz_file(x=pixels(4, 2, 2), y=Y)
    (tmp_path / "alias.npz").symlink_to("train.npz")
    clean, _ = write_clean(load(tmp_path / "alias.npz"), np.ones(4, dtype=bool))
    assert [path.name for path in clean.iterdir()] == ["alias.npz"]


def test_hashes_depend_on_everything_that_matters():
    x = pixels(1, 2, 2)
    (base,) = hash_samples(x, ["a"])
    variants = [
        hash_samples(x, ["b"]),
        hash_samples(x.reshape(1, 4), ["a"]),
        hash_samples(x.view(np.int8), ["a"]),
        hash_samples(x ^ 1, ["a"]),
    ]
    assert base not in [sha for (sha,) in variants]
    assert hash_samples(np.asfortranarray(pixels(3, 4, 5)), "abc") == hash_samples(pixels(3, 4, 5), "abc")


def test_previews(npz_file):
    image = load(npz_file(x=pixels(4, 200, 100, 3), y=Y)).origin.preview(1)
    assert image.image.shape == (128, 64, 3)
    rows = load(npz_file(x=np.tile(np.arange(100.0), (4, 1)), y=Y)).origin.preview(0)
    assert rows.columns[1] == ("column 1", "1")
    assert rows.columns[-1] == ("...", "and 36 more")


def test_digits(write_clean):
    dataset = load("digits")
    assert dataset.features.shape == (1797, 8, 8, 1)
    assert dataset.features.dtype == np.uint8
    assert dataset.features.max() == 255
    assert dataset.class_names == tuple("0123456789")
    assert dataset.ids[7] == "digits/0007"
    assert dataset.origin.form == "npz"
    assert dataset.origin.preview(0).image.shape == (8, 8)
    keep = np.arange(1797) % 3 > 0
    clean, _ = write_clean(dataset, keep)
    again = load(clean / "digits.npz")
    np.testing.assert_array_equal(again.features, dataset.features[keep])
    assert again.ids == tuple(np.array(dataset.ids)[keep])
    assert again.sha256 == tuple(np.array(dataset.sha256)[keep])


def test_twenty_thousand_images_load_in_seconds(npz_file):
    x = np.broadcast_to(pixels(1, 32, 32, 3), (20_000, 32, 32, 3))
    path = npz_file(x=x, y=np.arange(20_000) % 10)
    start = time.perf_counter()
    assert len(load(path)) == 20_000
    assert time.perf_counter() - start < 5
