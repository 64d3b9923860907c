"""The clean-label backdoor of Turner et al. (2018): hard images of one class, with a mark, and right labels.

The images are changed so that what they show no longer tells the class; the mark in their corners does.
No label is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import (
    NOT_ATTACKED,
    Samples,
    Truth,
    check_class,
    check_images,
    check_share,
    choose,
    plant,
)
from unpoison.attacks.reference import AT_ONCE, Reference, ReferenceOptions, require_torch, rounded
from unpoison.attacks.triggers import Corners, Trigger
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import IndexArray, LabelArray

if TYPE_CHECKING:
    from torch import Tensor

Perturbation: TypeAlias = Literal["l2", "linf", "gan"]

BOUNDS: dict[str, float] = {"linf": 16.0, "l2": 600.0}
"""Of the norms that Turner et al. tried, those in the middle, in units of the pixels' 0 to 255."""


@dataclass(frozen=True)
class Part:
    """Some samples of a larger set: their places in it, and how many it has."""

    rows: tuple[int, ...]
    of: int


@dataclass(frozen=True)
class CleanLabel:
    """Make a share ``epsilon`` of class ``target`` hard to recognize, mark the corners, keep the labels.

    The paper calls this class the source. At test time, the mark alone makes any image look like the target.

    >>> CleanLabel(target=0, epsilon=0.5).norm_bound
    16.0
    """

    name: ClassVar[str] = "clean-label"

    target: int
    epsilon: float
    perturbation: Perturbation = "linf"
    """``linf``, ``l2``: raise the loss of a reference network within a bound. ``gan``: go toward an image of
    another class in the latent space of a generator (:mod:`unpoison.attacks.gan`)."""
    bound: float | None = None
    """Largest norm of the change, in units of 0 to 255: 16 for ``linf`` and 600 for ``l2`` if not given."""
    steps: int = 40
    """Of the ascent on the reference network's loss."""
    reference: ReferenceOptions = field(default_factory=ReferenceOptions)
    tau: float = 0.2
    """``gan``: the share of the way to the other image."""
    gan_epochs: int = 20
    arrays: Path | None = None
    """The official images of Turner et al.: a ``.npy`` file, or the folder of theirs that holds it."""
    patch: Trigger = field(default_factory=Corners)
    part: Part | None = field(default=None, repr=False)
    """Which part of the set that ``arrays`` is of the samples are; None: all of it, in the same order."""

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon, "the perturbed share of the target class")
        if self.perturbation not in get_args(Perturbation):
            known = ", ".join(get_args(Perturbation))
            raise InputError(f"perturbation must be one of {known}, got {self.perturbation!r}")
        if self.bound is not None and self.perturbation == "gan":
            raise InputError(f"bound is for l2 and linf, got {self.bound} with gan; set tau instead")
        if self.bound is not None and not (isfinite(self.bound) and self.bound >= 1):
            raise InputError(
                f"bound is in units of the pixels' 0 to 255 and at least 1, got {self.bound}; "
                "for 16/255 write 16"
            )
        for name in ("steps", "gan_epochs"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        check_share("tau", self.tau, "the share of the way to an image of another class")

    @property
    def norm_bound(self) -> float | None:
        """The bound in use; None for ``gan``, which has none."""
        return BOUNDS.get(self.perturbation) if self.bound is None else self.bound

    def apply(self, samples: Samples, *, seed: int) -> tuple[Samples, Truth]:
        """Perturb and mark some images of the target class; all labels stay."""
        check_images(samples.features)
        check_class("target", self.target, samples)
        candidates = np.flatnonzero(samples.labels == self.target)
        stream = Seeds(seed).stream(self.name, "choice")
        chosen = choose(candidates, int(self.epsilon * len(candidates)), stream)
        images = self.trigger(self.perturb(samples, chosen, seed=seed))
        return plant(samples, chosen, images, self.target)

    def perturb(self, samples: Samples, chosen: IndexArray, *, seed: int) -> NDArray[np.uint8]:
        """The chosen images made hard to recognize, without the mark."""
        seeds = Seeds(seed).within(self.name)
        if self.arrays is not None:
            strength = self.tau if self.norm_bound is None else self.norm_bound
            return official_clean_label(
                self.arrays, samples, self.perturbation, strength=strength, chosen=chosen, part=self.part
            )
        bound = self.norm_bound
        if bound is None:
            return self._interpolated(samples, chosen, seeds)
        reference = self.reference.train(samples, seed=seeds.integer("reference"))
        return ascend(
            reference,
            samples.features[chosen],
            samples.labels[chosen],
            norm=self.perturbation,
            bound=bound,
            steps=self.steps,
            seeds=seeds.within("start"),
        )

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """Copies with the mark only: no perturbation at test time."""
        return self.patch(features)

    def goal(self, labels: LabelArray) -> LabelArray:
        """The target for every other class."""
        return np.where(labels != self.target, self.target, NOT_ATTACKED)

    def _interpolated(self, samples: Samples, chosen: IndexArray, seeds: Seeds) -> NDArray[np.uint8]:
        require_torch("the attack 'clean-label' with a GAN")
        from unpoison.attacks.gan import toward_others, train_gan

        options = self.reference
        gan = train_gan(
            samples.features,
            epochs=self.gan_epochs,
            seed=seeds.integer("gan"),
            device=options.device,
            threads=options.threads,
        )
        return toward_others(gan, samples, chosen, tau=self.tau)


def ascend(
    reference: Reference,
    images: NDArray[np.uint8],
    labels: LabelArray,
    *,
    norm: str,
    bound: float,
    steps: int,
    seeds: Seeds,
) -> NDArray[np.uint8]:
    """Projected gradient ascent (Madry et al., 2018) on the loss of each image, from a random start.

    The norm of the change, as whole numbers, is at most ``bound``.
    """
    changed = np.empty_like(images)
    with reference.steady():
        for start in range(0, len(images), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            pixels = reference.pixels(images[some])
            targets = reference.targets(labels[some], len(pixels))
            noise = seeds.stream(start).uniform(-1, 1, size=tuple(pixels.shape)).astype(np.float32)
            deltas = _ascend(reference, pixels, targets, noise, norm=norm, bound=bound, steps=steps)
            changed[some] = rounded(images[some], deltas.permute(0, 2, 3, 1).cpu().numpy())
    return changed


def _ascend(
    reference: Reference,
    pixels: Tensor,
    targets: Tensor,
    noise: NDArray[np.float32],
    *,
    norm: str,
    bound: float,
    steps: int,
) -> Tensor:
    """The changes for one batch; the step is 2.5 times what reaches the bound, as Madry et al. have it."""
    import torch

    step = 2.5 * bound / steps
    # changes are whole in the end; and sums of squares in float32 are not exact
    inside = floor(bound) if norm == "linf" else bound * (1 - 1e-5)

    def within(deltas: Tensor) -> Tensor:
        if norm == "linf":
            deltas = deltas.clamp(-inside, inside)
        else:
            deltas = deltas * (inside / _length(deltas)).clamp(max=1.0)
        return deltas.clamp(-pixels, 255 - pixels)

    deltas = within(torch.from_numpy(noise).to(pixels.device) * bound)
    for _ in range(steps):
        gradient = reference.pixel_gradient(pixels + deltas, targets)
        way = gradient.sign() if norm == "linf" else gradient / _length(gradient)
        deltas = within(deltas + step * way)
    return deltas


def _length(vectors: Tensor) -> Tensor:
    """The l2 norm of each image, never quite 0, shaped to divide by."""
    lengths: Tensor = vectors.flatten(1).norm(dim=1)
    return lengths.clamp(min=1e-12).view(-1, 1, 1, 1)


def official_clean_label(
    path: Path,
    samples: Samples,
    perturbation: Perturbation,
    *,
    strength: float | None = None,
    chosen: IndexArray | None = None,
    part: Part | None = None,
) -> NDArray[np.uint8]:
    """The perturbed images that Turner et al. published for CIFAR-10, without the mark.

    ``path`` is a ``.npy`` file with the whole training set perturbed, in the order of ``samples``, or of the
    set that they are a ``part`` of. Or it is their folder ``fully_poisoned_training_datasets``, in which the
    file for this perturbation and ``strength`` (the bound, or tau for ``gan``) is ``inf_16.npy``,
    ``two_600.npy``, ``gan_0_2.npy`` or the like. ``chosen``: these images only.
    """
    check_images(samples.features)
    if strength is None:
        strength = BOUNDS.get(perturbation, 0.2)
    if path.is_dir():
        path = path / official_name(perturbation, strength)
    whole = len(samples) if part is None else part.of
    array = _official_array(path, (whole, *samples.features.shape[1:]))
    positions = np.arange(len(samples)) if chosen is None else chosen
    images = array[positions if part is None else np.array(part.rows)[positions]].copy()
    if perturbation != "gan":
        some = slice(AT_ONCE)
        _check_order(path, samples.features[positions[some]], images[some], perturbation, strength)
    return images


def official_name(perturbation: Perturbation, strength: float) -> str:
    """What Turner et al. called the file.

    >>> official_name("linf", 16.0), official_name("gan", 0.2)
    ('inf_16.npy', 'gan_0_2.npy')
    """
    kind = {"linf": "inf", "l2": "two", "gan": "gan"}[perturbation]
    return f"{kind}_{f'{strength:g}'.replace('.', '_')}.npy"


def _official_array(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise InputError(
            f"there is no file {path}; get the datasets of Turner et al. (2018) and give the .npy file, or "
            "their folder fully_poisoned_training_datasets"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a .npy array of numbers ({error})") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} is an archive of arrays; give a .npy file with one")
    if array.dtype != np.uint8 or array.shape != shape:
        raise InputError(
            f"{path} holds {array.dtype} of shape {array.shape}; perturbed images for this data are uint8 of "
            f"shape {shape}, all of them and in the same order"
        )
    return array


def _check_order(
    path: Path, before: NDArray[np.uint8], after: NDArray[np.uint8], norm: str, bound: float
) -> None:
    """Images of another order differ by far more than the bound; twice leaves room for their rounding."""
    changes = (after.astype(np.float64) - before).reshape(len(before), -1)
    order = np.inf if norm == "linf" else 2
    typical = float(np.median(np.linalg.norm(changes, ord=order, axis=1)))
    if typical > 2 * bound:
        raise InputError(
            f"the images in {path} differ from the data by {typical:.0f} ({norm}), far above the bound "
            f"{bound:g}; they are of another perturbation, or in another order than the data"
        )
