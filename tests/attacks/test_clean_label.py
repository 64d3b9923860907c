from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unpoison.attacks.base import NOT_ATTACKED, Samples
from unpoison.attacks.clean_label import CleanLabel, Part, official_clean_label, official_name
from unpoison.attacks.reference import ReferenceOptions
from unpoison.attacks.triggers import Corners, Patch
from unpoison.errors import InputError
from unpoison.seeds import Seeds

from .digits import first_digits

pytestmark = pytest.mark.usefixtures("trained_once")
SAMPLES = first_digits(400)
IMAGES = SAMPLES.features
THREES = np.flatnonzero(SAMPLES.labels == 3)
QUICK = ReferenceOptions(epochs=12)


def attack(**options: Any) -> CleanLabel:
    given: dict[str, Any] = {"epsilon": 0.5, "steps": 8, "reference": QUICK, **options}
    return CleanLabel(3, **given)


def changes(before: Any, after: Any) -> Any:
    return (after.astype(np.int64) - before.astype(np.int64)).reshape(len(before), -1)


def test_marks_a_share_of_the_target_class_and_keeps_all_labels() -> None:
    pytest.importorskip("torch")
    poisoned, truth = attack().apply(SAMPLES, seed=0)
    assert truth.planted.sum() == len(THREES) // 2
    assert set(SAMPLES.labels[truth.planted]) == {3}
    assert not truth.covers.any()
    assert (poisoned.labels == SAMPLES.labels).all()
    assert (truth.original_labels == SAMPLES.labels).all()
    assert (poisoned.features[~truth.planted] == SAMPLES.features[~truth.planted]).all()
    marked = poisoned.features[truth.planted]
    assert (marked == Corners()(marked)).all()
    inner = (slice(None), slice(3, -3), slice(3, -3))
    change = np.abs(changes(SAMPLES.features[truth.planted][inner], marked[inner]))
    assert 0 < change.max() <= 16


def test_what_is_given_stays_as_it_is() -> None:
    pytest.importorskip("torch")
    features, labels = SAMPLES.features.copy(), SAMPLES.labels.copy()
    features.flags.writeable = labels.flags.writeable = False
    attack().apply(Samples(features, labels, SAMPLES.class_names), seed=0)
    assert (features == SAMPLES.features).all()


@pytest.mark.parametrize("bound", [8.0, 7.5])
def test_the_largest_change_of_a_pixel_is_bounded(bound: float) -> None:
    pytest.importorskip("torch")
    after = attack(bound=bound).perturb(SAMPLES, THREES, seed=0)
    assert after.dtype == np.uint8
    assert np.abs(changes(SAMPLES.features[THREES], after)).max() == int(bound)


@pytest.mark.parametrize("bound", [100.0, 333.3])
def test_the_length_of_the_change_is_bounded(bound: float) -> None:
    pytest.importorskip("torch")
    after = attack(perturbation="l2", bound=bound).perturb(SAMPLES, THREES, seed=0)
    squares = (changes(SAMPLES.features[THREES], after) ** 2).sum(axis=1)
    assert squares.max() <= bound**2
    assert np.sqrt(squares.mean()) > 0.7 * bound


@pytest.mark.parametrize(("perturbation", "bound"), [("linf", 40.0), ("l2", 400.0)])
def test_the_loss_of_the_reference_network_rises(perturbation: Any, bound: float) -> None:
    pytest.importorskip("torch")
    one = attack(perturbation=perturbation, bound=bound)
    after = one.perturb(SAMPLES, THREES, seed=0)
    reference = QUICK.train(SAMPLES, seed=Seeds(0).integer("clean-label", "reference"))
    labels = SAMPLES.labels[THREES]
    before_loss = reference.image_losses(SAMPLES.features[THREES], labels)
    after_loss = reference.image_losses(after, labels)
    assert (after_loss > before_loss).all()
    assert after_loss.mean() > before_loss.mean() + 2


def test_the_same_seed_gives_the_same_bytes() -> None:
    pytest.importorskip("torch")
    quick = attack(perturbation="l2", steps=3, reference=ReferenceOptions(epochs=1))
    first, again, other = (quick.apply(SAMPLES, seed=seed) for seed in (0, 0, 1))
    assert (first[0].features == again[0].features).all()
    assert (first[1].planted == again[1].planted).all()
    assert (first[1].planted != other[1].planted).any()


def test_gan() -> None:
    pytest.importorskip("torch")
    one = attack(perturbation="gan", gan_epochs=1, epsilon=0.2)
    assert one.norm_bound is None
    poisoned, truth = one.apply(SAMPLES, seed=0)
    assert truth.planted.sum() == len(THREES) // 5
    assert (poisoned.labels == SAMPLES.labels).all()
    assert (poisoned.features[~truth.planted] == SAMPLES.features[~truth.planted]).all()
    assert (poisoned.features[truth.planted] != SAMPLES.features[truth.planted]).any(axis=(1, 2, 3)).all()


def test_at_test_time_only_the_mark() -> None:
    assert (attack().trigger(IMAGES) == Corners()(IMAGES)).all()
    assert (attack(patch=Patch()).trigger(IMAGES) == Patch()(IMAGES)).all()


def test_every_other_class_is_attacked() -> None:
    assert attack().goal(np.array([0, 3, 9])).tolist() == [3, NOT_ATTACKED, 3]


def test_equal_settings_are_equal_attacks() -> None:
    assert attack() == attack()
    assert attack() != attack(steps=9)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"epsilon": 0.0}, "epsilon is the perturbed share.*Got 0.0"),
        ({"epsilon": 1.5}, "Got 1.5"),
        ({"perturbation": "l1"}, "one of l2, linf, gan, got 'l1'"),
        ({"bound": 16 / 255}, "got 0.06.*write 16"),
        ({"bound": float("inf")}, "got inf"),
        ({"bound": 8.0, "perturbation": "gan"}, "got 8.0 with gan; set tau"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"gan_epochs": 0}, "gan_epochs must be at least 1, got 0"),
        ({"tau": 1.1}, "tau is .*Got 1.1"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        attack(**options)


def test_a_class_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="target class 10 does not exist"):
        CleanLabel(10, 0.5).apply(SAMPLES, seed=0)


def test_only_images() -> None:
    rows = Samples(np.zeros((2, 3)), np.array([0, 1]), ("a", "b"))
    with pytest.raises(InputError, match="float64 of shape"):
        CleanLabel(0, 0.5).apply(rows, seed=0)


@pytest.fixture
def official(tmp_path: Path) -> Path:
    """A folder like that of Turner et al., with every image a little darker."""
    np.save(tmp_path / "inf_16.npy", IMAGES - np.minimum(IMAGES, 16))
    np.save(tmp_path / "two_600.npy", IMAGES - np.minimum(IMAGES, 3))
    np.save(tmp_path / "gan_0_2.npy", 255 - IMAGES)
    return tmp_path


@pytest.mark.parametrize(
    ("perturbation", "expected"),
    [
        ("linf", IMAGES - np.minimum(IMAGES, 16)),
        ("l2", IMAGES - np.minimum(IMAGES, 3)),
        ("gan", 255 - IMAGES),
    ],
)
def test_official_images_are_taken_from_the_folder(
    perturbation: Any, expected: Any, official: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unpoison.attacks.reference.find_spec", lambda _: None)  # no torch is needed
    one = CleanLabel(3, 0.5, perturbation, arrays=official)
    poisoned, truth = one.apply(SAMPLES, seed=0)
    assert (poisoned.features[truth.planted] == Corners()(expected)[truth.planted]).all()
    assert (poisoned.features[~truth.planted] == IMAGES[~truth.planted]).all()
    assert (official_clean_label(official, SAMPLES, perturbation) == expected).all()


def test_an_official_file_of_its_own(official: Path) -> None:
    images = official_clean_label(
        official / "inf_16.npy", SAMPLES, "linf", strength=16, chosen=np.array([5, 2])
    )
    assert (images == (IMAGES - np.minimum(IMAGES, 16))[[5, 2]]).all()
    images[:] = 0  # not the file's


@pytest.mark.parametrize("perturbation", ["linf", "gan"])
def test_a_part_of_the_set_takes_its_images_from_the_file_of_all(perturbation: Any, official: Path) -> None:
    rows = np.random.default_rng(1).permutation(len(IMAGES))[:150]
    some = SAMPLES.changed(IMAGES[rows], SAMPLES.labels[rows])
    part = Part(tuple(rows.tolist()), len(IMAGES))
    one = CleanLabel(3, 0.5, perturbation, arrays=official, part=part)
    poisoned, truth = one.apply(some, seed=0)
    expected = (255 - IMAGES if perturbation == "gan" else IMAGES - np.minimum(IMAGES, 16))[rows]
    assert 0 < truth.planted.sum() < len(rows)
    assert (poisoned.features[truth.planted] == Corners()(expected)[truth.planted]).all()
    with pytest.raises(InputError, match=r"shape \(400, 16, 16, 1\); .* uint8 of shape \(150, 16"):
        CleanLabel(3, 0.5, perturbation, arrays=official).apply(some, seed=0)


@pytest.mark.parametrize(
    ("perturbation", "strength", "name"),
    [("linf", 8, "inf_8.npy"), ("l2", 1200.0, "two_1200.npy"), ("gan", 0.1, "gan_0_1.npy")],
)
def test_official_names(perturbation: Any, strength: float, name: str) -> None:
    assert official_name(perturbation, strength) == name


def test_official_images_in_another_order_are_refused(official: Path) -> None:
    np.save(official / "inf_16.npy", IMAGES[::-1])
    with pytest.raises(InputError, match=r"inf_16.npy differ from the data by .*\(linf\).*bound 16.*order"):
        official_clean_label(official, SAMPLES, "linf")


def test_official_images_of_another_kind_are_refused(official: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*inf_99.npy"):
        CleanLabel(3, 0.5, bound=99, arrays=official).apply(SAMPLES, seed=0)
    np.save(official / "floats.npy", IMAGES / 255)
    with pytest.raises(InputError, match=r"floats.npy holds float64 of shape .* are uint8"):
        official_clean_label(official / "floats.npy", SAMPLES, "linf")
    np.save(official / "few.npy", IMAGES[:7])
    with pytest.raises(InputError, match=r"few.npy holds uint8 of shape \(7, 16, 16, 1\).*\(400, 16"):
        official_clean_label(official / "few.npy", SAMPLES, "gan")


def test_official_files_that_are_no_arrays_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(InputError, match=r"text.npy cannot be read"):
        official_clean_label(tmp_path / "text.npy", SAMPLES, "linf")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"objects.npy cannot be read"):
        official_clean_label(tmp_path / "objects.npy", SAMPLES, "linf")
    np.savez(tmp_path / "several.npz", a=IMAGES)
    with pytest.raises(InputError, match=r"several.npz is an archive"):
        official_clean_label(tmp_path / "several.npz", SAMPLES, "linf")
