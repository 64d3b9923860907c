from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unpoison.errors import InputError
from unpoison.evaluation import incompatibility
from unpoison.evaluation.incompatibility import (
    FIXED,
    METRICS,
    TRIALS,
    Pools,
    Trial,
    changes,
    draw_incompatibility,
    draw_side_by_side,
    factory_for,
    points_of,
    pools_of,
    records_in,
    run,
    run_into,
    trends,
)
from unpoison.seeds import Seeds

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


def made(slopes: dict[str, float], *, noise: float = 0.0, attack: str = "watermark") -> list[dict[str, Any]]:
    """Records in which every metric of clean data given poison follows a line."""
    rng = np.random.default_rng(0)
    return [
        {"attack": attack, "fixed": "clean", "base": base, "draw": draw, "ratio": ratio}
        | {metric: 0.5 + slopes.get(metric, 0.0) * ratio + noise * rng.normal() for metric in METRICS}
        for base in range(5) for draw in range(5) for ratio in (0.0, 0.25, 0.5, 1.0)
    ]  # fmt: skip


def test_trends_have_the_sign_of_their_slope_and_say_whether_the_paper_agrees() -> None:
    found = {
        trend["metric"]: trend
        for trend in trends(made({"clean": -0.1, "source": 0.2, "poisoned": 0.4}, noise=0.005))
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
    assert {t["metric"] for t in trends(made({}, attack="clean-label")) if t["paper"] == "falls"} == {
        "clean", "other",
    }  # fmt: skip


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


def test_the_figure(records: list[dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from PIL import Image

    draw_incompatibility(records, tmp_path / "figure.png")
    assert np.asarray(Image.open(tmp_path / "figure.png")).std() > 10


def test_a_panel_for_each_attack(records: list[dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from PIL import Image

    for name in ("a", "b"):
        lines = [{"trial": {}, "seed": 0}, *records]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "just-started.jsonl").write_text('{"trial": {}, "seed": 0}\n')
    found = records_in(tmp_path)
    assert found == [records, records]
    draw_incompatibility(records, tmp_path / "one.png")
    draw_side_by_side(found, tmp_path / "two.png")
    one, two = (np.asarray(Image.open(tmp_path / f"{name}.png")) for name in ("one", "two"))
    assert two.shape == (one.shape[0], 2 * one.shape[1], 4)


def test_files_that_hold_no_measurements(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no measurements; run: python benchmarks/incompatibility.py"):
        records_in(tmp_path / "absent")
    for content, message in ((b"{}\n[]\n", "something else"), (b"{}\n{}\n", "something"), (b"\xff", "read")):
        (tmp_path / "a.jsonl").write_bytes(content)
        with pytest.raises(InputError, match=message):
            records_in(tmp_path)


def test_a_figure_is_of_one_attack(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for mixed in ([], [*made({}), *made({}, attack="clean-label")]):
        with pytest.raises(InputError, match="a figure shows one attack"):
            draw_incompatibility(mixed, tmp_path / "figure.png")


def test_the_trials_are_of_attacks_with_one_source_class() -> None:
    for name, trial in TRIALS.items():
        assert trial.attack == name
        source = int(trial.settings.get("source", trial.settings["target"]))
        assert not trial.classes or {source, int(trial.settings["target"])} <= set(trial.classes)
        json.dumps(trial.as_dict())


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
