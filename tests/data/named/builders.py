"""Small files in the forms that the publishers of the datasets use, and small datasets to match."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from unpoison.data.named.catalog import CATALOG, Spec
from unpoison.data.named.origins import Origin


def small(name: str, *, n_train: int, n_test: int, origins: tuple[Origin, ...] | None = None) -> Spec:
    """The dataset ``name`` with few samples."""
    spec = replace(CATALOG[name], n_train=n_train, n_test=n_test)
    return spec if origins is None else replace(spec, origins=origins)


SMALL = {
    "cifar10": small("cifar10", n_train=50, n_test=20),
    "gtsrb": small("gtsrb", n_train=86, n_test=86),
    "imagenette": small("imagenette", n_train=20, n_test=20),
    "fashion-mnist": small("fashion-mnist", n_train=30, n_test=20),
}


def images(n: int, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


def labels(n: int, classes: int = 10) -> np.ndarray:
    return np.arange(n) % classes


def png(pixels: np.ndarray, form: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form)
    return stream.getvalue()


def tar(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def make_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


class Python2:
    """Pickles plain values and uint8 arrays, instruction by instruction as Python 2 and numpy did."""

    def __init__(self) -> None:
        self._memo = 0

    def dumps(self, value: object) -> bytes:
        return b"\x80\x02" + self.value(value) + b"."

    def value(self, value: object) -> bytes:
        if isinstance(value, str):
            return self.string(value.encode())
        if isinstance(value, int):
            return self.integer(value)
        if isinstance(value, list):
            batches = [value[i : i + 1000] for i in range(0, len(value), 1000)]
            start = b"]" + self.put()
            return start + b"".join(b"(" + b"".join(map(self.value, batch)) + b"e" for batch in batches)
        if isinstance(value, dict):
            start = b"}" + self.put() + b"("
            return start + b"".join(self.value(part) for pair in value.items() for part in pair) + b"u"
        return self.array(value)

    def put(self) -> bytes:
        self._memo += 1
        return b"q" + bytes([self._memo]) if self._memo < 256 else b"r" + struct.pack("<I", self._memo)

    def string(self, content: bytes) -> bytes:
        if len(content) < 256:
            return b"U" + bytes([len(content)]) + content + self.put()
        return b"T" + struct.pack("<I", len(content)) + content

    @staticmethod
    def integer(number: int) -> bytes:
        if 0 <= number < 256:
            return b"K" + bytes([number])
        return b"M" + struct.pack("<H", number) if 0 <= number < 65536 else b"J" + struct.pack("<i", number)

    def array(self, array: np.ndarray) -> bytes:
        shape = b"".join(map(self.integer, array.shape)) + b"\x86" + self.put()
        made = (
            b"cnumpy.core.multiarray\n_reconstruct\n" + self.put() + b"cnumpy\nndarray\n" + self.put()
            + b"K\x00\x85" + self.put() + self.string(b"b") + b"\x87" + self.put() + b"R" + self.put()
        )  # fmt: skip
        dtype = (
            b"cnumpy\ndtype\n" + self.put() + self.string(b"u1") + b"K\x00K\x01\x87" + self.put() + b"R"
            + self.put() + b"(K\x03" + self.string(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        )  # fmt: skip
        return made + b"(K\x01" + shape + dtype + b"\x89" + self.string(array.tobytes()) + b"tb"


def batch(pixels: np.ndarray, numbers: np.ndarray) -> bytes:
    """One batch of the official CIFAR-10: planes of red, green and blue."""
    planes = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)).reshape(len(pixels), -1)
    return Python2().dumps(
        {
            "batch_label": "training batch 1 of 5",
            "labels": numbers.tolist(),
            "data": planes,
            "filenames": [f"leptodactylus_pentadactylus_s_{i:06d}.png" for i in range(len(pixels))],
        }
    )


def cifar10_arrays() -> dict[str, np.ndarray]:
    return {
        "x_train": images(50, 32, 32, 3), "y_train": labels(50),
        "x_test": images(20, 32, 32, 3, seed=1), "y_test": labels(20)[::-1].copy(),
    }  # fmt: skip


def official_cifar10(path: Path, **changed: bytes) -> Path:
    data = cifar10_arrays()
    members = {"readme.html": b"<html>", "batches.meta": b"\x80\x02}."}
    for i in range(5):
        part = slice(10 * i, 10 * i + 10)
        members[f"data_batch_{i + 1}"] = batch(data["x_train"][part], data["y_train"][part])
    members["test_batch"] = batch(data["x_test"], data["y_test"])
    return tar(path, {f"cifar-10-batches-py/{k}": v for k, v in {**members, **changed}.items() if v})


def npm_cifar10(path: Path, **changed: bytes) -> Path:
    data = cifar10_arrays()
    members = {"package.json": b"{}", "README.md": b"#"}
    for i in range(5):
        members[f"data_batch_{i + 1}.png"] = png(data["x_train"][10 * i : 10 * i + 10].reshape(10, 1024, 3))
    members["test_batch.png"] = png(data["x_test"].reshape(20, 1024, 3))
    members["train_lables.json"] = json.dumps(data["y_train"].tolist()).encode()
    members["test_lables.json"] = json.dumps(data["y_test"].tolist()).encode()
    named = {**members, **{k.replace("__", "."): v for k, v in changed.items()}}
    return tar(path, {f"package/{k}": v for k, v in named.items() if v})


def gtsrb_zips(folder: Path, *, frames: int = 2) -> Path:
    """Three zips: two frames of one track for each class, and two test images of each class."""
    folder.mkdir(exist_ok=True)
    training = {"GTSRB/Readme-Images.txt": b"read me"}
    # backwards, since nobody promises an order
    for c in reversed(range(43)):
        training[f"GTSRB/Training/{c:05d}/GT-{c:05d}.csv"] = b"Filename;Width\r\n"
        for frame in range(frames):
            pixels = np.full((40 + frame, 35, 3), 5 * c + frame, dtype=np.uint8)
            training[f"GTSRB/Training/{c:05d}/{c % 3:05d}_{frame:05d}.ppm"] = png(pixels, "PPM")
    make_zip(folder / "GTSRB-Training_fixed.zip", training)
    test = {
        f"GTSRB/Final_Test/Images/{i:05d}.ppm": png(np.full((30, 30, 3), i, dtype=np.uint8), "PPM")
        for i in range(86)
    }
    make_zip(folder / "GTSRB_Final_Test_Images.zip", {**test, "GTSRB/Final_Test/Images/GT.csv": b"x"})
    rows = [f"{i:05d}.ppm;30;30;5;5;25;25;{i // 2}" for i in range(86)]
    table = "\r\n".join(["Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId", *rows, ""])
    make_zip(folder / "GTSRB_Final_Test_GT.zip", {"GT-final_test.csv": table.encode()})
    return folder


def imagenette_members(top: str = "imagenette2-320") -> dict[str, bytes]:
    members = {f"{top}/noisy_imagenette.csv": b"path", f"{top}/.DS_Store": b"x"}
    for c, class_name in enumerate(CATALOG["imagenette"].class_names):
        wnid = class_name.split()[0]
        for split in ("train", "val"):
            for i in range(2):
                pixels = images(1, 20 + c, 30, 3, seed=100 * c + i + (split == "val") * 10)[0]
                members[f"{top}/{split}/{wnid}/{wnid}_{i}.JPEG"] = png(pixels, "JPEG")
    return members


def idx(array: np.ndarray) -> bytes:
    return (
        struct.pack(f">I{array.ndim}I", 0x800 + array.ndim, *array.shape) + array.astype(np.uint8).tobytes()
    )


def fashion_folder(folder: Path, *, packed: bool = True) -> Path:
    folder.mkdir(exist_ok=True)
    for prefix, n in (("train", 30), ("t10k", 20)):
        files = {"images-idx3": images(n, 28, 28, seed=n), "labels-idx1": labels(n)}
        for name, array in files.items():
            path = folder / f"{prefix}-{name}-ubyte{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(idx(array)) if packed else idx(array))
    return folder
