from __future__ import annotations

import io
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from unpoison.data.npz import open_npz, write_npz
from unpoison.errors import InputError, OutputError

BIG = 2**30


class Evil:
    """Would leave a file behind if it were ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def npy(array: np.ndarray, **options) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def npy_header(shape: str, descr: str = "'|u1'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def archive(path: Path, members: list[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as out:
        for name, content in members:
            out.writestr(name, content)
    return path


def opened(path: Path, *, max_bytes: int = BIG):
    with open_npz(path, path.name, max_bytes=max_bytes) as reader:
        return {key: reader.read(key) for key in reader.headers}


def test_arrays_come_back_as_numpy_wrote_them(tmp_path):
    arrays = {
        "x": np.arange(6, dtype=">i4").reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "names": np.array(["a", "é"]),
        "scalar": np.array(3),
    }
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    found = opened(tmp_path / "a.npz")
    assert list(found) == list(arrays)
    for key, array in arrays.items():
        np.testing.assert_array_equal(found[key], array)
        assert found[key].dtype == array.dtype


ODD_ARRAYS = {
    "x": np.arange(6, dtype=">i4").reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "names": np.array(["a", "é"]),
    "scalar": np.array(3),
    "empty": np.zeros((0, 4)),
}


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_mapped_in_place(tmp_path, compressed):
    write_npz(tmp_path / "a.npz", ODD_ARRAYS.items(), compressed=compressed)
    with open_npz(tmp_path / "a.npz", "a.npz", max_bytes=BIG) as reader:
        found = {key: reader.read(key, in_place=True) for key in reader.headers}
    for key, array in ODD_ARRAYS.items():
        np.testing.assert_array_equal(found[key], array)
        assert found[key].dtype == array.dtype
    assert isinstance(found["x"], np.memmap) is not compressed
    if not compressed:
        assert not found["x"].flags.writeable


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_too_large_for_memory_are_mapped_from_a_copy(tmp_path, compressed, monkeypatch):
    monkeypatch.setattr("unpoison.data.npz.largest_in_memory", lambda: 20)
    monkeypatch.setattr("unpoison.data.memory.largest_in_memory", lambda: 20)
    write_npz(tmp_path / "a.npz", ODD_ARRAYS.items(), compressed=compressed)
    found = opened(tmp_path / "a.npz")
    for key, array in ODD_ARRAYS.items():
        np.testing.assert_array_equal(found[key], array)
    assert isinstance(found["x"], np.memmap)
    assert not isinstance(found["names"], np.memmap)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    touched = tmp_path / "touched"
    np.savez(tmp_path / "a.npz", x=np.array([Evil(touched)], dtype=object), y=np.zeros(1))
    with pytest.raises(InputError, match=r"a.npz: the array 'x' has dtype object, .* refuses it"):
        opened(tmp_path / "a.npz")
    assert not touched.exists()


def test_a_bare_pickle_as_member_is_refused(tmp_path):
    path = archive(tmp_path / "a.npz", [("x.npy", npy(np.zeros(2))), ("run.pkl", b"cos\nsystem\n")])
    with pytest.raises(InputError, match=r"the member run.pkl is not an .npy array"):
        opened(path)


def test_a_zip_bomb_is_refused_by_its_directory(tmp_path):
    path = archive(tmp_path / "a.npz", [("x.npy", b"\0" * 5_000_000)])
    assert path.stat().st_size < 10_000
    with pytest.raises(InputError, match=r"a.npz: needs about 5,000,000 bytes .* limit of 1,000,000"):
        opened(path, max_bytes=1_000_000)


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(9, 9)", "(1,)"])
def test_a_header_that_lies_about_its_size_is_refused(tmp_path, shape):
    path = archive(tmp_path / "a.npz", [("x.npy", npy_header(shape) + b"\0" * 10)])
    with pytest.raises(InputError, match=r"the array 'x' says shape .* are stored"):
        opened(path)


@pytest.mark.parametrize("name", ["../x.npy", "/x.npy", "a/../../x.npy", "..\\x.npy"])
def test_paths_out_of_the_archive_are_refused(tmp_path, name):
    path = archive(tmp_path / "a.npz", [(name, npy(np.zeros(2)))])
    with pytest.raises(InputError, match="leads out of the archive"):
        opened(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_members_are_refused(tmp_path):
    path = archive(tmp_path / "a.npz", [("x.npy", npy(np.zeros(2))), ("x.npy", npy(np.ones(2)))])
    with pytest.raises(InputError, match=r"'x.npy' occurs more than once"):
        opened(path)


def test_unusual_compression_is_refused(tmp_path):
    path = archive(tmp_path / "a.npz", [("x.npy", npy(np.zeros(2)))], zipfile.ZIP_LZMA)
    with pytest.raises(InputError, match="encrypted or packed"):
        opened(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not an array",
        b"\x93NUMPY\x09\x00" + b"\0" * 100,
        npy_header("(2,)", "'O'") + b"cos\nsystem\n",
        npy_header("(2,)", "__import__('os')") + b"\0\0",
        npy_header("'text'") + b"\0\0",
        npy_header("(-1,)") + b"\0\0",
    ],
)
def test_broken_members_are_input_errors(tmp_path, content):
    path = archive(tmp_path / "a.npz", [("x.npy", content)])
    with pytest.raises(InputError, match=r"a.npz: the array 'x'"):
        opened(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"hello" * 100])
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"a.npz cannot be read .* not an .npz archive"):
        opened(tmp_path / "a.npz")


def test_damage_anywhere_gives_arrays_or_an_input_error(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(50), y=np.arange(50) % 3)
    data = np.frombuffer((tmp_path / "a.npz").read_bytes(), dtype=np.uint8)
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = data.copy()
        damaged[rng.integers(0, len(data), 3)] = rng.integers(0, 256, 3)
        (tmp_path / "b.npz").write_bytes(damaged.tobytes())
        with suppress(InputError):
            opened(tmp_path / "b.npz")


@pytest.mark.parametrize("compressed", [True, False])
def test_writing_is_deterministic_and_numpy_reads_it(tmp_path, compressed):
    arrays = {"x": np.arange(6).reshape(2, 3), "y": np.array(["a", "b"])}
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, arrays.items(), compressed=compressed)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["x"], arrays["x"])
        np.testing.assert_array_equal(found["y"], arrays["y"])


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"mine")
    with pytest.raises(OutputError, match="cannot write"):
        write_npz(tmp_path / "a.npz", [("x", np.zeros(1))], compressed=False)
    assert (tmp_path / "a.npz").read_bytes() == b"mine"
