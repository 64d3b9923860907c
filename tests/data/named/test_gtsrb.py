from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from unpoison.data.named import gtsrb
from unpoison.data.named.catalog import CATALOG
from unpoison.errors import InputError
from unpoison.events import Progress, ignore

from .builders import SMALL, gtsrb_zips, images, labels, make_zip

SPEC = SMALL["gtsrb"]


def convert(given: Path, folder: Path, spec=SPEC, listener=ignore):
    return gtsrb.convert(given, folder, spec=spec, listener=listener)


@pytest.fixture
def zips(tmp_path) -> Path:
    return gtsrb_zips(tmp_path / "zips")


def test_the_zips_become_arrays_in_the_order_of_class_track_and_frame(zips, written):
    events: list[Progress] = []
    sources = convert(zips, written, listener=events.append)
    assert {source.name for source in sources} == {path.name for path in zips.iterdir()}
    assert not any(source.official for source in sources)
    assert events[-1].done <= events[-1].total
    with np.load(written / "train.npz", allow_pickle=False) as found:
        assert found["x"].shape == (86, 32, 32, 3)
        assert found["y"].tolist() == np.repeat(np.arange(43), 2).tolist()
        assert found["track"].tolist() == (np.repeat(np.arange(43), 2) % 3).tolist()
        np.testing.assert_array_equal(found["x"][:, 0, 0, 0], 5 * found["y"] + np.tile([0, 1], 43))
        assert found["class_names"][14] == "14 stop"
        assert found["ids"][0] == "gtsrb/train/00000"
    with np.load(written / "test.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["x"][:, 5, 5, 2], np.arange(86))
        np.testing.assert_array_equal(found["y"], np.arange(86) // 2)


@pytest.mark.parametrize("name", ["GTSRB-Training_fixed.zip", "GTSRB_Final_Test_GT.zip"])
def test_a_missing_zip_is_named(zips, written, name):
    (zips / name).unlink()
    with pytest.raises(InputError, match=rf"zips: holds no {name}; give the folder with"):
        convert(zips, written)


def test_another_number_of_images_is_refused(zips, written, tmp_path):
    gtsrb_zips(zips, frames=3)
    with pytest.raises(InputError, match=r"129 train images found where there are 86; give the folder"):
        convert(zips, written)
    gtsrb_zips(zips)
    shutil.copy(zips / "GTSRB-Training_fixed.zip", zips / "GTSRB_Final_Test_Images.zip")
    with pytest.raises(InputError, match=r"gtsrb: 0 test images found where there are 86"):
        convert(zips, written)


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"other.csv": b""}, "holds no GT-final_test.csv"),
        ({"GT-final_test.csv": b"Filename;ClassId\n00000.ppm;3\n"}, "has no row for 00001.ppm"),
        ({"GT-final_test.csv": b"Name\nx\n"}, "cannot be read"),
        ({"GT-final_test.csv": b"Filename;ClassId\n00000.ppm;many\n"}, "cannot be read"),
        ({"GT-final_test.csv": b"\xff\xfe"}, "cannot be read"),
    ],
)
def test_a_table_of_labels_that_does_not_fit_is_refused(zips, written, members, says):
    make_zip(zips / "GTSRB_Final_Test_GT.zip", members)
    with pytest.raises(InputError, match=says):
        convert(zips, written)


def test_labels_that_are_no_classes_are_refused(zips, written):
    rows = b"".join(b"%05d.ppm;43\n" % i for i in range(86))
    make_zip(zips / "GTSRB_Final_Test_GT.zip", {"GT-final_test.csv": b"Filename;ClassId\n" + rows})
    with pytest.raises(InputError, match="test labels are not all whole numbers from 0 to 42"):
        convert(zips, written)


def test_a_file_that_is_no_image_is_refused_by_name(zips, written):
    bad = {f"Images/{i:05d}.ppm": b"no image" for i in range(86)}
    make_zip(zips / "GTSRB_Final_Test_Images.zip", bad)
    with pytest.raises(InputError, match=r"GTSRB_Final_Test_Images.zip: 'Images/00000.ppm' is not an image"):
        convert(zips, written)


def arrays(**changed: np.ndarray | None) -> dict[str, np.ndarray]:
    found = {
        "x_train": images(86, 32, 32, 3), "y_train": labels(86, 43).astype(np.uint8),
        "track_train": np.arange(86, dtype=np.uint16), "x_test": images(86, 32, 32, 3, seed=1),
        "y_test": labels(86, 43), **changed,
    }  # fmt: skip
    return {key: array for key, array in found.items() if array is not None}


@pytest.mark.parametrize("tracks", [True, False])
def test_arrays_are_taken_as_they_are(tmp_path, written, tracks):
    given = arrays() if tracks else arrays(track_train=None)
    np.savez_compressed(tmp_path / "a.npz", **given)
    (source,) = convert(tmp_path / "a.npz", written)
    assert (source.name, source.official) == ("a.npz", False)
    for split in ("train", "test"):
        with np.load(written / f"{split}.npz", allow_pickle=False) as found:
            np.testing.assert_array_equal(found["x"], given[f"x_{split}"])
            np.testing.assert_array_equal(found["y"], given[f"y_{split}"])
            assert ("track" in found.files) == (tracks and split == "train")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"x_test": None}, r"a.npz: holds no x_test and y_test; give"),
        ({"x_train": images(85, 32, 32, 3)}, "85 train images found where there are 86"),
        ({"x_train": np.array(3)}, "1 train images found"),
        ({"x_train": images(86, 28, 28, 3)}, r"shape \(28, 28, 3\), not uint8"),
        ({"x_train": images(86, 32, 32, 3).astype(np.float32)}, "float32 of shape"),
        ({"y_train": labels(85)}, r"labels of shape \(85,\) for 86 images"),
        ({"y_train": labels(86, 44)}, "not all whole numbers from 0 to 42"),
        ({"y_train": labels(86).astype(float)}, "not all whole numbers"),
        ({"y_train": labels(86) - 1}, "not all whole numbers"),
        ({"track_train": labels(80)}, r"track of shape \(80,\) for 86 images"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, written, changed, says):
    np.savez(tmp_path / "a.npz", **arrays(**changed))
    with pytest.raises(InputError, match=says):
        convert(tmp_path / "a.npz", written)


def test_a_file_that_is_no_npz_is_refused(tmp_path, written):
    (tmp_path / "a.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"a.npz cannot be read"):
        convert(tmp_path / "a.npz", written)


def test_the_real_arrays(written, gtsrb_32):
    convert(gtsrb_32, written, spec=CATALOG["gtsrb"])
    with np.load(written / "train.npz", allow_pickle=False) as found:
        assert found["x"].shape == (26_640, 32, 32, 3)
        assert np.bincount(found["y"]).min() == 150
        assert found["track"].shape == (26_640,)
    with np.load(written / "test.npz", allow_pickle=False) as found:
        assert found["x"].shape == (12_630, 32, 32, 3)
