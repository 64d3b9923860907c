from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unpoison.data import folder as folder_module
from unpoison.data.load import load
from unpoison.data.options import LoadOptions
from unpoison.errors import InputError, OutputError

ALL = np.ones(8, dtype=bool)


def test_classes_paths_and_hashes(image_folder):
    dataset = load(image_folder)
    assert dataset.name == "signs"
    assert dataset.kind == "image"
    assert dataset.class_names == ("stop", "yield")
    assert dataset.labels.tolist() == [0] * 4 + [1] * 4
    assert dataset.ids[:4] == ("stop/0.png", "stop/1.jpg", "stop/2.png", "stop/more/3.png")
    assert dataset.sources == dataset.ids
    assert dataset.features.shape == (8, 32, 32, 3)
    for place, sha in zip(dataset.sources, dataset.sha256, strict=True):
        assert hashlib.sha256((image_folder / place).read_bytes()).hexdigest() == sha


def test_loading_is_deterministic(image_folder):
    first, second = load(image_folder), load(image_folder)
    assert first.fingerprint == second.fingerprint
    np.testing.assert_array_equal(first.features, second.features)


def test_the_size_is_the_median_where_images_are_small(image_folder):
    for path in image_folder.rglob("*.png"):
        Image.open(path).resize((20, 16)).save(path)
    assert load(image_folder).features.shape == (8, 16, 16, 3)


def test_the_size_can_be_chosen(image_folder):
    assert load(image_folder, options=LoadOptions(image_size=10)).features.shape == (8, 10, 10, 3)


def test_all_gray_images_have_one_channel(image_folder):
    for path in [*image_folder.rglob("*.png"), *image_folder.rglob("*.jpg")]:
        Image.open(path).convert("L").save(path)
    dataset = load(image_folder)
    assert dataset.features.shape == (8, 32, 32, 1)
    assert dataset.origin.preview(0).image.shape == (48, 40)
    Image.new("RGB", (40, 40), "red").save(image_folder / "stop/9.png")
    assert load(image_folder).features.shape == (9, 32, 32, 3)


def test_litter_and_notes_are_ignored(image_folder):
    for place in (
        ".hidden.png",
        "stop/.DS_Store",
        "stop/Thumbs.db",
        "README.md",
        "stop/labels.CSV",
        "yield/a.json",
    ):
        (image_folder / place).write_bytes(b"not an image")
    (image_folder / ".git").mkdir()
    (image_folder / ".git/config").write_text("x")
    assert len(load(image_folder)) == 8


def test_strange_names_survive(image_folder, write_clean):
    for name in ("<b>&amp;.png", "two\nlines.png", "\"q'.png", "größe 漢字.png"):
        shutil.copy(image_folder / "stop/0.png", image_folder / "stop" / name)
    dataset = load(image_folder)
    assert "stop/two\nlines.png" in dataset.ids
    clean, _ = write_clean(dataset, np.ones(12, dtype=bool))
    assert load(clean).ids == dataset.ids


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_that_are_not_unicode_are_refused(image_folder):
    shutil.copy(image_folder / "stop/0.png", os.fsencode(image_folder) + b"/stop/\xff.png")
    with pytest.raises(InputError, match=r"signs: the file name '\\udcff.png' is not valid Unicode"):
        load(image_folder)


def test_a_file_that_is_no_image_is_refused(image_folder):
    (image_folder / "stop/run.exe").write_bytes(b"MZ")
    with pytest.raises(InputError, match=r"signs: 'stop/run.exe' is not an image that unpoison reads"):
        load(image_folder)


def test_a_truncated_image_is_named(image_folder):
    path = image_folder / "yield/2.png"
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(
        InputError, match=r"signs: 'yield/2.png' cannot be read .* replace or remove the file"
    ):
        load(image_folder)


def test_a_bomb_is_named(image_folder):
    Image.new("1", (400, 300)).save(image_folder / "stop/bomb.png")
    with pytest.raises(
        InputError, match=r"signs: 'stop/bomb.png' says it is 400 x 300 pixels, more than 100,000"
    ):
        load(image_folder, options=LoadOptions(max_pixels=100_000))


def test_huge_files_are_refused_unread(image_folder):
    with (image_folder / "stop/big.bmp").open("wb") as stream:
        stream.write((image_folder / "stop/0.png").read_bytes())
        stream.truncate(10**9)  # sparse: takes no space
    with pytest.raises(InputError, match=r"signs: 'stop/big.bmp': needs about 1,000,000,000 bytes"):
        load(image_folder, options=LoadOptions(max_pixels=100_000))


def test_the_total_is_bounded(image_folder):
    with pytest.raises(InputError, match=r"signs: needs about .* limit of 20,000"):
        load(image_folder, options=LoadOptions(max_bytes=20_000))


def test_links_out_of_the_folder_are_refused(image_folder, tmp_path):
    outside = tmp_path / "outside.png"
    shutil.copy(image_folder / "stop/0.png", outside)
    (image_folder / "stop/link.png").symlink_to(outside)
    with pytest.raises(
        InputError, match=r"signs: 'stop/link.png' is a link to .*outside.png, outside the source folder"
    ):
        load(image_folder)


def test_a_class_folder_that_leads_out_is_refused(image_folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (image_folder / "third").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(
        InputError, match=r"signs: 'third' is a link to .*elsewhere, outside the source folder"
    ):
        load(image_folder)


@pytest.mark.parametrize("place", ["stop/loop", "loop"])
def test_links_to_folders_inside_are_refused(image_folder, place):
    (image_folder / place).symlink_to(image_folder, target_is_directory=True)
    with pytest.raises(InputError, match=f"signs: '{place}' is a link to a folder"):
        load(image_folder)


def test_links_that_lead_nowhere_are_refused(image_folder):
    (image_folder / "stop/gone.png").symlink_to("absent.png")
    with pytest.raises(InputError, match=r"signs: 'stop/gone.png' is a link that leads nowhere"):
        load(image_folder)
    (image_folder / "stop/gone.png").unlink()
    (image_folder / "stop/self.png").symlink_to("self.png")
    with pytest.raises(InputError, match=r"signs: 'stop/self.png' is a link that leads nowhere"):
        load(image_folder)


def test_links_to_files_inside_are_read_and_written_as_files(image_folder, write_clean):
    (image_folder / "stop/same.png").symlink_to("0.png")
    dataset = load(image_folder)
    assert "stop/same.png" in dataset.ids
    clean, _ = write_clean(dataset, np.ones(9, dtype=bool))
    assert not (clean / "stop/same.png").is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_are_refused(image_folder):
    os.mkfifo(image_folder / "stop/pipe.png")
    with pytest.raises(InputError, match=r"signs: 'stop/pipe.png' is not a regular file"):
        load(image_folder)


def test_an_empty_class_is_refused(image_folder):
    (image_folder / "third").mkdir()
    (image_folder / "third/notes.txt").write_text("none yet")
    with pytest.raises(InputError, match="signs: the class folder 'third' holds no images"):
        load(image_folder)


def test_loose_images_are_refused_with_the_layout(image_folder, tmp_path):
    flat = tmp_path / "flat"
    flat.mkdir()
    shutil.copy(image_folder / "stop/0.png", flat / "a.png")
    with pytest.raises(
        InputError, match=r"flat: 'a.png' is in no class folder; the layout is FOLDER/CLASS/IMAGE"
    ):
        load(flat)
    shutil.copy(image_folder / "stop/0.png", image_folder / "a.png")
    with pytest.raises(InputError, match=r"signs: 'a.png' is in no class folder"):
        load(image_folder)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="no class folders found; the layout is"):
        load(tmp_path)


def test_one_class_is_refused(image_folder):
    shutil.rmtree(image_folder / "yield")
    with pytest.raises(InputError, match=r"signs: only one class \('stop'\)"):
        load(image_folder)


def test_a_folder_that_may_not_be_read(image_folder, monkeypatch):
    scandir = os.scandir

    def refuse(path):
        if Path(path).name == "yield":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(folder_module.os, "scandir", refuse)
    with pytest.raises(InputError, match=r"signs: the folder .*yield cannot be read .*Permission denied"):
        load(image_folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission(image_folder):
    (image_folder / "stop").chmod(0)
    try:
        with pytest.raises(InputError, match="cannot be read"):
            load(image_folder)
    finally:
        (image_folder / "stop").chmod(0o700)


@pytest.mark.parametrize("link", [True, False])
def test_round_trip(image_folder, write_clean, link):
    keep = np.array([True, True, False, True, True, False, True, True])
    dataset = load(image_folder, options=LoadOptions(link=link))
    clean, _ = write_clean(dataset, keep)
    again = load(clean)
    assert again.ids == tuple(np.array(dataset.ids)[keep])
    assert again.sha256 == tuple(np.array(dataset.sha256)[keep])
    np.testing.assert_array_equal(again.features, dataset.features[keep])
    assert (clean / "stop/0.png").samefile(image_folder / "stop/0.png") == link


def test_files_are_copied_where_links_are_impossible(image_folder, write_clean, monkeypatch):
    def refuse(*_):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    clean, _ = write_clean(load(image_folder), ALL)
    assert not (clean / "stop/0.png").samefile(image_folder / "stop/0.png")
    assert (clean / "stop/0.png").stat().st_mtime == (image_folder / "stop/0.png").stat().st_mtime


@pytest.mark.parametrize("link", [True, False])
def test_a_file_that_changed_is_not_written(image_folder, tmp_path, link):
    dataset = load(image_folder, options=LoadOptions(link=link))
    (image_folder / "stop/2.png").write_bytes(b"other")
    (tmp_path / "clean").mkdir()
    with pytest.raises(OutputError, match=r"signs: 'stop/2.png' changed since it was loaded"):
        dataset.origin.write_kept(ALL, tmp_path / "clean")
    assert not (tmp_path / "clean/stop/2.png").exists()
    with pytest.raises(InputError, match=r"signs: 'stop/2.png' changed since it was loaded"):
        dataset.origin.preview(2)


@pytest.mark.parametrize("link", [True, False])
def test_a_file_swapped_for_a_link_is_not_written(image_folder, tmp_path, link):
    dataset = load(image_folder, options=LoadOptions(link=link))
    (tmp_path / "secret").write_bytes(b"secret")
    (image_folder / "stop/2.png").unlink()
    (image_folder / "stop/2.png").symlink_to(tmp_path / "secret")
    (tmp_path / "clean").mkdir()
    with pytest.raises((InputError, OutputError), match=r"'stop/2.png'"):
        dataset.origin.write_kept(ALL, tmp_path / "clean")
    assert not (tmp_path / "clean/stop/2.png").is_symlink()
    assert not (tmp_path / "clean/stop/2.png").exists()


def test_a_file_that_is_gone_cannot_be_written(image_folder, tmp_path):
    dataset = load(image_folder)
    (image_folder / "stop/2.png").unlink()
    (tmp_path / "clean").mkdir()
    with pytest.raises(OutputError, match=r"cannot write to .*clean"):
        dataset.origin.write_kept(ALL, tmp_path / "clean")


@pytest.mark.parametrize("link", [True, False])
def test_nothing_is_overwritten(image_folder, tmp_path, link):
    (tmp_path / "clean/stop").mkdir(parents=True)
    (tmp_path / "clean/stop/0.png").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"cannot write to .*clean .*File exists"):
        load(image_folder, options=LoadOptions(link=link)).origin.write_kept(ALL, tmp_path / "clean")
    assert (tmp_path / "clean/stop/0.png").read_bytes() == b"mine"


def test_previews_are_the_original_image(image_folder):
    Image.new("RGB", (300, 150), "red").save(image_folder / "stop/0.png")
    dataset = load(image_folder)
    assert dataset.origin.preview(0).image.shape == (64, 128, 3)
    assert dataset.origin.preview(1).image.shape == (48, 40, 3)
    np.testing.assert_array_equal(dataset.origin.preview(0).image[0, 0], [255, 0, 0])
