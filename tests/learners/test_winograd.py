from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from unpoison.learners.networks import compact  # noqa: E402
from unpoison.learners.winograd import MapConv, MapNorm, convolve, grouped  # noqa: E402

SIDES = [(4, 4), (8, 8), (1, 1), (3, 9), (7, 6), (16, 14)]


def as_images(maps: Tensor) -> Tensor:
    return maps.permute(2, 3, 0, 1)


def inputs(height: int, width: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(height * 100 + width)
    maps = torch.randn(height, width, 3, 5, generator=generator, dtype=dtype)
    weight = torch.randn(7, 5, 3, 3, generator=generator, dtype=dtype)
    return maps.requires_grad_(), weight.requires_grad_()


@pytest.mark.parametrize(("height", "width"), SIDES)
def test_is_the_convolution_and_so_are_its_gradients(height: int, width: int) -> None:
    maps, weight = inputs(height, width)
    fast = convolve(maps, weight)
    direct = nn.functional.conv2d(as_images(maps), weight, padding=1)
    torch.testing.assert_close(as_images(fast), direct)
    upstream = torch.randn(direct.shape, dtype=direct.dtype, generator=torch.Generator().manual_seed(0))
    ours = torch.autograd.grad((as_images(fast) * upstream).sum(), (maps, weight))
    theirs = torch.autograd.grad((direct * upstream).sum(), (maps, weight))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_single_precision_loses_the_last_bits_only() -> None:
    maps = torch.randn(8, 8, 16, 64, generator=torch.Generator().manual_seed(1))
    layer = MapConv(64, 64).requires_grad_(False)
    direct = nn.functional.conv2d(as_images(maps), layer.weight, padding=1)
    error = (as_images(layer(maps)) - direct).abs().max() / direct.abs().max()
    assert 0 < float(error) < 1e-4


def test_gradients_of_gradients() -> None:
    """Attacks that match gradients differentiate twice."""
    maps, weight = inputs(5, 4)
    assert torch.autograd.gradgradcheck(convolve, (maps, weight), fast_mode=True)


def test_first_used_without_gradients_then_with() -> None:
    """The constants are kept, whatever mode they were first made in."""
    maps, weight = inputs(11, 10)  # a size that no other test uses
    with torch.inference_mode(), torch.device("meta"):
        convolve(maps.detach().clone(), weight.detach().clone())
    convolve(maps, weight).sum().backward()
    assert maps.grad is not None


def test_lower_precision_takes_the_direct_way() -> None:
    """Half of the digits are not enough for the constants of the transforms."""
    layer, maps = (
        MapConv(64, 64).requires_grad_(False),
        torch.randn(8, 8, 4, 64, generator=torch.Generator().manual_seed(2)),
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = layer(maps)
    assert low.dtype == torch.bfloat16
    full = layer(maps)
    assert float((low - full).abs().max() / full.abs().max()) < 0.02


def test_normalises_each_channel_over_all_else() -> None:
    maps = torch.randn(3, 4, 5, 6, generator=torch.Generator().manual_seed(3)) * 7 + 2
    twin = nn.BatchNorm2d(6)
    torch.testing.assert_close(as_images(MapNorm(6)(maps)), twin(as_images(maps)))


@pytest.mark.parametrize(("height", "width"), [(4, 6), (5, 6), (4, 3), (1, 1)])
def test_groups_of_four_pixels(height: int, width: int) -> None:
    maps = torch.arange(height * width * 2 * 3, dtype=torch.float32).view(height, width, 2, 3)
    result = grouped(maps)
    assert result.shape == (-(-height // 2), -(-width // 2), 2, 12)
    assert result.sum() == maps.sum()
    assert result[0, 0, 1, :3].tolist() == maps[0, 0, 1].tolist()
    if width > 1:
        assert result[0, 0, 1, 3:6].tolist() == maps[0, 1, 1].tolist()
    if height > 1:
        assert result[0, 0, 1, 6:9].tolist() == maps[1, 0, 1].tolist()


def test_one_image_is_judged_as_in_company() -> None:
    network = compact((3, 32, 32), 10).eval()
    images = torch.randn(9, 3, 32, 32, generator=torch.Generator().manual_seed(4))
    with torch.inference_mode():
        torch.testing.assert_close(network(images[:1]), network(images)[:1], rtol=1e-3, atol=1e-4)
