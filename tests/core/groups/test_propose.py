from __future__ import annotations

import numpy as np
import pytest

from unpoison.core.groups.propose import (
    ProposeTask,
    completed,
    is_same,
    met_by,
    near_to,
    sets_of,
    travelled,
)
from unpoison.seeds import Seeds

LABELS = np.repeat([0, 1, 2], 500)
EVERYONE = np.ones(len(LABELS), dtype=np.bool_)


def view_of(groups: dict[int, np.ndarray], *, distance: float = 12.0, seed: int = 0) -> np.ndarray:
    """What a model sees of three classes; each of ``groups`` lies along a way of its own."""
    rng = np.random.default_rng(seed)
    view = rng.normal(size=(len(LABELS), 80)) + 3.0 * rng.normal(size=(3, 80))[LABELS]
    ways = np.eye(80)[rng.permutation(80)]
    for number, members in groups.items():
        view[members] += distance * ways[number]
    return np.asarray(view, dtype=np.float32)


def proposed(
    groups: dict[int, np.ndarray],
    classes: tuple[int, ...] = (0, 1, 2),
    *,
    least: float = 7.0,
    distance: float = 12.0,
) -> list[set[int]]:
    task = ProposeTask(view_of(groups, distance=distance), LABELS, classes, least, Seeds(0), EVERYONE)
    found = task()
    parts = sets_of(found, "samples")
    assert len(parts) == len(found["z"]) == len(found["error"])
    return [set(part.tolist()) for part in parts]


@pytest.mark.parametrize("size", [8, 15, 60, 240])
def test_a_group_is_found_whole_whatever_its_size(size: int) -> None:
    members = np.arange(600, 600 + size)
    assert set(members.tolist()) in proposed({0: members})


def test_where_nothing_stands_apart_nothing_is_proposed() -> None:
    assert proposed({}) == []
    assert proposed({0: np.arange(600, 660)}, distance=1.0) == []


def test_two_groups_of_a_class_are_two() -> None:
    one, other = np.arange(600, 640), np.arange(640, 720)
    assert sorted(map(len, proposed({0: one, 1: other}))) == [40, 80]


def test_groups_of_a_class_do_not_overlap() -> None:
    found = proposed({0: np.arange(600, 680), 1: np.arange(660, 740)})
    members = [each for group in found for each in group]
    assert len(members) == len(set(members))


def test_of_a_large_cut_both_sides_are_proposed() -> None:
    large = set(range(600, 800))
    found = proposed({0: np.arange(600, 800)})
    assert large in found
    assert set(range(500, 1000)) - large in found


def test_only_the_classes_that_are_asked_for() -> None:
    groups = {0: np.arange(600, 640), 1: np.arange(1100, 1140)}
    assert proposed(groups, (2,)) == [set(range(1100, 1140))]
    assert proposed(groups, (0,)) == []


def test_classes_of_a_few_samples_do_no_harm() -> None:
    labels = np.array([0] * 60 + [1] * 3 + [2])
    view = np.random.default_rng(0).normal(size=(64, 12)).astype(np.float32)
    found = ProposeTask(view, labels, (0, 1, 2), 3.0, Seeds(0), np.ones(64, dtype=np.bool_))()
    assert set(labels[found["samples"]].tolist()) <= {0}


def test_a_group_takes_the_rest_of_its_kind_along() -> None:
    """Half of it among the rest hides the other half, but shows the way."""
    view = view_of({0: np.arange(600, 640)})[LABELS == 1].astype(np.float64)
    whole, half = np.zeros(500, dtype=np.bool_), np.zeros(500, dtype=np.bool_)
    whole[100:140] = half[100:140:2] = True
    assert (completed(view, half) == whole).all()
    apart, hidden = (met_by(view, group, rng=np.random.default_rng(0)).z for group in (whole, half))
    assert apart > 2 * hidden


def test_a_group_sheds_what_is_not_of_its_kind() -> None:
    view = view_of({0: np.arange(600, 640)})[LABELS == 1].astype(np.float64)
    whole, more = np.zeros(500, dtype=np.bool_), np.zeros(500, dtype=np.bool_)
    whole[100:140] = more[100:155] = True
    assert (completed(view, more) == whole).all()


def test_travelled_is_0_at_the_others_and_1_at_the_group() -> None:
    view = view_of({0: np.arange(600, 640)})[LABELS == 1].astype(np.float64)
    group = np.arange(500) // 40 == 0
    group[:100], group[100:140] = False, True
    way = travelled(view, group)
    assert way[group].mean() == pytest.approx(1.0, abs=0.05)
    assert way[~group].mean() == pytest.approx(0.0, abs=0.05)


def test_the_same() -> None:
    one, other = np.array([True] * 4 + [False] * 6), np.array([False] * 2 + [True] * 8)
    assert is_same(one, other)
    assert not is_same(one, ~one)


def test_what_is_near_a_group_lies_beyond_the_spread_of_the_others() -> None:
    view = view_of({0: np.arange(600, 640)}, distance=30.0)[LABELS == 1].astype(np.float64)
    way = view[100:140].mean(axis=0) - view[140:].mean(axis=0)
    view[140:146] += 0.42 * way
    view[146:152] += 0.05 * way
    group = np.zeros(500, dtype=np.bool_)
    group[100:140] = True
    near = near_to(view, group)
    assert near[140:146].sum() >= 5
    assert not near[146:].any()
    assert not near[:140].any()


def test_nothing_is_near_where_the_others_spread_as_far() -> None:
    view = view_of({0: np.arange(600, 640)}, distance=6.0)[LABELS == 1].astype(np.float64)
    group = np.zeros(500, dtype=np.bool_)
    group[100:140] = True
    assert not near_to(view, group).any()


def likes(labels: np.ndarray, view: np.ndarray) -> list[tuple[int, set[int], set[int]]]:
    """Of each proposed group: its label, its members, and what is like it in other classes."""
    task = ProposeTask(view, labels, (0, 1, 2), 7.0, Seeds(0), np.ones(len(labels), dtype=np.bool_))
    found = task()
    members, like = sets_of(found, "samples"), sets_of(found, "like")
    return [(int(labels[each[0]]), set(each), set(other)) for each, other in zip(members, like, strict=True)]


def test_what_is_like_a_group_is_found_in_other_classes() -> None:
    """Where there is so little of it that there it is not proposed."""
    few, many, another = np.arange(600, 640), np.arange(1000, 1060), np.arange(1100, 1160)
    view = view_of({0: np.concatenate([few, many]), 1: another})
    found = sorted(likes(LABELS, view), key=lambda entry: min(entry[1]))
    assert found == [(2, set(many), set(few)), (2, set(another), set())]


def test_what_is_planted_in_one_class_is_like_nothing() -> None:
    """Nor are the samples of the class that it was taken from."""
    view, labels = view_of({0: np.arange(600, 640)}), LABELS
    view[600:640] += view[:500].mean(axis=0) - view[500:600].mean(axis=0)
    (found,) = likes(labels, view)
    assert found == (1, set(range(600, 640)), set())


def test_of_classes_that_fall_into_two_alike_both_sides_are_like_both() -> None:
    one = np.concatenate([np.arange(500, 680), np.arange(1000, 1200)])
    found = [(members, like) for _, members, like in likes(LABELS, view_of({0: one}))]
    assert found == [
        (set(range(1000, 1200)), set(range(500, 680))),
        (set(range(1200, 1500)), set(range(680, 1000))),
    ]
