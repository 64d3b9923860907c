from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits

from unpoison.data.container import Preview
from unpoison.report import neighbours
from unpoison.report.neighbours import nearest_kept

from .builders import judged, make


def by_hand(rows: np.ndarray, sample: int, among: np.ndarray) -> int:
    among = among[among != sample]
    distances = ((rows[among] - rows[sample]) ** 2).sum(axis=1)
    return int(among[distances.argmin()]) if len(among) else -1


@pytest.mark.parametrize("block", [10**6, 50])
def test_images_are_compared_by_their_pixels(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_BLOCK_CELLS", block)
    monkeypatch.setattr(neighbours, "_CHUNK_BYTES", 4 * block)
    pixels = (load_digits().images[:120] * 15).astype(np.uint8)[..., None]
    dataset = make("image", lambda _: Preview(), features=pixels)
    result = judged(dataset, range(0, 30, 3))
    samples = np.array([0, 3, 27, 5, 7])
    found = nearest_kept(dataset, result, samples)
    rows = pixels.reshape(120, -1).astype(float)
    for place, sample in enumerate(samples.tolist()):
        same = np.flatnonzero(result.keep & (dataset.labels == dataset.labels[sample]))
        assert found.of_label[place] == by_hand(rows, sample, same)
        called = np.flatnonzero(result.keep & (dataset.labels == 1))
        expected = by_hand(rows, sample, called) if not result.keep[sample] else -1
        assert found.of_called[place] == expected


def test_large_images_are_shrunk_evenly() -> None:
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (120, 8, 8, 3), dtype=np.uint8)
    large = small.repeat(5, axis=1).repeat(3, axis=2)
    results = []
    for pixels in (small, large):
        dataset = make("image", lambda _: Preview(), features=pixels)
        results.append(nearest_kept(dataset, judged(dataset, range(0, 30, 3)), np.arange(0, 30, 3)))
    assert np.array_equal(results[0].of_label, results[1].of_label)
    assert np.array_equal(results[0].of_called, results[1].of_called)
    odd = make("image", lambda _: Preview(), features=rng.integers(0, 256, (120, 3, 13, 1), dtype=np.uint8))
    assert (nearest_kept(odd, judged(odd, [0]), np.array([0])).of_label >= 0).all()


def test_columns_count_alike() -> None:
    rows = np.zeros((120, 2), dtype=np.float32)
    rows[:, 0] = np.arange(120) * 1e6
    rows[:, 1] = np.arange(120) % 7
    dataset = make("rows", lambda _: Preview(), features=rows)
    found = nearest_kept(dataset, judged(dataset, [0]), np.array([0]))
    assert found.of_label.tolist() == [21], "21 is as near in the second column, and near enough in the first"


def test_texts_are_compared_by_their_words() -> None:
    rng = np.random.default_rng(0)
    words = scipy.sparse.csr_matrix(rng.random((120, 30)) * (rng.random((120, 30)) < 0.2))
    dataset = make("text", lambda _: Preview(), features=words)
    result = judged(dataset, [0, 3])
    found = nearest_kept(dataset, result, np.array([0, 3]))
    called = np.flatnonzero(result.keep & (dataset.labels == 1))
    assert found.of_called.tolist() == [by_hand(words.toarray(), sample, called) for sample in (0, 3)]


def test_no_class_no_neighbour() -> None:
    pixels = np.zeros((120, 4, 4, 1), dtype=np.uint8)
    dataset = make("image", lambda _: Preview(), features=pixels)
    found = nearest_kept(dataset, judged(dataset, range(0, 120, 3), called=-1), np.array([0, 3]))
    assert found.of_label.tolist() == [-1, -1]
    assert found.of_called.tolist() == [-1, -1]
    alone = judged(dataset, range(3, 120, 3))
    assert nearest_kept(dataset, alone, np.array([0])).of_label.tolist() == [-1], "not its own neighbour"


def test_many_candidates_are_thinned_out_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "MAX_CANDIDATES", 5)
    rows = np.arange(120, dtype=np.float32)[:, None].repeat(2, axis=1)
    dataset = make("rows", lambda _: Preview(), features=rows)
    found = nearest_kept(dataset, judged(dataset, [117]), np.array([117]))
    assert 90 <= int(found.of_label[0]) < 117
