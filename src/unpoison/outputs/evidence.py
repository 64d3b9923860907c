"""``evidence.npz``: what every voter said of every sample, and what the run itself decided.

It is small (about two bytes for each vote) and holds no pickles. A review changes the manifest; the run's own
decisions stay here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.result import Sanitization, VoteRecord
from unpoison.data.npz import NpzReader, open_npz, write_npz
from unpoison.data.options import DEFAULT_MAX_BYTES
from unpoison.errors import OutputError
from unpoison.report.neighbours import Neighbours
from unpoison.types import BoolArray, IndexArray

_LARGEST_LOSS = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Evidence:
    """What ``evidence.npz`` holds."""

    run_keep: BoolArray
    near: Neighbours
    votes: VoteRecord | None


def write(path: Path, result: Sanitization, near: Neighbours) -> None:
    """Losses are rounded to half precision; the same result gives the same bytes."""
    write_npz(path, _arrays(result, near), compressed=True)


def _arrays(result: Sanitization, near: Neighbours) -> Iterator[tuple[str, NDArray[Any]]]:
    yield "run_keep", result.keep
    yield "near_samples", near.samples.astype(np.int32)
    yield "near_label", near.of_label.astype(np.int32)
    yield "near_called", near.of_called.astype(np.int32)
    votes = result.votes
    if votes is not None:
        largest = int(votes.predictions.max(initial=0))
        yield "voters", np.array(votes.voters, dtype=np.str_)
        yield "predictions", votes.predictions.astype(np.min_scalar_type(largest))
        yield "losses", np.minimum(votes.losses, _LARGEST_LOSS).astype(np.float16)
        yield "asked", votes.asked


def read(path: Path, *, n_samples: int, n_classes: int) -> Evidence:
    """The evidence about ``n_samples`` samples.

    Raises:
        UnpoisonError: The file cannot be read, or is not evidence about that many samples and classes.
    """
    with open_npz(path, path.name, max_bytes=DEFAULT_MAX_BYTES) as reader:
        return Evidence(
            run_keep=_get(reader, "run_keep", "b", (n_samples,)),
            near=_near(reader, n_samples),
            votes=_votes(reader, n_samples, n_classes) if "voters" in reader.headers else None,
        )


def _near(reader: NpzReader, n_samples: int) -> Neighbours:
    samples = _indices(reader, "near_samples", n_samples, None)
    shape = samples.shape
    return Neighbours(
        samples=samples,
        of_label=_indices(reader, "near_label", n_samples, shape),
        of_called=_indices(reader, "near_called", n_samples, shape),
    )


def _indices(reader: NpzReader, key: str, n_samples: int, shape: tuple[int, ...] | None) -> IndexArray:
    array = _get(reader, key, "i", shape)
    if array.ndim != 1 or array.min(initial=-1) < -1 or array.max(initial=-1) >= n_samples:
        raise OutputError(f"{key} has positions outside the {n_samples} samples")
    return array.astype(np.int64)


def _votes(reader: NpzReader, n_samples: int, n_classes: int) -> VoteRecord:
    voters = tuple(map(str, _get(reader, "voters", "U", None).ravel().tolist()))
    shape = (len(voters), n_samples)
    predictions = _get(reader, "predictions", "u", shape)
    if predictions.max(initial=0) >= n_classes:
        raise OutputError(f"predictions has classes beyond the {n_classes} there are")
    return VoteRecord(
        voters=voters,
        predictions=predictions.astype(np.int32),
        losses=_get(reader, "losses", "f", shape).astype(np.float32),
        asked=_get(reader, "asked", "b", shape),
    )


def _get(reader: NpzReader, key: str, kind: str, shape: tuple[int, ...] | None) -> NDArray[Any]:
    header = reader.headers.get(key)
    if header is None:
        raise OutputError(f"has no array {key!r}")
    if header.dtype.kind != kind or (shape is not None and header.shape != shape):
        raise OutputError(f"the array {key!r} is {header.dtype} of shape {header.shape}")
    return reader.read(key)
