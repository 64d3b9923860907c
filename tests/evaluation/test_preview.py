from __future__ import annotations

import numpy as np
import pytest

from unpoison.attacks.base import Samples
from unpoison.attacks.dirty_label import DirtyLabel
from unpoison.attacks.label_noise import LabelNoise
from unpoison.attacks.labels import AllToAll, OneToOne
from unpoison.attacks.triggers import Patch
from unpoison.evaluation.preview import (
    FONT_SIZE,
    MOST_PAIRS,
    SMALLEST_SIDE,
    Pair,
    amplification,
    by_turns,
    difference,
    draw,
    train_pairs,
    triggered_pairs,
)


def samples(channels: int = 3, side: int = 16) -> Samples:
    pixels = np.random.default_rng(1).integers(0, 200, (60, side, side, channels), dtype=np.uint8)
    return Samples(pixels, np.arange(60) % 3, ("cat", "dog", "eel"))


def test_pairs_show_what_was_planted_and_its_labels() -> None:
    attack = DirtyLabel(OneToOne(0, 1), 0.5, Patch())
    clean = samples()
    poisoned, truth = attack.apply(clean, seed=0)
    pairs = train_pairs(clean, poisoned, truth)
    assert len(pairs) == MOST_PAIRS
    for pair in pairs:
        assert (pair.was, pair.now, pair.heading) == ("cat", "dog", "train")
        changed = (pair.before != pair.after).any(axis=2)
        assert changed[:2, :2].all()
        assert changed.sum() == 4


def test_as_many_classes_as_there_are() -> None:
    clean = samples()
    poisoned, truth = DirtyLabel(AllToAll(3), 0.5, Patch()).apply(clean, seed=0)
    assert {pair.was for pair in train_pairs(clean, poisoned, truth, most=3)} == {"cat", "dog", "eel"}
    assert len(train_pairs(clean, poisoned, truth, most=100)) == truth.planted.sum()


def test_pairs_of_the_test_set_show_the_trigger_and_the_goal() -> None:
    pairs = triggered_pairs(samples(), DirtyLabel(OneToOne(0, 1), 0.5, Patch()))
    assert [(pair.was, pair.now, pair.heading) for pair in pairs] == [("cat", "> dog", "test")] * 2
    assert triggered_pairs(samples(), LabelNoise(0.1)) == []


def test_turns_are_fair_and_the_same_every_time() -> None:
    places, labels = np.arange(100, 200), np.repeat([0, 1, 2], [90, 8, 2])
    chosen = by_turns(places, labels, 8)
    assert np.bincount(labels[chosen - 100]).tolist() == [3, 3, 2]
    assert chosen.tolist() == sorted(chosen.tolist()) == by_turns(places, labels, 8).tolist()
    assert by_turns(places[:0], labels[:0], 8).tolist() == []


def test_the_difference_is_stretched_around_gray() -> None:
    before = np.full((4, 4, 1), 100, dtype=np.uint8)
    after = before.copy()
    after[0, 0], after[0, 1] = 104, 98
    pair = Pair(before, after, "a", "b", "train")
    shown, factor = difference(pair)
    assert (shown[0, 0, 0], shown[0, 1, 0], shown[3, 3, 0]) == (255, 64, 128)
    assert factor == 127 / 4
    assert amplification(pair) == "times 31.8"
    same = Pair(before, before, "a", "b", "train")
    assert amplification(same) == "none"
    assert (difference(same)[0] == 128).all()


@pytest.mark.parametrize(("channels", "side"), [(1, 8), (3, 16), (3, 40), (1, 130)])
def test_the_picture(channels: int, side: int) -> None:
    clean = samples(channels, side)
    poisoned, truth = DirtyLabel(OneToOne(0, 1), 0.5, Patch(row=0, column=0, size=side // 2)).apply(
        clean, seed=0
    )
    pairs = train_pairs(clean, poisoned, truth, most=2)
    picture = np.asarray(draw(pairs))
    scale = -(-SMALLEST_SIDE // side)
    cell = scale * side
    assert cell >= SMALLEST_SIDE
    assert picture.shape[2] == 3
    assert 3 * cell < picture.shape[0] < 3 * cell + 100
    assert 2 * cell < picture.shape[1] < 2 * cell + 150
    enlarged = np.broadcast_to(pairs[1].after.repeat(scale, axis=0).repeat(scale, axis=1), (cell, cell, 3))
    last = picture[:, -cell - 6 : -6]
    found = [top for top in range(len(last) - cell) if np.array_equal(last[top : top + cell], enlarged)]
    assert len(found) == 1, "the poisoned image, pixel by pixel"


def test_names_of_the_attackers_choice_stay_inside_their_cell() -> None:
    before = np.zeros((16, 16, 1), dtype=np.uint8)
    plain = draw([Pair(before, before, "a", "b", "train")] * 2)
    long = draw([Pair(before, before, "W" * 500 + "\x1b[2J", "\u202e\n" * 99, "train")] * 2)
    assert long.size == plain.size
    left = np.asarray(long)[:, -6:]
    assert (left == 255).all(), "nothing in the margin"
    assert FONT_SIZE < 20
