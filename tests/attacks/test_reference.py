from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")


from unpoison.attacks.reference import (  # noqa: E402
    Reference,
    ReferenceOptions,
    rounded,
    train_reference,
    varied,
)
from unpoison.errors import InputError, MissingExtraError  # noqa: E402
from unpoison.learners.networks import compact  # noqa: E402
from unpoison.learners.recipes import TrainingOptions, recipe_for  # noqa: E402
from unpoison.learners.torch import TorchFactory  # noqa: E402

from .digits import first_digits  # noqa: E402

SAMPLES = first_digits(400)


@pytest.fixture(scope="module")
def reference() -> Reference:
    return train_reference(SAMPLES, seed=3, epochs=12)


def test_it_has_learned(reference: Reference) -> None:
    assert reference.image_losses(SAMPLES.features, SAMPLES.labels).mean() < 0.3


def test_scores_are_those_of_the_learner() -> None:
    options = TrainingOptions(recipe_for("compact", "fast"), precision="full")
    learner = TorchFactory(compact, SAMPLES.features, SAMPLES.labels, 10, options)(3)
    learner.fit(np.arange(len(SAMPLES)), epochs=2, final=True)
    reference = train_reference(SAMPLES, seed=3, epochs=2)
    losses = reference.image_losses(SAMPLES.features, SAMPLES.labels)
    expected = learner.assess(np.arange(len(SAMPLES))).losses
    most = 20  # a learner's losses have a largest value
    assert np.allclose(np.minimum(losses, most), np.minimum(expected, most), rtol=1e-3, atol=1e-5)
    assert losses.std() > 0.1


def test_the_same_seed_gives_the_same_network() -> None:
    several = (ReferenceOptions(epochs=2).train(SAMPLES, seed=seed) for seed in (3, 3, 4))
    first, again, other = (one.image_losses(SAMPLES.features[:20], SAMPLES.labels[:20]) for one in several)
    assert (first == again).all()
    assert (first != other).any()


def test_it_is_in_evaluation_mode(reference: Reference) -> None:
    pixels = reference.pixels(SAMPLES.features[:8])
    with torch.no_grad():
        together, alone = reference.scores(pixels), reference.scores(pixels[:1])
    assert torch.allclose(together[:1], alone, atol=1e-4)


def test_pixels_are_channels_first_and_a_copy(reference: Reference) -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), dtype=np.uint8)
    images.flags.writeable = False
    pixels = reference.pixels(images)
    assert pixels.dtype == torch.float32
    assert (pixels.numpy().transpose(0, 2, 3, 1) == images).all()


def test_the_gradient_of_pixels_is_that_of_finite_differences(reference: Reference) -> None:
    pixels = reference.pixels(SAMPLES.features[:4])
    targets = reference.targets((SAMPLES.labels[:4] + 1) % 10, 4)  # of right labels it is almost nothing
    gradient = reference.pixel_gradient(pixels, targets)
    way = gradient / gradient.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    with torch.no_grad():
        rise = reference.losses(pixels + way, targets) - reference.losses(pixels - way, targets)
    expected = gradient.flatten(1).norm(dim=1)
    assert torch.allclose(rise / 2, expected, rtol=0.1)
    assert gradient.shape == pixels.shape
    assert not pixels.requires_grad


def test_the_gradient_of_training_can_be_differentiated(reference: Reference) -> None:
    pixels = reference.pixels(SAMPLES.features[:4]).requires_grad_(True)
    targets = reference.targets(7, 4)
    plain = reference.training_gradient(pixels, targets)
    gradient = reference.training_gradient(pixels, targets, differentiable=True)
    assert torch.equal(plain, gradient)
    assert len(gradient) == sum(weight.numel() for weight in reference.network.parameters())
    (second,) = torch.autograd.grad(gradient.square().sum(), pixels)
    assert second.abs().sum() > 0


def test_training_gradients_average_over_samples(reference: Reference) -> None:
    pixels, targets = reference.pixels(SAMPLES.features[:2]), reference.targets(SAMPLES.labels[:2], 2)
    both = reference.training_gradient(pixels, targets)
    one, other = (reference.training_gradient(pixels[[i]], targets[[i]]) for i in (0, 1))
    assert torch.allclose(both, (one + other) / 2, atol=1e-5)


@pytest.mark.parametrize("augmentation", ["crop", "crop-flip"])
def test_varied_images_are_shifted_and_perhaps_mirrored(augmentation: str) -> None:
    image = torch.arange(1.0, 257.0).view(1, 1, 16, 16)
    several = varied(image.repeat(60, 3, 1, 1), augmentation, np.random.default_rng(0))
    seen = set()
    for one in several:
        assert torch.equal(one[0], one[1])
        assert torch.equal(one[0], one[2])
        seen.add(_movement(image[0, 0].numpy(), one[0].numpy()))
    shifts = {(down, right) for down, right, _ in seen}
    assert len(seen) > 15
    assert max(abs(step) for shift in shifts for step in shift) == 2
    assert {mirrored for *_, mirrored in seen} == ({False} if augmentation == "crop" else {False, True})


def _movement(before: Any, after: Any) -> tuple[int, int, bool]:
    """The shift down and right of an image of distinct numbers, and whether it was mirrored."""
    for mirrored in (False, True):
        start = before[:, ::-1] if mirrored else before
        for down in range(-2, 3):
            for right in range(-2, 3):
                padded = np.pad(start, 2)
                if (after == padded[2 - down : 18 - down, 2 - right : 18 - right]).all():
                    return down, right, mirrored
    raise AssertionError("not a shift by up to two pixels")


def test_varied_images_pass_gradients_on() -> None:
    inputs = torch.ones(3, 1, 16, 16, requires_grad=True)
    several = varied(inputs, "crop-flip", np.random.default_rng(1))
    (gradient,) = torch.autograd.grad(several.sum(), inputs)
    assert set(gradient.unique().tolist()) <= {0.0, 1.0}
    assert gradient.sum() == several.sum()


def test_without_augmentation_nothing_is_varied() -> None:
    inputs = torch.ones(1, 1, 4, 4)
    assert varied(inputs, "none", np.random.default_rng(0)) is inputs


def test_rounding_is_toward_zero_and_stays_within_range() -> None:
    images = np.array([100, 100, 0, 255, 250], dtype=np.uint8)
    deltas = np.array([2.9, -2.9, -0.5, 0.99, 5.0], dtype=np.float32)
    assert rounded(images, deltas).tolist() == [102, 98, 0, 255, 255]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"network": "vgg"}, "unknown network 'vgg'"),
        ({"epochs": 0}, "at least 1, got 0"),
        ({"augmentation": "blur"}, "augmentation must be .*got 'blur'"),
        ({"threads": 0}, "threads must be at least 1, got 0"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        ReferenceOptions(**options)


def test_only_images() -> None:
    rows = replace(SAMPLES, features=np.zeros((len(SAMPLES), 5)))
    with pytest.raises(InputError, match="float64 of shape"):
        train_reference(rows, seed=0)


def test_without_torch_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpoison.attacks.reference.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"unpoison\[torch\]"):
        train_reference(SAMPLES, seed=0)
