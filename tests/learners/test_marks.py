from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from unpoison.learners.marks import marked_copies
from unpoison.learners.sklearn import SklearnFactory

GROUPS = np.repeat([1, 2], [5, 7])
INDICES = np.arange(20, 32)


def images(side: int = 32) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (40, side, side, 3), dtype=np.uint8)


@pytest.mark.parametrize("side", [8, 32, 64])
def test_images_get_a_square_of_their_groups_own(side: int) -> None:
    before = images(side)
    copies = marked_copies(before, INDICES, GROUPS, seed=0)
    assert copies.shape == (12, side, side, 3)
    assert copies.dtype == np.uint8
    differs = (copies != before[INDICES]).any(axis=3)
    places = [differs[k == GROUPS].any(axis=0) for k in (1, 2)]
    for place, k in zip(places, (1, 2), strict=True):
        rows, columns = np.nonzero(place)
        assert np.ptp(rows) <= max(1, 3 * side // 32) + 1
        shown = copies[k == GROUPS][:, rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        assert (shown == shown[0]).all(), "the same mark on every image of a group"
    assert not (places[0] & places[1]).all()
    assert (before == images(side)).all()


def test_rows_get_values_past_the_largest() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 10))
    copies = marked_copies(rows, INDICES, GROUPS, seed=0)
    for k in (1, 2):
        own = copies[k == GROUPS]
        marked = np.flatnonzero((own == own[0]).all(axis=0))
        assert len(marked) == 3
        assert (own[0, marked] > rows[:, marked].max(axis=0)).all()
        others = np.setdiff1d(np.arange(10), marked)
        assert (own[:, others] == rows[INDICES[k == GROUPS]][:, others]).all()


def test_texts_get_a_rare_word() -> None:
    rng = np.random.default_rng(0)
    words = csr_matrix(rng.random((40, 30)) * (rng.random((40, 30)) < np.linspace(0.02, 0.9, 30)))
    copies = marked_copies(words, INDICES, GROUPS, seed=0)
    assert copies.shape == (12, 30)
    counts = np.asarray((words != 0).sum(axis=0)).ravel()
    for k in (1, 2):
        added = (copies[k == GROUPS] != words[INDICES[k == GROUPS]]).toarray().any(axis=0)
        assert added.sum() == 1
        assert counts[added][0] <= np.median(counts[counts > 0])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_factory_has_them_after_its_own_samples(sparse: bool) -> None:
    matrix: Any = np.abs(np.random.default_rng(0).normal(size=(40, 6)))
    labels = np.arange(40) % 2
    factory = SklearnFactory(LogisticRegression(), csr_matrix(matrix) if sparse else matrix, labels, 2)
    more = factory.with_marked_copies(INDICES, np.zeros(12, dtype=int), GROUPS, seed=0)
    assert more.matrix.shape == (52, 6)
    assert more.labels.tolist() == [*labels.tolist(), *[0] * 12]
    learner = more(0)
    learner.fit(np.arange(52), epochs=1)
    assert learner.assess(np.arange(40, 52)).predictions.shape == (12,)


def test_a_network_has_them_too() -> None:
    pytest.importorskip("torch")
    from unpoison.learners.networks import NETWORKS
    from unpoison.learners.torch import TorchFactory

    factory = TorchFactory(NETWORKS["compact"], images(), np.arange(40) % 2, 2)
    more = factory.with_marked_copies(INDICES, np.ones(12, dtype=int), GROUPS, seed=0)
    assert (more.samples[:40] == images()).all()
    assert more(0).assess(np.arange(40, 52)).predictions.shape == (12,)
    assert len(factory.samples) == 40


def test_the_same_seed_gives_the_same_marks() -> None:
    one, same, other = (marked_copies(images(), INDICES, GROUPS, seed=seed) for seed in (0, 0, 1))
    assert (one == same).all()
    assert (one != other).any()
