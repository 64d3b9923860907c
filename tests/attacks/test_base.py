from __future__ import annotations

import numpy as np
import pytest

from unpoison.attacks.base import Samples, check_images, check_share, choose, plant
from unpoison.errors import InputError

LABELS = np.array([0, 2, 2, 0])
ROWS = np.arange(8.0).reshape(4, 2)


def test_samples_count_their_classes() -> None:
    samples = Samples.numbered(ROWS, LABELS)
    assert len(samples) == 4
    assert samples.n_classes == 3
    assert samples.class_names == ("0", "1", "2")


def test_no_samples_are_no_classes() -> None:
    assert Samples.numbered(ROWS[:0], LABELS[:0]).n_classes == 0


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        (LABELS[:3], "4 samples but 3 labels"),
        (LABELS.astype(float), "float64 of shape"),
        (LABELS[:, None], r"shape \(4, 1\)"),
        (np.array([0, 1, 3, 0]), "from 0 to 3, but there are names for 3 classes"),
        (np.array([0, 1, -1, 0]), "from -1 to 1"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels: np.ndarray, named: str) -> None:
    with pytest.raises(InputError, match=named):
        Samples(ROWS, labels, ("a", "b", "c"))


def test_plant_changes_copies_where_it_is_told() -> None:
    samples = Samples.numbered(ROWS, LABELS)
    planted, covers = np.array([3]), np.array([1])
    changed, truth = plant(samples, planted, ROWS[planted] + 10, 2, covers=covers, cover_features=ROWS[:1])
    assert changed.features.tolist() == [[0, 1], [0, 1], [4, 5], [16, 17]]
    assert changed.labels.tolist() == [0, 2, 2, 2]
    assert truth.planted.tolist() == [False, False, False, True]
    assert truth.covers.tolist() == [False, True, False, False]
    assert truth.original_labels.tolist() == samples.labels.tolist() == [0, 2, 2, 0]
    assert samples.features.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_choose_is_ascending_without_repetition_and_takes_at_least_one() -> None:
    stream = np.random.default_rng(0)
    chosen = choose(np.arange(100, 200), 60, stream).tolist()
    assert chosen == sorted(set(chosen))
    assert len(chosen) == 60
    assert len(choose(np.arange(5), 0, stream)) == 1


def test_zero_is_a_share_only_where_it_may_be() -> None:
    check_share("cover", 0.0, "a share", zero=True)
    with pytest.raises(InputError, match=r"cover is a share, in \(0, 1\]. Got 0.0"):
        check_share("cover", 0.0, "a share")


@pytest.mark.parametrize(
    "features",
    [
        np.zeros((2, 4, 4, 3)),
        np.zeros((2, 4, 4), np.uint8),
        np.zeros((2, 4, 4, 2), np.uint8),
        np.array(["text"], dtype=object),
    ],
)
def test_what_is_no_image_is_refused(features: np.ndarray) -> None:
    with pytest.raises(InputError, match=f"got {features.dtype} of shape"):
        check_images(features)
