"""A small dataset with its own origin, and a result for it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from unpoison.core.result import Cost, Group, Sanitization
from unpoison.data.container import Dataset, Preview
from unpoison.outputs import RunFacts
from unpoison.types import BoolArray

RUN = RunFacts(
    settings={"restarts": 2, "alpha": np.float64(0.25), "limits": (1, 2)},
    method="self-paced",
    learner="logistic regression",
    seed=7,
    seconds=12.3456,
    command="unpoison clean data --out results",
)

NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}{% for x in y %}",
    "null\0byte",
    "bidi\u202egnp.exe\u2066",
    "bell\x07\x1b[2J",
    '=HYPERLINK("http://evil.example","x")',
    "line\nbreak\r\nand\rreturn",
    "quote'\"`comma,semicolon;",
    "",
    "x" * 200_000,
)


@dataclass
class LineOrigin:
    """Writes the index of every kept sample on a line of its own, and fails when told to."""

    form: str = "csv"
    fail: bool = False
    texts: Sequence[str] | None = None

    def preview(self, index: int) -> Preview:
        return Preview(text=self.texts[index] if self.texts else f"text {index}")

    def write_kept(self, keep: BoolArray, directory: Path) -> None:
        assert not list(directory.iterdir())
        (directory / "kept.csv").write_text("half")
        if self.fail:
            raise OSError(28, "No space left on device")
        (directory / "kept.csv").write_text("".join(f"{i}\n" for i in np.flatnonzero(keep)))
        (directory / "deep").mkdir()
        (directory / "deep" / "file").write_text("x")


def make_dataset(
    n: int = 40,
    *,
    names: Sequence[str] = ("cat", "dog", "bird"),
    ids: Sequence[str] | None = None,
    origin: LineOrigin | None = None,
    name: str = "pets",
) -> Dataset:
    labels = np.arange(n, dtype=np.int64) % len(names)
    ids = tuple(ids) if ids is not None else tuple(f"pets/{i:04d}" for i in range(n))
    return Dataset(
        name=name,
        kind="text",
        features=np.zeros((n, 2), dtype=np.float32),
        labels=labels,
        class_names=tuple(names),
        ids=ids,
        sources=tuple(f"{i}.txt" for i in ids),
        sha256=tuple(hashlib.sha256(str(i).encode()).hexdigest() for i in range(n)),
        origin=origin or LineOrigin(),
    )


def make_result(dataset: Dataset, removed: Sequence[int] = (0, 3, 6), *, called: int = 1) -> Sanitization:
    n = len(dataset)
    keep = np.ones(n, dtype=np.bool_)
    keep[list(removed)] = False
    predicted = dataset.labels.copy()
    predicted[list(removed)] = called
    suspicion = np.linspace(0.0, 0.4, n) / 3
    suspicion[list(removed)] += 0.5
    components = np.full((2, n), -1, dtype=np.int64)
    components[0, list(removed)] = 4
    groups = ()
    if removed:
        groups = (Group(0, len(removed), True, called, {"agreement": 0.4, "odd": float("nan")}),)
    return Sanitization(keep, suspicion, predicted, components, Cost(100, 20), groups, {"rounds": 3})


class KilledError(BaseException):
    """Stands for a process that stops where it is."""


@contextmanager
def killed_at(move: int) -> Iterator[None]:
    """Whatever moves a file for the ``move``-th time, counted from 0, stops there."""
    calls = iter(range(1000))
    replace = os.replace

    def stopping(*args: Any, **kwargs: Any) -> None:
        if next(calls) == move:
            raise KilledError
        replace(*args, **kwargs)

    with mock.patch.object(os, "replace", stopping):
        yield


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below ``directory`` with its bytes."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}
