from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from PIL import Image

from unpoison.errors import InputError, OutputError
from unpoison.evaluation import figures
from unpoison.evaluation.figures import FIGURES
from unpoison.evaluation.scenarios import ABLATION_BASES, ablation_name


def result(scenario: str, defense: str, tmr: float, *, took_hold: bool = True) -> dict[str, Any]:
    return {
        "scenario": scenario, "scale": "laptop", "seed": 0, "defense": defense, "took_hold": took_hold,
        "accuracy": 0.9, "tmr": tmr,
    }  # fmt: skip


OURS = {
    "baselines": [result("cifar10-dirty-label-3-7-eps10", name, 0.4) for name in ("nothing", "ispl-authors")],
    "ablation": [result(ablation_name(base, 4, 8), "ispl-paper", 0.1) for base in ABLATION_BASES],
}


@pytest.mark.parametrize("name", list(OURS))
def test_the_papers_alone_and_ours_below(name: str, tmp_path: Path) -> None:
    FIGURES[name]([], tmp_path / "papers.png")
    FIGURES[name](OURS[name], tmp_path / "both.png")
    papers, both = (np.asarray(Image.open(tmp_path / f"{which}.png")) for which in ("papers", "both"))
    assert both.shape[1] == papers.shape[1]
    assert both.shape[0] == 2 * papers.shape[0]
    assert papers.std() > 10


def test_baselines_are_those_of_the_table() -> None:
    rates = figures._rates_of_paper(20)
    assert list(rates) == ["ND", "SS", "AC", "ITLM", "ISPL+B"]
    assert rates["ND"][:2] == [79.8, 55.7]
    assert {len(values) for values in rates.values()} == {8}


def test_ours_are_of_the_same_scenarios_as_the_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caption: "on the CIFAR-10 DLBD (1-to-1) scenario"."""
    boxes = Mock()
    monkeypatch.setattr(figures, "_boxes", boxes)
    others = [
        result(f"{name}-eps10{longer}", "ispl-paper", 0.7)
        for name, longer in (
            ("gtsrb-dirty-label-1-2", ""), ("cifar10-watermark-1-3", ""), ("cifar10-all-to-one-7", ""),
            ("cifar10-adaptive-0-2", ""), ("imagenette-dirty-label-0-2", ""),
            ("cifar10-dirty-label-3-7", "-resnet32-200"),
        )
    ]  # fmt: skip
    ours = [*others, result("cifar10-dirty-label-3-7-eps10", "ispl-paper", 0.25)]
    FIGURES["baselines"](ours, tmp_path / "a.png")
    drawn = {call.kwargs["title"]: call.args[1] for call in boxes.call_args_list}
    assert drawn["ours, laptop, epsilon 10%"] == {"ISPL+B": [25.0]}
    assert len(drawn) == 6
    boxes.reset_mock()
    FIGURES["baselines"](others, tmp_path / "a.png")
    assert len(boxes.call_args_list) == 3  # nothing of ours to show


def test_attacks_that_did_not_take_hold_are_in_no_box() -> None:
    held = result("gtsrb-watermark-1-2-eps10", "ispl-paper", 0.25)
    not_held = result("gtsrb-watermark-1-0-eps10", "ispl-paper", 0.05, took_hold=False)
    assert figures._rates_of_ours(figures.outcomes([held, not_held]), 10) == {"ISPL+B": [25.0]}


def test_boxes_stand_in_the_order_of_the_paper_in_every_panel() -> None:
    ours = [
        result(f"gtsrb-watermark-1-2-eps{epsilon}", defense, 0.4)
        for epsilon, defenses in ((5, ("expansion", "nothing")), (10, ("nothing", "expansion", "ispl-paper")))
        for defense in defenses
    ]
    for epsilon in (5, 10):
        assert list(figures._rates_of_ours(figures.outcomes(ours), epsilon)) == ["ND", "ISPL+B", "expansion"]


def test_titles_do_not_promise_more_scenarios_than_a_box_has() -> None:
    axes = Mock()
    figures._boxes(axes, {"ND": [1.0, 2.0, 3.0], "SS": [1.0], "AC": []}, title="ours")
    axes.set_title.assert_called_once_with("ours (1 to 3 scenarios)", fontsize=9)
    figures._boxes(axes, {"ND": [1.0, 2.0], "SS": [1.0, 0.0]}, title="ours")
    axes.set_title.assert_called_with("ours (2 scenarios)", fontsize=9)


def test_the_ablation_is_that_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heat_map = Mock()
    monkeypatch.setattr(figures, "_heat_map", heat_map)
    ours = [
        result(ablation_name(base, 4, 8), "ispl-paper", 0.1 * i, took_hold=i > 0)
        for i, base in enumerate(ABLATION_BASES)
    ]
    FIGURES["ablation"](ours, tmp_path / "a.png")
    _, theirs, _, own = (call.args[1] for call in heat_map.call_args_list)
    assert theirs["1/4", "1/8"] == 7.07
    assert own == {("1/4", "1/8"): pytest.approx(15.0)}  # of 10 and 20; the first did not take hold
    FIGURES["ablation"](ours[:1], tmp_path / "a.png")
    assert heat_map.call_count == 4 + 2  # nothing of ours to show


def test_a_file_that_is_no_figure(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'a.txt': a figure is a file that ends in .png"):
        FIGURES["ablation"]([], tmp_path / "a.txt")
    with pytest.raises(OutputError, match="could not be written"):
        FIGURES["ablation"]([], tmp_path / "nowhere" / "a.png")
