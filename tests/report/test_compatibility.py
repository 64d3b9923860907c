from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from PIL import Image

from unpoison.report.compatibility import draw_matrix


def estimate(mean: float) -> dict[str, Any]:
    return {"mean": mean, "standard_error": 0.01, "interval": [mean - 0.02, mean + 0.02]}


def decision(change: float) -> str:
    return "incompatible" if change > 0.02 else "compatible" if change < -0.02 else "undecided"


def record(changes: dict[tuple[str, str], float]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for pair in changes for name in pair))
    return {
        "settings": {"confidence": 0.9},
        "sets": {name: {"error": estimate(0.1)} for name in names},
        "pairs": [
            {"of": of, "given": given, "change": estimate(change), "decision": decision(change)}
            for (of, given), change in changes.items()
        ],
    }


def test_rows_are_judged_columns_are_added(tmp_path: Path) -> None:
    """Orange where the error rises, purple where it falls, each in its place."""
    draw_matrix(record({("a", "b"): 0.3, ("b", "a"): -0.3}), tmp_path / "matrix.png")
    pixels = np.asarray(Image.open(tmp_path / "matrix.png").convert("RGB")).astype(int)
    orange = (pixels[..., 0] - pixels[..., 2]) > 60
    purple = (pixels[..., 2] - pixels[..., 1]) > 40
    matrix_width = pixels.shape[1] * 3 // 4  # the scale is beyond
    rises, falls = (np.argwhere(mask[:, :matrix_width]).mean(axis=0) for mask in (orange, purple))
    assert rises[0] < falls[0], "a is the first row"
    assert rises[1] > falls[1], "and b the second column"


def test_words_and_names_are_in_the_picture_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")  # letters, not their outlines
    names = ("<b>&", "$\\frac{1}{", "x" * 200, "plain")
    found = record({(s, t): 0.1 * (i - 1) for i, s in enumerate(names) for t in names if s != t})
    draw_matrix(found, tmp_path / "matrix.svg")
    text = (tmp_path / "matrix.svg").read_text(encoding="utf-8")
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert "$\\frac{1}{" in text
    assert "x" * 200 not in text
    for word in (
        "INCOMPATIBLE",
        "undecided",
        ">compatible",
        "10.0% wrong",
        "+20.00",
        "[+18.00, +22.00]",
        "90%",
    ):
        assert word in text, word


def test_no_change_anywhere_can_be_drawn(tmp_path: Path) -> None:
    draw_matrix(record({("a", "b"): 0.0, ("b", "a"): 0.0}), tmp_path / "matrix.pdf")
    assert (tmp_path / "matrix.pdf").read_bytes().startswith(b"%PDF")
