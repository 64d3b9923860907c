"""Sleeper Agent (Souri et al., 2022): a backdoor whose trigger is nowhere in the training data.

Some images of the target class are changed, within a small bound, so that training on them pulls a network
where training on triggered images of the source class, called the target, would (gradient matching). No label
is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor, isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import Samples, Truth, check_images, check_share, plant
from unpoison.attacks.labels import OneToOne
from unpoison.attacks.reference import AT_ONCE, Reference, ReferenceOptions, rounded
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray

if TYPE_CHECKING:
    from torch import Tensor

Place: TypeAlias = Literal["random", "corner"]

COARSE = 4
"""Colours a side of a patch, which are then blended into each other."""
MILESTONES = (0.375, 0.625, 0.875)
"""Shares of the steps after which they are a tenth as long, as in the authors' code."""


@dataclass(frozen=True)
class ColorPatch:
    """A square of random colours, drawn from ``seed``: 4 x 4 of them, enlarged to ``size`` pixels a side.

    ``place``: somewhere else in each image (also drawn from ``seed``), or always in the lower right corner.
    """

    size: int = 8
    seed: int = 0
    place: Place = "random"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"size of the patch must be at least 1 pixel, got {self.size}")
        if self.place not in get_args(Place):
            raise InputError(f"place must be one of {', '.join(get_args(Place))}, got {self.place!r}")

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Copies of ``images`` with the patch on them."""
        return self.put(images, Seeds(self.seed).stream("color-patch", "place"))

    def put(self, images: NDArray[np.uint8], stream: np.random.Generator) -> NDArray[np.uint8]:
        """Copies with the patch, in places drawn from ``stream``."""
        check_images(images)
        height, width, channels = images.shape[1:]
        if self.size > min(height, width):
            raise InputError(
                f"a patch of {self.size} pixels does not fit into images of {height} by {width}; "
                "choose a smaller size"
            )
        last = np.array([height - self.size, width - self.size])
        corners = np.broadcast_to(last, (len(images), 2))
        if self.place == "random":
            corners = stream.integers(0, last + 1, size=(len(images), 2))
        steps = np.arange(self.size)
        rows = (corners[:, :1] + steps)[:, :, None]
        columns = (corners[:, 1:] + steps)[:, None, :]
        marked = images.copy()
        marked[np.arange(len(images))[:, None, None], rows, columns] = self.colors(channels)
        return marked

    def colors(self, channels: int) -> NDArray[np.uint8]:
        """The patch itself, shape ``(size, size, channels)``; in gray the mean of the colours."""
        from PIL import Image

        drawn = Seeds(self.seed).stream("color-patch", "colors").integers(0, 256, (COARSE, COARSE, 3))
        square = (self.size, self.size)
        image = Image.fromarray(drawn.astype(np.uint8)).resize(square, Image.Resampling.BILINEAR)
        patch = np.asarray(image)
        return np.round(patch.mean(axis=2, keepdims=True)).astype(np.uint8) if channels == 1 else patch


@dataclass(frozen=True)
class Crafted:
    """What gradient matching made."""

    chosen: IndexArray
    """The images that were changed, ascending."""
    images: NDArray[np.uint8]
    losses: tuple[float, ...]
    """Before each step, 1 minus the cosine between the two gradients: 0 is a perfect match. With
    retrainings, later ones are of other networks."""


@dataclass(frozen=True)
class SleeperAgent:
    """Make the trigger turn ``source`` into ``target`` by changing a share ``epsilon`` of class ``target``.

    The authors change 1% of CIFAR-10, which is 10% of one class. ``reference`` should be the victim's
    network, as in their experiments and in the paper's. Where their code (github.com/hsouri/Sleeper-Agent,
    commit 9a5fdd2) differs: it crafts on networks trained for 40 epochs with steps in the rate, matches up to
    512 gradients at once (ours :data:`~unpoison.attacks.reference.AT_ONCE`), shifts by parts of pixels, and
    always has the patch of one file.
    """

    name: ClassVar[str] = "sleeper-agent"

    source: int
    target: int
    epsilon: float = 0.1
    bound: float = 16.0
    """Largest change of a pixel, of 255."""
    steps: int = 250
    retrainings: int = 4
    """How often the network is trained anew, on what is poisoned so far, at even distances."""
    restarts: int = 1
    """How often to begin anew; the best match is taken."""
    reference: ReferenceOptions = field(default_factory=ReferenceOptions)
    patch: ColorPatch = field(default_factory=ColorPatch)

    def __post_init__(self) -> None:
        OneToOne(self.source, self.target)
        check_share("epsilon", self.epsilon, "the changed share of the target class")
        if not (isfinite(self.bound) and self.bound >= 1):
            raise InputError(
                f"bound is in units of the pixels' 0 to 255 and at least 1, got {self.bound}; "
                "for 16/255 write 16"
            )
        for name, least in (("steps", 1), ("restarts", 1), ("retrainings", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.retrainings >= self.steps:
            raise InputError(
                f"retrainings come between steps: {self.retrainings} do not fit between {self.steps}"
            )

    def apply(self, samples: Samples, *, seed: int) -> tuple[Samples, Truth]:
        """Change some images of the target class; no trigger is put on, and all labels stay."""
        crafted = self.craft(samples, seed=seed)
        return plant(samples, crafted.chosen, crafted.images, self.target)

    def craft(self, samples: Samples, *, seed: int) -> Crafted:
        """Choose the images and change them."""
        check_images(samples.features)
        OneToOne(self.source, self.target).check(samples)
        seeds = Seeds(seed).within(self.name)
        reference = self.reference.train(samples, seed=seeds.integer("reference"))
        chosen = self.select(reference, samples)
        tries = [
            self._match(reference, samples, chosen, seeds.within("restart", number))
            for number in range(self.restarts)
        ]
        return min(tries, key=lambda crafted: crafted.losses[-1])

    def select(self, reference: Reference, samples: Samples) -> IndexArray:
        """The images of the target class with the largest gradients: those that move a network most."""
        candidates = np.flatnonzero(samples.labels == self.target)
        count = max(1, int(self.epsilon * len(candidates)))
        with reference.steady():
            norms = [self._gradient_norm(reference, samples.features[[one]]) for one in candidates]
        largest = np.argsort(-np.array(norms), kind="stable")[:count]
        return np.sort(candidates[largest])

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """Copies with the patch."""
        return self.patch(features)

    def goal(self, labels: LabelArray) -> LabelArray:
        """The target for the source class."""
        return OneToOne(self.source, self.target).goal(labels)

    def _gradient_norm(self, reference: Reference, image: NDArray[np.uint8]) -> float:
        gradient = reference.training_gradient(reference.pixels(image), reference.targets(self.target, 1))
        return float(gradient.square().sum())

    def _match(self, reference: Reference, samples: Samples, chosen: IndexArray, seeds: Seeds) -> Crafted:
        """One try: descent on the mismatch by the sign of its gradient (with momentum, as Adam has it)."""
        import torch

        images = samples.features[chosen]
        pixels = reference.pixels(images)
        noise = seeds.stream("start").standard_normal(tuple(pixels.shape)).astype(np.float32)
        deltas = self._within(pixels, self.bound * torch.from_numpy(noise).to(pixels.device))
        optimizer = torch.optim.Adam([deltas], lr=1.0)
        wanted = self._wanted(reference, samples, seeds.stream("places"))
        losses = []
        for step in range(self.steps):
            if step in self._retraining_steps():
                poisoned, _ = plant(samples, chosen, _whole(images, deltas), self.target)
                reference = self.reference.train(poisoned, seed=seeds.integer("reference", step))
                wanted = self._wanted(reference, samples, seeds.stream("places", step))
            optimizer.param_groups[0]["lr"] = self._rate(step / self.steps)
            with reference.steady():
                loss, gradient = self._mismatch(reference, pixels, deltas, wanted, seeds.stream("vary", step))
                deltas.grad = gradient.sign()
                optimizer.step()
            with torch.no_grad():
                deltas.copy_(self._within(pixels, deltas))
            losses.append(loss)
        return Crafted(chosen, _whole(images, deltas), tuple(losses))

    def _wanted(self, reference: Reference, samples: Samples, stream: np.random.Generator) -> Tensor:
        """The gradient of triggered source images that are called the target, of length 1."""
        images = self.patch.put(samples.features[samples.labels == self.source], stream)
        total: Any = 0.0
        with reference.steady():
            for some in _batches(len(images)):
                pixels = reference.pixels(images[some])
                targets = reference.targets(self.target, len(pixels))
                total = total + len(pixels) * reference.training_gradient(pixels, targets)
        wanted: Tensor = total / total.norm().clamp(min=1e-12)
        return wanted

    def _mismatch(
        self,
        reference: Reference,
        pixels: Tensor,
        deltas: Tensor,
        wanted: Tensor,
        stream: np.random.Generator,
    ) -> tuple[float, Tensor]:
        """1 minus the cosine, a mean over batches, and its gradient with respect to the changes."""
        import torch

        batches = list(_batches(len(pixels)))
        losses, gradients = [], []
        for some in batches:
            change = deltas[some].detach().requires_grad_(True)
            targets = reference.targets(self.target, len(change))
            found = reference.training_gradient(
                pixels[some] + change, targets, differentiable=True, varied_by=stream
            )
            loss = 1 - (found * wanted).sum() / found.norm().clamp(min=1e-12)
            gradients.append(torch.autograd.grad(loss, change)[0])
            losses.append(loss.item())
        return float(np.mean(losses)), torch.cat(gradients)

    def _within(self, pixels: Tensor, deltas: Tensor) -> Tensor:
        """The changes within the bound, and within what pixels can be."""
        whole = floor(self.bound)  # changes are whole in the end
        return deltas.clamp(-whole, whole).clamp(-pixels, 255 - pixels)

    def _rate(self, progress: float) -> float:
        """Of the first steps 0.4 of the bound; the authors' rate of 0.1 is as much after normalisation."""
        passed = sum(progress >= milestone for milestone in MILESTONES)
        return 0.4 * self.bound / 10.0**passed

    def _retraining_steps(self) -> set[int]:
        """The steps before which the network is trained anew."""
        return {self.steps * number // (self.retrainings + 1) for number in range(1, self.retrainings + 1)}


def _whole(images: NDArray[np.uint8], deltas: Tensor) -> NDArray[np.uint8]:
    return rounded(images, deltas.detach().permute(0, 2, 3, 1).cpu().numpy())


def _batches(n: int) -> Iterator[slice]:
    return (slice(start, start + AT_ONCE) for start in range(0, n, AT_ONCE))
