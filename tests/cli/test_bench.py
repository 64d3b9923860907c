from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from unpoison.errors import InputError
from unpoison.evaluation import figures
from unpoison.evaluation.bench import BenchTask

from .builders import call, environment

SCENARIO = "gtsrb-watermark-1-2-eps10"
OTHER = "cifar10-dirty-label-0-2-eps5"
EXPERIMENT = "unpoison.evaluation.experiment"
NASTY = "a\x1b[31m\u202e"
MEASURED = {
    "n": 100, "accuracy": 0.95, "tmr": 0.0, "asr": 0.5, "false_positives": 12, "false_negatives": 0,
    "true_positive_rate": 1.0, "false_positive_rate": 0.12, "auc": 1.0,
    "defense_cost": {"trained": 0, "scored": 0, "seconds": 0.0},
}  # fmt: skip


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """In place of real experiments, which take minutes: numbers that follow from the task."""
    module: Any = ModuleType(EXPERIMENT)
    module.DEFENSES = {"nothing": None, "ispl": None, "extra": None}
    module.COMPARED, module.CONTROLS = ("nothing", "ispl"), ("nothing",)
    module.estimate_seconds = lambda _: 1800.0
    module.calls = []

    def run_task(task: BenchTask, *, work: Path) -> dict[str, Any]:
        module.calls.append(task)
        if task.scenario == OTHER:
            raise InputError(f"no data {NASTY}\nsecond line")
        return {**MEASURED, "tmr": 0.9 if task.defense == "nothing" else 0.004}

    module.run_task = run_task
    monkeypatch.setitem(sys.modules, EXPERIMENT, module)
    return module


# --- list --------------------------------------------------------------------------------------------------


def test_list_prints_a_scenario_a_line() -> None:
    done = call("bench", "list", "--scale", "paper", "--table", "summary")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) == len(set(lines)) == 165
    assert all(len(line.split()) == 1 for line in lines)


def test_list_filters() -> None:
    lines = call("bench", "list", "--family", "watermark", "--dataset", "gtsrb").out.splitlines()
    assert len(lines) == 24 + 25  # and the cells of the ablation on GTSRB
    assert all(line.startswith("gtsrb-watermark-") for line in lines)
    (line,) = [
        line
        for line in call("bench", "list", "--scale", "laptop", "--long").out.splitlines()
        if line.startswith(f"{SCENARIO} ")
    ]
    for fact in ("gtsrb-watermark,summary", "--source 1", "seeds 0,1,2", "6,000 samples"):
        assert fact in line


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--table", "no table is called 'sumary'; did you mean summary"),
        ("--family", "no family is called 'sumary'; there are: adaptive, "),
        ("--dataset", "no dataset is called 'sumary'; there are: cifar10, "),
        ("--scale", "no scale is called 'sumary'"),
    ],
)
def test_list_refuses_unknown_names(option: str, message: str) -> None:
    done = call("bench", "list", option, "sumary")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


# --- run and status ----------------------------------------------------------------------------------------


def test_run_and_run_again(experiment: Any, tmp_path: Path) -> None:
    out = tmp_path / "results"
    arguments = ("bench", "run", "--scenario", SCENARIO, "--seeds", "2", "--out", out)
    done = call(*arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"done: 4, done before: 0, failed: 0; results in {out}\n"
    assert [(task.defense, task.seed) for task in experiment.calls] == [
        ("nothing", 0), ("ispl", 0), ("nothing", 1), ("ispl", 1),
    ]  # fmt: skip
    assert sorted(path.name for path in (out / "laptop" / SCENARIO).iterdir()) == [
        "ispl-seed0.json", "ispl-seed1.json", "nothing-seed0.json", "nothing-seed1.json",
    ]  # fmt: skip
    assert f'"command": "unpoison bench run --scenario {SCENARIO} ' in (
        out / "laptop" / SCENARIO / "ispl-seed0.json"
    ).read_text(encoding="utf-8")
    assert call(*arguments).out == f"done: 0, done before: 4, failed: 0; results in {out}\n"
    assert call(*arguments, "-q").out == ""
    assert len(experiment.calls) == 4


def test_failures_are_told_without_control_characters(experiment: Any, tmp_path: Path) -> None:
    out = tmp_path / "results"
    chosen = ("--scenario", SCENARIO, "--scenario", OTHER, "--defense", "ispl", "--seeds", "0,")
    done = call("bench", "run", *chosen, "--out", out)
    assert done.code == 1
    assert done.out == f"done: 1, done before: 0, failed: 1; results in {out}\n"
    line = f"failed: laptop/{OTHER}/ispl-seed0: InputError: no data a\\x1b[31m\\u202e\n"
    assert done.err == line
    found = call("bench", "status", "--out", out)
    assert (found.code, found.err) == (0, "")
    assert found.out.endswith(f"no run is at work\n{line}")
    header, *rows = [text.split() for text in found.out.splitlines()[:-2]]
    assert header == ["scale", "table", "family", "done", "failed", "waiting"]
    assert rows == [
        ["laptop", "cifar10-dirty-label", "dirty-label", "0", "1", "0"],
        ["laptop", "gtsrb-watermark", "watermark", "1", "0", "0"],
        ["laptop", "summary", "all", "1", "1", "0"],
        ["all", "1", "1", "0"],
    ]


def test_a_damaged_result_is_noted(experiment: Any, tmp_path: Path) -> None:
    arguments = ("bench", "run", "--scenario", SCENARIO, "--seeds", "1", "--out", tmp_path)
    assert call(*arguments).code == 0
    path = tmp_path / "laptop" / SCENARIO / "ispl-seed0.json"
    path.write_text("{")
    assert call(*arguments, "--estimate").out.startswith("2 tasks, 1 of them done, 1 to run")
    assert call(*arguments, "--estimate", "--limit-tasks", "5").out.startswith("1 tasks, 0 of them done")
    done = call(*arguments)
    assert (done.code, done.out[:24]) == (0, "done: 1, done before: 1,")
    assert done.err.startswith(f"note: {path} cannot be read")
    path.write_text(path.read_text().replace('"tmr": 0.004', '"tmr": "abc"'))
    assert "(its tmr is 'abc')" in call(*arguments).err
    assert call(*arguments).err == ""


def test_estimate_runs_nothing(experiment: Any, tmp_path: Path) -> None:
    out = tmp_path / "results"
    arguments = ("bench", "run", "--defense", "ispl", "--out", out, "--estimate")
    done = call(*arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out == "495 tasks, 0 of them done, 495 to run\nabout 247.5 hours of work for one CPU core\n"
    two = call(*arguments, "--workers", "2").out
    assert two.endswith("about 247.5 hours of work for one CPU core: 123.8 hours on 2 workers\n")
    assert call(*arguments, "--runner", "ray").out.endswith("divided by what the cluster runs at once\n")
    assert call(*arguments, "--limit-tasks", "1").out.endswith("about 30 minutes of work for one CPU core\n")
    assert experiment.calls == []
    assert not out.exists()


NOT_RECORDED = "'extra' is not among the recorded experiments, which are of nothing, ispl, ispl+clean"


def test_the_recorded_experiments(experiment: Any, tmp_path: Path) -> None:
    arguments = ("bench", "run", "--recorded", "--out", tmp_path)
    assert call(*arguments, "--estimate").out.startswith("52 tasks, 0 of them done")
    done = call(*arguments, "--defense", "ispl+clean")
    assert (done.code, done.out[:8]) == (0, "done: 2,")
    assert {task.scenario.partition("-")[0] for task in experiment.calls} == {"gtsrb", "cifar10"}
    for name, message in (("isp", "no defense is called 'isp'; did you mean ispl"), ("extra", NOT_RECORDED)):
        refused = call(*arguments, "--defense", "ispl", "--defense", name)
        assert (refused.code, refused.out) == (2, "")
        assert message in refused.err
    mixed = call(*arguments, "--scenario", SCENARIO)
    assert (mixed.code, "--recorded has its own scenarios and seeds" in mixed.err) == (2, True)
    none = call(*arguments, "--scale", "paper")
    assert (none.code, none.err) == (
        2,
        "error: no results are published for the scale 'paper'; name a --table\n",
    )


def test_the_held_out_experiments(experiment: Any, tmp_path: Path) -> None:
    arguments = ("bench", "run", "--held-out", "--out", tmp_path)
    assert call(*arguments, "--estimate").out.startswith("68 tasks, 0 of them done")
    mixed = call(*arguments, "--seeds", "3")
    assert (mixed.code, "--held-out has its own scenarios and seeds" in mixed.err) == (2, True)
    both = call(*arguments, "--recorded")
    assert (both.code, "either --recorded or --held-out" in both.err) == (2, True)
    refused = call(*arguments, "--defense", "ispl+clean")
    assert "'ispl+clean' is not among the held-out experiments, which are of nothing, ispl" in refused.err


def test_only_attacks_that_take_hold(experiment: Any, tmp_path: Path) -> None:
    arguments = ("bench", "run", "--table", "gtsrb-watermark", "--seeds", "1,", "--out", tmp_path)
    holding = (*arguments, "--taking-hold", "--defense", "ispl")
    early = call(*holding)
    assert (early.code, early.out) == (2, "")
    assert "whether 24 of the attacks take hold is not known: there is no result of laptop/" in early.err
    assert "run the same with --defense nothing first" in early.err
    assert call(*arguments, "--defense", "nothing").code == 0
    path = tmp_path / "laptop" / SCENARIO / "nothing-seed1.json"
    path.write_text(path.read_text().replace('"tmr": 0.9', '"tmr": 0.1'))
    experiment.calls.clear()
    assert call(*holding).out.startswith("done: 23, done before: 0")
    assert {task.defense for task in experiment.calls} == {"ispl"}
    assert SCENARIO not in {task.scenario for task in experiment.calls}


def test_limited_runs_go_on_one_after_the_other(experiment: Any, tmp_path: Path) -> None:
    arguments = ("bench", "run", "--table", "gtsrb-watermark", "--limit-tasks", "3", "--out", tmp_path)
    for _ in range(2):
        assert call(*arguments).out.startswith("done: 3, done before: 0, ")
    assert len({task.name for task in experiment.calls}) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--seeds", "x"), "'x' is neither a list such as 0,2,5"),
        (("--seeds", "0"), "'0' is neither"),
        (("--seeds", "1,-2"), "is neither"),
        (("--defense", "isp"), "no defense is called 'isp'; did you mean ispl"),
        (("--defense", "random-100"), "no defense is called 'random-100'"),
        (
            ("--defense", "expansion"),
            "the defense 'expansion' was replaced by 'groups'; use --defense groups",
        ),
        (("--defense", "out-of-subset+clean"), "the defense 'out-of-subset' was replaced by 'groups'"),
        (("--scenario", "gtsrb"), "no scenario is called 'gtsrb'"),
        (("--table", "x"), "no table is called 'x'"),
        (("--scale", "x"), "no scale is called 'x'"),
        (("--address", "auto"), "add --runner ray"),
        (("--workers", "0"), "'--workers'"),
        (("--network", "resnet32"), "--network goes with --scale full"),
        (("--network", "resnet1", "--scale", "full"), "'resnet1' is not one of the paper's networks"),
        (("--arrays", "nowhere"), "nowhere does not exist"),
        (("--watermarks", "nowhere"), "nowhere does not exist"),
    ],
)
def test_bad_options(options: tuple[str, ...], message: str, experiment: Any, tmp_path: Path) -> None:
    done = call("bench", "run", "--out", tmp_path / "results", *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not (tmp_path / "results").exists()


def test_another_network_is_another_scale(experiment: Any, tmp_path: Path) -> None:
    arguments = ("bench", "run", "--scenario", SCENARIO, "--seeds", "1", "--out", tmp_path, "--scale", "full")
    assert call(*arguments, "--network", "resnet32").code == 0
    assert call(*arguments, "--network", "compact").code == 0
    assert [task.scale for task in experiment.calls] == ["full-resnet32"] * 2 + ["full"] * 2
    done = call("bench", "table", "gtsrb-watermark", "--out", tmp_path, "--scale", "full-resnet32")
    assert (done.code, "full-resnet32" in done.out) == (0, True)


def test_official_images_are_not_mixed_with_ours(experiment: Any, tmp_path: Path) -> None:
    run = experiment.run_task
    experiment.run_task = lambda task, *, work: {**run(task, work=work), "images": task.images}
    arguments = ("bench", "run", "--scenario", SCENARIO, "--seeds", "1", "--out", tmp_path / "results")
    assert call(*arguments).code == 0
    done = call(*arguments, "--watermarks", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "was run with the images 'ours', and 'official' are asked for; choose another --out" in done.err
    other = call(*arguments[:-1], tmp_path / "official", "--watermarks", tmp_path)
    assert other.code == 0
    assert [task.images for task in experiment.calls] == ["ours"] * 2 + ["official"] * 2
    assert experiment.calls[-1].watermarks == str(tmp_path.resolve())


def test_ray_that_is_not_installed(experiment: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = call("bench", "run", "--scenario", SCENARIO, "--out", tmp_path, "--runner", "ray")
    assert (done.code, done.out) == (2, "")
    assert "pip install 'unpoison[ray]'" in done.err


def test_status_of_nothing(tmp_path: Path) -> None:
    done = call("bench", "status", "--out", tmp_path / "absent")
    assert (done.code, done.out) == (2, "")
    assert "is not a folder; run: unpoison bench run --out" in done.err


INTERRUPTED = """
import sys, time
from types import ModuleType

module = ModuleType("unpoison.evaluation.experiment")
module.DEFENSES, module.COMPARED = {"ispl": None}, ("ispl",)

def run_task(task, *, work):
    if task.seed == 2:
        print("at work", flush=True)
        time.sleep(60)
    return MEASURED

module.run_task = run_task
sys.modules[module.__name__] = module
from unpoison.cli.app import main
main()
""".replace("MEASURED", repr(MEASURED))


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupted(experiment: Any, tmp_path: Path) -> None:
    arguments = ["bench", "run", "--scenario", SCENARIO, "--seeds", "4", "--out", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate()
    assert (process.returncode, printed) == (130, "")
    assert said == "interrupted; what is done stays, and the same command goes on from there\n"
    again = call(*arguments, "--defense", "ispl")
    assert again.out.startswith("done: 2, done before: 2, failed: 0")


# --- tables and figures ------------------------------------------------------------------------------------


def test_the_published_summary() -> None:
    done = call("bench", "table", "summary", "--published")
    assert (done.code, done.err) == (0, "")
    (line,) = [line for line in done.out.splitlines() if line.startswith("ISPL") and " total " in line]
    assert line.split()[-12:] == ["134", "/", "165", "88", "/", "116", "142", "/", "165", "94", "/", "116"]
    assert r"\begin{tabular}" in call("bench", "table", "summary", "--published", "--format", "latex").out
    assert call("bench", "table", "summary", "--published", "--format", "csv").out.startswith(
        "defense,epsilon,"
    )


def test_a_table_with_our_results(experiment: Any, tmp_path: Path) -> None:
    assert call("bench", "run", "--scenario", SCENARIO, "--out", tmp_path).code == 0
    assert (
        call("bench", "run", "--scenario", SCENARIO, "--defense", "ispl+clean", "--out", tmp_path).code == 0
    )
    (tmp_path / "laptop" / SCENARIO / "nothing-seed0.json").write_text("{")
    done = call("bench", "table", "gtsrb-watermark", "--out", tmp_path)
    assert done.code == 0
    assert "ours at scale laptop" in done.out
    assert "0.4*" in done.out
    assert "ispl+clean" not in done.out
    damaged, left_out = done.err.splitlines()
    assert "nothing-seed0.json cannot be read" in damaged
    assert left_out.startswith("note: 2 results are left out: add --defense nothing")


def test_a_table_of_some_defenses(experiment: Any, tmp_path: Path) -> None:
    both = ("--defense", "nothing", "--defense", "ispl", "--defense", "ispl+clean")
    assert call("bench", "run", "--scenario", SCENARIO, *both, "--out", tmp_path).code == 0
    other = ("--scenario", "gtsrb-watermark-1-2-eps20", "--defense", "nothing")
    assert call("bench", "run", *other, "--out", tmp_path).code == 0
    for name, count in (("nothing", "0 / 6"), ("ispl", "3 / 3"), ("ispl+clean", "3 / 3")):
        done = call("bench", "table", "comparison", "--defense", name, "--out", tmp_path)
        (line,) = [line for line in done.out.splitlines() if line.startswith(name[:4])]
        assert count in line
    done = call("bench", "table", "gtsrb-watermark", "--defense", "nothing", "--out", tmp_path)
    ours = {line.split()[4] for line in done.out.splitlines() if line.endswith("yes")}
    assert (done.code, ours) == (0, {"nothing"})
    for name, message in (
        ("isp", "no defense is called 'isp'"),
        ("extra", "no results of 'extra', only of"),
        ("expansion", "no results of 'expansion', only of"),
    ):
        refused = call("bench", "table", "comparison", "--defense", name, "--out", tmp_path)
        assert (refused.code, refused.out) == (2, "")
        assert message in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("summary", "--published", "--defense", "ispl"), "leave it out with --published"),
        (("summary",), "Give either --out"),
        (("summary", "--published", "--out", "."), "Give either --out"),
        (("sumary", "--published"), "no table is called 'sumary'; did you mean summary"),
        (("summary", "--out", "absent"), "holds no results at scale 'laptop'; run: unpoison bench run"),
        (("summary", "--out", "absent", "--scale", "x"), "no scale is called 'x'"),
    ],
)
def test_tables_that_cannot_be_made(arguments: tuple[str, ...], message: str) -> None:
    done = call("bench", "table", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_figures(experiment: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.png"
    arguments = ("--out", tmp_path / "results", "--to", target)
    done = call("bench", "figure", "nonsense", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "no figure is called 'nonsense'; " in done.err
    monkeypatch.setitem(figures.FIGURES, "count", lambda results, to: to.write_text(str(len(list(results)))))
    assert "holds no results" in call("bench", "figure", "count", *arguments).err
    every = ("--defense", "nothing", "--defense", "ispl", "--defense", "ispl+clean")
    assert call("bench", "run", "--scenario", SCENARIO, *every, "--out", tmp_path / "results").code == 0
    assert call("bench", "figure", "count", *arguments).out == f"drew {target}\n"
    assert target.read_text() == "6"
    (tmp_path / "results" / "incompatibility").mkdir()
    assert "holds no measurements" in call("bench", "figure", "incompatibility", *arguments).err
    alone = call("bench", "figure", "incompatibility", "--to", target)
    assert (alone.code, "has no numbers of the paper: give --out" in alone.err) == (2, True)
    assert "the figures are: " in call("bench", "figure", "nonsense", *arguments).err


def test_help_names_the_verbs() -> None:
    done = call("bench", "--help")
    assert all(verb in done.out for verb in ("list", "run", "status", "table", "figure"))


def test_results_of_a_defense_that_was_replaced_are_read(experiment: Any, tmp_path: Path) -> None:
    both = ("--defense", "nothing", "--defense", "ispl")
    assert call("bench", "run", "--scenario", SCENARIO, *both, "--out", tmp_path).code == 0
    for path in (tmp_path / "laptop" / SCENARIO).glob("ispl-*.json"):
        kept = path.read_text(encoding="utf-8").replace("ispl", "expansion")
        path.with_name(path.name.replace("ispl", "expansion")).write_text(kept, encoding="utf-8")
        path.unlink()
    done = call("bench", "table", "comparison", "--defense", "expansion", "--out", tmp_path)
    assert done.code == 0
    assert [line for line in done.out.splitlines() if line.startswith("expansion")]
