"""A small generative adversarial network, to move images toward another class in its latent space.

Generator and discriminator learn against each other; an encoder learns the way back, from generated pairs of
latent and image (whose latents are known) and from real images, which encoder and generator together must
give back. It is made to be trained in minutes: what it gives back is blurry, far from the official images of
Turner et al. (2018). The blur alone makes images harder to recognize, and is a mark of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from unpoison.attacks.base import Samples
from unpoison.attacks.reference import AT_ONCE
from unpoison.errors import InputError
from unpoison.learners.devices import choose_device, steady
from unpoison.seeds import Seeds
from unpoison.types import IndexArray

LATENT = 96
"""Numbers that stand for an image."""
WIDTH = 32
"""Channels of the maps at half the size of the image; they double where the size halves."""
SMALLEST_MAP = 4
BATCH = 64
RATE = 4e-4
GIVEN_BACK = 20.0
"""Weight of giving real images back, beside the game with the discriminator."""
REFINING_RATE = 0.05


@dataclass(frozen=True, eq=False)
class Gan:
    """A trained generator and its encoder."""

    generator: nn.Module
    encoder: nn.Module
    device: torch.device
    threads: int
    history: tuple[tuple[float, float, float], ...]
    """For each epoch, mean losses: of the discriminator, of the generator against it, and of giving real
    images back (mean square, pixels from -1 to 1)."""

    def encode(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The encoder's guess of the latents, shape ``(n, LATENT)``."""
        with self._steady(), torch.no_grad():
            return _in_parts(lambda some: self.encoder(_to_tensor(some, self.device)), images)

    def invert(self, images: NDArray[np.uint8], *, steps: int = 100) -> NDArray[np.float32]:
        """Latents whose images are near: the encoder's guess, improved by descent on the squared error."""
        with self._steady():
            return _in_parts(lambda some: self._refined(_to_tensor(some, self.device), steps), images)

    def generate(self, latents: NDArray[np.float32]) -> NDArray[np.uint8]:
        """The images of latents."""
        with self._steady(), torch.no_grad():
            made = _in_parts(lambda some: self.generator(torch.from_numpy(some).to(self.device)), latents)
        return np.round((made.transpose(0, 2, 3, 1) + 1) * 127.5).clip(0, 255).astype(np.uint8)

    def _refined(self, wanted: Tensor, steps: int) -> Tensor:
        latents = self.encoder(wanted).detach().requires_grad_(True)
        optimizer = torch.optim.Adam([latents], lr=REFINING_RATE)
        for _ in range(steps):
            error = (self.generator(latents) - wanted).square().flatten(1).mean(dim=1).sum()
            (latents.grad,) = torch.autograd.grad(error, latents)
            optimizer.step()
        found: Tensor = latents.detach()
        return found

    @contextmanager
    def _steady(self) -> Iterator[None]:
        with steady(self.device, threads=self.threads):
            yield


def train_gan(
    images: NDArray[np.uint8], *, epochs: int, seed: int, device: str = "auto", threads: int = 1
) -> Gan:
    """A generator and an encoder for images ``(n, height, width, channels)``."""
    if images.ndim != 4 or images.dtype != np.uint8 or len(images) < 2:
        raise InputError(
            "a GAN is trained on at least two uint8 images of shape (n, height, width, channels), "
            f"got {images.dtype} of shape {images.shape}"
        )
    if epochs < 1:
        raise InputError(f"epochs of the GAN must be at least 1, got {epochs}")
    place = choose_device(device)
    seeds = Seeds(seed)
    with steady(place, threads=threads), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seeds.integer("weights"))  # no other device is touched
        _, height, width, channels = images.shape
        game = _Game(channels, height, width, place)
        history = tuple(
            game.epoch(images, seeds.stream("epoch", epoch), rate=1 - epoch / epochs)
            for epoch in range(epochs)
        )
    return Gan(game.generator.eval(), game.encoder.eval(), place, threads, history)


def toward_others(
    gan: Gan, samples: Samples, chosen: IndexArray, *, tau: float, steps: int = 100
) -> NDArray[np.uint8]:
    """The chosen images, generated anew a share ``tau`` of the way to the nearest image of another class.

    Near is what is near in the latent space.
    """
    own = gan.encode(samples.features[chosen])
    others = gan.encode(samples.features)
    nearest = np.empty(len(chosen), dtype=np.int64)
    for label in np.unique(samples.labels[chosen]):
        foreign = np.flatnonzero(samples.labels != label)
        if not len(foreign):
            raise InputError(f"all samples are of class {label}; there is no other class to go toward")
        mine = np.flatnonzero(samples.labels[chosen] == label)
        nearest[mine] = foreign[_nearest(own[mine], others[foreign])]
    start = gan.invert(samples.features[chosen], steps=steps)
    end = gan.invert(samples.features[nearest], steps=steps)
    return gan.generate(((1 - tau) * start + tau * end).astype(np.float32))


class _Game:
    """Generator, encoder and discriminator while they learn."""

    def __init__(self, channels: int, height: int, width: int, device: torch.device) -> None:
        self.device = device
        self.generator = _Generator(channels, height, width).to(device)
        self.encoder = _judge(channels, height, width, LATENT, steadied=False).to(device)
        self.discriminator = _judge(channels, height, width, 1, steadied=True).to(device)
        makers = [*self.generator.parameters(), *self.encoder.parameters()]
        self._making = torch.optim.Adam(makers, lr=RATE, betas=(0.5, 0.99))
        self._judging = torch.optim.Adam(self.discriminator.parameters(), lr=RATE, betas=(0.5, 0.99))

    def epoch(
        self, images: NDArray[np.uint8], stream: np.random.Generator, *, rate: float
    ) -> tuple[float, float, float]:
        for optimizer in (self._making, self._judging):
            for group in optimizer.param_groups:
                group["lr"] = RATE * rate
        parts = np.array_split(stream.permutation(len(images)), max(1, len(images) // BATCH))
        losses = [self._step(_to_tensor(images[part], self.device), stream) for part in parts]
        judging, making, back = np.mean(losses, axis=0)
        return float(judging), float(making), float(back)

    def _step(self, real: Tensor, stream: np.random.Generator) -> tuple[float, float, float]:
        drawn = stream.standard_normal((len(real), LATENT)).astype(np.float32)
        latents = torch.from_numpy(drawn).to(self.device)
        made = self.generator(latents)
        judging = (
            functional.relu(1 - self.discriminator(real)).mean()
            + functional.relu(1 + self.discriminator(made.detach())).mean()
        )
        _improve(self._judging, judging)
        found = self.encoder(real)
        given_back = functional.mse_loss(self.generator(found), real)
        making = -self.discriminator(made).mean()
        way_back = functional.mse_loss(self.encoder(made.detach()), latents)
        # found latents are to look like drawn ones
        spread = found.mean(dim=0).square().mean() + (found.square().mean(dim=0) - 1).square().mean()
        _improve(self._making, making + GIVEN_BACK * given_back + way_back + spread)
        return judging.item(), making.item(), given_back.item()


class _Generator(nn.Module):
    """Latents to images from -1 to 1: a small map, doubled until it is large enough, and cut to size."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        super().__init__()
        self.size = (height, width)
        sizes = _sizes(height, width)
        inside = WIDTH * 2 ** (len(sizes) - 1)
        self.small = (inside, *sizes[-1])
        self.first = nn.Linear(LATENT, int(np.prod(self.small)))
        layers: list[nn.Module] = []
        for outside in (*(WIDTH * 2**depth for depth in range(len(sizes) - 2, -1, -1)), channels):
            doubling = nn.ConvTranspose2d(inside, outside, 4, stride=2, padding=1)
            layers += [nn.BatchNorm2d(inside), nn.ReLU(), doubling]
            inside = outside
        self.layers = nn.Sequential(*layers, nn.Tanh())

    def forward(self, latents: Tensor) -> Tensor:
        images: Tensor = self.layers(self.first(latents).view(-1, *self.small))
        return images[:, :, : self.size[0], : self.size[1]]


def _judge(channels: int, height: int, width: int, outputs: int, *, steadied: bool) -> nn.Sequential:
    """Images to numbers: maps halved until they are small. ``steadied``: with bounded slopes."""
    bounded = spectral_norm if steadied else (lambda layer: layer)
    sizes = _sizes(height, width)
    layers: list[nn.Module] = []
    inside = channels
    for depth in range(len(sizes)):
        outside = WIDTH * 2**depth
        layers.append(bounded(nn.Conv2d(inside, outside, 3, stride=2, padding=1)))
        if depth and not steadied:
            layers.append(nn.BatchNorm2d(outside))
        layers.append(nn.LeakyReLU(0.2))
        inside = outside
    last = nn.Linear(inside * sizes[-1][0] * sizes[-1][1], outputs)
    return nn.Sequential(*layers, nn.Flatten(), bounded(last))


def _sizes(height: int, width: int) -> list[tuple[int, int]]:
    """Of maps, from half that of the image to the smallest; halves are rounded up."""
    sizes = [(-(-height // 2), -(-width // 2))]
    while min(sizes[-1]) >= 2 * SMALLEST_MAP:
        sizes.append((-(-sizes[-1][0] // 2), -(-sizes[-1][1] // 2)))
    return sizes


def _improve(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step for the optimizer's own weights, and no gradients for those of others."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward(inputs=optimizer.param_groups[0]["params"])  # type: ignore[no-untyped-call]
    optimizer.step()


def _to_tensor(images: NDArray[np.uint8], device: torch.device) -> Tensor:
    """Channels first, -1 to 1."""
    pixels = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2))).to(device)
    return pixels.to(torch.float32) / 127.5 - 1


def _in_parts(compute: Callable[[NDArray[Any]], Tensor], items: NDArray[Any]) -> NDArray[np.float32]:
    parts = [compute(items[start : start + AT_ONCE]).cpu().numpy() for start in range(0, len(items), AT_ONCE)]
    return np.concatenate(parts).astype(np.float32, copy=False)


def _nearest(points: NDArray[np.float32], candidates: NDArray[np.float32]) -> IndexArray:
    """For each point, the position of the nearest candidate."""
    squares = (candidates.astype(np.float64) ** 2).sum(axis=1)
    found = [
        (squares - 2 * points[start : start + AT_ONCE] @ candidates.T).argmin(axis=1)
        for start in range(0, len(points), AT_ONCE)
    ]
    return np.concatenate(found)
