from __future__ import annotations

import numpy as np
import pytest

from unpoison.core.result import Cost
from unpoison.core.tasks import Task, Workshop, cost_array, run_serially
from unpoison.events import Progress
from unpoison.types import Arrays

from .fakes import CountingRunner, MemoryCheckpoints, StoppedError


def task(value: int) -> Task:
    def work() -> Arrays:
        return {
            "value": np.array([value]),
            "cost": cost_array(Cost(value, 10 * value, seconds=0.5, flops=2.0)),
        }

    return work


TASKS = {name: task(value) for value, name in enumerate("abcd", start=1)}


def values(results: dict[str, Arrays]) -> list[tuple[str, int]]:
    return [(name, int(arrays["value"][0])) for name, arrays in results.items()]


def test_run_serially_yields_each_result_as_it_is_made() -> None:
    made: list[str] = []

    def noted(name: str) -> Task:
        def work() -> Arrays:
            made.append(name)
            return TASKS[name]()

        return work

    results = run_serially({name: noted(name) for name in TASKS})
    assert next(results)[0] == "a"
    assert made == ["a"], "nothing is computed before it is asked for"
    assert [name for name, _ in results] == ["b", "c", "d"]


def test_results_are_in_the_order_of_the_tasks_whoever_finishes_first() -> None:
    workshop = Workshop(runner=CountingRunner(order=lambda names: names[::-1]))
    assert values(workshop.run(TASKS)) == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]


def test_costs_add_up_over_batches() -> None:
    workshop = Workshop()
    workshop.run(TASKS)
    workshop.run({"e": task(5)})
    assert workshop.cost == Cost(15, 150)
    assert (workshop.cost.seconds, workshop.cost.flops) == (2.5, 10.0)


def test_finished_tasks_are_not_run_again_but_cost_what_they_cost() -> None:
    checkpoints = MemoryCheckpoints({"b": task(20)()})
    runner = CountingRunner()
    workshop = Workshop(runner=runner, checkpoints=checkpoints)
    assert values(workshop.run(TASKS)) == [("a", 1), ("b", 20), ("c", 3), ("d", 4)]
    assert runner.ran == ["a", "c", "d"]
    assert workshop.cost == Cost(28, 280)
    assert set(checkpoints.stored) == set("abcd")


def test_each_result_is_kept_as_it_arrives() -> None:
    checkpoints = MemoryCheckpoints()
    with pytest.raises(StoppedError):
        Workshop(runner=CountingRunner(stop_after=2), checkpoints=checkpoints).run(TASKS)
    assert list(checkpoints.stored) == ["a", "b"]


def test_progress_counts_the_finished_and_the_resumed() -> None:
    heard: list[Progress] = []
    workshop = Workshop(checkpoints=MemoryCheckpoints({"c": task(3)()}), listener=heard.append)
    workshop.begin("work", 4)
    workshop.run(TASKS)
    workshop.begin("more", 1)
    assert heard == [
        Progress("work", 0, 4),
        Progress("work", 1, 4, 1),
        Progress("work", 2, 4, 1),
        Progress("work", 3, 4, 1),
        Progress("work", 4, 4, 1),
        Progress("more", 0, 1),
    ]


def test_no_tasks_at_all() -> None:
    assert Workshop().run({}) == {}


def test_cost_as_a_result_carries_it() -> None:
    array = cost_array(Cost(3, 4, seconds=1.5, flops=6e9))
    assert array.tolist() == [3, 4, 1.5, 6e9]
    assert array.dtype == np.float64
