from __future__ import annotations

import numpy as np

from unpoison.report.histogram import histogram


def test_counts_everything_once_inside_the_frame() -> None:
    rng = np.random.default_rng(0)
    suspicion = np.concatenate([rng.beta(1, 9, 5000), [0.0, 1.0, -0.1, 1.2]])
    keep = np.ones(len(suspicion), dtype=np.bool_)
    keep[-3:] = False
    chart = histogram(suspicion, keep)
    assert sum(bar.n for bar in chart.bars if not bar.removed) == 5001
    assert sum(bar.n for bar in chart.bars if bar.removed) == 3
    assert all(chart.left <= bar.x and bar.x + bar.width <= chart.right for bar in chart.bars)
    assert all(bar.y >= 0 and bar.y + bar.height <= chart.base + 0.01 for bar in chart.bars)
    assert [tick.text for tick in chart.y_ticks] == ["1", "10", "100", "1k"]


def test_one_removed_among_a_million_is_visible() -> None:
    suspicion = np.zeros(1_000_000)
    suspicion[0] = 1.0
    chart = histogram(suspicion, suspicion < 0.5)
    assert min(bar.height for bar in chart.bars) > 5


def test_summary_fits_what_is_there() -> None:
    suspicion = np.array([0.1, 0.2, 0.9])
    assert "removed" not in histogram(suspicion, np.ones(3, dtype=np.bool_)).summary
    assert "kept" not in histogram(suspicion, np.zeros(3, dtype=np.bool_)).summary


def test_the_line_stands_at_the_lowest_removed() -> None:
    suspicion = np.array([0.1, 0.95, 0.5, 0.75])
    chart = histogram(suspicion, np.array([True, True, False, False]))
    assert chart.lowest_removed is not None
    assert chart.lowest_removed.text == "0.50"
    middle = next(tick.at for tick in chart.x_ticks if tick.text == "0.5")
    assert chart.lowest_removed.at == middle
    assert histogram(suspicion, np.ones(4, dtype=np.bool_)).lowest_removed is None
