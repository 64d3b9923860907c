"""Tasks on this machine: in this process, or on worker processes through joblib."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TypeVar

import joblib
from joblib.externals.loky import get_reusable_executor
from threadpoolctl import threadpool_limits

from unpoison.errors import InputError

T = TypeVar("T")


class LocalRunner:
    """Runs tasks on ``workers`` processes of this machine.

    Each task gets one BLAS and OpenMP thread: sums in another order give other last bits, so results would
    depend on the number of cores otherwise. Large arrays reach the workers as memory maps.
    """

    def __init__(self, workers: int = 1) -> None:
        if workers < 1:
            raise InputError(f"The 'workers' parameter must be at least 1. Got {workers} instead.")
        self.workers = workers

    def __call__(self, tasks: Mapping[str, Callable[[], T]]) -> Iterator[tuple[str, T]]:
        """Yield each task's name and result as it arrives."""
        jobs = (joblib.delayed(_run_one)(name, task, os.getpid()) for name, task in tasks.items())
        workers = min(self.workers, max(1, len(tasks)))
        yield from joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(jobs)

    def close(self) -> None:
        """End the worker processes, which otherwise wait for more work and keep their memory."""
        if self.workers > 1:
            get_reusable_executor().shutdown(wait=True)


def _run_one(name: str, task: Callable[[], T], owner: int) -> tuple[str, T]:
    if os.getppid() == owner:
        _end_with(owner)
    with threadpool_limits(limits=1):
        return name, task()


@cache
def _end_with(owner: int) -> None:
    """End this worker process when its owner is gone: one that is killed cannot tell its workers."""

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="owner-watch").start()
