"""A real Ray cluster of two nodes on this machine, one of which dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from unpoison.errors import InputError, MissingExtraError
from unpoison.evaluation.bench import BenchTask, run
from unpoison.evaluation.store import Store
from unpoison.runners.local import LocalRunner
from unpoison.runners.ray import RayRunner
from unpoison.seeds import Seeds

SOURCE = Path(__file__).resolve().parents[2] / "src"
N_AT_ONCE = 2
PATIENCE = 120.0
"""Seconds that a busy machine may take to start a worker."""


@dataclass(frozen=True)
class Square:
    number: int

    def __call__(self) -> int:
        if self.number < 0:
            raise ArithmeticError(f"no {self.number} here")
        return self.number**2


@dataclass(frozen=True)
class Threads:
    def __call__(self) -> list[int]:
        np.ones((4, 4)) @ np.ones((4, 4))
        return [pool["num_threads"] for pool in threadpool_info()]


def draw(task: BenchTask, *, work: Path) -> dict[str, Any]:
    numbers = Seeds(task.seed).stream(task.name).normal(size=(40, 40))
    return {"drawn": (numbers @ numbers).sum(axis=0).tolist()}


@dataclass(frozen=True)
class Draw:
    """``draw`` that tells where it is at work; the deadly kill their worker once.

    All but the first ``N_AT_ONCE`` tasks wait until there is a file ``until``.
    """

    folder: Path
    until: Path | None = None
    deadly: tuple[int, ...] = ()

    def __call__(self, task: BenchTask, *, work: Path) -> dict[str, Any]:
        import ray

        marker = self.folder / f"started-{task.seed}"
        is_first = not marker.exists()
        marker.write_text(f"{ray.get_runtime_context().get_node_id()} {os.getpid()}")
        deadline = time.monotonic() + PATIENCE
        while self.until and task.seed >= N_AT_ONCE and not self.until.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        if task.seed in self.deadly and is_first:
            os.kill(os.getpid(), signal.SIGKILL)
        return draw(task, work=work)


def tasks(n: int) -> list[BenchTask]:
    return [BenchTask("some-scenario", "laptop", "ispl", seed) for seed in range(n)]


def stored(store: Store) -> dict[str, Any]:
    return {name: record["result"] for name, record in store.results(store.listing().done).records.items()}


def serially(folder: Path, n: int) -> dict[str, Any]:
    store = Store(folder)
    assert not run(tasks(n), store, runner=LocalRunner(1), run=draw).failed
    return stored(store)


# --- without a cluster -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "'workers' parameter must be at least 1. Got 0 instead"),
        ({"cpus_per_task": -1}, "'cpus_per_task' parameter must not be negative. Got -1 instead"),
        ({"gpus_per_task": float("nan")}, "'gpus_per_task' parameter must not be negative. Got nan"),
        ({"cpus_per_task": 0}, "must not both be 0"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RayRunner(**options)


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"unpoison\[ray\]"):
        list(RayRunner()({"a": Square(2)}))
    assert list(RayRunner()({})) == []


# --- on a cluster ------------------------------------------------------------------------------------------

QUICK_TO_BURY = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
}
"""A node that does not answer is dead after seconds; one that is slow to answer has ten seconds as ever."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of one CPU each; the first is the head."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    size = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80_000_000}
    with pytest.MonkeyPatch.context() as patch:
        # tasks go to the workers by the name of their module, as pytest imports it
        patch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), str(Path(__file__).parents[1])]))
        found = Cluster(initialize_head=True, head_node_args={**size, "_system_config": QUICK_TO_BURY})
        try:
            found.add_node(**size)
            yield found
        finally:
            found.shutdown()


@pytest.fixture(scope="module")
def runner(cluster: Any) -> Iterator[RayRunner]:
    with RayRunner(cluster.address) as found:
        yield found


def test_results_come_back_under_their_names(runner: RayRunner) -> None:
    assert dict(runner({f"task-{i}": Square(i) for i in range(9)})) == {f"task-{i}": i * i for i in range(9)}
    assert list(runner({})) == []


def test_the_error_of_a_task_arrives(runner: RayRunner) -> None:
    with pytest.raises(ArithmeticError, match="no -3 here"):
        list(runner({"a": Square(1), "b": Square(-3), "c": Square(2)}))
    assert dict(runner({"a": Square(3)})) == {"a": 9}


def test_a_task_has_one_thread(runner: RayRunner) -> None:
    results: dict[str, Any] = dict(runner({"a": Threads(), "b": Threads()}))
    for threads in results.values():
        assert set(threads) <= {1}


def test_few_are_handed_over_at_once(runner: RayRunner) -> None:
    class Counting(dict[str, Square]):
        taken = 0

        def items(self) -> Any:
            for pair in super().items():
                Counting.taken += 1
                yield pair

    results = runner(Counting({str(i): Square(i) for i in range(50)}))
    next(results)
    assert 2 <= Counting.taken <= 6
    results.close()
    assert dict(runner({"a": Square(3)})) == {"a": 9}


def test_more_than_any_node_has_is_refused(runner: RayRunner, cluster: Any) -> None:
    for options in ({"gpus_per_task": 1}, {"cpus_per_task": 2}):
        with pytest.raises(InputError, match="which no node of the Ray cluster has"):
            list(RayRunner(cluster.address, **options)({"a": Square(1)}))


def test_a_killed_worker_loses_nothing(runner: RayRunner, tmp_path: Path) -> None:
    store = Store(tmp_path / "ray")
    outcome = run(tasks(4), store, runner=runner, run=Draw(tmp_path, deadly=(1,)), retries=0)
    assert outcome.failed == {}
    assert stored(store) == serially(tmp_path / "serial", 4)


def test_a_killed_node_loses_nothing(runner: RayRunner, cluster: Any, tmp_path: Path) -> None:
    """Results are the bits of a serial run, though a node with its worker dies in the middle of a task."""
    (other,) = cluster.worker_nodes
    store, gone = Store(tmp_path / "ray"), tmp_path / "gone"
    killed: list[Path] = []

    def kill() -> None:
        """As soon as the other node is in the middle of a task; it waits there for the node to be gone."""
        deadline = time.monotonic() + PATIENCE
        while not killed and time.monotonic() < deadline:
            for marker in tmp_path.glob("started-*"):
                node, _, process = marker.read_text().partition(" ")
                waits = int(marker.name.removeprefix("started-")) >= N_AT_ONCE
                if waits and node == other.node_id and process and not killed:
                    killed.append(marker)
                    os.kill(int(process), signal.SIGKILL)
                    cluster.remove_node(other, allow_graceful=False)
                    gone.touch()
            time.sleep(0.02)

    killer = Thread(target=kill)
    killer.start()
    outcome = run(tasks(8), store, runner=runner, run=Draw(tmp_path, until=gone), retries=0)
    killer.join()
    assert len(killed) == 1
    assert cluster.head_node.node_id in killed[0].read_text(), "the task was run again, on the other node"
    assert outcome.failed == {}
    assert stored(store) == serially(tmp_path / "serial", 8)


# --- on a Ray of one's own ---------------------------------------------------------------------------------

ALONE = """
import math
from functools import partial
from unpoison.errors import InputError
from unpoison.runners.ray import RayRunner

if __name__ == "__main__":
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1", "nonsense"):
        try:
            list(RayRunner(address)({"a": partial(math.sqrt, 4.0)}))
        except InputError as error:
            print(error)
    with RayRunner(workers=2) as runner:
        print(sorted(runner({str(n): partial(math.sqrt, n * n) for n in range(5)})))
"""


def test_started_for_the_run_and_quiet(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    *errors, results = done.stdout.splitlines()
    assert len(errors) == 3
    assert all("Ray cannot be reached at" in line and "'ray start --head'" in line for line in errors)
    assert results == str([(str(n), float(n)) for n in range(5)])
    assert done.stderr == ""
