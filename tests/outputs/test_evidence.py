from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from unpoison.core.result import Sanitization, VoteRecord
from unpoison.data.npz import write_npz
from unpoison.errors import UnpoisonError
from unpoison.outputs import evidence
from unpoison.report.neighbours import Neighbours

from .builders import make_dataset, make_result

NEAR = Neighbours(np.array([0, 3]), np.array([5, -1]), np.array([1, 4]))


def voted(n: int = 40, n_voters: int = 3, *, n_classes: int = 3) -> Sanitization:
    rng = np.random.default_rng(0)
    votes = VoteRecord(
        voters=tuple(f"restart 1, round {i + 1}" for i in range(n_voters)),
        predictions=rng.integers(0, n_classes, (n_voters, n)).astype(np.int32),
        losses=rng.exponential(1, (n_voters, n)).astype(np.float32),
        asked=rng.random((n_voters, n)) < 0.5,
    )
    return dataclasses.replace(make_result(make_dataset(n)), votes=votes)


def test_round_trip(tmp_path: Path) -> None:
    result = voted()
    result.votes.losses[0, :3] = [np.inf, 1e30, np.nan]  # type: ignore[union-attr]
    evidence.write(tmp_path / "e.npz", result, NEAR)
    found = evidence.read(tmp_path / "e.npz", n_samples=40, n_classes=3)
    assert np.array_equal(found.run_keep, result.keep)
    assert found.near.samples.tolist() == [0, 3]
    assert found.near.of_label.tolist() == [5, -1]
    assert found.near.of_called.tolist() == [1, 4]
    assert found.votes is not None
    assert result.votes is not None
    assert found.votes.voters == result.votes.voters
    assert np.array_equal(found.votes.predictions, result.votes.predictions)
    assert np.array_equal(found.votes.asked, result.votes.asked)
    assert np.allclose(found.votes.losses[:, 3:], result.votes.losses[:, 3:], rtol=1e-3)
    assert found.votes.losses[0, :2].tolist() == [65504.0, 65504.0]


def test_without_votes_and_with_the_same_bytes(tmp_path: Path) -> None:
    result = make_result(make_dataset())
    for name in ("one", "two"):
        evidence.write(tmp_path / name, result, NEAR)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert evidence.read(tmp_path / "one", n_samples=40, n_classes=3).votes is None


def test_fifty_thousand_samples_and_twenty_four_voters_are_small(tmp_path: Path) -> None:
    evidence.write(tmp_path / "e.npz", voted(50_000, 24, n_classes=10), NEAR)
    assert (tmp_path / "e.npz").stat().st_size < 4_500_000, "random numbers, which nothing compresses"


BAD = {
    "no decisions": {"run_keep": None},
    "too few decisions": {"run_keep": np.ones(39, dtype=np.bool_)},
    "numbers for truth": {"run_keep": np.ones(40)},
    "a neighbour outside": {"near_label": np.array([40, 0], dtype=np.int32)},
    "a neighbour before the first": {"near_called": np.array([-2, 0], dtype=np.int32)},
    "neighbours for others": {"near_called": np.array([1], dtype=np.int32)},
    "too few voters": {"voters": np.array(["a"])},
    "a class that is not there": {"predictions": np.full((3, 40), 3, dtype=np.uint8)},
    "negative classes": {"predictions": np.full((3, 40), -1, dtype=np.int8)},
    "losses of others": {"losses": np.zeros((3, 41), dtype=np.float16)},
}


@pytest.mark.parametrize("kind", BAD)
def test_what_does_not_fit_is_refused(kind: str, tmp_path: Path) -> None:
    arrays = dict(evidence._arrays(voted(), NEAR))
    for key, value in BAD[kind].items():
        if value is None:
            del arrays[key]
        else:
            arrays[key] = value
    write_npz(tmp_path / "e.npz", arrays.items(), compressed=True)
    with pytest.raises(UnpoisonError):
        evidence.read(tmp_path / "e.npz", n_samples=40, n_classes=3)
