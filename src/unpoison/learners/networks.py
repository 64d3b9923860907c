"""The paper's networks, and a small one for machines without a GPU.

Every builder takes the shape of an input, ``(channels, height, width)``, and the number of classes. All end
in global average pooling, so any size from 28 to 224 pixels goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from unpoison.errors import InputError
from unpoison.learners.defaults import SMALLEST_SIDE
from unpoison.learners.winograd import MapConv, MapNorm, grouped

NetworkBuilder: TypeAlias = Callable[[tuple[int, ...], int], nn.Module]
"""From the shape of one input and the number of classes to an untrained network that gives class scores."""


class ConvNormRelu(nn.Sequential):
    """A 3 x 3 convolution, batch normalisation, and a rectifier."""

    def __init__(self, inside: int, outside: int, *, stride: int = 1) -> None:
        super().__init__(
            _conv3(inside, outside, stride=stride),
            nn.BatchNorm2d(outside),
            nn.ReLU(inplace=True),
        )


class Residual(nn.Module):
    """``x + f(x)``."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, inputs: Tensor) -> Tensor:
        """Add the branch to its input."""
        result: Tensor = inputs + self.branch(inputs)
        return result


class PreActBlock(nn.Module):
    """The pre-activation residual block (He et al., 2016b): normalise, rectify, convolve, twice."""

    def __init__(self, inside: int, outside: int, *, stride: int = 1) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inside)
        self.conv1 = _conv3(inside, outside, stride=stride)
        self.norm2 = nn.BatchNorm2d(outside)
        self.conv2 = _conv3(outside, outside)
        self.shortcut: nn.Module | None = None
        if stride != 1 or inside != outside:
            self.shortcut = nn.Conv2d(inside, outside, 1, stride=stride, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """The block's output; the projection, where there is one, sees the activated input."""
        active = functional.relu(self.norm1(inputs))
        kept = inputs if self.shortcut is None else self.shortcut(active)
        inner = functional.relu(self.norm2(self.conv1(active)))
        result: Tensor = self.conv2(inner) + kept
        return result


class PreActResNet(nn.Module):
    """PreActResNet for thumbnails: four stages of two blocks are PreActResNet-18."""

    def __init__(self, shape: tuple[int, ...], n_classes: int, *, blocks: tuple[int, ...]) -> None:
        super().__init__()
        self.stem = _conv3(shape[0], 64)
        stages: list[nn.Module] = []
        inside = 64
        for stage, count in enumerate(blocks):
            outside = 64 * 2**stage
            for number in range(count):
                stages.append(PreActBlock(inside, outside, stride=2 if stage and not number else 1))
                inside = outside
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(inside, n_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Class scores. As in the paper's code, nothing is normalised after the last block."""
        scores: Tensor = self.head(_pooled(self.stages(self.stem(inputs))))
        return scores


class BasicBlock(nn.Module):
    """The residual block for CIFAR (He et al., 2016a) with a shortcut that has no parameters (option A)."""

    def __init__(self, inside: int, outside: int, *, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = _conv3(inside, outside, stride=stride)
        self.norm1 = nn.BatchNorm2d(outside)
        self.conv2 = _conv3(outside, outside)
        self.norm2 = nn.BatchNorm2d(outside)
        self.stride = stride
        self.widening = outside - inside

    def forward(self, inputs: Tensor) -> Tensor:
        """The block's output."""
        inner = functional.relu(self.norm1(self.conv1(inputs)))
        result: Tensor = functional.relu(self.norm2(self.conv2(inner)) + self._shortcut(inputs))
        return result

    def _shortcut(self, inputs: Tensor) -> Tensor:
        """Every second pixel, and channels of zeros on both sides."""
        if self.stride == 1 and not self.widening:
            return inputs
        before = self.widening // 2
        thinned = inputs[:, :, :: self.stride, :: self.stride]
        return functional.pad(thinned, (0, 0, 0, 0, before, self.widening - before))


class ThumbnailResNet(nn.Module):
    """ResNet for CIFAR with ``6 * blocks + 2`` layers: 32 with 5 blocks a stage, 56 with 9."""

    def __init__(self, shape: tuple[int, ...], n_classes: int, *, blocks: int) -> None:
        super().__init__()
        self.stem = ConvNormRelu(shape[0], 16)
        stages: list[nn.Module] = []
        inside = 16
        for stage, outside in enumerate((16, 32, 64)):
            for number in range(blocks):
                stages.append(BasicBlock(inside, outside, stride=2 if stage and not number else 1))
                inside = outside
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(64, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        """Class scores."""
        scores: Tensor = self.head(_pooled(self.stages(self.stem(inputs))))
        return scores


class Compact(nn.Module):
    """A residual network for CPUs, made of the shapes that they are fast at.

    Pixels are regrouped into channels, not convolved at full resolution: convolutions of three channels leave
    most of a processor idle. Most of the work is done by few, wide convolutions of small maps, as matrix
    products (:mod:`unpoison.learners.winograd`). Images above 64 pixels are regrouped by 4, above 128 by 8.
    Each image is brought to mean 0 and spread 1 first: photographs of one thing differ most in their light.
    """

    place_axes = (0, 1)
    """Where the height and width of its maps are."""

    def __init__(self, shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        regroup = 2 if max(shape[1:]) <= 64 else 4 if max(shape[1:]) <= 128 else 8
        self.stem = nn.Sequential(
            _EvenLight(),
            _EvenSides(regroup),
            nn.PixelUnshuffle(regroup),
            ConvNormRelu(shape[0] * regroup**2, 32),
            Residual(ConvNormRelu(32, 32)),
        )
        self.stages = nn.Sequential(
            _Merge(32, 64),
            _map_residual(64),
            _Merge(64, 128),
            _map_residual(128),
        )
        self.head = nn.Linear(128, n_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Class scores."""
        maps = self.stem(inputs).permute(2, 3, 0, 1)
        scores: Tensor = self.head(self.stages(maps).mean(dim=(0, 1)))
        return scores


class _Merge(nn.Module):
    """Halves the maps: every 2 x 2 pixels become one, through a matrix, normalisation and a rectifier."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.matrix = nn.Linear(4 * inside, outside, bias=False)
        self.norm = MapNorm(outside)

    def forward(self, maps: Tensor) -> Tensor:
        return functional.relu(self.norm(self.matrix(grouped(maps))), inplace=True)


class _EvenLight(nn.Module):
    """Each image to mean 0 and spread 1; nearly even ones are not blown up."""

    def forward(self, inputs: Tensor) -> Tensor:
        _, channels, height, width = inputs.shape
        # as long rows in the order of memory: faster than over three dimensions
        rows = inputs.permute(0, 2, 3, 1).flatten(1)
        even = functional.layer_norm(rows, rows.shape[1:], eps=0.05)
        return even.view(-1, height, width, channels).permute(0, 3, 1, 2)


class _EvenSides(nn.Module):
    """Pads height and width with zeros to multiples of ``unit``."""

    def __init__(self, unit: int) -> None:
        super().__init__()
        self.unit = unit

    def forward(self, inputs: Tensor) -> Tensor:
        below, right = -inputs.shape[2] % self.unit, -inputs.shape[3] % self.unit
        return functional.pad(inputs, (0, right, 0, below)) if below or right else inputs


def compact(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """The default without a GPU."""
    return Compact(_image_shape(shape), n_classes)


def preactresnet18(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """PreActResNet-18, 11.17 million parameters for CIFAR-10: the paper's network for CIFAR-10."""
    return PreActResNet(_image_shape(shape), n_classes, blocks=(2, 2, 2, 2))


def resnet32(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """ResNet-32, 0.46 million parameters: the paper's network for GTSRB."""
    return ThumbnailResNet(_image_shape(shape), n_classes, blocks=5)


def resnet56(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """ResNet-56, 0.85 million parameters: the paper's network for Imagenette."""
    return ThumbnailResNet(_image_shape(shape), n_classes, blocks=9)


NETWORKS: dict[str, NetworkBuilder] = {
    "compact": compact,
    "preactresnet18": preactresnet18,
    "resnet32": resnet32,
    "resnet56": resnet56,
}

SPECTRAL_LAYERS = {"preactresnet18": "stages.6", "resnet32": "stages.12"}
"""Where Spectral Signatures and Activation Clustering look, by the paper's appendix: the input to the first
block of the fourth stage, and to the third block of the third. (The code of Tran et al., which the latter is
taken from, counts its blocks from 0.) Any other network is asked for the input of its last linear layer."""


def _image_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) != 3:
        raise InputError(f"this network takes images, not samples of shape {shape}; choose another learner")
    if min(shape[1:]) < SMALLEST_SIDE:
        raise InputError(
            f"this network takes images of at least {SMALLEST_SIDE} pixels a side, "
            f"got {shape[1]} x {shape[2]}; choose another learner, or scale the images up"
        )
    return shape


def _map_residual(channels: int) -> Residual:
    steps = [(MapConv(channels, channels), MapNorm(channels), nn.ReLU(inplace=True)) for _ in range(2)]
    return Residual(nn.Sequential(*(step for steps_of_one in steps for step in steps_of_one)))


def _conv3(inside: int, outside: int, *, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False)


def _pooled(maps: Tensor) -> Tensor:
    return torch.mean(maps, dim=(2, 3))
