from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from unpoison.adapters.huggingface import judged, samples
from unpoison.errors import InputError, MissingExtraError

from .builders import EXPECTED, N, images, labels, quick, rows

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")  # read when datasets is imported
datasets = pytest.importorskip("datasets", reason="the extra 'hub' (Hugging Face datasets) is not installed")

CLASSES = datasets.ClassLabel(names=["stop", "yield", "never"])
LEAVES_FILES_OPEN = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)


def png(image: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()


def image_set(**columns: Any) -> Any:
    features = {"image": datasets.Image(), "label": CLASSES}
    cells = [{"bytes": png(image), "path": None} for image in images()]
    features |= {name: datasets.Value("string") for name in columns}
    given = {"image": cells, "label": labels(), **columns}
    return datasets.Dataset.from_dict(given, features=datasets.Features(features))


def table_set() -> Any:
    columns = {f"c{i}": column for i, column in enumerate(rows().T)}
    return datasets.Dataset.from_dict({**columns, "kind": np.array(["cat", "dog"])[labels()]})


def text_set() -> Any:
    """Ten words a class, six of them in a text."""
    rng = np.random.default_rng(3)
    texts = [" ".join(f"word{word + 10 * (i % 2)}" for word in rng.permutation(10)[:6]) for i in range(N)]
    return datasets.Dataset.from_dict({"text": texts, "label": labels()})


@pytest.mark.parametrize(
    ("dataset", "options"), [(image_set, {}), (table_set, {"label": "kind"}), (text_set, {"text": "text"})]
)
def test_the_dataset_comes_back_with_the_verdict(dataset: Any, options: dict[str, str]) -> None:
    given = dataset()
    found = judged(given, quick(), **options)
    assert found.column_names == [*given.column_names, "keep", "suspicion"]
    assert np.array_equal(found["keep"][:], quick().fit(*samples(given, **options)).keep_)
    assert found.features["keep"] == datasets.Value("bool")
    assert found.features["suspicion"] == datasets.Value("float64")
    assert np.array_equal(np.sort(np.argsort(found["suspicion"][:])[-3:]), np.flatnonzero(~EXPECTED))
    assert {name: found.features[name] for name in given.column_names} == given.features
    assert found.filter(lambda row: row["keep"])["keep"][:] == [True] * sum(found["keep"])


@LEAVES_FILES_OPEN
def test_a_dataset_that_was_shuffled_and_cut(capfd: pytest.CaptureFixture[str]) -> None:
    """``select`` and ``shuffle`` only note the positions; the table stays as it was."""
    order = np.random.default_rng(0).permutation(N)[:150]
    found = judged(image_set(key=[str(i) for i in range(N)]).select(order), quick())
    assert found["key"][:] == [str(i) for i in order]
    assert np.array_equal(found["keep"][:], EXPECTED[order])
    assert capfd.readouterr() == ("", "")


def test_a_format_changes_nothing() -> None:
    found = judged(table_set().with_format("numpy"), quick(), label="kind")
    assert np.array_equal(found["keep"][:], EXPECTED)


def test_a_cleaner_fitted_by_oneself() -> None:
    X, y = samples(image_set())
    assert X.shape == (N, 8, 8, 3)
    assert X.dtype == np.uint8
    assert y.tolist() == labels().tolist()
    cleaner = quick().fit(X, y)
    assert np.array_equal(judged(image_set(), cleaner)["keep"][:], EXPECTED)


def test_images_are_scaled_as_asked() -> None:
    assert samples(image_set(), image_size=4)[0].shape == (N, 4, 4, 3)


@LEAVES_FILES_OPEN
def test_images_in_files_are_opened_in_the_named_folder_only(tmp_path: Path) -> None:
    for i, (image, label) in enumerate(zip(images(), labels(), strict=True)):
        place = tmp_path / "signs" / ["no", "yes"][label] / f"{i:03d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place)
    datasets.disable_progress_bars()
    given = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "signs"), split="train")
    datasets.enable_progress_bars()
    keys = [
        int(Path(cell["path"]).stem)
        for cell in given.cast_column("image", datasets.Image(decode=False))["image"]
    ]
    found = judged(given, quick(), folder=tmp_path / "signs")
    assert np.array_equal(found["keep"][:], EXPECTED[keys])
    with pytest.raises(InputError, match="which unpoison does not open, for it may lead anywhere"):
        judged(given, quick())
    with pytest.raises(InputError, match="is no file in the folder"):
        judged(given, quick(), folder=tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (lambda: [1, 2], {}, "the dataset must be a datasets.Dataset, got list"),
        (lambda: datasets.DatasetDict(train=table_set()), {}, "has the splits 'train'; give one of them"),
        (lambda: table_set().rename_column("c0", "keep"), {}, "the dataset has a column 'keep' already"),
        (table_set, {}, "name the column that holds the labels with label=; the columns are: 'c0'"),
        (table_set, {"label": "species"}, "no column 'species' for label="),
        (table_set, {"label": "kind", "image": "c0"}, "no column of images 'c0' for image="),
        (image_set, {"image_size": 100_000}, "image_size must be at most 4096"),
    ],
)
def test_bad_datasets_are_named(given: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        judged(given(), quick(), **options)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"unpoison\[hub\]"):
        judged(None, quick())
