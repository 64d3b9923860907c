from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from unpoison.data import memory
from unpoison.data.memory import room_for
from unpoison.errors import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_small_arrays_are_in_memory(folder: Path) -> None:
    array = room_for((3, 4, 4, 3), mapped_above=144)
    assert not isinstance(array, np.memmap)
    assert list(folder.iterdir()) == []


def test_large_arrays_are_in_a_file_that_goes_with_them(folder: Path) -> None:
    array = room_for((3, 4, 4, 3), mapped_above=143)
    assert isinstance(array, np.memmap)
    assert (array.shape, array.dtype) == ((3, 4, 4, 3), np.uint8)
    array[1] = 7
    (file,) = folder.iterdir()
    assert file.stat().st_size == 144
    assert file.stat().st_mode & 0o077 == 0
    part = array[1:]
    del array
    gc.collect()
    assert part.max() == 7
    del part
    gc.collect()
    assert list(folder.iterdir()) == []


def test_the_limit_is_a_quarter_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}.__getitem__)
    assert memory.largest_in_memory() == 1_024_000
    monkeypatch.delattr(os, "sysconf")
    assert memory.largest_in_memory() == float("inf")
    assert not isinstance(room_for((10,)), np.memmap)


def test_no_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "memmap", full)
    with pytest.raises(InputError, match=r"no room for 30 bytes .*No space left.*set TMPDIR"):
        room_for((10, 3), mapped_above=1)
    assert list(folder.iterdir()) == []
