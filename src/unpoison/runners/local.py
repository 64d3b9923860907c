"""Tasks on this machine: in this process, or on worker processes through joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import joblib
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
        jobs = (joblib.delayed(_run_one)(name, task) for name, task in tasks.items())
        workers = min(self.workers, max(1, len(tasks)))
        yield from joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(jobs)


def _run_one(name: str, task: Callable[[], T]) -> tuple[str, T]:
    with threadpool_limits(limits=1):
        return name, task()
