from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from unpoison.errors import InputError, MissingExtraError, OutputError
from unpoison.evaluation.bench import (
    ON_CLEAN,
    BenchTask,
    Experiment,
    Outcome,
    Report,
    Tally,
    defenses,
    estimate,
    held_out,
    plan,
    recorded,
    results,
    run,
    status,
)
from unpoison.evaluation.published import SUMMARIZED
from unpoison.evaluation.scenarios import by_name, of_table
from unpoison.evaluation.store import Store
from unpoison.events import Progress
from unpoison.runners.local import LocalRunner
from unpoison.seeds import Seeds

SOURCE = Path(__file__).resolve().parents[2] / "src"
SCENARIO = "gtsrb-watermark-1-2-eps10"


def tasks(n: int = 4) -> list[BenchTask]:
    return [BenchTask(SCENARIO, "laptop", "ispl", seed) for seed in range(n)]


MEASURED: dict[str, Any] = {
    "n": 100, "accuracy": 0.9, "tmr": 0.5, "asr": 0.6, "false_positives": 3, "false_negatives": 0,
    "true_positive_rate": 1.0, "false_positive_rate": 0.03, "auc": None,
    "defense_cost": {"trained": 800, "scored": 600, "seconds": 1.0},
}  # fmt: skip


def measure(task: BenchTask, *, work: Path) -> dict[str, Any]:
    return MEASURED


def draw(task: BenchTask, *, work: Path) -> dict[str, Any]:
    """A result that follows from the task alone."""
    assert list(work.iterdir()) == []
    (work / "scratch").touch()
    return {"drawn": Seeds(task.seed).stream(task.name).random(3).tolist(), "took_hold": True}


def counted(task: BenchTask, *, work: Path, log: Path) -> dict[str, Any]:
    with log.open("a") as file:
        file.write(f"{task.name}\n")
    return draw(task, work=work)


def failing(task: BenchTask, *, work: Path, log: Path, error: Exception, until: int) -> dict[str, Any]:
    """The task with seed 1 raises ``error`` until it was tried that often."""
    result = counted(task, work=work, log=log)
    if task.seed == 1 and log.read_text().split().count(task.name) < until:
        raise error
    return result


def deadly(task: BenchTask, *, work: Path, log: Path, until: int) -> dict[str, Any]:
    """The process that runs the task with seed 1 is killed until it was tried that often."""
    result = counted(task, work=work, log=log)
    if task.seed == 1 and log.read_text().split().count(task.name) < until:
        os.kill(os.getpid(), signal.SIGKILL)
    return result


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log").touch()
    return tmp_path / "log"


def go(
    store: Store, experiment: Experiment = draw, *, chosen: list[BenchTask] | None = None, **options: Any
) -> Outcome:
    options = {"runner": LocalRunner(1), **options}
    return run(tasks() if chosen is None else chosen, store, run=experiment, **options)


def stored(store: Store) -> dict[str, Any]:
    reading = store.results(store.listing().done)
    assert reading.damaged == ()
    return {name: record["result"] for name, record in reading.records.items()}


# --- tasks -------------------------------------------------------------------------------------------------


def test_a_task_is_called_after_what_it_does() -> None:
    assert BenchTask("some-scenario", "paper", "none", 7).name == "paper/some-scenario/none-seed7"


@pytest.mark.parametrize("bad", ["", "..", "a/b", "a b", "-a", "\x1b", "ä", ".hidden"])
@pytest.mark.parametrize("part", ["scenario", "scale", "defense"])
def test_a_name_that_could_lead_elsewhere_is_refused(part: str, bad: str) -> None:
    with pytest.raises(InputError, match=f"The '{part}' of a task must be a plain name"):
        BenchTask(**{"scenario": "a", "scale": "b", "defense": "c", "seed": 0, part: bad})  # type: ignore[arg-type]


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match=r"must be at least 0\. Got -1"):
        BenchTask("a", "b", "c", -1)


def test_every_scenario_once_before_any_twice() -> None:
    sleeper = next(iter(of_table("cifar10-sleeper-agent")))
    chosen = plan([by_name(SCENARIO), sleeper], scale="laptop", defenses=["none", "ispl"])
    firsts = [(task.scenario, task.defense, task.seed) for task in chosen[:5]]
    assert firsts == [
        (SCENARIO, "none", 0),
        (SCENARIO, "ispl", 0),
        (sleeper.name, "none", sleeper.seeds[0]),
        (sleeper.name, "ispl", sleeper.seeds[0]),
        (SCENARIO, "none", 1),
    ]
    assert len(chosen) == 2 * (3 + 1)
    given = plan([by_name(SCENARIO), sleeper], scale="laptop", defenses=["none"], seeds=[4, 9])
    assert [task.seed for task in given] == [4, 4, 9, 9]
    with pytest.raises(InputError, match="no scale is called 'huge'"):
        plan([sleeper], scale="huge", defenses=["none"])


def test_the_recorded_grid_covers_every_family_of_the_main_table() -> None:
    pytest.importorskip("torch")
    tasks = recorded("laptop")
    poisoned = [task for task in tasks if not task.defense.endswith(ON_CLEAN)]
    scenarios = [by_name(name) for name in dict.fromkeys(task.scenario for task in tasks)]
    assert len(scenarios) >= 24
    assert {scenario.tables[0] for scenario in scenarios} == set(SUMMARIZED)
    assert {scenario.epsilon for scenario in scenarios} == {5, 10, 20}
    clean_label = {scenario.options.get("perturbation") for scenario in scenarios}
    assert clean_label >= {"gan", "l2", "linf"}
    assert Counter(task.defense for task in poisoned) == Counter(
        {task.defense: len(scenarios) for task in poisoned}
    )
    firsts = [task.defense for task in tasks[:: len(scenarios)][:4]]
    assert firsts == ["nothing", "oracle", "random", "random-50"]
    on_clean = {(by_name(task.scenario).dataset, task.defense) for task in tasks} - {
        (by_name(task.scenario).dataset, task.defense) for task in poisoned
    }
    assert {dataset for dataset, _ in on_clean} == {"cifar10", "gtsrb"}
    assert ("gtsrb", "ispl-authors-reduced+clean") in on_clean
    assert ("gtsrb", "oracle+clean") not in on_clean


def test_held_out_scenarios_are_other_ones_than_the_recorded() -> None:
    pytest.importorskip("torch")
    tasks = held_out("laptop")
    scenarios = [by_name(name) for name in dict.fromkeys(task.scenario for task in tasks)]
    assert not {task.scenario for task in tasks} & {task.scenario for task in recorded("laptop")}
    assert {scenario.tables[0] for scenario in scenarios} == set(SUMMARIZED)
    assert {scenario.epsilon for scenario in scenarios} == {5, 10, 20}
    assert {task.defense for task in tasks[: len(scenarios)]} == {"nothing"}
    assert held_out("paper") == []


def test_the_default_is_what_is_recorded() -> None:
    pytest.importorskip("torch")
    assert defenses() == list(dict.fromkeys(t.defense for t in recorded("laptop") if "+" not in t.defense))
    assert "ispl-paper" not in defenses()  # hours a scenario
    assert defenses(["random-9", "ispl-paper+clean", "random-9"]) == ["random-9", "ispl-paper+clean"]


# --- running -----------------------------------------------------------------------------------------------


def test_each_result_is_a_file_with_its_provenance(store: Store) -> None:
    outcome = go(store, command="unpoison bench run")
    assert outcome.done == tuple(task.name for task in tasks())
    assert (outcome.skipped, outcome.failed, outcome.damaged) == ((), {}, ())
    path = store.folder / "laptop" / SCENARIO / "ispl-seed2.json"
    record = json.loads(path.read_text())
    assert list(record) == ["task", "provenance", "result"]
    assert record["task"] == {"scenario": SCENARIO, "scale": "laptop", "defense": "ispl", "seed": 2}
    provenance = record["provenance"]
    assert provenance["command"] == "unpoison bench run"
    assert 0 <= provenance["seconds"] < 60
    assert provenance["started"].endswith("+00:00")
    assert {"version", "code", "python", "platform", "torch", "hardware"} <= provenance.keys()


def test_what_is_done_is_skipped(store: Store, log: Path) -> None:
    experiment = partial(counted, log=log)
    go(store, experiment, chosen=tasks(2))
    before = stored(store)
    outcome = go(store, experiment)
    assert outcome.skipped == tuple(task.name for task in tasks(2))
    assert outcome.done == tuple(task.name for task in tasks()[2:])
    assert log.read_text().split() == [task.name for task in tasks()]
    assert before.items() <= stored(store).items()
    assert go(store, experiment, chosen=[]).done == ()


def test_the_same_task_twice_runs_once(store: Store, log: Path) -> None:
    go(store, partial(counted, log=log), chosen=tasks(1) * 3)
    assert len(log.read_text().split()) == 1


def test_two_workers_give_the_results_of_one(tmp_path: Path) -> None:
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    go(one)
    go(two, runner=LocalRunner(2))
    assert stored(one) == stored(two)
    assert len(stored(one)) == 4


def test_results_become_plain(store: Store) -> None:
    import numpy as np

    def odd(task: BenchTask, *, work: Path) -> dict[str, Any]:
        return {"tmr": np.float32(0.5), "asr": float("nan"), "by_class": np.arange(2), "pair": (1, 2)}

    go(store, odd, chosen=tasks(1))
    assert list(stored(store).values()) == [{"tmr": 0.5, "asr": None, "by_class": [0, 1], "pair": [1, 2]}]


def test_a_failure_stops_no_other_and_is_tried_again(store: Store, log: Path) -> None:
    experiment = partial(failing, log=log, error=ValueError("bad luck\nmore of it"), until=2)
    outcome = go(store, experiment)
    assert outcome.failed == {}
    assert [name[-1] for name in log.read_text().split()] == ["0", "1", "2", "3", "1"]
    assert len(stored(store)) == 4
    assert list(store.folder.rglob("*.failed.json")) == []


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_what_keeps_failing_is_reported(retries: int, store: Store, log: Path) -> None:
    experiment = partial(failing, log=log, error=ValueError("bad luck\nmore of it"), until=9)
    outcome = go(store, experiment, retries=retries)
    name = tasks()[1].name
    assert outcome.failed == {name: "ValueError: bad luck"}
    assert len(outcome.done) == 3
    assert log.read_text().split().count(name) == retries + 1
    record = store.failures([name]).records[name]
    assert record["tries"] == retries + 1
    assert record["error"]["message"] == "bad luck\nmore of it"
    assert "in failing" in record["error"]["traceback"]
    assert record["provenance"]["version"]
    again = go(store)
    assert (again.done, len(again.skipped)) == ((name,), 3)
    assert store.listing().failed == frozenset()


@pytest.mark.parametrize(
    "error", [InputError("no such data"), MissingExtraError("torch", "torch", "This")], ids=["input", "extra"]
)
def test_bad_input_is_not_tried_again(error: Exception, store: Store, log: Path) -> None:
    outcome = go(store, partial(failing, log=log, error=error, until=9), retries=5)
    (line,) = outcome.failed.values()
    assert line.startswith(f"{type(error).__name__}: ")
    assert len(log.read_text().split()) == 4


def test_negative_retries_are_refused(store: Store) -> None:
    with pytest.raises(InputError, match=r"'retries' parameter must be at least 0\. Got -1"):
        go(store, retries=-1)


def test_a_damaged_result_is_computed_again_and_told(store: Store) -> None:
    go(store)
    before = stored(store)
    path = store.folder / f"{tasks()[2].name}.json"
    path.write_bytes(path.read_bytes()[:40])
    outcome = go(store)
    assert outcome.done == (tasks()[2].name,)
    (line,) = outcome.damaged
    assert str(path) in line
    assert stored(store) == before


def test_progress_is_told(store: Store, log: Path) -> None:
    events: list[Progress] = []
    go(store, chosen=tasks(1))
    experiment = partial(failing, log=log, error=ValueError("no"), until=9)
    go(store, experiment, listener=events.append)
    assert [event.done for event in events] == [1, 2, 3, 4]
    assert {(event.total, event.resumed) for event in events} == {(4, 1)}


def test_a_second_run_in_the_same_folder_is_refused(store: Store) -> None:
    def nested(task: BenchTask, *, work: Path) -> dict[str, Any]:
        with pytest.raises(OutputError, match="in use by another run"):
            go(Store(store.folder))
        return {}

    assert len(go(store, nested, chosen=tasks(1)).done) == 1


# --- runners that break ------------------------------------------------------------------------------------


class Breaking:
    """Takes two tasks at a time and answers the first; every call breaks until the given one."""

    def __init__(self, until: int) -> None:
        self.calls, self.until = 0, until

    def __call__(self, tasks: Mapping[str, Callable[[], Report]]) -> Iterator[tuple[str, Report]]:
        self.calls += 1
        if self.calls >= self.until:
            yield from ((name, task()) for name, task in tasks.items())
            return
        items = iter(tasks.items())
        (name, task), *_ = [next(items) for _ in range(min(2, len(tasks)))]
        if len(tasks) > 1:
            yield name, task()
        raise RuntimeError("a worker was killed")


def test_what_was_under_way_is_tried_again_and_the_rest_goes_on(store: Store, log: Path) -> None:
    outcome = go(store, partial(counted, log=log), runner=Breaking(until=2))
    assert outcome.failed == {}
    assert [name[-1] for name in log.read_text().split()] == ["0", "2", "3", "1"]


def test_a_runner_that_keeps_breaking_ends_with_failures(store: Store) -> None:
    runner = Breaking(until=99)
    outcome = go(store, runner=runner)
    assert len(outcome.done) + len(outcome.failed) == 4
    assert set(outcome.failed.values()) == {"RuntimeError: a worker was killed"}
    assert store.listing().failed == set(outcome.failed)


@pytest.mark.parametrize("error", [ConnectionError("gone"), InputError("no cluster")])
def test_a_runner_that_cannot_start_is_an_error(error: Exception, store: Store) -> None:
    def broken(tasks: Mapping[str, Any]) -> Iterator[tuple[str, Report]]:
        raise error

    with pytest.raises(type(error)):
        go(store, runner=broken)
    with store.lock():
        pass


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL")
@pytest.mark.filterwarnings("ignore:A worker stopped while some jobs were given:UserWarning")
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, store: Store, log: Path) -> None:
    whole = Store(tmp_path / "whole")
    go(whole, chosen=tasks(8))
    outcome = go(store, partial(deadly, log=log, until=2), chosen=tasks(8), runner=LocalRunner(2))
    assert outcome.failed == {}
    assert log.read_text().split().count(tasks()[1].name) == 2
    assert stored(store) == stored(whole)


# --- a run that is killed ----------------------------------------------------------------------------------

SLOW = """
import sys, time
from functools import partial
from pathlib import Path
from unpoison.evaluation.bench import BenchTask, run
from unpoison.evaluation.store import Store
from unpoison.runners.local import LocalRunner
from unpoison.seeds import Seeds

def slow(task, *, work):
    with open(sys.argv[2], "a") as file:
        file.write(task.name + "\\n")
    time.sleep(0.05)
    return {"drawn": Seeds(task.seed).stream(task.name).random(3).tolist(), "took_hold": True}

tasks = [BenchTask("gtsrb-watermark-1-2-eps10", "laptop", "ispl", seed) for seed in range(12)]
run(tasks, Store(Path(sys.argv[1])), runner=LocalRunner(1), run=slow)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL")
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, store: Store, log: Path) -> None:
    whole = Store(tmp_path / "whole")
    go(whole, chosen=tasks(12))
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", SLOW, str(store.folder), str(log)]
    for done in (2, 7):
        with subprocess.Popen(command, env=environment) as process:
            while len(store.listing().done) < done:
                assert process.poll() is None
                time.sleep(0.005)
            process.kill()
        assert len(store.listing().done) < 12
    subprocess.run(command, env=environment, check=True)
    assert stored(store) == stored(whole)
    # at most the task under way at each kill was run twice
    assert 12 <= len(log.read_text().split()) <= 14
    assert list(store.folder.glob(".partial-*")) == []


# --- what there is and what is to come ---------------------------------------------------------------------


def test_estimates_count_what_is_left(store: Store) -> None:
    go(store, chosen=tasks(1))
    found = estimate(tasks(), store, seconds=lambda task: 10.0 * task.seed, run=draw)
    assert (found.tasks, found.done, found.seconds) == (4, 1, 60.0)
    # of the paper's experiments it knows what a result must hold, and run would run this one again
    assert estimate(tasks(), store, seconds=lambda _: 1.0).done == 0


def test_status_counts_by_table_and_family(store: Store, log: Path) -> None:
    go(store, chosen=[*tasks(2), BenchTask("my-own", "laptop", "ispl", 0)])
    failing_one = partial(failing, log=log, error=ValueError("bad luck\nmore of it"), until=9)
    go(store, failing_one, chosen=[BenchTask("cifar10-dirty-label-0-2-eps5", "paper", "ispl", 1)], retries=0)
    store.extend_plan(task.name for task in tasks(4))
    (store.folder / "laptop" / "stray.json").touch()
    found = status(store)
    assert found.total == Tally(done=3, failed=1, waiting=2)
    assert found.groups == {
        ("laptop", "-", "-"): Tally(done=1),
        ("laptop", "gtsrb-watermark", "watermark"): Tally(done=2, waiting=2),
        ("laptop", "summary", "all"): Tally(done=2, waiting=2),
        ("paper", "cifar10-dirty-label", "dirty-label"): Tally(failed=1),
        ("paper", "summary", "all"): Tally(failed=1),
    }
    assert found.failed == {"paper/cifar10-dirty-label-0-2-eps5/ispl-seed1": "ValueError: bad luck"}
    assert found.damaged == ()
    assert found.owner is None
    with store.lock():
        assert status(store).owner is not None


def test_status_reads_no_results(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    go(store)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", None)
        assert status(store).total == Tally(done=4)


def test_results_of_one_scale(store: Store) -> None:
    chosen = [BenchTask(SCENARIO, "laptop", "nothing", seed) for seed in range(2)]
    go(store, measure, chosen=[*chosen, BenchTask(SCENARIO, "paper", "nothing", 0)])
    (store.folder / f"{chosen[1].name}.json").write_text("{")
    found, notes = results(store, scale="laptop")
    assert [(row["scenario"], row["scale"], row["seed"], row["took_hold"]) for row in found] == [
        (SCENARIO, "laptop", 0, True)
    ]
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tmr": "abc"}, "its tmr is 'abc'"),
        ({"tmr": None}, "its tmr is None"),
        ({"accuracy": 1.5}, "its accuracy is 1.5"),
        ({"auc": True}, "its auc is True"),
        ({"n": 0}, "its n is 0"),
        ({"false_negatives": -1}, "its false_negatives is -1"),
        ({"defense_cost": None}, "its defense_cost.trained is None"),
        ({"defense_cost": {"trained": 1}}, "its defense_cost.scored is None"),
        ({"took_hold": "yes"}, "its took_hold is 'yes'"),
    ],
)
def test_a_result_with_bad_values_is_damaged(change: dict[str, Any], reason: str, store: Store) -> None:
    chosen = [BenchTask(SCENARIO, "laptop", "nothing", seed) for seed in range(2)]
    go(store, measure, chosen=chosen)
    path = store.folder / f"{chosen[1].name}.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "result": {**MEASURED, **change}}))
    found, (note,) = results(store, scale="laptop")
    assert [row["seed"] for row in found] == [0]
    assert note == f"{path} cannot be read ({reason}) and counts as not there"
    assert estimate(chosen, store, seconds=lambda _: 1.0).done == 1


def test_a_result_under_the_name_of_another_task_is_damaged(store: Store) -> None:
    chosen = BenchTask(SCENARIO, "laptop", "nothing", 0)
    go(store, measure, chosen=[chosen])
    path = store.folder / f"{chosen.name}.json"
    path.with_name("nothing-seed1.json").write_bytes(path.read_bytes())
    found, (note,) = results(store, scale="laptop")
    assert len(found) == 1
    assert "it is not of the task that it is called after" in note


def test_whether_an_attack_took_hold_follows_from_the_undefended_victim(store: Store) -> None:
    def measured(task: BenchTask, *, work: Path) -> dict[str, Any]:
        return {**MEASURED, "tmr": (0.05, 0.9)[task.seed] if task.defense == "nothing" else 0.0}

    chosen = [BenchTask(SCENARIO, "laptop", by, seed) for by in ("nothing", "ispl") for seed in range(2)]
    go(store, measured, chosen=[*chosen, BenchTask(SCENARIO, "laptop", "ispl", 7)])
    found, notes = results(store, scale="laptop")
    assert [(row["defense"], row["seed"], row["took_hold"]) for row in found] == [
        ("ispl", 0, False),
        ("ispl", 1, True),
        ("nothing", 0, False),
        ("nothing", 1, True),
    ]
    assert notes == (
        "1 results are left out: add --defense nothing, which tells whether the attack takes hold",
    )
