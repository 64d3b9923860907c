from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from unpoison.attacks.base import Samples
from unpoison.attacks.gan import LATENT, Gan, toward_others, train_gan
from unpoison.errors import InputError

from .digits import first_digits

SAMPLES = first_digits(640)
IMAGES = SAMPLES.features
FOURS = np.flatnonzero(SAMPLES.labels == 4)


@pytest.fixture(scope="module")
def gan() -> Gan:
    return train_gan(IMAGES, epochs=6, seed=0)


def error(gan: Gan, latents: Any, images: Any) -> float:
    return float(np.mean((gan.generate(latents).astype(float) - images) ** 2))


def test_it_learns_to_give_images_back(gan: Gan) -> None:
    assert len(gan.history) == 6
    assert np.isfinite(gan.history).all()
    given_back = [back for *_, back in gan.history]
    assert given_back[-1] < 0.5 * given_back[0]
    assert error(gan, gan.encode(IMAGES), IMAGES) < 0.5 * IMAGES.var(axis=0).mean()


def test_latents_are_improved(gan: Gan) -> None:
    some = IMAGES[:40]
    guessed, improved = gan.encode(some), gan.invert(some, steps=30)
    assert guessed.shape == improved.shape == (40, LATENT)
    assert error(gan, improved, some) < 0.8 * error(gan, guessed, some)


def test_images_go_toward_another_class(gan: Gan) -> None:
    near, far = (toward_others(gan, SAMPLES, FOURS, tau=tau, steps=20) for tau in (0.1, 1.0))
    for images in (near, far):
        assert images.dtype == np.uint8
        assert images.shape == IMAGES[FOURS].shape
        assert (images != IMAGES[FOURS]).any(axis=(1, 2, 3)).all()
    kept, gone = ((images.astype(float) - IMAGES[FOURS]) ** 2 for images in (near, far))
    assert kept.mean() < gone.mean()


def test_all_the_way_is_an_image_of_another_class(gan: Gan) -> None:
    arrived = toward_others(gan, SAMPLES, FOURS[:10], tau=1.0, steps=20).astype(float)
    distances = ((arrived[:, None] - IMAGES[None]) ** 2).mean(axis=(2, 3, 4))
    assert (SAMPLES.labels[distances.argmin(axis=1)] != 4).mean() > 0.7


def test_the_same_seed_gives_the_same_bytes() -> None:
    few = IMAGES[:128]
    first, again, other = (train_gan(few, epochs=1, seed=seed) for seed in (1, 1, 2))
    latents = np.random.default_rng(0).standard_normal((4, LATENT)).astype(np.float32)
    assert (first.generate(latents) == again.generate(latents)).all()
    assert (first.invert(few, steps=2) == again.invert(few, steps=2)).all()
    assert (first.generate(latents) != other.generate(latents)).any()


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (17, 22, 3), (6, 5, 1)])
def test_images_of_any_size(shape: tuple[int, int, int]) -> None:
    images = np.random.default_rng(0).integers(0, 256, (8, *shape), dtype=np.uint8)
    gan = train_gan(images, epochs=1, seed=0)
    assert gan.generate(gan.encode(images)).shape == images.shape


def test_one_class_has_no_other(gan: Gan) -> None:
    with pytest.raises(InputError, match="all samples are of class 4"):
        toward_others(
            gan, Samples(IMAGES[FOURS], SAMPLES.labels[FOURS], SAMPLES.class_names), np.arange(3), tau=0.2
        )


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1, got 0"):
        train_gan(IMAGES, epochs=0, seed=0)
    with pytest.raises(InputError, match=r"got float64 of shape \(5, 3\)"):
        train_gan(np.zeros((5, 3)), epochs=1, seed=0)  # type: ignore[arg-type]
