"""A network of the attacker's own, and gradients with respect to pixels through it.

Pixels are float tensors ``(n, channels, height, width)`` of values 0 to 255, as in the images themselves;
the normalisation is part of the map. torch is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import Samples, check_images
from unpoison.errors import InputError, MissingExtraError
from unpoison.learners.defaults import NETWORK_NAMES
from unpoison.learners.recipes import AUGMENTATIONS, TrainingOptions, recipe_for
from unpoison.types import LabelArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

AT_ONCE = 256
"""Images in one batch of an attack."""


@dataclass(frozen=True)
class ReferenceOptions:
    """How an attacker's network is made and trained."""

    network: str = "compact"
    epochs: int = 15
    augmentation: str = "crop"
    device: str = "auto"
    threads: int = 1

    def __post_init__(self) -> None:
        if self.network not in NETWORK_NAMES:
            raise InputError(f"unknown network {self.network!r}; choose one of {', '.join(NETWORK_NAMES)}")
        if self.epochs < 1:
            raise InputError(f"epochs of the reference network must be at least 1, got {self.epochs}")
        if self.augmentation not in AUGMENTATIONS:
            raise InputError(
                f"augmentation must be one of {', '.join(AUGMENTATIONS)}, got {self.augmentation!r}"
            )
        if self.threads < 1:
            raise InputError(f"threads must be at least 1, got {self.threads}")

    def train(self, samples: Samples, *, seed: int) -> Reference:
        """A network trained on the samples."""
        return train_reference(
            samples,
            network=self.network,
            epochs=self.epochs,
            augmentation=self.augmentation,
            device=self.device,
            threads=self.threads,
            seed=seed,
        )


@dataclass(frozen=True, eq=False)
class Reference:
    """A trained network as a function of pixels. It stays as it is: it is in evaluation mode."""

    network: nn.Module
    inputs: Callable[[Tensor], Tensor]
    """From pixels to what the network takes, differentiably."""
    device: torch.device
    augmentation: str = "none"
    threads: int = 1

    def pixels(self, images: NDArray[np.uint8]) -> Tensor:
        """Images ``(n, height, width, channels)`` as a float tensor on the network's device."""
        import torch

        return torch.from_numpy(images.copy()).to(self.device).permute(0, 3, 1, 2).to(torch.float32)

    def targets(self, labels: LabelArray | int, n: int) -> Tensor:
        """Labels, or one label ``n`` times, on the network's device."""
        import torch

        return torch.from_numpy(np.broadcast_to(labels, n).astype(np.int64)).to(self.device)

    def scores(self, pixels: Tensor, *, varied_by: np.random.Generator | None = None) -> Tensor:
        """Class scores; with ``varied_by``, of images shifted (and mirrored) as they are in training."""
        inputs = self.inputs(pixels)
        if varied_by is not None:
            inputs = varied(inputs, self.augmentation, varied_by)
        scores: Tensor = self.network(inputs)
        return scores

    def losses(self, pixels: Tensor, targets: Tensor) -> Tensor:
        """The cross-entropy of each image."""
        from torch.nn import functional

        return functional.cross_entropy(self.scores(pixels), targets, reduction="none")

    def pixel_gradient(self, pixels: Tensor, targets: Tensor) -> Tensor:
        """The gradient of each image's own loss with respect to its pixels."""
        import torch

        pixels = pixels.detach().requires_grad_(True)
        return torch.autograd.grad(self.losses(pixels, targets).sum(), pixels)[0]

    def training_gradient(
        self,
        pixels: Tensor,
        targets: Tensor,
        *,
        differentiable: bool = False,
        varied_by: np.random.Generator | None = None,
    ) -> Tensor:
        """The gradient of the mean loss with respect to all weights, as one vector.

        ``differentiable``: it can itself be differentiated with respect to the pixels.
        """
        import torch
        from torch.nn import functional

        weights = [weight for weight in self.network.parameters() if weight.requires_grad]
        loss = functional.cross_entropy(self.scores(pixels, varied_by=varied_by), targets)
        gradients = torch.autograd.grad(loss, weights, create_graph=differentiable)
        return torch.cat([gradient.flatten() for gradient in gradients])

    def image_losses(self, images: NDArray[np.uint8], labels: LabelArray) -> NDArray[np.float64]:
        """The loss of each image, batch by batch and without gradients."""
        import torch

        parts = []
        with self.steady(), torch.no_grad():
            for start in range(0, len(images), AT_ONCE):
                some = images[start : start + AT_ONCE]
                targets = self.targets(labels[start : start + AT_ONCE], len(some))
                parts.append(self.losses(self.pixels(some), targets).cpu().numpy())
        return np.concatenate(parts).astype(np.float64)

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Inside, the same work gives the same bits."""
        from unpoison.learners.devices import steady

        with steady(self.device, threads=self.threads):
            yield


def train_reference(
    samples: Samples,
    *,
    seed: int,
    network: str = "compact",
    epochs: int = 15,
    augmentation: str = "crop",
    device: str = "auto",
    threads: int = 1,
) -> Reference:
    """A network of the learners' trained on all samples, which are images, with the recipe that it has."""
    require_torch("training a reference network")
    check_images(samples.features)
    from unpoison.learners.devices import choose_device
    from unpoison.learners.networks import NETWORKS
    from unpoison.learners.torch import TorchFactory

    options = TrainingOptions(
        recipe=recipe_for(network, "fast"),
        augmentation=augmentation,
        device=device,
        precision="full",
        threads=threads,
    )
    factory = TorchFactory(NETWORKS[network], samples.features, samples.labels, samples.n_classes, options)
    learner = factory(seed)
    learner.fit(np.arange(len(samples)), epochs=epochs, final=True)
    return Reference(learner.network.eval(), learner.inputs, choose_device(device), augmentation, threads)


def varied(inputs: Tensor, augmentation: str, stream: np.random.Generator) -> Tensor:
    """Inputs shifted by up to an eighth of a side (zeros come in), and perhaps mirrored; differentiable."""
    if augmentation == "none":
        return inputs
    import torch
    from torch.nn import functional

    n, channels, height, width = inputs.shape
    reach = max(1, round(min(height, width) / 8))
    shifts = stream.integers(0, 2 * reach + 1, size=(2, n, 1))
    rows, columns = np.arange(height) + shifts[0], np.arange(width) + shifts[1]
    if augmentation == "crop-flip":
        columns = np.where(stream.random((n, 1)) < 0.5, columns[:, ::-1], columns)
    padded = functional.pad(inputs, (reach,) * 4)
    place = (
        np.arange(n)[:, None, None, None],
        np.arange(channels)[None, :, None, None],
        rows[:, None, :, None],
        columns[:, None, None, :],
    )
    return padded[tuple(torch.from_numpy(part.copy()).to(inputs.device) for part in place)]


def rounded(images: NDArray[np.uint8], deltas: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Images plus deltas ``(n, height, width, channels)``, in whole steps.

    Deltas are rounded toward zero, so that no bound on their norm is ever exceeded.
    """
    whole = np.trunc(deltas).astype(np.int16)
    changed: NDArray[np.uint8] = np.clip(images + whole, 0, 255).astype(np.uint8)
    return changed


def require_torch(purpose: str) -> None:
    """Refuse, with the remedy, where torch is not installed."""
    if find_spec("torch") is None:
        raise MissingExtraError("torch", "torch", purpose)
