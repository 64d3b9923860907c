from __future__ import annotations

import dataclasses
import gc
import io
import json
import logging
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from unpoison.data.hub_place import find_place
from unpoison.data.load import load
from unpoison.data.options import LoadOptions
from unpoison.data.verify import check_clean
from unpoison.errors import InputError, MissingExtraError, OutputError

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")  # read when datasets is imported
datasets = pytest.importorskip("datasets", reason="the extra 'hub' (Hugging Face datasets) is not installed")

NAMES = ("stop", "yield", "turn")
IMAGES = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(NAMES))})
KEEP = np.arange(8) != 2
RNG = np.random.default_rng(0)
LEAVES_FILES_OPEN = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
"""For what makes ``datasets`` read the metadata of a folder, whose files it does not close."""


def encoded(*, size=(48, 40), form="PNG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (*size, 3), dtype=np.uint8)).save(stream, form)
    return stream.getvalue()


def image_set(**columns):
    """Eight images, PNG and JPEG, of the first two of three classes, and any more columns."""
    cells = [{"bytes": encoded(form="JPEG" if i == 3 else "PNG"), "path": f"{i}.png"} for i in range(8)]
    labels = [i % 2 for i in range(8)]
    features = datasets.Features({**IMAGES, **{name: datasets.Value("string") for name in columns}})
    return datasets.Dataset.from_dict({"image": cells, "label": labels, **columns}, features=features)


def text_set(n=60, **columns):
    words = ["win money now please", "see you at the meeting", "call me when you can"]
    texts = [f"{words[i % 3]} number {i} {i % 7}" for i in range(n)]
    features = {
        "text": datasets.Value("string"),
        "label": datasets.ClassLabel(names=["spam", "ham"]),
        **{name: feature for name, (feature, _) in columns.items()},
    }
    values = {"text": texts, "label": [int(i % 3 > 0) for i in range(n)]}
    values.update({name: cells for name, (_, cells) in columns.items()})
    return datasets.Dataset.from_dict(values, features=datasets.Features(features))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    for part in ("DOWNLOADED_DATASETS_PATH", "EXTRACTED_DATASETS_PATH"):
        monkeypatch.setattr(datasets.config, part, cache / "downloads")


@pytest.fixture
def put(tmp_path):
    """Write a dataset in one of the ways in which people have them; give the source."""

    def write(dataset, form="saved", name="signs") -> str:
        folder = tmp_path / name
        datasets.disable_progress_bars()
        if form == "saved":
            dataset.save_to_disk(folder)
        elif form == "dict":
            datasets.DatasetDict({"train": dataset, "test": dataset.select([0, 1, 2, 3])}).save_to_disk(
                folder
            )
        elif form == "imagefolder":
            for i, (cell, label) in enumerate(zip(raw(dataset), dataset["label"], strict=True)):
                place = folder / NAMES[label] / f"{i}.png"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(cell["bytes"])
        else:
            folder.mkdir()
            getattr(dataset, f"to_{form}")(folder / f"train.{form}")
        datasets.enable_progress_bars()
        return f"hf:{folder}"

    return write


def raw(dataset, column="image"):
    """The cells of a column of images as they are stored."""
    return dataset.cast_column(column, datasets.Image(decode=False))[column]


def images_in(root):
    return sorted((root / "signs").rglob("*.png"))


# --- images ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["saved", "dict", "parquet", "imagefolder"])
def test_images_in_every_form(put, write_clean, form):
    original = image_set()
    dataset = load(put(original, form))
    assert (dataset.name, dataset.kind, dataset.origin.form) == ("signs", "image", "hub")
    assert dataset.features.shape == (8, 32, 32, 3)
    assert dataset.features.dtype == np.uint8
    assert dataset.class_names == ("stop", "yield")
    assert dataset.ids[:2] == ("row-000000", "row-000001")
    assert dataset.sources[7] == "signs[train][7]"
    assert dataset.origin.preview(0).image.shape == (48, 40, 3)
    directory, expected = write_clean(dataset, KEEP)
    assert sorted(file.name for file in directory.iterdir()) == [
        "data-00000-of-00001.arrow",
        "dataset_info.json",
        "state.json",
    ]
    kept = datasets.load_from_disk(directory)
    wanted = sorted(cell["bytes"] for cell in raw(original.select(np.flatnonzero(KEEP))))
    if form != "imagefolder":  # which has the images by class
        assert kept.features == original.features
        assert sorted(cell["bytes"] for cell in raw(kept)) == wanted
    assert kept[0]["image"].size == (40, 48)
    again = load(f"hf:{directory}")
    assert again.sha256 == tuple(sample.sha256 for sample in expected)
    assert again.sources[0] == "clean[train][0]"
    np.testing.assert_array_equal(again.features, dataset.features[KEEP])


def test_what_is_kept_of_an_image_folder_is_inside_and_as_it_was(put, write_clean, tmp_path):
    source = put(image_set(), "imagefolder")
    directory, _ = write_clean(load(source), KEEP)
    files = images_in(tmp_path)
    contents = [path.read_bytes() for path, kept in zip(files, KEEP, strict=True) if kept]
    shutil.rmtree(tmp_path / "signs")
    cells = raw(datasets.load_from_disk(directory))
    assert [cell["bytes"] for cell in cells] == contents
    assert {cell["path"] for cell in cells} == {path.name for path in files} - {files[2].name}
    assert str(tmp_path).encode() not in (directory / "data-00000-of-00001.arrow").read_bytes()


def test_the_same_input_gives_the_same_bytes(put, tmp_path):
    source = put(image_set(), "parquet")
    written = []
    for i in range(2):
        directory = tmp_path / f"clean{i}"
        directory.mkdir()
        load(source).origin.write_kept(KEEP, directory)
        written.append({file.name: file.read_bytes() for file in directory.iterdir()})
    assert written[0] == written[1]


def test_all_columns_and_what_is_said_about_the_data_are_kept(put, write_clean):
    original = image_set(place=list("abcdefgh"))
    original = original.add_column("boxes", [[i, i + 1] for i in range(8)])
    original.info.license, original.info.citation = "CC-BY", "Someone 2024"
    directory, _ = write_clean(load(put(original)), KEEP)
    kept = datasets.load_from_disk(directory)
    assert kept.features == original.features
    assert kept["boxes"][2] == [3, 4]
    assert (kept.info.license, kept.info.citation) == ("CC-BY", "Someone 2024")


def test_splits(put):
    source = put(image_set(), "dict")
    test = load(source, options=LoadOptions(split="test"))
    assert (len(test), test.sources[0]) == (4, "signs[test][0]")
    with pytest.raises(InputError, match=r"no split 'val'; .*--split. The splits are: 'train', 'test'"):
        load(source, options=LoadOptions(split="val"))
    shutil.rmtree(Path(source.removeprefix("hf:")) / "train")
    with pytest.raises(InputError, match="signs"):
        load(source)


def test_the_splits_of_data_files(put, tmp_path):
    source = put(image_set(), "parquet")
    (tmp_path / "signs/train.parquet").rename(tmp_path / "signs/test.parquet")
    with pytest.raises(InputError, match=r"hf:signs: there is no split 'train'; .*The splits are: 'test'"):
        load(source)
    assert len(load(source, options=LoadOptions(split="test"))) == 8


def test_a_single_saved_split_is_meant_whatever_its_name(put):
    dataset = image_set()
    source = put(datasets.Dataset(dataset.data, info=dataset.info, split="validation"))
    assert load(source).sources[0] == "signs[validation][0]"
    assert len(load(source, options=LoadOptions(split="validation"))) == 8
    with pytest.raises(InputError, match=r"no split 'test'.*are: 'validation'"):
        load(source, options=LoadOptions(split="test"))


def test_image_size_ids_and_label(put):
    dataset = image_set(key=list("abcdefgh"), other=["x", "x", "y", "y"] * 2)
    options = LoadOptions(image_size=12, id_column="key", label="other")
    found = load(put(dataset), options=options)
    assert found.features.shape == (8, 12, 12, 3)
    assert found.ids == tuple("abcdefgh")
    assert found.class_names == ("x", "y")
    with pytest.raises(
        InputError, match=r"no column 'nope' for --id; the columns are: 'label', 'key', 'other'"
    ):
        load(put(dataset, name="more"), options=LoadOptions(id_column="nope"))


def test_small_and_gray_images_stay_so(put):
    def gray():
        stream = io.BytesIO()
        Image.fromarray(RNG.integers(0, 256, (9, 8), dtype=np.uint8)).save(stream, "PNG")
        return {"bytes": stream.getvalue(), "path": None}

    cells = {"image": [gray() for _ in range(4)], "label": [0, 1, 0, 1]}
    dataset = load(put(datasets.Dataset.from_dict(cells, features=IMAGES)))
    assert dataset.features.shape == (4, 8, 8, 1)


def test_one_of_several_image_columns(put, write_clean):
    dataset = image_set().add_column("depth", [encoded(size=(20, 20)) for _ in range(8)])
    source = put(dataset.cast_column("depth", datasets.Image()))
    with pytest.raises(InputError, match="columns of images with --image: 'image', 'depth'"):
        load(source)
    with pytest.raises(InputError, match=r"no column of images 'label' for --image; .*: 'image', 'depth'"):
        load(source, options=LoadOptions(image="label"))
    found = load(source, options=LoadOptions(image="depth"))
    assert found.features.shape == (8, 20, 20, 3)
    write_clean(found, KEEP)


def test_the_label_changes_the_hash(put):
    dataset = image_set()
    first = load(put(dataset))
    relabelled = dataset.remove_columns("label").add_column("label", [1, 1, *[i % 2 for i in range(2, 8)]])
    second = load(put(relabelled.cast(dataset.features), name="other"))
    assert [a == b for a, b in zip(first.sha256, second.sha256, strict=True)] == [False, *[True] * 7]


def test_a_file_that_keeps_its_time_is_read_again(put, tmp_path):
    source = put(image_set(), "parquet")
    file = tmp_path / "signs/train.parquet"
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    before = load(source)
    datasets.disable_progress_bars()
    image_set().to_parquet(file)
    datasets.enable_progress_bars()
    os.utime(file, ns=times)
    assert set(load(source).sha256).isdisjoint(before.sha256)


# --- tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["saved", "parquet"])
def test_text(put, write_clean, form):
    dataset = load(put(text_set(), form))
    assert dataset.kind == "text"
    assert dataset.class_names == ("spam", "ham")
    assert dataset.labels[:3].tolist() == [0, 1, 1]
    assert dataset.origin.preview(0).text == "win money now please number 0 0"
    keep = np.arange(60) > 4
    directory, expected = write_clean(dataset, keep)
    assert datasets.load_from_disk(directory).features == text_set().features
    assert load(f"hf:{directory}").sha256 == tuple(sample.sha256 for sample in expected)


def test_numbers(put, write_clean):
    rng = np.random.default_rng(0)
    cells = {"a": rng.normal(size=20).tolist(), "b": list(range(20)), "target": ["x", "y"] * 10}
    dataset = load(put(datasets.Dataset.from_dict({"key": [f"k{i}" for i in range(20)], **cells}), "csv"))
    assert (dataset.kind, dataset.class_names) == ("rows", ("x", "y"))
    assert dict(dataset.origin.preview(3).columns)["b"] == "3"
    write_clean(dataset, np.arange(20) > 2)
    named = load(put(datasets.Dataset.from_dict(cells), name="b"), options=LoadOptions(label="target"))
    assert named.features.shape == (20, 2)


def test_columns_that_are_no_cells_are_carried_along(put, write_clean):
    tags = (datasets.features.Sequence(datasets.Value("string")), [["a", "b"]] * 60)
    original = text_set(tags=tags)
    dataset = load(put(original))
    directory, _ = write_clean(dataset, np.arange(60) > 4)
    assert datasets.load_from_disk(directory)["tags"][0] == ["a", "b"]
    with pytest.raises(InputError, match="no column 'tags' for --text"):
        load(put(original, name="more"), options=LoadOptions(text="tags"))


def test_naming_a_text_makes_it_a_text_even_beside_images(put, write_clean):
    captions = [f"a sign by the road {i} {i % 3}" for i in range(8)]
    dataset = load(put(image_set(caption=captions)), options=LoadOptions(text="caption"))
    assert dataset.kind == "text"
    assert dataset.origin.preview(1).text == captions[1]
    write_clean(dataset, KEEP)


# --- labels ------------------------------------------------------------------------------------------------


def test_fine_labels_are_found_among_several_classes(put):
    dataset = image_set().rename_column("label", "fine_label").add_column("coarse_label", [0] * 8)
    coarse = datasets.ClassLabel(names=["sign"])
    found = load(put(dataset.cast_column("coarse_label", coarse)))
    assert found.class_names == ("stop", "yield")


@pytest.mark.parametrize(("first", "second"), [("one", "two"), ("label", "labels")])
def test_labels_that_cannot_be_told(put, first, second):
    cells = {first: ["a", "b"] * 4, second: ["c", "d"] * 4, "x": [float(i) for i in range(8)]}
    with pytest.raises(InputError, match=f"with --label; the columns are: '{first}', '{second}', 'x'"):
        load(put(datasets.Dataset.from_dict(cells)))


@pytest.mark.parametrize("missing", [None, -1])
def test_a_missing_label_is_named(put, missing):
    dataset = image_set()
    labels = [*dataset["label"][:5], missing, 0, 1]
    broken = dataset.remove_columns("label").add_column("label", labels).cast(dataset.features)
    with pytest.raises(
        InputError, match=r"signs\[train\]\[5\]: the label \(column 'label'\) is empty; fill it"
    ):
        load(put(broken))


def test_a_class_that_has_no_name(put):
    dataset = image_set()
    broken = dataset.remove_columns("label").add_column("label", [0, 1, 0, 1, 0, 1, 7, 0])
    with pytest.raises(
        InputError, match=r"signs\[train\]\[6\]: the class .* is 7, but the column has 3 class names"
    ):
        load(put(broken.cast(dataset.features)))


def test_several_labels_a_sample_are_no_label(put):
    dataset = image_set().remove_columns("label").add_column("label", [[0, 1]] * 8)
    with pytest.raises(InputError, match="--label; the columns are: "):
        load(put(dataset))


def test_a_split_without_rows(put, tmp_path):
    with pytest.raises(InputError, match="signs: it was saved without any rows"):
        load(put(image_set().select([])))
    (tmp_path / "empty").mkdir()
    write_saved(tmp_path / "empty", IMAGES.arrow_schema.empty_table())
    with pytest.raises(InputError, match="empty: the split 'train' has no rows; choose another"):
        load(f"hf:{tmp_path / 'empty'}")


# --- checking what was written -----------------------------------------------------------------------------


@pytest.fixture(params=["images", "text"])
def clean_set(request, put, write_clean):
    original = image_set() if request.param == "images" else text_set(8)
    return write_clean(load(put(original)), KEEP)


def rewrite(directory, change):
    """Change the rows of a clean set as someone would with ``datasets``."""
    dataset = datasets.load_from_disk(directory, keep_in_memory=True)
    datasets.disable_progress_bars()
    shutil.rmtree(directory)
    change(dataset).save_to_disk(directory)
    datasets.enable_progress_bars()


def relabelled(dataset):
    labels = [1 - dataset["label"][0], *dataset["label"][1:]]
    changed = dataset.remove_columns("label").add_column("label", labels)
    return changed.cast(datasets.Features({**changed.features, "label": dataset.features["label"]}))


def test_a_changed_label(clean_set):
    directory, expected = clean_set
    rewrite(directory, relabelled)
    assert f"{expected[0].id!r} ({expected[0].source}): changed" in check_clean("hub", directory, expected)


def test_a_changed_content(clean_set):
    directory, expected = clean_set
    rewrite(directory, lambda d: d.select([0, 1, 0, *range(3, 7)]))
    problems = check_clean("hub", directory, expected)
    assert problems[0] == f"{expected[2].id!r} ({expected[2].source}): changed"


def test_missing_added_and_swapped_samples(clean_set):
    directory, expected = clean_set
    rewrite(directory, lambda d: d.select(range(6)))
    assert check_clean("hub", directory, expected) == [
        "clean: holds 6 samples, the manifest 7",
        f"{expected[6].id!r} ({expected[6].source}): missing or changed",
    ]
    rewrite(directory, lambda d: d.select([*range(6), 1, 2]))
    assert check_clean("hub", directory, expected)[0] == "clean: holds 8 samples, the manifest 7"
    rewrite(directory, lambda d: d.select([1, 0, *range(2, 6), 6]))
    assert check_clean("hub", directory, expected)


def test_missing_and_extra_files(clean_set):
    directory, expected = clean_set
    (directory / "more.txt").write_text("x")
    assert check_clean("hub", directory, expected) == ["'more.txt': extra, not in the manifest"]
    (directory / "more.txt").unlink()
    (directory / "state.json").unlink()
    assert check_clean("hub", directory, expected) == ["state.json: missing"]


def test_a_manifest_with_another_label(clean_set):
    directory, expected = clean_set
    wrong = [*expected[:-1], dataclasses.replace(expected[-1], label="other")]
    assert check_clean("hub", directory, wrong) == ["clean: no column holds the labels of the manifest"]


def test_damage_is_a_problem_and_never_an_exception(clean_set):
    directory, expected = clean_set
    rng = np.random.default_rng(0)
    for name in ("data-00000-of-00001.arrow", "state.json", "dataset_info.json"):
        data = np.frombuffer((directory / name).read_bytes(), dtype=np.uint8)
        damaged = data.copy()
        damaged[rng.integers(0, len(data), 3)] = rng.integers(0, 256, 3)
        for content in (b"", b"{}", b"\xff" * 50, data[: len(data) // 2].tobytes(), damaged.tobytes()):
            (directory / name).unlink()  # not in place: it may be mapped
            (directory / name).write_bytes(content)
            problems = check_clean("hub", directory, expected)
            assert all("\n" not in problem for problem in problems)
            if content not in (b"{}", damaged.tobytes()):  # the features are in the data as well
                assert problems
        (directory / name).write_bytes(data.tobytes())
    assert check_clean("hub", directory, expected) == []


def test_a_clean_set_of_nothing(put, write_clean):
    directory, expected = write_clean(load(put(image_set())), np.zeros(8, dtype=bool))
    assert expected == []
    assert len(datasets.load_from_disk(directory)) == 0


def test_an_image_that_changed_after_loading(put, tmp_path):
    dataset = load(put(image_set(), "imagefolder"))
    (tmp_path / "signs/stop/0.png").write_bytes(encoded())
    (tmp_path / "clean").mkdir()
    with pytest.raises(OutputError, match="signs changed since it was loaded; run again"):
        dataset.origin.write_kept(KEEP, tmp_path / "clean")


# --- what the data must not do -----------------------------------------------------------------------------


@pytest.fixture
def secret(tmp_path) -> Path:
    path = tmp_path / "secret.png"
    path.write_bytes(encoded())
    return path


@pytest.fixture
def opened():
    """Every path that Python opens, by whatever module."""
    seen, watching = [], [True]  # a hook cannot be taken away again
    sys.addaudithook(lambda event, args: seen.append(str(args[0])) if watching and event == "open" else None)
    yield seen
    watching.clear()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("way", ["absolute", "relative", "url"])
def test_paths_in_rows_are_not_opened(tmp_path, secret, opened, form, way, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = {"absolute": str(secret), "relative": "signs/../secret.png", "url": secret.as_uri()}[way]
    cells = [{"bytes": encoded(), "path": None} for _ in range(7)] + [{"bytes": None, "path": path}]
    schema = IMAGES.arrow_schema
    table = pa.table({"image": cells, "label": [0, 1] * 4}, schema=schema)
    folder = tmp_path / "signs"
    folder.mkdir()
    if form == "parquet":
        pq.write_table(table, folder / "train.parquet")
    else:
        write_saved(folder, table)
    with pytest.raises(InputError, match=r"signs\[train\]\[7\]: the image .* is no image but the path"):
        load(f"hf:{folder}")
    assert not [name for name in opened if name.endswith("secret.png")]


def write_saved(folder, table, files=("data.arrow",), compression=None, **info):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(folder / "data.arrow", table.schema, options=options) as sink:
        sink.write_table(table)
    features = info.pop("features", IMAGES.to_dict())
    (folder / "dataset_info.json").write_text(json.dumps({"features": features, **info}))
    (folder / "state.json").write_text(
        json.dumps(
            {
                "_data_files": [{"filename": file} for file in files],
                "_fingerprint": "x",
                "_format_columns": None,
                "_format_kwargs": {},
                "_format_type": None,
                "_output_all_columns": False,
                "_split": None,
            }
        )
    )


def test_paths_in_other_columns_do_not_reach_the_clean_set(tmp_path, secret, opened, write_clean):
    features = datasets.Features({**IMAGES, "thumbnail": datasets.Image(), "sound": datasets.Audio()})
    cells = {
        "image": [{"bytes": encoded(), "path": None} for _ in range(8)],
        "label": [0, 1] * 4,
        "thumbnail": [{"bytes": None, "path": str(secret)}] * 8,
        "sound": [{"bytes": None, "path": str(secret)}] * 8,
    }
    (tmp_path / "signs").mkdir()
    table = pa.table(cells, schema=features.arrow_schema)
    write_saved(tmp_path / "signs", table, features=features.to_dict())
    dataset = load(f"hf:{tmp_path / 'signs'}", options=LoadOptions(image="image"))
    directory, _ = write_clean(dataset, KEEP)
    assert not [name for name in opened if name.endswith("secret.png")]
    assert secret.read_bytes()[:100] not in (directory / "data-00000-of-00001.arrow").read_bytes()


@pytest.mark.parametrize("name", ["../data.arrow", "{tmp}/data.arrow", "", "..", "more/data.arrow"])
def test_a_state_file_cannot_name_files_elsewhere(tmp_path, name):
    table = pa.table({"image": [{"bytes": encoded(), "path": None}] * 8, "label": [0, 1] * 4})
    for folder in (tmp_path / "signs", tmp_path / "signs" / "more"):
        folder.mkdir()
        write_saved(folder, table.cast(IMAGES.arrow_schema), files=[name.format(tmp=tmp_path)])
    shutil.copy(tmp_path / "signs/data.arrow", tmp_path / "data.arrow")
    with pytest.raises(InputError, match="is no plain name of a file or split"):
        load(f"hf:{tmp_path / 'signs'}")


def test_a_dict_cannot_name_splits_elsewhere(put, tmp_path):
    source = put(image_set(), "dict")
    put(image_set(), name="other")
    (tmp_path / "signs/dataset_dict.json").write_text('{"splits": ["train", "../other"]}')
    with pytest.raises(InputError, match=r"'\.\./other' is no plain name"):
        load(source, options=LoadOptions(split="../other"))


@pytest.mark.parametrize("form", ["saved", "parquet"])
def test_links_out_of_the_folder_are_not_followed(put, tmp_path, form):
    source = put(image_set(), form)
    (file,) = (path for path in (tmp_path / "signs").iterdir() if path.suffix in (".arrow", ".parquet"))
    file.rename(tmp_path / file.name)
    file.symlink_to(tmp_path / file.name)
    with pytest.raises(InputError, match=r"link out of the folder|not one of the dataset's own"):
        load(source)


def test_a_link_among_the_images_is_not_followed(put, tmp_path, secret):
    source = put(image_set(), "imagefolder")
    (tmp_path / "signs/stop/9.png").symlink_to(secret)
    with pytest.raises(InputError, match=r"9.png is not one of the dataset's own"):
        load(source)


@pytest.fixture
def _collected():
    """Garbage goes while its warnings are still ignored, and not in the next test."""
    yield
    gc.collect()


@LEAVES_FILES_OPEN
@pytest.mark.usefixtures("_collected")
def test_metadata_cannot_name_images_elsewhere(put, tmp_path, secret, opened):
    source = put(image_set(), "imagefolder")
    (tmp_path / "signs/stop/link.bin").symlink_to(secret)
    for name in ("../secret.png", str(secret), "stop/link.bin"):
        rows = ["file_name,label", "stop/0.png,a", "stop/2.png,b", "stop/4.png,a", f"{name},b"]
        (tmp_path / "signs/metadata.csv").write_text("\n".join(rows) + "\n")
        with pytest.raises(
            InputError, match=rf"hf:signs cannot be loaded .*{name}|{name}' is no file in the"
        ):
            load(source)
    assert not [name for name in opened if name.endswith(("secret.png", "link.bin"))]


@LEAVES_FILES_OPEN
@pytest.mark.usefixtures("_collected")
def test_metadata_may_name_images_of_the_folder(put, tmp_path, write_clean):
    source = put(image_set(), "imagefolder")
    rows = [f"{path.relative_to(tmp_path / 'signs')},{i % 2}" for i, path in enumerate(images_in(tmp_path))]
    (tmp_path / "signs/metadata.csv").write_text("\n".join(["file_name,label", *rows]) + "\n")
    dataset = load(source)
    assert dataset.class_names == ("0", "1")
    write_clean(dataset, KEEP)


@pytest.mark.parametrize(
    "pattern", ["../other/train.parquet", "{tmp}/other/train.parquet", "http://127.0.0.1:9/train.parquet"]
)
@pytest.mark.parametrize("card", ["README.md", ".huggingface.yaml"])
def test_a_card_cannot_name_files_elsewhere(put, tmp_path, pattern, card):
    source = put(image_set(), "parquet")
    put(image_set(), "parquet", name="other")
    yaml = f"configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: {pattern}\n"
    text = yaml.format(tmp=tmp_path)
    (tmp_path / "signs" / card).write_text(f"---\n{text}---\n" if card == "README.md" else text)
    with pytest.raises(InputError, match=r"hf:signs: its card names the data files .* outside the folder"):
        load(source)


def test_a_card_may_name_files_of_its_own(put, tmp_path):
    source = put(image_set(), "parquet")
    (tmp_path / "signs/train.parquet").rename(tmp_path / "signs/one.parquet")
    yaml = "configs:\n- config_name: small\n  data_files:\n  - split: train\n    path: one.parquet\n"
    (tmp_path / "signs/README.md").write_text(f"---\n{yaml}---\n# Signs\n")
    assert load(f"{source}:small").name == "signs"
    with pytest.raises(InputError, match=r"hf:signs cannot be loaded .*large"):
        load(f"{source}:large")


def test_no_script_is_run(put, tmp_path):
    source = put(image_set(), "parquet")
    (tmp_path / "signs/signs.py").write_text(f"open({str(tmp_path / 'harm')!r}, 'w')")
    with pytest.raises(InputError, match=r"comes with a script \(signs.py\), and unpoison runs no code"):
        load(source)
    assert not (tmp_path / "harm").exists()


def test_readers_that_decode_at_will_are_not_used(tmp_path):
    (tmp_path / "signs").mkdir()
    for name in ("train.txt", "test.txt"):
        (tmp_path / "signs" / name).write_text("a line\n")
    with pytest.raises(
        InputError, match=r"files of a kind that unpoison does not read \(text\).*save_to_disk"
    ):
        load(f"hf:{tmp_path / 'signs'}")


def test_a_compressed_stream_is_refused_before_it_fills_the_memory(tmp_path):
    cells = [{"bytes": bytes(100_000), "path": None}] * 8
    (tmp_path / "signs").mkdir()
    table = pa.table({"image": cells, "label": [0, 1] * 4}, schema=IMAGES.arrow_schema)
    write_saved(tmp_path / "signs", table, compression="zstd")
    with pytest.raises(InputError, match=r"signs: data.arrow is compressed"):
        load(f"hf:{tmp_path / 'signs'}")


def test_rows_that_take_no_bytes_are_counted(tmp_path):
    (tmp_path / "signs").mkdir()
    table = pa.table({"x": pa.nulls(100_000)})
    write_saved(tmp_path / "signs", table, features={"x": {"dtype": "null", "_type": "Value"}})
    with pytest.raises(InputError, match="signs: needs about 25,600,000 bytes"):
        load(f"hf:{tmp_path / 'signs'}", options=LoadOptions(max_bytes=10_000_000))


def test_too_much_memory_is_refused_before_it_is_taken(put):
    long = (datasets.Value("string"), ["x" * 1000] * 60)
    images, texts = put(image_set()), put(text_set(long=long), name="texts")
    with pytest.raises(InputError, match=r"signs: needs about .* bytes of memory"):
        load(images, options=LoadOptions(max_bytes=30_000, image_size=64))
    with pytest.raises(InputError, match=r"texts: needs about .* bytes of memory"):
        load(texts, options=LoadOptions(max_bytes=100_000))


def test_images_are_decoded_by_guarded_means_only(put):
    cells = [{"bytes": encoded(), "path": None} for _ in range(7)]
    for content, words in (
        (b"%!PS-Adobe-3.0 EPSF", "not an image that unpoison reads"),
        (b"", "not an image"),
    ):
        rows = {"image": [*cells, {"bytes": content, "path": "x.png"}], "label": [0, 1] * 4}
        source = put(datasets.Dataset.from_dict(rows, features=IMAGES), name=f"set{len(content)}")
        with pytest.raises(InputError, match=rf"\[train\]\[7\] is {words}"):
            load(source)
    with pytest.raises(InputError, match=r"says it is 40 x 48 pixels, more than 100 \(max_pixels\)"):
        load(put(image_set()), options=LoadOptions(max_pixels=100))


def test_an_image_that_is_not_there(put):
    rows = {"image": [None, *[{"bytes": encoded(), "path": None} for _ in range(7)]], "label": [0, 1] * 4}
    with pytest.raises(InputError, match=r"signs\[train\]\[0\]: the image \(column 'image'\) is empty"):
        load(put(datasets.Dataset.from_dict(rows, features=IMAGES)))


# --- names, and the package --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "repository", "config"),
    [("user/name", "user/name", None), ("a-b/c.d_e:x-1.0", "a-b/c.d_e", "x-1.0")],
)
def test_names_on_the_hub(given, repository, config):
    place = find_place(given)
    assert (place.folder, place.repository, place.config, place.name) == (None, repository, config, given)


@pytest.mark.parametrize(
    "given", ["", "csv", "pandas", "a/b/c", "/nowhere", "../x/y", "user/na me", "u/n:", "a\0/b"]
)
def test_names_that_nothing_has(given):
    with pytest.raises(
        InputError, match="no such folder, and nothing on the hub has such a name; give hf:user/name"
    ):
        load(f"hf:{given}")


def test_a_folder_comes_before_the_hub(put, tmp_path, monkeypatch):
    (tmp_path / "user").mkdir()
    put(image_set(), name="user/name:odd")
    monkeypatch.chdir(tmp_path)
    assert find_place("user/name:odd").folder == tmp_path / "user/name:odd"
    assert len(load("hf:user/name:odd")) == 8


def test_a_single_file_needs_no_prefix(text_file):
    with pytest.raises(InputError, match=r"train.csv is not a folder; to read a single file leave out hf:"):
        load(f"hf:{text_file('x,y')}")


def test_what_was_tried_and_what_may_help():
    with pytest.raises(InputError) as caught:
        load("hf:user/name:config")
    for part in (
        "hf:user/name:config cannot be loaded",
        "load_dataset('user/name', 'config')",
        "spelling",
        "HF_HUB_OFFLINE is set",
        "hf auth login",
    ):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_hub_is_asked_in_the_same_way(put, monkeypatch):
    """Without a network the answer of the hub is put in place of the question."""
    folder = put(image_set(), "parquet").removeprefix("hf:")
    builder = datasets.load_dataset_builder(folder)
    asked = []
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *a, **k: (asked.append((a, k)), builder)[1])
    with pytest.raises(InputError, match="not one of the dataset's own"):
        load("hf:user/name:small")
    files = {"train": ["hf://datasets/user/name@0123/train.parquet"]}
    monkeypatch.setattr(builder.config, "data_files", files)
    monkeypatch.setattr(builder, "download_and_prepare", lambda **_: None)
    monkeypatch.setattr(builder, "as_dataset", lambda **_: image_set())
    assert load("hf:user/name:small").sources[0] == "user/name:small[train][0]"
    assert asked[0] == (("user/name", "small"), {})
    monkeypatch.setattr(datasets, "__version__", "2.19.0")
    load("hf:user/name")
    assert asked[-1] == (("user/name", None), {"trust_remote_code": False})


def test_an_empty_folder(tmp_path):
    (tmp_path / "signs").mkdir()
    with pytest.raises(
        InputError, match=r"hf:signs cannot be loaded .*; give a folder that save_to_disk wrote"
    ):
        load(f"hf:{tmp_path / 'signs'}")


def test_the_package_is_missing(monkeypatch, put):
    source = put(image_set())
    monkeypatch.setitem(sys.modules, "datasets", None)
    for given in (source, "hf:user/name"):
        with pytest.raises(MissingExtraError, match=r"'datasets', .* pip install 'unpoison\[hub\]'"):
            load(given)


def test_datasets_is_kept_quiet_and_then_left_as_it_was(put, capfd):
    source = put(image_set(), "parquet")
    datasets.utils.logging.set_verbosity(logging.DEBUG)
    try:
        capfd.readouterr()
        load(source)
        assert capfd.readouterr() == ("", "")
        assert datasets.utils.logging.get_verbosity() == logging.DEBUG
        assert not datasets.utils.are_progress_bars_disabled()
    finally:
        datasets.utils.logging.set_verbosity(logging.WARNING)


@pytest.mark.parametrize("option", ["split", "image"])
@pytest.mark.parametrize("source", ["digits", "train.csv"])
def test_options_of_hugging_face_datasets_alone(option, source):
    with pytest.raises(InputError, match=f"{source} is no hf: dataset; --split and --image are for those"):
        load(source, options=LoadOptions(**{option: "x"}))
