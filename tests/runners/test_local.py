from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_info

from unpoison.core.config import GroupSettings, IsplSettings, Settings
from unpoison.core.pipeline import sanitize
from unpoison.core.result import Sanitization
from unpoison.errors import InputError
from unpoison.learners.sklearn import SklearnFactory
from unpoison.runners.local import LocalRunner

METHODS: dict[str, Settings] = {
    "ispl": IsplSettings(rounds=2, restarts=2, weak_epochs=5, self_training_updates=2),
    "groups": GroupSettings(right_labels=False, canaries=False),
}


@cache
def run(method: str, workers: int, n_columns: int = 5) -> Sanitization:
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    rows = rng.normal(size=(90, n_columns)) + labels[:, None]
    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01)
    factory = SklearnFactory(model, rows, labels, 3)
    return sanitize(labels, factory, METHODS[method], seed=0, runner=LocalRunner(workers))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_columns", [5, 1600], ids=["small", "memory-mapped"])
def test_two_workers_give_the_bits_of_one(method: str, n_columns: int) -> None:
    """A matrix over a megabyte reaches the workers as a read-only memory map."""
    one, two = run(method, 1, n_columns), run(method, 2, n_columns)
    for name in ("keep", "suspicion", "predicted", "components"):
        left, right = getattr(one, name), getattr(two, name)
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes()
    assert one.groups == two.groups
    assert one.cost == two.cost


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


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_comes_back_under_its_name(workers: int) -> None:
    tasks = {f"task-{i}": Square(i) for i in range(5)}
    assert dict(LocalRunner(workers)(tasks)) == {f"task-{i}": i * i for i in range(5)}


@pytest.mark.parametrize("workers", [1, 2])
def test_no_tasks(workers: int) -> None:
    assert list(LocalRunner(workers)({})) == []


def test_results_arrive_one_by_one() -> None:
    """In one process, what comes after a failure was not waited for: earlier results were there to keep."""
    results = LocalRunner()({"a": Square(1), "b": Square(2), "c": Square(-1), "d": Square(4)})
    assert [next(results), next(results)] == [("a", 1), ("b", 4)]
    with pytest.raises(ArithmeticError):
        next(results)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_has_one_thread(workers: int) -> None:
    before = [pool["num_threads"] for pool in threadpool_info()]
    results: dict[str, Any] = dict(LocalRunner(workers)({"a": Threads(), "b": Threads()}))
    for threads in results.values():
        assert set(threads) <= {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before


@pytest.mark.parametrize("workers", [0, -1])
def test_fewer_than_one_worker_is_refused(workers: int) -> None:
    with pytest.raises(InputError, match=f"'workers' parameter must be at least 1. Got {workers} instead"):
        LocalRunner(workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_of_a_task_arrives(workers: int) -> None:
    with pytest.raises(ArithmeticError, match="no -3 here"):
        list(LocalRunner(workers)({"a": Square(1), "b": Square(-3)}))


OWNER = """
import os, sys, time
from dataclasses import dataclass
from unpoison.runners.local import LocalRunner

@dataclass(frozen=True)
class Sleep:
    number: int

    def __call__(self):
        os.write(1, b"%d\\n" % os.getpid())  # in one piece: two workers share the pipe
        time.sleep(120)

list(LocalRunner(2)({str(n): Sleep(n) for n in range(2)}))
"""


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc which processes run")
def test_workers_end_when_their_owner_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        try:
            workers = {int(owner.stdout.readline()) for _ in range(2)}
            assert len(workers) == 2
            assert all(is_running(pid) for pid in workers)
        finally:
            owner.kill()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and any(is_running(pid) for pid in workers):
        time.sleep(0.1)
    assert not [pid for pid in workers if is_running(pid)], "workers went on without their owner"


def test_closing_ends_the_workers_and_new_ones_start() -> None:
    runner = LocalRunner(2)
    tasks = {f"task-{i}": WhoAmI() for i in range(4)}
    before = set(dict(runner(tasks)).values())
    runner.close()
    for pid in before - {os.getpid()}:
        assert not Path(f"/proc/{pid}").exists()
    assert set(dict(runner(tasks)).values()).isdisjoint(before)
    runner.close()
    LocalRunner(1).close()


@dataclass(frozen=True)
class WhoAmI:
    def __call__(self) -> int:
        return os.getpid()
