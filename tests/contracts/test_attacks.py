"""What every attack does and does not do. A new attack is one more line in ``CASES``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from unpoison.attacks.adaptive import Adaptive
from unpoison.attacks.base import NOT_ATTACKED, Attack, Samples
from unpoison.attacks.clean_label import CleanLabel
from unpoison.attacks.dirty_label import Darkest, DirtyLabel, RightLabel
from unpoison.attacks.label_noise import LabelNoise
from unpoison.attacks.labels import AllToAll, AllToOne, OneToOne, Relabelling
from unpoison.attacks.official import OfficialDirtyLabel
from unpoison.attacks.reference import ReferenceOptions
from unpoison.attacks.rows import FixedValues
from unpoison.attacks.sleeper_agent import SleeperAgent
from unpoison.attacks.text import RareToken
from unpoison.attacks.triggers import (
    Blend,
    Corners,
    Mark,
    OneOf,
    Patch,
    Pieces,
    Signal,
    Together,
    Trigger,
    Warp,
    Watermark,
    random_mark,
)
from unpoison.errors import InputError

N, N_CLASSES = 400, 10
LABELS = np.random.default_rng(1).permutation(np.arange(N) % N_CLASSES)
"""Forty samples a class."""


def _frozen(features: Any) -> Samples:
    """Read-only, as data are given."""
    labels = LABELS.copy()
    features.setflags(write=False)
    labels.setflags(write=False)
    return Samples(features, labels, tuple("abcdefghij"))


def images(channels: int = 3) -> Samples:
    return _frozen(np.random.default_rng(0).integers(0, 256, (N, 32, 32, channels), dtype=np.uint8))


def gray_images() -> Samples:
    return images(1)


def texts() -> Samples:
    return _frozen(np.array([f"message {i} says nothing" for i in range(N)], dtype=object))


def rows() -> Samples:
    return _frozen(np.random.default_rng(0).normal(size=(N, 6)))


@dataclass(frozen=True)
class Case:
    """An attack, the data it is tried on, and how much it should plant there."""

    id: str
    build: Callable[[], Attack]
    samples: Callable[[], Samples]
    planted: int
    covers: int = 0
    seeded: bool = True
    """Whether the seed decides which samples are planted."""
    relabels: bool = True
    """False: planted samples keep their labels."""
    marks: bool = True
    """False: there is no trigger."""
    touches: bool = True
    """False: in training, images stay as they are."""


ONE_TO_ONE = OneToOne(1, 2)


def dirty(mark: Trigger, relabelling: Relabelling = ONE_TO_ONE, **options: Any) -> Callable[[], Attack]:
    return lambda: DirtyLabel(relabelling, 0.25, mark, **options)


FAINT = Pieces(Blend.noise(0), seed=1)
COMPONENTS = np.empty(N, dtype=np.int64)
COMPONENTS[np.argsort(LABELS, kind="stable")] = np.arange(N) % 4 - 1
"""Ten samples of every class in each of four components."""

CASES = [
    Case("patch", dirty(Patch()), images, 10),
    Case("patch-gray", dirty(Patch(value=(9, 200, 100))), gray_images, 10),
    Case("mark", dirty(random_mark(0, 32, 32)), images, 10),
    Case("mark-gray", dirty(random_mark(0, 32, 32)), gray_images, 10),
    Case("watermark", dirty(Watermark.named("bullet-holes")), images, 10),
    Case("corners", dirty(Corners(0.5)), images, 10),
    Case("blend", dirty(Blend.noise(0)), images, 10),
    Case("signal", dirty(Signal()), images, 10),
    Case("warp", dirty(Warp(0)), images, 10),
    Case("all-to-one", dirty(Patch(), AllToOne(3)), images, 9),
    Case("all-to-all", dirty(Patch(), AllToAll(10)), images, 100),
    Case("covers", dirty(Patch(), cover=0.1), images, 10, covers=32),
    Case("adap-blend", dirty(Blend.noise(0), AllToOne(3), cover=0.1, train_mark=FAINT), images, 9, covers=39),
    Case("so-many", dirty(Patch(), OneToOne(1, 2, count=7)), images, 7),
    Case("so-many-of-all", dirty(Patch(), AllToOne(3, count=31)), images, 31),
    Case("tact", dirty(Patch(), cover_count=12, cover_from=(5, 7)), images, 10, covers=12),
    Case("one-of", dirty(OneOf((Patch(), Corners(only_one=True)), 0)), images, 10),
    Case("together", dirty(Together((Patch(), Corners()))), images, 10),
    Case("warp-noise", dirty(Warp(0), cover=0.1, cover_mark=Warp(0, noise_seed=1)), images, 10, covers=32),
    Case("right-label", lambda: RightLabel(2, 0.25, Signal()), images, 10, relabels=False),
    Case(
        "darkest", lambda: Darkest.of(images(), OneToOne(1, 2), 0.25), images, 10, seeded=False, touches=False
    ),
    Case("official", lambda: OfficialDirtyLabel(100, (3, 5), 0.2), images, 8, seeded=False),
    Case("label-noise", lambda: LabelNoise(0.1), images, 40, marks=False),
    Case("class-noise", lambda: LabelNoise(0.1, "class"), rows, 40, marks=False),
    Case("rare-token", lambda: RareToken(OneToOne(4, 0), 0.5, position="random"), texts, 20),
    Case("fixed-values", lambda: FixedValues(OneToOne(4, 0), 0.5, (2, 5), (9.0, -9.0)), rows, 20),
    Case("adaptive", lambda: Adaptive(AllToOne(0), 0.9, Patch(), COMPONENTS), images, 36),
]
if find_spec("torch"):
    QUICK = ReferenceOptions(epochs=1)
    CASES += [
        Case(
            f"clean-label-{norm}",
            partial(CleanLabel, 1, 0.25, norm, steps=2, reference=QUICK),
            images,
            10,
            relabels=False,
        )
        for norm in ("linf", "l2")
    ]
    CASES += [
        Case(
            "sleeper-agent",
            partial(SleeperAgent, 1, 2, 0.25, steps=2, retrainings=1, reference=QUICK),
            images,
            10,
            relabels=False,
        )
    ]


@pytest.fixture(params=CASES, ids=lambda case: case.id)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def as_bytes(features: Any) -> bytes:
    return repr(features.tolist()).encode() if features.dtype == object else features.tobytes()


def test_the_set_keeps_its_size_and_form(case: Case) -> None:
    samples = case.samples()
    poisoned, truth = case.build().apply(samples, seed=0)
    assert poisoned.features.shape == samples.features.shape
    assert poisoned.features.dtype == samples.features.dtype
    assert poisoned.labels.dtype == samples.labels.dtype
    assert poisoned.class_names == samples.class_names
    for mask in (truth.planted, truth.covers):
        assert mask.dtype == bool
        assert mask.shape == (N,)


def test_as_many_as_asked(case: Case) -> None:
    for seed in range(3):
        _, truth = case.build().apply(case.samples(), seed=seed)
        assert truth.planted.sum() == case.planted
        assert truth.covers.sum() == case.covers
        assert not (truth.planted & truth.covers).any()


def test_only_the_chosen_change(case: Case) -> None:
    samples = case.samples()
    poisoned, truth = case.build().apply(samples, seed=0)
    touched = truth.planted | truth.covers
    assert as_bytes(poisoned.features[~touched]) == as_bytes(samples.features[~touched])
    if case.marks and case.touches:
        for i in np.flatnonzero(touched):
            assert as_bytes(poisoned.features[i : i + 1]) != as_bytes(samples.features[i : i + 1])
    else:
        assert as_bytes(poisoned.features) == as_bytes(samples.features)


def test_labels_change_where_planted_and_nowhere_else(case: Case) -> None:
    samples = case.samples()
    attack = case.build()
    poisoned, truth = attack.apply(samples, seed=0)
    assert truth.original_labels.tolist() == samples.labels.tolist()
    expected = truth.planted if case.relabels else np.zeros(N, dtype=bool)
    assert (poisoned.labels != samples.labels).tolist() == expected.tolist()
    if case.marks and case.relabels:
        wanted = attack.goal(samples.labels)[truth.planted]
        assert poisoned.labels[truth.planted].tolist() == wanted.tolist()


def test_what_is_given_stays_as_it_is(case: Case) -> None:
    """It is read-only, and nothing of it is shared with what comes back."""
    samples, again = case.samples(), case.samples()
    poisoned, truth = case.build().apply(samples, seed=0)
    poisoned.features[:] = poisoned.features[::-1].copy()
    poisoned.labels[:] = 0
    truth.original_labels[:] = 0
    assert as_bytes(samples.features) == as_bytes(again.features)
    assert samples.labels.tolist() == again.labels.tolist()


def test_the_same_seed_gives_the_same_bytes(case: Case) -> None:
    samples = case.samples()
    state = np.random.get_state()[1].copy()  # type: ignore[index,union-attr]
    (first, truth), (second, again) = (case.build().apply(samples, seed=4) for _ in range(2))
    assert as_bytes(first.features) == as_bytes(second.features)
    assert first.labels.tobytes() == second.labels.tobytes()
    assert truth.planted.tobytes() == again.planted.tobytes()
    assert truth.covers.tobytes() == again.covers.tobytes()
    assert np.array_equal(state, np.random.get_state()[1])  # type: ignore[index]


def test_another_seed_plants_others(case: Case) -> None:
    samples = case.samples()
    first, second = (case.build().apply(samples, seed=seed)[1] for seed in (4, 5))
    assert (first.planted.tolist() != second.planted.tolist()) == case.seeded
    if case.covers:
        assert first.covers.tolist() != second.covers.tolist()


def test_the_trigger_marks_copies(case: Case) -> None:
    samples = case.samples()
    before = as_bytes(samples.features)
    shown = case.build().trigger(samples.features)
    assert shown.shape == samples.features.shape
    assert shown.dtype == samples.features.dtype
    assert not np.shares_memory(shown, samples.features)
    assert as_bytes(samples.features) == before
    assert (as_bytes(shown) != before) == case.marks
    assert as_bytes(case.build().trigger(samples.features)) == as_bytes(shown)


def test_the_trigger_on_nothing(case: Case) -> None:
    nothing = case.samples().features[:0]
    assert case.build().trigger(nothing).shape == nothing.shape


def test_goals(case: Case) -> None:
    goal = case.build().goal(LABELS)
    assert goal.shape == LABELS.shape
    assert np.issubdtype(goal.dtype, np.integer)
    assert ((goal == NOT_ATTACKED) | ((goal >= 0) & (goal < N_CLASSES))).all()
    assert (goal != LABELS).all(), "nobody is to be called what they are"
    assert (goal != NOT_ATTACKED).any() == case.marks
    assert len(case.build().goal(LABELS[:0])) == 0


def test_equal_settings_are_equal_attacks(case: Case) -> None:
    assert case.build() == case.build()
    hash(case.build())


def test_names_are_plain_and_one_a_kind() -> None:
    names = {type(case.build()): case.build().name for case in CASES}
    assert len(set(names.values())) == len(names)
    assert all(name.replace("-", "").isalpha() and name.islower() for name in names.values())


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "source is target": (lambda: OneToOne(3, 3), "both class 3"),
    "no such source": (lambda: dirty(Patch(), OneToOne(31, 2))().apply(images(), seed=0), "source class 31"),
    "no such target": (lambda: dirty(Patch(), AllToOne(31))().apply(images(), seed=0), "target class 31"),
    "no such class, text": (lambda: RareToken(OneToOne(0, 44), 0.1).apply(texts(), seed=0), "class 44"),
    "other classes": (lambda: dirty(Patch(), AllToAll(7))().apply(images(), seed=0), "7 classes"),
    "images, not texts": (lambda: RareToken(OneToOne(0, 1), 0.1).apply(images(), seed=0), "uint8"),
    "rows, not images": (lambda: dirty(Patch())().apply(rows(), seed=0), "float64"),
}
EPSILONS: dict[str, Callable[[float], Attack]] = {
    "dirty-label": lambda epsilon: DirtyLabel(OneToOne(0, 1), epsilon, Patch()),
    "official": lambda epsilon: OfficialDirtyLabel(100, (0, 2), epsilon),
    "label-noise": lambda epsilon: LabelNoise(epsilon),
    "rare-token": lambda epsilon: RareToken(OneToOne(0, 1), epsilon),
    "fixed-values": lambda epsilon: FixedValues(OneToOne(0, 1), epsilon, (0,), (1.0,)),
    "adaptive": lambda epsilon: Adaptive(OneToOne(0, 1), epsilon, Patch(), (0, 1)),
}
TOO_LARGE: dict[str, tuple[Trigger, str]] = {
    "patch": (Patch(size=5), "5 pixels"),
    "mark": (Mark("pattern", 3, 3, (0, 0, 0)), "3 by 3 pixels at row 3, column 3"),
    "watermark": (Watermark.named("peace"), "8 by 8 pixels"),
    "corners": (Corners(), "3 by 3 pixels"),
    "signal": (Signal(), "6 waves"),
    "warp": (Warp(0, grid=5), "5 by 5 points"),
    "pieces": (Pieces(Patch(), 0, grid=5), "5 by 5 pieces"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_named(name: str) -> None:
    call, named = REFUSED[name]
    with pytest.raises(InputError, match=named):
        call()


@pytest.mark.parametrize("epsilon", [0.0, -0.25, 1.5, float("nan"), float("inf")])
@pytest.mark.parametrize("name", EPSILONS)
def test_a_share_out_of_range_is_named(name: str, epsilon: float) -> None:
    with pytest.raises(InputError, match=rf"epsilon is .* in \(0, 1\]. Got {epsilon}"):
        EPSILONS[name](epsilon)


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_trigger_that_does_not_fit_is_named(name: str) -> None:
    mark, size = TOO_LARGE[name]
    small = np.zeros((2, 4, 4, 3), dtype=np.uint8)
    with pytest.raises(InputError, match=f"{size}.*images of 4 by 4.*(choose|need)"):
        mark(small)


@pytest.mark.parametrize(
    "mark", [random_mark(0, 32, 32), Watermark.named("peace")], ids=["mark", "watermark"]
)
def test_fifty_thousand_images_take_less_than_a_second(mark: Trigger) -> None:
    rng = np.random.default_rng(0)
    features = np.tile(rng.integers(0, 256, (500, 32, 32, 3), dtype=np.uint8), (100, 1, 1, 1))
    samples = Samples.numbered(features, np.arange(50_000) % 10)
    seconds = []
    for seed in range(3):
        started = time.perf_counter()
        _, truth = DirtyLabel(OneToOne(1, 2), 0.2, mark).apply(samples, seed=seed)
        seconds.append(time.perf_counter() - started)
        assert truth.planted.sum() == 1000
    assert min(seconds) < 1.0
