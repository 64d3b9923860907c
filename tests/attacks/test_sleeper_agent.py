from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison.attacks.base import NOT_ATTACKED, Samples
from unpoison.attacks.reference import ReferenceOptions
from unpoison.attacks.sleeper_agent import ColorPatch, Crafted, SleeperAgent
from unpoison.errors import InputError

from .digits import first_digits

pytestmark = pytest.mark.usefixtures("trained_once")
SAMPLES = first_digits(400)
IMAGES = SAMPLES.features
FIVES = np.flatnonzero(SAMPLES.labels == 5)
QUICK = ReferenceOptions(epochs=12)
QUICKER = ReferenceOptions(epochs=1)


def attack(**options: Any) -> SleeperAgent:
    given: dict[str, Any] = {
        "epsilon": 0.3,
        "steps": 8,
        "retrainings": 0,
        "reference": QUICK,
        "patch": ColorPatch(size=5),
        **options,
    }
    return SleeperAgent(1, 5, **given)


@pytest.fixture(scope="module")
def crafted() -> Crafted:
    pytest.importorskip("torch")
    return attack(steps=30).craft(SAMPLES, seed=0)


def test_changes_a_share_of_the_target_class_and_keeps_all_labels() -> None:
    pytest.importorskip("torch")
    features, labels = SAMPLES.features.copy(), SAMPLES.labels.copy()
    features.flags.writeable = labels.flags.writeable = False
    poisoned, truth = attack().apply(Samples(features, labels, SAMPLES.class_names), seed=0)
    assert truth.planted.sum() == int(0.3 * len(FIVES))
    assert set(SAMPLES.labels[truth.planted]) == {5}
    assert not truth.covers.any()
    assert (poisoned.labels == SAMPLES.labels).all()
    assert (poisoned.features[~truth.planted] == SAMPLES.features[~truth.planted]).all()
    assert (features == SAMPLES.features).all()


def test_gradients_come_to_match(crafted: Crafted) -> None:
    assert len(crafted.losses) == 30
    assert np.mean(crafted.losses[-5:]) < np.mean(crafted.losses[:3]) - 0.15


@pytest.mark.parametrize("bound", [16.0, 9.7])
def test_the_largest_change_of_a_pixel_is_bounded(bound: float, crafted: Crafted) -> None:
    made = crafted if bound == 16 else attack(bound=bound).craft(SAMPLES, seed=0)
    change = np.abs(made.images.astype(int) - SAMPLES.features[made.chosen])
    assert change.max() == int(bound)
    assert made.images.dtype == np.uint8


def test_the_chosen_images_have_the_largest_gradients() -> None:
    torch = pytest.importorskip("torch")
    reference = QUICKER.train(SAMPLES, seed=0)
    chosen = attack(epsilon=0.2).select(reference, SAMPLES)
    norms = {}
    for index in FIVES.tolist():
        gradient = reference.training_gradient(
            reference.pixels(SAMPLES.features[[index]]), reference.targets(5, 1)
        )
        norms[index] = float(torch.linalg.vector_norm(gradient))
    largest = sorted(norms, key=norms.__getitem__)[-int(0.2 * len(FIVES)) :]
    assert chosen.tolist() == sorted(largest)


def test_the_same_seed_gives_the_same_bytes() -> None:
    pytest.importorskip("torch")
    several = attack(steps=3, retrainings=1, reference=QUICKER)
    first, again, other = (several.apply(SAMPLES, seed=seed)[0].features for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_network_is_trained_anew_on_the_poison(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    seen: list[Samples] = []
    train = ReferenceOptions.train

    def spy(options: ReferenceOptions, samples: Samples, *, seed: int) -> Any:
        seen.append(samples)
        return train(options, samples, seed=seed)

    monkeypatch.setattr(ReferenceOptions, "train", spy)
    made = attack(steps=6, retrainings=2, reference=QUICKER).craft(SAMPLES, seed=0)
    assert [(samples.features != IMAGES).any() for samples in seen] == [False, True, True]
    assert (seen[1].features != seen[2].features).any()
    others = np.setdiff1d(np.arange(len(SAMPLES)), made.chosen)
    assert all((samples.features[others] == IMAGES[others]).all() for samples in seen)


def test_of_several_tries_the_best_is_taken() -> None:
    pytest.importorskip("torch")
    one, best = (attack(steps=3, restarts=n, reference=QUICKER).craft(SAMPLES, seed=0) for n in (1, 2))
    assert best.losses[-1] <= one.losses[-1]


def test_as_in_the_authors_code_the_network_is_trained_anew_every_fifty_steps() -> None:
    assert sorted(SleeperAgent(0, 1)._retraining_steps()) == [50, 100, 150, 200]


def test_what_is_wanted_of_whom() -> None:
    assert attack().goal(np.array([0, 1, 5])).tolist() == [NOT_ATTACKED, 5, NOT_ATTACKED]


def test_the_trigger_is_the_patch() -> None:
    marked = attack().trigger(IMAGES)
    assert (marked == ColorPatch(size=5)(IMAGES)).all()
    assert ((marked != IMAGES).sum(axis=(1, 2, 3)) <= 25).all()


def test_the_patch_is_somewhere_in_each_image() -> None:
    images = np.zeros((200, 16, 16, 3), dtype=np.uint8)
    patch = ColorPatch(size=8, seed=3)
    colors = patch.colors(3)
    assert colors.shape == (8, 8, 3)
    places = set()
    for marked in patch(images):
        rows, columns = np.nonzero(marked.any(axis=2))
        row, column = rows.min(), columns.min()
        places.add((int(row), int(column)))
        assert (marked[row : row + 8, column : column + 8] == colors).all()
    assert len(places) > 60
    assert {row for row, _ in places} == {column for _, column in places} == set(range(9))
    assert (patch(images) == patch(images)).all()
    assert not images.any()


def test_the_patch_in_the_corner() -> None:
    marked = ColorPatch(size=4, place="corner")(IMAGES)
    assert (marked[:, -4:, -4:] == ColorPatch(size=4).colors(1)).all()
    assert (marked[:, :-4] == IMAGES[:, :-4]).all()
    assert (marked[:, :, :-4] == IMAGES[:, :, :-4]).all()


def test_another_seed_is_another_patch() -> None:
    assert (ColorPatch(seed=1).colors(3) != ColorPatch(seed=2).colors(3)).any()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"epsilon": 0.0}, "epsilon is the changed share.*Got 0.0"),
        ({"bound": 16 / 255}, "got 0.06.*write 16"),
        ({"bound": float("nan")}, "got nan"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"restarts": 0}, "restarts must be at least 1, got 0"),
        ({"retrainings": -1}, "retrainings must be at least 0, got -1"),
        ({"retrainings": 8}, "8 do not fit between 8"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        attack(**options)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"size": 0}, "at least 1 pixel, got 0"), ({"place": "middle"}, "one of random, corner, got 'middle'")],
)
def test_patches_out_of_range_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        ColorPatch(**options)


def test_a_patch_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="17 pixels does not fit into images of 16 by 16"):
        ColorPatch(size=17)(IMAGES)


def test_one_class_cannot_be_both() -> None:
    with pytest.raises(InputError, match="both class 3"):
        SleeperAgent(3, 3)


@pytest.mark.parametrize(
    ("source", "target", "named"), [(10, 1, "source class 10"), (1, 10, "target class 10")]
)
def test_a_class_that_is_not_there_is_refused(source: int, target: int, named: str) -> None:
    with pytest.raises(InputError, match=named):
        SleeperAgent(source, target).apply(SAMPLES, seed=0)
