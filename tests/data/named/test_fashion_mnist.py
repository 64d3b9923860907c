from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from unpoison.data.named import fashion_mnist
from unpoison.data.named.catalog import CATALOG
from unpoison.errors import InputError
from unpoison.events import Progress, ignore

from .builders import SMALL, fashion_folder, idx, images, labels

SPEC = SMALL["fashion-mnist"]
DEBIAN = Path("/usr/share/datasets/fashion-mnist")


def convert(given: Path, folder: Path, spec=SPEC, listener=ignore):
    return fashion_mnist.convert(given, folder, spec=spec, listener=listener)


@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_become_arrays(tmp_path, written, packed):
    events: list[Progress] = []
    sources = convert(fashion_folder(tmp_path / "in", packed=packed), written, listener=events.append)
    assert len(sources) == 4
    assert not any(source.official for source in sources)
    assert events[-1].done == events[-1].total
    for split, n in (("train", 30), ("test", 20)):
        with np.load(written / f"{split}.npz", allow_pickle=False) as found:
            np.testing.assert_array_equal(found["x"][..., 0], images(n, 28, 28, seed=n))
            assert found["x"].shape == (n, 28, 28, 1)
            np.testing.assert_array_equal(found["y"], labels(n))
            assert found["class_names"][0] == "T-shirt/top"


def test_a_missing_file_is_named(tmp_path, written):
    (fashion_folder(tmp_path / "in") / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(InputError, match=r"in: holds no t10k-labels-idx1-ubyte.gz; give the folder with"):
        convert(tmp_path / "in", written)
    with pytest.raises(InputError, match=r"holds no train-images"):
        convert(tmp_path / "absent", written)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\x08\x03",
        idx(images(29, 28, 28)),
        idx(images(30, 27, 28)),
        idx(images(30, 28, 28))[:-1],
        idx(images(30, 784)),
        b"\0\0\x0d" + idx(images(30, 28, 28))[3:],
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path, written, content):
    folder = fashion_folder(tmp_path / "in")
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
    with pytest.raises(
        InputError, match=r"train-images-idx3-ubyte.gz: .* are no idx file of shape \(30, 28, 28\)"
    ):
        convert(folder, written)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, written):
    folder = fashion_folder(tmp_path / "in")
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(10_000_000)))
    with pytest.raises(InputError, match=r"holds more than the 46 bytes it should"):
        convert(folder, written)


def test_labels_that_are_no_classes_are_refused(tmp_path, written):
    folder = fashion_folder(tmp_path / "in")
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels(30, 11))))
    with pytest.raises(InputError, match="train labels are not all whole numbers from 0 to 9"):
        convert(folder, written)


def test_debians_files_are_known_by_their_content(written):
    if not DEBIAN.is_dir():
        pytest.skip(f"Debian's package dataset-fashion-mnist is not installed ({DEBIAN})")
    sources = convert(DEBIAN, written, spec=CATALOG["fashion-mnist"])
    assert all(source.official for source in sources)
    with np.load(written / "train.npz", allow_pickle=False) as found:
        assert found["x"].shape == (60_000, 28, 28, 1)
        assert np.bincount(found["y"]).tolist() == [6000] * 10
