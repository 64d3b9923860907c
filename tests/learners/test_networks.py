from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from unpoison.errors import InputError  # noqa: E402
from unpoison.learners.defaults import NETWORK_NAMES  # noqa: E402
from unpoison.learners.networks import NETWORKS  # noqa: E402
from unpoison.learners.recipes import recipe_for  # noqa: E402

LITERATURE = {"preactresnet18": 11.17, "resnet32": 0.46, "resnet56": 0.85}
"""Millions of parameters for ten classes of colour images."""


def parameters(network: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def test_every_name_has_a_network() -> None:
    assert tuple(NETWORKS) == NETWORK_NAMES


@pytest.mark.parametrize("name", LITERATURE)
def test_parameters_as_in_the_literature(name: str) -> None:
    assert round(parameters(NETWORKS[name]((3, 32, 32), 10)) / 1e6, 2) == LITERATURE[name]


def test_the_number_of_weighted_layers_is_in_the_name() -> None:
    """Convolutions and the head; projections on shortcuts are not counted by convention."""
    for name, layers in (("resnet32", 32), ("resnet56", 56), ("preactresnet18", 18)):
        network = NETWORKS[name]((3, 32, 32), 10)
        weighted = [
            m for m in network.modules() if isinstance(m, torch.nn.Conv2d) and m.kernel_size == (3, 3)
        ]
        assert len(weighted) + 1 == layers, name


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("side", [16, 28, 33, 50])
def test_one_score_a_class_at_any_size(name: str, side: int) -> None:
    network = NETWORKS[name]((3, side, side), 7).eval()
    with torch.inference_mode():
        assert network(torch.zeros(2, 3, side, side)).shape == (2, 7)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("channels", "n_classes", "shape"), [(1, 2, (28, 28)), (4, 43, (32, 48))])
def test_any_channels_and_classes(name: str, channels: int, n_classes: int, shape: tuple[int, int]) -> None:
    network = NETWORKS[name]((channels, *shape), n_classes).eval()
    with torch.inference_mode():
        assert network(torch.zeros(3, channels, *shape)).shape == (3, n_classes)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("side", "n"), [(32, 8), (112, 3), (224, 2)])
def test_a_few_real_steps(name: str, side: int, n: int) -> None:
    """Gradients reach every parameter, steps of the network's own recipe change them and lower the loss."""
    torch.manual_seed(0)
    network = NETWORKS[name]((3, side, side), 5).to(memory_format=torch.channels_last)
    inputs = torch.randn(n, 3, side, side).contiguous(memory_format=torch.channels_last)
    targets = torch.arange(n) % 5
    recipe = recipe_for(name)
    optimizer = torch.optim.SGD(network.parameters(), lr=min(recipe.learning_rate, 0.02), momentum=0.9)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    losses = []
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(network(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        for parameter_name, parameter in network.named_parameters():
            assert parameter.grad is not None, parameter_name
            assert torch.isfinite(parameter.grad).all(), parameter_name
            assert (parameter.grad != 0).any(), parameter_name
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert all((old != new).any() for old, new in zip(before, network.parameters(), strict=True))


def test_the_head_and_the_stem_are_all_that_depends_on_the_data() -> None:
    for name, build in NETWORKS.items():
        few, many = parameters(build((3, 32, 32), 10)), parameters(build((3, 32, 32), 11))
        gray = parameters(build((1, 32, 32), 10))
        assert 0 < many - few < 600, name
        assert 0 < few - gray < 4000, name


def test_compact_does_not_mind_the_light() -> None:
    """A darker copy of an image gets nearly the same scores."""
    torch.manual_seed(0)
    network = NETWORKS["compact"]((3, 32, 32), 10).eval()
    image = torch.randn(1, 3, 32, 32) * 5
    with torch.inference_mode():
        scores, darker = network(image), network(image * 0.5 - 2)
    assert torch.allclose(scores, darker, atol=0.05 * float(scores.abs().max()))


@pytest.mark.parametrize("name", NETWORKS)
def test_what_they_cannot_take(name: str) -> None:
    with pytest.raises(InputError, match=r"at least 16 pixels a side, got 8 x 8; choose another learner"):
        NETWORKS[name]((1, 8, 8), 10)
    with pytest.raises(InputError, match=r"takes images, not samples of shape \(20,\)"):
        NETWORKS[name]((20,), 10)
