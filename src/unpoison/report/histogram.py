"""Suspicion of the kept and of the removed, as the shapes of one small chart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpoison.types import BoolArray, FloatArray

BINS = 25
WIDTH, HEIGHT = 440.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 6.0, 10.0, 34.0


@dataclass(frozen=True)
class Bar:
    """A rectangle of the chart: ``n`` samples between ``low`` and ``high``."""

    x: float
    y: float
    width: float
    height: float
    removed: bool
    n: int
    low: float
    high: float


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Histogram:
    """The chart, and the same in words for those who do not see it."""

    bars: tuple[Bar, ...]
    lowest_removed: Tick | None
    """Where the removed samples begin; None when nothing is removed."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    summary: str
    width: float = WIDTH
    height: float = HEIGHT
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    base: float = HEIGHT - _BOTTOM


def histogram(suspicion: FloatArray, keep: BoolArray) -> Histogram:
    """Counts on a logarithmic scale, so that a few removed stay visible beside thousands kept."""
    edges = np.linspace(0.0, 1.0, BINS + 1)
    clipped = np.clip(suspicion, 0.0, 1.0)
    kept = np.histogram(clipped[keep], bins=edges)[0]
    removed = np.histogram(clipped[~keep], bins=edges)[0]
    top = max(int(kept.max()), int(removed.max()), 1)
    bars = [
        _bar(b, int(counts[b]), top=top, removed=is_removed)
        for is_removed, counts in ((False, kept), (True, removed))
        for b in range(BINS)
        if counts[b]
    ]
    return Histogram(
        bars=tuple(bars),
        lowest_removed=None if keep.all() else _x_tick(float(clipped[~keep].min()), ".2f"),
        x_ticks=tuple(_x_tick(value, "g") for value in (0, 0.25, 0.5, 0.75, 1)),
        y_ticks=tuple(Tick(_height_to_y(n, top), _short(n)) for n in _decades(top)),
        summary=_summary(suspicion, keep),
    )


def _x_tick(value: float, form: str) -> Tick:
    return Tick(round(_LEFT + value * _plot_width(), 1), format(value, form))


def _bar(position: int, n: int, *, top: int, removed: bool) -> Bar:
    slot = _plot_width() / BINS
    y = _height_to_y(n, top)
    return Bar(
        x=round(_LEFT + position * slot + (slot / 2 if removed else 1.0), 1),
        y=y,
        width=round(slot / 2 - 1.0, 1),
        height=round(HEIGHT - _BOTTOM - y, 1),
        removed=removed,
        n=n,
        low=position / BINS,
        high=(position + 1) / BINS,
    )


def _plot_width() -> float:
    return WIDTH - _LEFT - _RIGHT


def _height_to_y(n: int, top: int) -> float:
    share = np.log10(n + 1) / np.log10(top + 1)
    return round(float(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)), 1)


def _decades(top: int) -> list[int]:
    return [10**power for power in range(len(str(top)))]


def _short(n: int) -> str:
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if n >= size:
            return f"{n // size}{letter}"
    return str(n)


def _summary(suspicion: FloatArray, keep: BoolArray) -> str:
    sentences = []
    if keep.any():
        kept = suspicion[keep]
        middle, high = np.quantile(kept, [0.5, 0.99])
        sentences.append(f"Half of the kept samples are below {middle:.2f} and 99% below {high:.2f}.")
    if not keep.all():
        gone = suspicion[~keep]
        sentences.append(f"The removed samples lie between {gone.min():.2f} and {gone.max():.2f}.")
    return " ".join(sentences)
