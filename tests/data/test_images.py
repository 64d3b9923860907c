from __future__ import annotations

import io
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

from unpoison.data.images import (
    composite_on_white,
    decode,
    decode_exact,
    decode_preview,
    pillow_guard,
    shorter_side,
    shrink,
)
from unpoison.errors import InputError


@pytest.fixture(autouse=True)
def guard():
    with pillow_guard():
        yield


def encoded(image: Image.Image, form: str = "PNG", **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def read(data: bytes, *, size: int = 4, max_pixels: int = 10_000):
    return decode(data, name="f: 'x'", size=size, max_pixels=max_pixels)


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_bomb(width: int, height: int) -> bytes:
    """A tiny PNG whose header announces a huge gray image, all zeros."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("form", ["PNG", "BMP", "PPM", "TIFF"])
def test_lossless_formats_keep_every_pixel(form):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    result = read(encoded(Image.fromarray(pixels), form))
    np.testing.assert_array_equal(result.pixels, pixels)
    assert not result.gray


@pytest.mark.parametrize("form", ["JPEG", "WEBP", "GIF"])
def test_lossy_formats_are_read(form):
    result = read(encoded(Image.new("RGB", (9, 5), (200, 30, 30)), form))
    assert result.pixels.shape == (4, 4, 3)
    assert np.abs(result.pixels.reshape(-1, 3).mean(axis=0) - [200, 30, 30]).max() < 12


def test_a_gif_gives_its_first_frame():
    frames = [Image.new("RGB", (4, 4), color) for color in ("red", "blue")]
    result = read(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    np.testing.assert_array_equal(result.pixels[0, 0], [255, 0, 0])


@pytest.mark.parametrize("mode", ["1", "L"])
def test_gray_modes_are_gray(mode):
    result = read(encoded(Image.new(mode, (4, 4), 255)))
    assert result.gray
    assert (result.pixels == 255).all()


@pytest.mark.parametrize(("mode", "gray"), [("RGBA", False), ("LA", True)])
def test_alpha_is_composited_on_white(mode, gray):
    clear = Image.new(mode, (4, 4), (0, 0) if mode == "LA" else (0, 0, 0, 0))
    result = read(encoded(clear))
    assert (result.pixels == 255).all()
    assert result.gray == gray


def test_a_palette_with_transparency_is_composited():
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, 0, 0, 255])
    solid, clear = read(encoded(image)), read(encoded(image, transparency=1))
    np.testing.assert_array_equal(solid.pixels[0, 0], [0, 0, 255])
    np.testing.assert_array_equal(clear.pixels[0, 0], [255, 255, 255])


def test_cmyk_becomes_rgb():
    result = read(encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG"))
    assert np.abs(result.pixels[0, 0].astype(int) - [254, 0, 0]).max() < 10


def test_sixteen_bits_are_scaled_not_clipped():
    deep = Image.fromarray(np.array([[0, 65535], [32768, 257]], dtype=np.uint16))
    result = read(encoded(deep), size=2)
    np.testing.assert_array_equal(result.pixels[:, :, 0], [[0, 255], [128, 1]])
    assert result.gray


def test_floating_point_pixels_are_refused():
    with pytest.raises(InputError, match="f: 'x' holds floating-point pixels"):
        read(encoded(Image.new("F", (4, 4), 0.5), "TIFF"))


def test_the_orientation_in_exif_is_applied():
    image = Image.new("RGB", (4, 4), "white")
    image.putpixel((0, 0), (0, 0, 0))
    exif = Image.Exif()
    exif[0x0112] = 3  # turned by 180 degrees
    result = read(encoded(image, exif=exif))
    assert (result.pixels[3, 3] == 0).all()
    assert (result.pixels[0, 0] == 255).all()


def test_broken_exif_does_not_matter():
    data = encoded(Image.new("RGB", (4, 4), "red"), "PNG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    np.testing.assert_array_equal(read(data).pixels[0, 0], [255, 0, 0])


def test_resizing_keeps_the_whole_image():
    wide = np.zeros((10, 40, 3), dtype=np.uint8)
    wide[:, 30:] = 255
    result = read(encoded(Image.fromarray(wide)), size=8)
    assert result.pixels[4, 7].min() > 240
    assert result.pixels[4, 0].max() < 15


def test_a_bomb_is_refused_before_decoding():
    with pytest.raises(
        InputError, match=r"f: 'x' says it is 8000 x 8000 pixels, more than 10,000 \(max_pixels\)"
    ):
        read(png_bomb(8000, 8000))


@pytest.mark.parametrize("side", [12_000, 60_000])
def test_pillows_own_bomb_limits_become_input_errors(side):
    with pytest.raises(InputError, match="f: 'x' looks like a decompression bomb"):
        read(png_bomb(side, side), max_pixels=10**12)


def test_a_jpeg_bomb_is_refused():
    data = bytearray(encoded(Image.new("L", (8, 8)), "JPEG"))
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = struct.pack(">HH", 9000, 9000)
    with pytest.raises(InputError, match="says it is 9000 x 9000 pixels"):
        read(bytes(data), max_pixels=64_000_000)


def test_extremely_long_images_are_refused():
    with pytest.raises(InputError, match="says it is 1000000 x 1 pixels; each side must be 1 to 65535"):
        read(png_bomb(1_000_000, 1), max_pixels=64_000_000)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM"])
@pytest.mark.parametrize("fraction", [0.3, 0.8])
def test_truncated_images_name_the_file(form, fraction):
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(pixels), form)
    with pytest.raises(InputError, match=r"^f: 'x' "):
        read(data[: int(len(data) * fraction)])


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"\x89PNG\r\n\x1a\n", b"%!PS-Adobe-3.0 EPSF-3.0\n", b"\0" * 1000]
)
def test_what_is_no_image_is_refused(data):
    with pytest.raises(InputError, match=r"^f: 'x' "):
        read(data)


def test_formats_off_the_list_are_refused():
    with pytest.raises(InputError, match="is not an image that unpoison reads"):
        read(encoded(Image.new("RGB", (4, 4)), "ICO"))


def test_random_damage_gives_an_image_or_an_input_error():
    rng = np.random.default_rng(0)
    for form in ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP"):
        data = np.frombuffer(encoded(Image.new("RGB", (16, 16), "red"), form), dtype=np.uint8)
        for _ in range(40):
            damaged = data.copy()
            places = rng.integers(0, len(data), 5)
            damaged[places] = rng.integers(0, 256, 5)
            with suppress(InputError):
                read(damaged.tobytes(), max_pixels=1_000_000)


def test_shorter_side_reads_the_header():
    data = encoded(Image.new("RGB", (30, 20)))
    assert shorter_side(io.BytesIO(data), name="x", max_pixels=1000) == 20


def test_previews_are_small_and_keep_proportions():
    assert decode_preview(encoded(Image.new("RGB", (400, 200))), name="x", max_pixels=10**6).shape == (
        64,
        128,
        3,
    )
    assert decode_preview(encoded(Image.new("L", (20, 10))), name="x", max_pixels=10**6).shape == (10, 20)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((8, 8, 1), (8, 8)), ((8, 8, 3), (8, 8, 3)), ((300, 150, 3), (128, 64, 3)), ((256, 256, 1), (128, 128))],
)
def test_shrink(shape, expected):
    assert shrink(np.zeros(shape, dtype=np.uint8)).shape == expected


def test_composite_on_white():
    pixels = np.array([[0, 100, 255, 255], [0, 100, 255, 0], [0, 0, 255, 51]], dtype=np.uint8)
    expected = [[0, 100, 255], [255, 255, 255], [204, 204, 255]]
    np.testing.assert_array_equal(composite_on_white(pixels), expected)


def test_exact_decoding_takes_one_size_only():
    pixels = np.random.default_rng(0).integers(0, 256, (3, 50, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(pixels))
    np.testing.assert_array_equal(decode_exact(data, name="x", width=50, height=3), pixels)
    with pytest.raises(InputError, match="x is 50 x 3 pixels, not 30 x 5"):
        decode_exact(data, name="x", width=30, height=5)
    with pytest.raises(InputError, match="more than 100"):
        decode_exact(data, name="x", width=50, height=2)
