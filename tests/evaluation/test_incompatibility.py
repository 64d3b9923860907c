from __future__ import annotations

import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from unpoison.attacks.triggers import random_mark
from unpoison.errors import InputError
from unpoison.evaluation import incompatibility
from unpoison.evaluation.incompatibility import (
    FAMILIES,
    FIXED,
    LAPTOP,
    METRICS,
    PAPER,
    Measured,
    Pools,
    Trial,
    changes,
    draw_incompatibility,
    draw_scenarios,
    draw_side_by_side,
    factory_for,
    file_for,
    points_of,
    pools_of,
    read_measured,
    records_in,
    run,
    run_into,
    trends,
    trials_for,
)
from unpoison.learners.recipes import recipe_for
from unpoison.seeds import Seeds

ROOT = Path(__file__).parents[2]
RECORDED, SCRIPT = ROOT / "results" / "incompatibility", ROOT / "benchmarks" / "incompatibility.py"
TINY = Trial(
    "digits", "watermark", {"source": "1", "target": "7", "epsilon": "0.5"}, (1, 3, 7),
    learner="logistic", ratios=(0.0, 0.5, 1.0), draws=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def pools() -> Pools:
    return pools_of(TINY, seed=0)


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return list(run(TINY))


def test_what_c_and_p_are_drawn_from(pools: Pools) -> None:
    """Ones, 182 of them: half are planted and called seven; an eighth is 23."""
    assert (pools.source, pools.n_classes) == (1, 10)
    assert set(pools.labels[pools.planted].tolist()) == {7}
    assert len(pools.planted) == len(pools.clean[1]) == 91
    assert {c: len(members) for c, members in pools.clean.items()} == {1: 91, 3: 183, 7: 179}
    assert pools.sizes == {1: 23, 3: 23, 7: 23}
    for c, members in pools.clean.items():
        assert set(pools.labels[members].tolist()) == {c}
        assert not np.isin(members, pools.planted).any()


def test_each_class_gives_its_eighth_and_draws_differ(pools: Pools) -> None:
    one, same, other = (pools.clean_draw(Seeds(seed)) for seed in (0, 0, 1))
    for c, members in one.items():
        assert len(set(members.tolist())) == pools.sizes[c]
        assert members.tolist() == same[c].tolist() != other[c].tolist()
    assert len(set(pools.poisoned_draw(Seeds(0)).tolist())) == 23


def tasks(pools: Pools, fixed: str, ratio: float, *, draw: int = 0) -> Any:
    point = {"fixed": fixed, "base": 0, "draw": draw, "ratio": ratio}
    return incompatibility._task(TINY, pools, factory_for(TINY, pools), point, Seeds(0))


def test_poison_is_added_to_all_of_c(pools: Pools) -> None:
    none, half, all_of_it = (tasks(pools, "clean", ratio) for ratio in TINY.ratios)
    source, other, poisoned = none.judged
    assert set(none.trained) == {*source, *other}
    assert (len(source), len(other), len(poisoned)) == (23, 46, 23)
    added = [set(task.trained) - set(none.trained) for task in (half, all_of_it)]
    assert (len(added[0]), added[1]) == (12, set(poisoned))
    assert added[0] < added[1], "what is added grows"
    again = tasks(pools, "clean", 1.0, draw=1)
    assert [set(judged) for judged in again.judged[:2]] == [set(source), set(other)], "C stays"
    assert set(again.judged[2]) != set(poisoned)


def test_clean_data_is_added_to_all_of_p(pools: Pools) -> None:
    none, half, all_of_it = (tasks(pools, "poisoned", ratio) for ratio in TINY.ratios)
    source, other, poisoned = none.judged
    assert set(none.trained) == set(poisoned)
    assert set(all_of_it.trained) == {*source, *other, *poisoned}
    added = set(half.trained) - set(poisoned)
    assert len(added & set(source)) == 12
    assert len(added & set(other)) == 24
    again = tasks(pools, "poisoned", 1.0, draw=1)
    assert set(again.judged[2]) == set(poisoned), "P stays"
    assert set(again.judged[0]) != set(source)


def test_a_record_for_every_point(records: list[dict[str, Any]]) -> None:
    assert [record["name"] for record in records] == list(points_of(TINY))
    assert len(records) == len(FIXED) * 2 * 2 * 3
    for record in records:
        assert record["attack"] == "watermark"
        assert all(0.0 <= record[metric] <= 1.0 for metric in METRICS)
        weighted = (23 * record["source"] + 46 * record["other"]) / 69
        assert record["clean"] == pytest.approx(weighted)
        assert record["scored"] == 92
    json.dumps(records)


def test_poison_is_learned_as_it_is_added(records: list[dict[str, Any]]) -> None:
    poisoned = changes(records, "clean", "poisoned")
    assert set(poisoned) == {0, 1}
    for curve in poisoned.values():
        assert list(curve) == [0.0, 0.5, 1.0]
        assert curve[0.0] == 0.0
        assert curve[1.0] > 0.5
    of_p = [r["poisoned"] for r in records if r["fixed"] == "poisoned" and r["ratio"] == 0]
    assert of_p == [1.0] * 4, "one class alone explains itself"


def made(slopes: dict[str, float], *, noise: float = 0.0, family: str = "watermark") -> Measured:
    """Records in which every metric of clean data given poison follows a line."""
    rng = np.random.default_rng(0)
    records = [
        {"fixed": "clean", "base": base, "draw": draw, "ratio": ratio}
        | {metric: 0.5 + slopes.get(metric, 0.0) * ratio + noise * rng.normal() for metric in METRICS}
        for base in range(5) for draw in range(5) for ratio in (0.0, 0.25, 0.5, 1.0)
    ]  # fmt: skip
    return Measured(LAPTOP[family], 0, records)


def test_trends_have_the_sign_of_their_slope_and_say_whether_the_paper_agrees() -> None:
    found = {
        trend["metric"]: trend
        for trend in trends([made({"clean": -0.1, "source": 0.2, "poisoned": 0.4}, noise=0.005)])
    }
    assert set(found) == set(METRICS)
    assert {name: trend["trend"] for name, trend in found.items()} == {
        "clean": "falls", "source": "rises", "other": "unclear", "poisoned": "rises",
    }  # fmt: skip
    assert {name: trend["agrees"] for name, trend in found.items()} == {
        "clean": True, "source": False, "other": None, "poisoned": True,
    }  # fmt: skip
    assert found["clean"]["slope"] == pytest.approx(-0.1, abs=0.01)
    assert found["clean"]["end"] == pytest.approx(-0.1, abs=0.02)
    low, high = found["clean"]["interval"]
    assert low < -0.1 < high < 0


def test_of_several_scenarios_the_interval_is_over_scenarios() -> None:
    """Three that each fall surely, but by so different amounts that a fourth might not."""
    falls = [made({"clean": slope}, noise=1e-6) for slope in (-0.01, -0.02, -0.3)]
    clean = trends(falls)[0]
    assert (clean["scenarios"], clean["bases"], clean["trend"]) == (3, 15, "unclear")
    assert clean["slope"] == pytest.approx(-0.11, abs=1e-4)
    assert clean["end"] == pytest.approx(-0.02, abs=1e-4), "the median"
    assert all(trends([each])[0]["trend"] == "falls" for each in falls)


def test_what_the_paper_says_of_each_family() -> None:
    assert set(PAPER) == set(FAMILIES)
    for family, said in PAPER.items():
        assert (said["clean", "clean"], said["clean", "poisoned"], said["poisoned", "poisoned"]) == (
            "falls", "rises", "falls",
        )  # fmt: skip
        of_clean_labels = {"clean": "falls", "source": "rises", "other": "falls", "poisoned": "rises"}
        is_clean_label = family in ("gan", "l2", "linf")
        if is_clean_label:
            assert {metric: said["clean", metric] for metric in METRICS} == of_clean_labels
        else:
            assert said["clean", "source"] == "falls"
            assert ("clean", "other") not in said, "largely constant is no sign"


def test_a_killed_run_goes_on(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    path = tmp_path / "records.jsonl"
    whole = run_into(path, TINY)
    first = [next(whole) for _ in range(5)]
    whole.close()
    with path.open("a") as file:
        file.write('{"name": "clean-1-0')  # as a kill in the middle of a line leaves it
    resumed = list(run_into(path, TINY))
    assert resumed[:5] == first
    assert len(resumed) == len(points_of(TINY))
    by_name = {record["name"]: record for record in records}
    for record in resumed:
        expected = by_name[record["name"]]
        assert {**record, "seconds": 0} == {**expected, "seconds": 0}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[1:] == resumed
    assert list(run_into(path, TINY)) == resumed


def test_results_of_another_trial_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    next(run_into(path, TINY))
    for trial, seed in ((replace(TINY, epochs=3), 0), (TINY, 1)):
        with pytest.raises(InputError, match="holds results of another trial or seed"):
            next(run_into(path, trial, seed=seed))


def drawn(path: Path) -> np.ndarray[Any, Any]:
    pytest.importorskip("matplotlib")
    from PIL import Image

    return np.asarray(Image.open(path))


def test_the_figure(records: list[dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_incompatibility([Measured(TINY, 0, records)], tmp_path / "figure.png")
    draw_incompatibility([Measured(TINY, 0, records)], tmp_path / "half.png", directions=["clean"])
    both, half = drawn(tmp_path / "figure.png"), drawn(tmp_path / "half.png")
    assert both.std() > 10
    assert both.shape == (half.shape[0], 2 * half.shape[1], 4)


def test_several_scenarios_are_drawn_together_or_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line through the medians of all, or a panel a scenario with its own."""
    pytest.importorskip("matplotlib")
    lines: list[list[float]] = []
    panel = incompatibility._panel

    def watched(axes: Any, curves: Any, color: str) -> None:
        panel(axes, curves, color)
        lines.append([len(curves), *axes.lines[len(curves)].get_ydata()])

    monkeypatch.setattr(incompatibility, "_panel", watched)
    scenarios = [
        replace(each, trial=trial)
        for trial, each in zip(
            trials_for("gan", "paper")[:3], [made({"clean": slope}) for slope in (0.1, 0.2, 0.9)], strict=True
        )
    ]
    draw_incompatibility(scenarios, tmp_path / "all.png", directions=["clean"])
    assert len(lines) == len(METRICS)
    assert lines[0] == pytest.approx([15, 0, 5, 10, 20]), "the median of three times five"
    lines.clear()
    draw_scenarios(scenarios, tmp_path / "each.png", directions=["clean"])
    assert [line[-1] for line in lines[:: len(METRICS)]] == pytest.approx([10, 20, 90])
    together, each = drawn(tmp_path / "all.png"), drawn(tmp_path / "each.png")
    assert each.shape == (2 * together.shape[0], 2 * together.shape[1], 4), "two a row"


def test_a_panel_for_each_family(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for family, trial in [
        *((family, LAPTOP[family]) for family in ("gan", "watermark")),
        ("watermark-3-5", replace(LAPTOP["watermark"], settings={"source": "3", "target": "5"})),
    ]:
        lines = [{"trial": trial.as_dict(), "seed": 0}, *made({}).records]
        (tmp_path / f"{family}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    head = json.dumps({"trial": LAPTOP["l2"].as_dict(), "seed": 0})
    (tmp_path / "just-started.jsonl").write_text(head + "\n")
    found = records_in(tmp_path)
    assert [[each.trial.case for each in group] for group in found] == [["0"], ["3-5", "0-2"]]
    draw_incompatibility(found[0], tmp_path / "one.png")
    draw_side_by_side(found, tmp_path / "two.png")
    one, two = drawn(tmp_path / "one.png"), drawn(tmp_path / "two.png")
    assert two.shape == (one.shape[0], 2 * one.shape[1], 4)


def test_files_that_hold_no_measurements(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no measurements; run: python benchmarks/incompatibility.py"):
        records_in(tmp_path / "absent")
    with pytest.raises(InputError, match="there is no file"):
        read_measured(tmp_path / "absent.jsonl")
    head = json.dumps({"trial": TINY.as_dict(), "seed": 0}).encode()
    for content, message in (
        (b"{}\n", "something else"), (b"", "something else"), (head + b"\n[]\n", "something"),
        (head + b"\n{}\n", "something"), (b"\xff", "read"),
    ):  # fmt: skip
        (tmp_path / "a.jsonl").write_bytes(content)
        with pytest.raises(InputError, match=message):
            records_in(tmp_path)


def test_a_figure_is_of_one_family_and_one_scale() -> None:
    for mixed in ([], [made({}), made({}, family="linf")], [made({}, family="gan"), made({}, family="l2")]):
        with pytest.raises(InputError, match="a figure shows one family of attacks"):
            trends(mixed)
    whole = replace(made({}), trial=trials_for("watermark", "full")[0])
    with pytest.raises(InputError, match="watermark differ in augmentation, classes, epochs, limit, ratios"):
        trends([made({}), whole])


PAIRS = ["0-2", "1-3", "2-5", "3-5", "3-7", "7-4", "8-6", "9-2"]
CLASSES = ["0", "2", "4", "7", "9"]
CASES = {"gan": CLASSES, "l2": CLASSES, "linf": CLASSES, "dirty-label": PAIRS, "watermark": PAIRS}


@pytest.mark.parametrize("scale", ["paper", "full"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_trials_of_the_papers_text(family: str, scale: str) -> None:
    """Section 4.1: all of CIFAR-10, 8 pairs or 5 classes, an eighth, alpha 1/2, 0 to 1, 5 draws of 5."""
    trials = trials_for(family, scale)
    assert [trial.case for trial in trials] == CASES[family]
    for trial in trials:
        assert (trial.family, trial.dataset, trial.classes, trial.limit) == (family, "cifar10", (), None)
        assert (trial.alpha, incompatibility.SHARE, trial.draws) == (0.5, 0.125, 5)
        assert (trial.ratios[0], trial.ratios[-1]) == (0.0, 1.0)
        assert trial.settings["epsilon"] == "0.2"
        assert float(trial.settings["epsilon"]) >= incompatibility.SHARE, "enough poison for ratio 1"
        assert (trial.recipe, trial.augmentation) == ("own", None)
        network, epochs = {"paper": ("preactresnet18", 100), "full": ("compact", 40)}[scale]
        assert (trial.learner, trial.epochs) == (network, epochs)
        assert len(points_of(trial)) == 2 * 5 * 5 * len(trial.ratios)


def test_dirty_label_has_the_authors_marks_where_they_are_known() -> None:
    known = [trials_for("dirty-label", "paper", seed=seed)[0].settings for seed in (0, 1, 2, 3)]
    assert [settings.get("official-seed") for settings in known] == ["100", "1000", "10000", None]


FILES = {
    "gan": "gan",
    "l2": "l2",
    "linf": "clean-label",
    "dirty-label": "dirty-label",
    "watermark": "watermark",
}


@pytest.mark.skipif(not RECORDED.exists(), reason="results are in the repository only")
@pytest.mark.parametrize("family", FILES)
def test_the_recorded_results_are_of_the_laptops_trials(family: str) -> None:
    recorded = read_measured(RECORDED / f"{FILES[family]}.jsonl")
    (trial,) = trials_for(family, "laptop")
    assert recorded.trial.as_dict() == trial.as_dict()
    assert recorded.seed == 1
    assert {record["name"] for record in recorded.records} == set(points_of(trial))


def test_the_laptops_trials() -> None:
    assert set(LAPTOP) == set(FAMILIES)
    for family, trial in LAPTOP.items():
        assert trial.family == family
        assert (trial.classes, trial.limit, trial.ratios) == ((0, 1, 2, 8), 10_000, (0.0, 0.5, 1.0))
        assert (trial.learner, trial.epochs, trial.recipe, trial.augmentation) == (
            "compact", 14, "small", "none",
        )  # fmt: skip
        assert Trial.from_dict(json.loads(json.dumps(trial.as_dict()))) == trial
    assert {trial.case for trial in LAPTOP.values()} == {"0", "0-2"}


def test_the_laptops_mark_is_the_one_that_was_recorded() -> None:
    """Drawn by seed 1 without the pair of classes, as it was then."""
    mark = random_mark(1, 32, 32, shape="ell")
    settings = LAPTOP["dirty-label"].settings
    assert settings["trigger"] == mark.shape
    assert settings["place"] == f"{mark.row},{mark.column}"
    assert settings["color"] == ",".join(map(str, mark.color))


def test_any_network_has_its_own_recipe(pools: Pools) -> None:
    pytest.importorskip("torch")
    images = replace(
        pools, features=np.zeros((len(pools.labels), 32, 32, 3), np.uint8), augmentation="crop-flip"
    )
    for network, epochs in (("preactresnet18", 100), ("resnet32", 100), ("compact", 40)):
        for scale in ("paper", "full"):
            (trial,) = trials_for("gan", scale, network=network, cases=["7"])
            options = getattr(factory_for(trial, images), "options")  # noqa: B009 - of networks only
            assert options.recipe == recipe_for(network)
            assert (trial.epochs, options.augmentation) == (epochs, "crop-flip")
    (small,), (own,) = trials_for("gan", "laptop"), trials_for("gan", "laptop", network="resnet32")
    recipes = [getattr(factory_for(trial, images), "options").recipe for trial in (small, own)]  # noqa: B009
    assert recipes == [
        replace(recipe_for("compact"), batch_size=32, learning_rate=0.1),
        recipe_for("resnet32"),
    ]
    assert (own.recipe, own.augmentation) == ("own", "none")


def test_a_file_for_each_scenario(tmp_path: Path) -> None:
    trials = [trial for family in FAMILIES for trial in trials_for(family, "paper")]
    files = {file_for(tmp_path, trial).name for trial in trials}
    assert len(files) == len(trials) == 3 * 5 + 2 * 8
    assert {"gan-7.jsonl", "dirty-label-3-5.jsonl"} <= files
    assert file_for(tmp_path / "own.jsonl", trials[0]) == tmp_path / "own.jsonl"


def test_what_there_is_no_trial_of() -> None:
    with pytest.raises(
        InputError, match="no family of attacks is called 'watermarks'; did you mean watermark"
    ):
        trials_for("watermarks", "paper")
    with pytest.raises(
        InputError, match="gan has no scenario '0-2' at the scale 'paper'; choose from 0, 2, 4"
    ):
        trials_for("gan", "paper", cases=["0-2"])
    with pytest.raises(InputError, match="no scale is called 'large'"):
        trials_for("gan", "large")
    with pytest.raises(InputError, match="must be own or small"):
        replace(TINY, recipe="fast")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ratios": (0.5, 1.0)}, "ratios must rise from 0"),
        ({"ratios": (0.0, 1.0, 0.5)}, "ratios must rise from 0"),
        ({"ratios": (0.0, 2.0)}, "ratios end at 1"),
        ({"draws": 1}, "draws are at least 2"),
    ],
)
def test_bad_trials(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(TINY, **change)


def test_sources_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="poisons 10 classes; give it one source"):
        pools_of(replace(TINY, settings={"mode": "all-to-all", "epsilon": "0.5"}), seed=0)
    with pytest.raises(InputError, match="source class 1 is not among the classes"):
        pools_of(replace(TINY, classes=(3, 7)), seed=0)


def command(*arguments: object) -> None:
    with patch.object(sys, "argv", ["incompatibility.py", *map(str, arguments)]):
        runpy.run_path(str(SCRIPT), run_name="__main__")


def test_a_command_measures_every_scenario_and_draws_both_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    scenarios = [replace(TINY, settings={**TINY.settings, "target": target}) for target in ("3", "7")]
    monkeypatch.setattr(incompatibility, "trials_for", lambda *_, **__: scenarios)
    arguments = ("--family", "watermark", "--scale", "full", "--draws", 2, "--ratios", 0, 1)
    figures = ("--figure", tmp_path / "all.png", "--each", tmp_path / "each.png")
    command(*arguments, "--out", tmp_path / "out", *figures)
    said = json.loads(capsys.readouterr().out.splitlines()[-1])["families"]["watermark"]
    assert (said["scenarios"], said["models"]) == (["1-3", "1-7"], 2 * 16)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "watermark-1-3.jsonl",
        "watermark-1-7.jsonl",
    }
    (group,) = records_in(tmp_path / "out")
    assert said["trends"] == json.loads(json.dumps(trends(group)))
    one, two = drawn(tmp_path / "all.png"), drawn(tmp_path / "each.png")
    assert two.shape == (one.shape[0], 2 * one.shape[1], 4)
    with pytest.raises(SystemExit):
        command(*arguments, "--out", tmp_path / "one.jsonl")
    assert "is one file and there are 2 scenarios; give a folder" in capsys.readouterr().err
