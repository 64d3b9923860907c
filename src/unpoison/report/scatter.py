"""Judged groups as points: how far each stands apart where models met it, and where judges did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import asinh, isfinite, log10
from typing import Any, Literal, TypeAlias

from unpoison.report.evidence import is_compared
from unpoison.report.histogram import Tick
from unpoison.report.text import count, printable

State: TypeAlias = Literal["planted", "undecided", "natural"]

WIDTH, HEIGHT = 560.0, 350.0
MAX_POINTS = 1000
"""Points that are drawn; of natural groups the farthest apart."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 12.0, 30.0, 40.0
_LEAST_X = 3.0
"""Standard deviations at the left edge; what stands apart less is drawn there."""
_LEAST_Y = -3.0
_MANY = 80
"""From so many points on they are smaller."""
_STEPS = 40
"""Lines of which the boundary of the region consists: it is straight on no such axes."""
_RANK: dict[State, int] = {"planted": 0, "undecided": 1, "natural": 2}
_X_TICKS = (3, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000)
_Y_TICKS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Point:
    """One group: where it is drawn, and the same in words."""

    x: float
    y: float
    radius: float
    state: State
    corners: str
    """Of its polygon; empty for a natural group, which is a circle."""
    title: str


@dataclass(frozen=True)
class Scatter:
    """The figure, and the same in words for those who do not see it."""

    points: tuple[Point, ...]
    """Natural ones first, so that the others are drawn above them."""
    shown: Mapping[State, int]
    """How many groups there are of each state, those without a point since there are too many included."""
    region: str
    """Corners of the region of planted groups."""
    region_name: Tick
    """Where its name ends, from the left."""
    region_floor: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    met: str
    kept: str
    """The two thresholds, as text."""
    n_not_measured: int
    """Groups that judges could compare with nothing: they have no point."""
    n_more: int
    """Natural groups without a point since there are too many."""
    summary: str
    width: float = WIDTH
    height: float = HEIGHT
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    base: float = HEIGHT - _BOTTOM


@dataclass(frozen=True)
class _Axes:
    """Logarithmic to the right; upwards linear around 0 and logarithmic far from it."""

    most_x: float
    least_y: float
    most_y: float

    def x(self, value: float) -> float:
        share = log10(max(value, _LEAST_X) / _LEAST_X) / log10(self.most_x / _LEAST_X)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        low, high = asinh(self.least_y), asinh(self.most_y)
        share = (asinh(max(value, self.least_y)) - low) / (high - low)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


@dataclass(frozen=True)
class _Judged:
    number: int
    group: Mapping[str, Any]
    state: State
    met: float
    unmet: float


def scatter(groups: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> Scatter | None:
    """The figure of a run's groups, as ``run.json`` has them, with its thresholds ``met`` and ``kept``.

    None where the run has no such thresholds, or no group that was measured both ways.
    """
    met, kept = _number(settings.get("met")), _number(settings.get("kept"))
    judged = _measured_both_ways(groups)
    measured = [each for each in judged if is_compared(each.group["evidence"])]
    if met is None or kept is None or met <= 0 or kept < 0 or not measured:
        return None
    axes = _axes(measured, met, kept)
    chosen = sorted(measured, key=lambda each: (_RANK[each.state], -each.met))[:MAX_POINTS]
    radius = 4.5 if len(chosen) < _MANY else 3.0
    states = [each.state for each in measured]
    shown: dict[State, int] = {state: states.count(state) for state in _RANK}
    return Scatter(
        points=tuple(_point(each, axes, radius) for each in reversed(chosen)),
        shown=shown,
        region=_region(axes, met, kept),
        region_name=Tick(axes.x(axes.most_x) - 6, "planted"),
        region_floor=axes.y(axes.least_y),
        x_ticks=tuple(Tick(axes.x(tick), str(tick)) for tick in _X_TICKS if tick <= axes.most_x),
        y_ticks=tuple(Tick(axes.y(tick), str(tick)) for tick in _Y_TICKS if tick <= axes.most_y),
        met=f"{met:g}",
        kept=f"{kept:g}",
        n_not_measured=len(judged) - len(measured),
        n_more=len(measured) - len(chosen),
        summary=_summary(shown),
    )


def _measured_both_ways(groups: Sequence[Mapping[str, Any]]) -> list[_Judged]:
    found = []
    for number, group in enumerate(groups, start=1):
        met, unmet = (_number(group["evidence"].get(name)) for name in ("met", "unmet"))
        if met is not None and unmet is not None:
            found.append(_Judged(number, group, _state(group), met, unmet))
    return found


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return float(value) if is_number else None


def _state(group: Mapping[str, Any]) -> State:
    if group["removed"]:
        return "planted"
    return "undecided" if group.get("undecided") else "natural"


def _axes(measured: Sequence[_Judged], met: float, kept: float) -> _Axes:
    """As far as the points reach, and far enough beyond the thresholds to see the region."""
    most_x = 1.15 * max(3.0 * met, _LEAST_X, *(each.met for each in measured))
    most_y = 1.1 * max(1.0, kept * most_x, *(each.unmet for each in measured))
    least_y = max(_LEAST_Y, min(-0.3, *(1.1 * each.unmet for each in measured)))
    return _Axes(most_x, least_y, most_y)


def _region(axes: _Axes, met: float, kept: float) -> str:
    """Where a group stands apart by ``met`` or more, and for judges by that times ``kept`` or less."""
    first = max(met, _LEAST_X)
    ratio = max(axes.most_x / first, 1.0)
    edge = [first * ratio ** (step / _STEPS) for step in range(_STEPS + 1)]
    corners = [(value, kept * value) for value in edge]
    corners += [(axes.most_x, axes.least_y), (first, axes.least_y)]
    return " ".join(f"{axes.x(x)},{axes.y(y)}" for x, y in corners)


def _point(each: _Judged, axes: _Axes, radius: float) -> Point:
    x, y = axes.x(each.met), axes.y(each.unmet)
    radius = radius if each.state == "natural" else 6.5
    size = each.group["size"]
    title = (
        f"Group {count(each.number)}, {each.state}: {count(size)} {'sample' if size == 1 else 'samples'} "
        f"labelled '{printable(each.group['label'], 40)}', "
        f"{each.met:.1f} where met, {each.unmet:.1f} where not"
    )
    return Point(x, y, radius, each.state, _corners(each.state, x, y, radius), title)


def _corners(state: State, x: float, y: float, radius: float) -> str:
    """A square on its tip for planted, a triangle for undecided."""
    if state == "natural":
        return ""
    tips = [(0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)]
    if state == "undecided":
        tips = [(0.0, -1.0), (0.95, 0.75), (-0.95, 0.75)]
    return " ".join(f"{x + radius * right:.1f},{y + radius * down:.1f}" for right, down in tips)


def _summary(shown: Mapping[State, int]) -> str:
    parts = [f"{count(n)} {state}" for state, n in shown.items() if n]
    return f"Judged groups by how far they stand apart: {', '.join(parts)}."
