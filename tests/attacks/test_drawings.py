from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unpoison.attacks.drawings import CLEAR, DRAWINGS, PALETTE, drawn, read_png
from unpoison.errors import InputError


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_drawing_is_eight_by_eight_in_known_colours(name: str) -> None:
    rows = DRAWINGS[name]
    assert [len(row) for row in rows] == [8] * 8
    assert set("".join(rows)) <= {CLEAR, *PALETTE}
    colors, alpha = drawn(name)
    assert colors.dtype == np.uint8
    for row in range(8):
        for column in range(8):
            cell = rows[row][column]
            assert alpha[row, column] == (cell != CLEAR)
            if cell != CLEAR:
                assert tuple(colors[row, column].tolist()) == PALETTE[cell]


def test_three_bullet_holes() -> None:
    """Three black holes that do not touch."""
    is_hole = np.array([[cell == "#" for cell in row] for row in DRAWINGS["bullet-holes"]])
    left, holes = {(int(r), int(c)) for r, c in np.argwhere(is_hole)}, 0
    while left:
        holes += 1
        reached = [left.pop()]
        while reached:
            row, column = reached.pop()
            near = {(row + i, column + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
            left -= near
            reached += near
    assert holes == 3


def test_an_unknown_name() -> None:
    with pytest.raises(InputError, match="no drawing 'skull'; choose one of peace, letter-a"):
        drawn("skull")


def test_a_picture_is_scaled(tmp_path: Path) -> None:
    Image.new("RGBA", (50, 20), (10, 20, 30, 51)).save(tmp_path / "plain.png")
    colors, alpha = read_png(tmp_path / "plain.png", size=4)
    assert colors.shape == (4, 4, 3)
    assert (colors == (10, 20, 30)).all()
    assert alpha == pytest.approx(np.full((4, 4), 0.2))


def test_a_picture_without_transparency_is_solid(tmp_path: Path) -> None:
    Image.new("L", (9, 9), 77).save(tmp_path / "gray.png")
    colors, alpha = read_png(tmp_path / "gray.png", size=3)
    assert (colors == 77).all()
    assert (alpha == 1).all()


def test_a_link_to_a_picture_is_followed(tmp_path: Path) -> None:
    Image.new("L", (9, 9), 77).save(tmp_path / "gray.png")
    (tmp_path / "link.png").symlink_to(tmp_path / "gray.png")
    assert read_png(tmp_path / "link.png", size=3)[0].shape == (3, 3, 3)


@pytest.mark.parametrize("size", [0, -3, 100_000])
def test_a_size_out_of_range(size: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"1 to 4096. Got {size}"):
        read_png(tmp_path / "any.png", size=size)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is huge."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "cannot be read"),
        (b"no picture", "cannot be read .*give a PNG picture"),
        (bomb(5000, 3), "5000 x 3 pixels; each side may have at most 4096; shrink"),
        (bomb(60_000, 60_000), "bad.png .*(pixels|bomb)"),
        (bomb(30, 30), "cannot be read"),
    ],
)
def test_an_unreadable_or_hostile_picture(content: bytes, named: str, tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(content)
    with pytest.raises(InputError, match=named):
        read_png(tmp_path / "bad.png", size=8)


def test_only_png(tmp_path: Path) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "photo.png", format="JPEG")
    with pytest.raises(InputError, match=r"photo.png cannot be read"):
        read_png(tmp_path / "photo.png", size=8)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.png cannot be opened"):
        read_png(tmp_path / "none.png", size=8)
    with pytest.raises(InputError, match=r"is a folder; give a file"):
        read_png(tmp_path, size=8)


def test_a_file_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpoison.attacks.drawings.LARGEST_FILE", 10)
    Image.new("RGB", (9, 9)).save(tmp_path / "small.png")
    with pytest.raises(InputError, match="more than the limit of 10"):
        read_png(tmp_path / "small.png", size=8)
