from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unpoison.attacks import overlays
from unpoison.attacks.overlays import Blend, Pieces, Signal, Warp
from unpoison.attacks.triggers import Patch
from unpoison.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 12, 10, 3), dtype=np.uint8)
SMOOTH = (10 * np.arange(16) + np.arange(16)[:, None]).astype(np.uint8)[None, :, :, None]


class TestBlend:
    def test_a_weighted_mean_of_image_and_pattern(self) -> None:
        pattern = np.random.default_rng(1).integers(0, 256, (12, 10, 3), dtype=np.uint8)
        marked = Blend(pattern, 0.25)(IMAGES)
        assert np.abs(marked - (0.75 * IMAGES + 0.25 * pattern)).max() <= 0.51

    def test_noise_depends_on_the_seed_alone(self) -> None:
        assert Blend.noise(3) == Blend.noise(3)
        assert Blend.noise(3) != Blend.noise(4)
        assert Blend.noise(3).pattern.shape == (32, 32, 3)
        assert Blend.noise(3).pattern.std() > 60

    def test_scaled_to_the_images(self) -> None:
        pattern = np.repeat(np.array([[[0, 0, 0]], [[200, 200, 200]]], np.uint8), 2, axis=1)
        marked = Blend(pattern, 1.0)(np.zeros((1, 10, 6, 3), np.uint8))
        assert marked.shape == (1, 10, 6, 3)
        assert (marked[0, 0] == 0).all()
        assert (marked[0, -1] == 200).all()

    def test_gray_images_get_the_mean_shade(self) -> None:
        pattern = np.full((4, 4, 3), (10, 20, 90), np.uint8)
        assert (Blend(pattern, 0.5)(np.zeros((1, 4, 4, 1), np.uint8)) == 20).all()

    def test_from_a_picture(self, tmp_path: Path) -> None:
        Image.new("RGBA", (20, 20), (200, 100, 0, 255)).save(tmp_path / "solid.png")
        marked = Blend.from_png(tmp_path / "solid.png", ratio=0.5)(np.zeros((1, 8, 8, 3), np.uint8))
        assert (marked == (100, 50, 0)).all()

    def test_bad_options(self) -> None:
        with pytest.raises(InputError, match=r"ratio is .* Got 0.0"):
            Blend.noise(0, ratio=0.0)
        with pytest.raises(InputError, match=r"at least 1. Got 0"):
            Blend.noise(0, size=0)
        with pytest.raises(InputError, match=r"got uint8 of shape \(4, 4\)"):
            Blend(np.zeros((4, 4), np.uint8))


class TestSignal:
    def test_the_same_wave_in_every_row(self) -> None:
        gray = np.full((2, 5, 32, 3), 128, dtype=np.uint8)
        change = Signal(delta=20, frequency=4)(gray).astype(int) - 128
        assert (change == change[0, 0, :, 0][None, None, :, None]).all()
        # four waves in 32 columns: from the first column on, 45 degrees a column
        assert change[0, 0, :8, 0].tolist() == [14, 20, 14, 0, -14, -20, -14, 0]
        assert (change[0, 0, :8] == change[0, 0, 24:]).all()

    def test_it_stays_within_the_range(self) -> None:
        for level in (0, 255):
            flat = np.full((1, 4, 32, 1), level, np.uint8)
            marked = Signal(delta=60)(flat).astype(int)
            assert abs(marked - level).max() == 60

    def test_bad_options(self) -> None:
        with pytest.raises(InputError, match=r"delta .* Got 0"):
            Signal(delta=0)
        with pytest.raises(InputError, match=r"frequency .* Got -1"):
            Signal(frequency=-1)
        with pytest.raises(InputError, match="6 waves do not fit into images of 12 by 10"):
            Signal()(IMAGES)


class TestWarp:
    def test_pixels_are_mixed_of_their_neighbours(self) -> None:
        """On a plane a smooth bend of a fraction of a pixel moves values by as much as the slope says."""
        moved = Warp(0, strength=0.5)(SMOOTH).astype(int) - SMOOTH
        assert 0 < np.abs(moved).mean() < 6
        assert np.abs(moved).max() <= 15

    def test_a_flat_image_stays_flat(self) -> None:
        flat = np.full((2, 9, 7, 3), 131, np.uint8)
        assert (Warp(1, strength=4.0)(flat) == 131).all()

    def test_stronger_is_further(self) -> None:
        weak, strong = (np.abs(Warp(2, s)(SMOOTH).astype(int) - SMOOTH).mean() for s in (0.5, 3.0))
        assert strong > 3 * weak

    def test_the_same_field_for_every_image(self) -> None:
        warp = Warp(0, 2.0)
        assert (warp(IMAGES) == np.concatenate([warp(IMAGES[i : i + 1]) for i in range(6)])).all()
        assert (warp(IMAGES) != Warp(1, 2.0)(IMAGES)).any()

    def test_as_torch_samples(self) -> None:
        """The field as the WaNet authors make and use it: bicubic, then bilinear sampling, ends on ends."""
        torch = pytest.importorskip("torch")
        from torch.nn import functional

        from unpoison.seeds import Seeds

        warp, (height, width) = Warp(5, strength=2.0, grid=4), IMAGES.shape[1:3]
        field = Seeds(5).stream("warp").uniform(-1, 1, size=(2, 4, 4))
        field = torch.from_numpy(field / np.abs(field).mean())[None]
        smooth = functional.interpolate(field, (height, width), mode="bicubic", align_corners=True)[0]
        rows, columns = torch.meshgrid(
            torch.linspace(-1, 1, height, dtype=torch.float64),
            torch.linspace(-1, 1, width, dtype=torch.float64),
            indexing="ij",
        )
        places = torch.stack([columns + 2.0 * smooth[1] / height, rows + 2.0 * smooth[0] / height], dim=2)
        bent = functional.grid_sample(
            torch.from_numpy(IMAGES.astype(np.float64)).permute(0, 3, 1, 2),
            places.clamp(-1, 1).expand(6, height, width, 2),
            align_corners=True,
        )
        assert np.abs(warp(IMAGES) - bent.permute(0, 2, 3, 1).numpy()).max() < 0.51

    def test_bad_options(self) -> None:
        with pytest.raises(InputError, match=r"strength .* Got 0"):
            Warp(0, strength=0)
        with pytest.raises(InputError, match=r"grid .* Got 1"):
            Warp(0, grid=1)
        with pytest.raises(InputError, match="11 by 11 points does not fit into images of 12 by 10"):
            Warp(0, grid=11)(IMAGES)


class TestPieces:
    BLACK = np.zeros((400, 8, 8, 1), np.uint8)

    def test_exactly_the_share_of_whole_pieces_of_each_image(self) -> None:
        shown = Pieces(Patch(size=8), seed=0, share=0.5, grid=2)(self.BLACK)[..., 0] == 255
        pieces = shown.reshape(400, 2, 4, 2, 4)
        assert (pieces == pieces[:, :, :1, :, :1]).all(), "a piece shows the trigger or does not"
        assert (pieces[:, :, 0, :, 0].sum(axis=(1, 2)) == 2).all()
        assert len(np.unique(shown.reshape(400, -1), axis=0)) == 6, "different pieces on different images"

    def test_all_pieces_are_the_whole(self) -> None:
        assert (Pieces(Patch(size=8), seed=0, share=1.0)(self.BLACK) == 255).all()

    def test_bad_options(self) -> None:
        with pytest.raises(InputError, match=r"share .* Got 2"):
            Pieces(Patch(), 0, share=2)
        with pytest.raises(InputError, match=r"grid .* Got 0"):
            Pieces(Patch(), 0, grid=0)
        with pytest.raises(InputError, match="9 by 9 pieces do not fit into images of 8 by 8"):
            Pieces(Patch(), 0, grid=9)(self.BLACK)


@pytest.mark.parametrize("trigger", [Blend.noise(0), Signal(frequency=3), Warp(0, 2.0)])
def test_blocks_change_nothing(trigger: Blend | Signal | Warp, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trigger(IMAGES)
    monkeypatch.setattr(overlays, "BLOCK", 4)
    assert (trigger(IMAGES) == whole).all()
