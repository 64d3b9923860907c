from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from unpoison.errors import InputError  # noqa: E402
from unpoison.learners.batches import Resident, as_tensor  # noqa: E402

CPU = torch.device("cpu")
IMAGES = np.random.default_rng(0).integers(0, 256, (20, 16, 24, 3), dtype=np.uint8)


def resident(augmentation: str = "crop", images: Any = IMAGES) -> Resident:
    return Resident(images, device=CPU, augmentation=augmentation)


def test_plain_batches_are_normalised_and_in_order() -> None:
    positions = np.array([7, 3, 3, 19])
    batch = resident().plain(positions)
    assert batch.shape == (4, 3, 16, 24)
    assert batch.dtype == torch.float32
    assert batch.is_contiguous(memory_format=torch.channels_last)
    mean, spread = IMAGES.mean(axis=(0, 1, 2)), IMAGES.std(axis=(0, 1, 2))
    expected = ((IMAGES[positions] - mean) / spread).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(batch.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_the_shape_that_networks_see() -> None:
    assert resident().shape == (3, 16, 24)
    assert Resident(np.zeros((5, 7), dtype=np.float32), device=CPU).shape == (7,)


def shifted(image: Any, down: int, right: int, mirrored: bool) -> Any:
    """By the book: pad, then cut; what is outside is not a number."""
    padded = np.pad(image.astype(float), ((4, 4), (4, 4), (0, 0)), constant_values=np.nan)
    cut = padded[4 + down : 20 + down, 4 + right : 28 + right]
    return cut[:, ::-1] if mirrored else cut


@pytest.mark.parametrize("augmentation", ["crop", "crop-flip"])
def test_varied_batches_are_shifted_copies(augmentation: str) -> None:
    """Each image of the batch is the original, shifted by at most an eighth of its shorter side, and mirrored
    only where that is allowed; the rest is the mean colour, 0 after normalisation."""
    data = resident(augmentation)
    positions = np.arange(20)
    batch = data.varied(positions, np.random.default_rng(5)).permute(0, 2, 3, 1).numpy()
    mean, spread = IMAGES.mean(axis=(0, 1, 2)), IMAGES.std(axis=(0, 1, 2))
    found = []
    for image, result in zip(IMAGES, batch, strict=True):
        matches = [
            (down, right, mirrored)
            for down in range(-2, 3)
            for right in range(-2, 3)
            for mirrored in (False, True)
            if np.allclose(
                np.nan_to_num((shifted(image, down, right, mirrored) - mean) / spread), result, atol=1e-4
            )
        ]
        assert len(matches) == 1
        found += matches
    assert len({match[:2] for match in found}) > 8
    assert {match[2] for match in found} == ({False, True} if augmentation == "crop-flip" else {False})


def test_no_augmentation_leaves_images_alone() -> None:
    data, positions = resident("none"), np.arange(9)
    assert torch.equal(data.varied(positions, np.random.default_rng(0)), data.plain(positions))


def test_variation_follows_its_own_stream() -> None:
    data, positions = resident("crop-flip"), np.arange(20)
    first, again, other = (data.varied(positions, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_rows_are_standardised_and_never_varied() -> None:
    rows = np.random.default_rng(0).normal(5, 3, (50, 4)).astype(np.float32)
    rows[:, 2] = 7.0
    data = Resident(rows, device=CPU, augmentation="crop-flip")
    batch = data.varied(np.arange(50), np.random.default_rng(0)).numpy()
    np.testing.assert_allclose(batch.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(batch.std(axis=0), [1, 1, 0, 1], atol=1e-3)


def test_the_data_is_not_copied_nor_written_to() -> None:
    images = IMAGES.copy()
    images.flags.writeable = False
    assert as_tensor(images).data_ptr() == images.ctypes.data
    before = images.copy()
    data = resident("crop-flip", images)
    data.plain(np.arange(5))
    data.varied(np.arange(5), np.random.default_rng(0))
    assert (images == before).all()


def test_a_memory_map_stays_a_memory_map(tmp_path: Any) -> None:
    path = tmp_path / "x.npy"
    np.save(path, IMAGES)
    mapped = np.load(path, mmap_mode="r")
    assert as_tensor(mapped).data_ptr() == mapped.ctypes.data
    assert torch.equal(resident(images=mapped).plain(np.arange(20)), resident().plain(np.arange(20)))


def test_the_last_pixel_of_the_last_image() -> None:
    """Positions count pixels; nothing may wrap around or reach beyond the end."""
    images = np.zeros((3, 16, 16, 1), dtype=np.uint8)
    images[2] = 200
    batch = resident("crop", images).varied(np.full(64, 2), np.random.default_rng(0))
    brightest = resident("crop", images).plain(np.array([2])).max()
    assert set(batch.unique().tolist()) <= {0.0, brightest.item()}


def test_unknown_augmentation() -> None:
    with pytest.raises(InputError, match="augmentation must be one of none, crop, crop-flip, got 'twirl'"):
        resident("twirl")
