from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from unpoison.core.groups.decide import Thresholds
from unpoison.core.groups.separation import NOT_MEASURED
from unpoison.report.scatter import MAX_POINTS, Scatter, scatter

SETTINGS = {"met": 7.0, "kept": 0.25}


def group(met: float | None, unmet: float | None, state: str = "natural", **changes: Any) -> dict[str, Any]:
    return {
        **{"label": "cat", "called": "dog", "size": 45, "reason": "Because."},
        **{"removed": state == "planted", "undecided": state == "undecided"},
        "evidence": {"met": met, "met_error": 0.5, "unmet": unmet, "unmet_error": 0.2},
        **changes,
    }


def drawn(*groups: dict[str, Any], settings: dict[str, Any] | None = None) -> Scatter:
    figure = scatter(groups, settings or SETTINGS)
    assert figure is not None
    return figure


def corners(points: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (corner.split(",") for corner in points.split())]


def is_inside(x: float, y: float, polygon: list[tuple[float, float]]) -> bool:
    """Whether a line from the point to the right crosses the border an odd number of times."""
    crossings = 0
    for (x1, y1), (x2, y2) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
            crossings += 1
    return crossings % 2 == 1


def test_the_region_holds_just_what_the_thresholds_call_planted() -> None:
    rng = np.random.default_rng(0)
    places = [(math.exp(rng.uniform(1.2, 4)), rng.uniform(-0.5, 15)) for _ in range(400)]
    clear = [(met, unmet) for met, unmet in places if abs(met - 7) > 0.2 and abs(unmet - 0.25 * met) > 0.1]
    figure = drawn(*(group(met, unmet) for met, unmet in clear))
    region = corners(figure.region)
    inside = {point.title.split(",")[0]: is_inside(point.x, point.y, region) for point in figure.points}
    expected = {f"Group {i + 1}": met >= 7 and unmet <= 0.25 * met for i, (met, unmet) in enumerate(clear)}
    assert inside == expected
    assert 20 < sum(inside.values()) < len(clear) - 20


def test_other_thresholds_are_another_region() -> None:
    point = group(12.0, 2.5)
    for settings, inside in (
        (SETTINGS, True),
        ({"met": 13.0, "kept": 0.25}, False),
        ({"met": 7, "kept": 0.1}, False),
    ):
        figure = drawn(point, settings=settings)
        assert is_inside(figure.points[0].x, figure.points[0].y, corners(figure.region)) == inside, settings
    assert (figure.met, figure.kept) == ("7", "0.1")


def test_points_say_what_they_are() -> None:
    figure = drawn(
        group(13.04, 1.0, "planted"), group(8.0, 2.0, "undecided", size=1), group(15.0, 14.0, label="do\x1bg")
    )
    said = {point.state: point.title for point in figure.points}
    assert said == {
        "planted": "Group 1, planted: 45 samples labelled 'cat', 13.0 where met, 1.0 where not",
        "undecided": "Group 2, undecided: 1 sample labelled 'cat', 8.0 where met, 2.0 where not",
        "natural": "Group 3, natural: 45 samples labelled 'do\\x1bg', 15.0 where met, 14.0 where not",
    }
    assert {point.state: len(corners(point.corners)) for point in figure.points} == {
        **{"planted": 4, "undecided": 3, "natural": 0}
    }
    assert [point.state for point in figure.points] == ["natural", "undecided", "planted"], (
        "drawn last, on top"
    )
    assert figure.summary == "Judged groups by how far they stand apart: 1 planted, 1 undecided, 1 natural."


def test_everything_is_inside_the_frame_and_grows_the_right_way() -> None:
    figure = drawn(group(0.5, -40.0), group(7.0, 1.0), group(30.0, 6.0), group(900.0, 800.0))
    by_number = sorted(figure.points, key=lambda point: point.title)
    assert [point.x for point in by_number] == sorted(point.x for point in figure.points)
    assert [point.y for point in by_number] == sorted((point.y for point in figure.points), reverse=True)
    ends = [(point.x, point.y) for point in figure.points] + corners(figure.region)
    assert all(figure.left <= x <= figure.right and 0 <= y <= figure.base for x, y in ends)
    assert all(figure.left <= tick.at <= figure.right for tick in figure.x_ticks)
    assert all(0 <= tick.at <= figure.base for tick in figure.y_ticks)


def test_many_groups_are_drawn_smaller_and_only_so_many() -> None:
    few = drawn(*[group(9.0, 8.0)] * 10)
    many = drawn(*[group(9.0, 8.0)] * 400)
    assert many.points[0].radius < few.points[0].radius
    most = drawn(*[group(8 + i / 1000, 8.0) for i in range(2000)], group(9.0, 1.0, "planted"))
    assert len(most.points) == MAX_POINTS
    assert (most.n_more, most.shown) == (2001 - MAX_POINTS, {"planted": 1, "undecided": 0, "natural": 2000})
    assert most.points[-1].state == "planted"


def test_what_judges_could_compare_with_nothing_has_no_point() -> None:
    not_compared = group(9.0, 0.0, "undecided")
    not_compared["evidence"]["unmet_error"] = NOT_MEASURED
    figure = drawn(not_compared, group(9.0, 8.0))
    assert (len(figure.points), figure.n_not_measured, figure.shown["undecided"]) == (1, 1, 0)
    assert figure.summary.endswith("stand apart: 1 natural.")
    assert scatter([not_compared], SETTINGS) is None


@pytest.mark.parametrize(
    "settings",
    [{}, {"met": 7.0}, {"met": "7", "kept": 0.25}, {"met": True, "kept": 0.25}, {"met": 7.0, "kept": None}],
)
def test_no_figure_without_thresholds(settings: dict[str, Any]) -> None:
    assert scatter([group(9.0, 8.0)], settings) is None


def test_no_figure_for_groups_of_other_methods() -> None:
    assert scatter([], SETTINGS) is None
    assert scatter([group(9.0, 8.0, evidence={"agreement": 0.5})], SETTINGS) is None
    assert scatter([group(9.0, None), group(None, 3.0)], SETTINGS) is None


def test_thresholds_of_the_method_make_a_region_of_some_width() -> None:
    thresholds = Thresholds()
    figure = drawn(group(6.8, 5.0), settings={"met": thresholds.met, "kept": thresholds.kept})
    across = [x for x, _ in corners(figure.region)]
    assert max(across) - min(across) > 0.3 * (figure.right - figure.left)
