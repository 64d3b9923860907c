"""Datasets of each kind with a planted part, and the record that goes with them."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unpoison.core.result import Cost, Group, Sanitization
from unpoison.data.container import Dataset, Kind, Preview
from unpoison.outputs import record
from unpoison.outputs.record import RunFacts
from unpoison.report import render
from unpoison.report.thumbnails import Picture
from unpoison.types import BoolArray

NASTY = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{7*7}}{% raw %}",
    "null\0byte",
    "bidi\u202egnp.exe\u2066",
    "bell\x07\x1b[2J\x85\u2028",
    "</style></title><!-- ]]>",
    "https://evil.example/\udcff" + "&" * 50,
    "",
    "<&\"'" * 50_000,
)


@dataclass
class ShownOrigin:
    """Shows what it is told to."""

    show: Callable[[int], Preview]
    form: str = "csv"

    def preview(self, index: int) -> Preview:
        return self.show(index)

    def write_kept(self, keep: BoolArray, directory: Path) -> None:
        raise NotImplementedError


def make(
    kind: Kind,
    show: Callable[[int], Preview],
    *,
    n: int = 120,
    names: Sequence[str] = ("cat", "dog", "bird"),
    ids: Sequence[str] | None = None,
    features: NDArray[Any] | None = None,
) -> Dataset:
    shown = tuple(ids) if ids is not None else tuple(f"sample {i}" for i in range(n))
    return Dataset(
        name="pets",
        kind=kind,
        features=features if features is not None else np.zeros((n, 2), dtype=np.float32),
        labels=np.arange(n, dtype=np.int64) % len(names),
        class_names=tuple(names),
        ids=shown,
        sources=shown,
        sha256=tuple(hashlib.sha256(str(i).encode()).hexdigest() for i in range(n)),
        origin=ShownOrigin(show),
    )


def judged(dataset: Dataset, removed: Sequence[int], *, called: int = 1, **evidence: float) -> Sanitization:
    n = len(dataset)
    keep = np.ones(n, dtype=np.bool_)
    keep[list(removed)] = False
    predicted = dataset.labels.copy()
    predicted[list(removed)] = called
    suspicion = np.where(keep, 0.2, 0.9) + np.linspace(0, 0.09, n)
    groups = (Group(0, len(removed), True, called, evidence),) if removed else ()
    components = np.full((1, n), -1, dtype=np.int64)
    return Sanitization(keep, suspicion, predicted, components, Cost(1000, 20), groups)


def run_facts(**changes: Any) -> RunFacts:
    return RunFacts(
        **{
            **{"settings": {"alpha": 0.1}, "method": "ispl", "learner": "forest", "seed": 1},
            **{"seconds": 1.0, "command": "unpoison clean x"},
            **changes,
        }
    )


def page(dataset: Dataset, result: Sanitization, **changes: Any) -> str:
    """The report."""
    return render(dataset, result, record=record.build(dataset, result, run=run_facts(**changes)))


def decoded(picture: Picture) -> NDArray[np.uint8]:
    """The pixels of an exact picture."""
    head, data = picture.uri.split(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
