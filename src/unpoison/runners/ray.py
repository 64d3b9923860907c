"""Tasks on a Ray cluster: one that is there already, or one started on this machine."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import TracebackType
from typing import Any, Self, TypeVar

from threadpoolctl import threadpool_limits

from unpoison.errors import InputError, MissingExtraError

T = TypeVar("T")

DEATHS = 3
"""How often a task is started again after its worker or node died; the next time its error is raised."""

AHEAD = 2
"""Tasks handed to Ray for each one that can run at once: none waits for this process between two tasks."""

LOOK_EVERY = 5.0
"""Seconds between two looks at the size of the cluster, which may grow or shrink under way."""

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_IGNORE_UNHANDLED_ERRORS": "1"}
"""Ray tells nobody that it is used, nor stderr of errors of tasks that were given up after the first."""

PATIENCE = 10.0
"""Seconds in which a cluster must accept a connection."""


class RayRunner:
    """Runs tasks on the Ray cluster at ``address``, each with one BLAS and OpenMP thread.

    ``address`` is ``auto`` (the cluster of this machine), ``host:port`` or ``ray://host:port``; without one,
    Ray is started on this machine with ``workers`` CPUs and stopped by :meth:`close`. On another's cluster
    ``workers`` bounds the tasks that are handed over at once. A task whose worker or node dies is run again
    elsewhere: what it gives follows from its fields alone, so nothing but time is lost.

    Ray must be able to import a task's module wherever it runs: install unpoison on every node.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        cpus_per_task: float = 1,
        gpus_per_task: float = 0,
    ) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"The 'workers' parameter must be at least 1. Got {workers} instead.")
        for name, value in (("cpus_per_task", cpus_per_task), ("gpus_per_task", gpus_per_task)):
            if not value >= 0:
                raise InputError(f"The '{name}' parameter must not be negative. Got {value} instead.")
        if cpus_per_task + gpus_per_task == 0:
            raise InputError("The 'cpus_per_task' and 'gpus_per_task' parameters must not both be 0.")
        self.address = address
        self.workers = workers
        self.needs = {"CPU": cpus_per_task, "GPU": gpus_per_task}
        self._connected_here = False

    def __call__(self, tasks: Mapping[str, Callable[[], T]]) -> Iterator[tuple[str, T]]:
        """Yield each task's name and result as it arrives."""
        if not tasks:
            return
        ray = self._connect()
        remote = ray.remote(_run_one).options(
            num_cpus=self.needs["CPU"], num_gpus=self.needs["GPU"], max_retries=DEATHS
        )
        waiting = iter(tasks.items())
        room = _Room(ray, self.needs, self.workers)
        under_way: dict[Any, str] = {}
        try:
            while True:
                while len(under_way) < room.tasks() and (task := next(waiting, None)) is not None:
                    under_way[remote.remote(task[1])] = task[0]
                if not under_way:
                    return
                ready, _ = ray.wait(list(under_way), num_returns=1, timeout=LOOK_EVERY)
                for reference in ready:
                    yield under_way.pop(reference), _fetch(ray, reference)
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._connected_here:
            _import_ray().shutdown()
            self._connected_here = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self) -> Any:
        """The module ``ray``, connected; a connection that the caller made is used and left alone."""
        ray = _import_ray()
        if ray.is_initialized():
            return ray
        # a job on a cluster finds the cluster's address in its environment
        address = self.address or ("auto" if "RAY_ADDRESS" in os.environ else "local")
        options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if address == "local":
            options |= {"include_dashboard": False, "num_cpus": self.workers}
        try:
            _knock(address)
            ray.init(address=address, **options)
        except (OSError, RuntimeError, ValueError, ImportError) as error:
            raise InputError(
                f"Ray cannot be reached at {address!r} ({_first_line(error)}). Start it with 'ray start "
                "--head' and give the address that it prints, or give none to run on this machine."
            ) from error
        self._connected_here = True
        # the only switch there is for what Ray prints to stdout about nodes and workers that died
        ray._private.worker._worker_logs_enabled = False
        return ray


class _Room:
    """How many tasks a cluster is handed at once, by the size it has now."""

    def __init__(self, ray: Any, needs: Mapping[str, float], limit: int | None) -> None:
        self._ray, self._needs, self._limit = ray, needs, limit
        self._slots = self._count()
        self._looked = time.monotonic()
        if not self._slots:
            raise InputError(
                f"A task needs {needs['CPU']:g} CPUs and {needs['GPU']:g} GPUs, which no node of the Ray "
                "cluster has. Set 'cpus_per_task' and 'gpus_per_task' to less, or add a node."
            )

    def tasks(self) -> int:
        """Under way and waiting on the cluster."""
        if time.monotonic() - self._looked > LOOK_EVERY:
            # never none: on a cluster that lost its last node, tasks wait for a new one
            self._slots, self._looked = max(1, self._count()), time.monotonic()
        ahead = AHEAD * self._slots
        return ahead if self._limit is None else min(self._limit, ahead)

    def _count(self) -> int:
        alive = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return sum(
            min(int(node.get(kind, 0) / need) for kind, need in self._needs.items() if need) for node in alive
        )


def _knock(address: str) -> None:
    """See whether anything listens at ``host:port``; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()


def _run_one(task: Callable[[], T]) -> T:
    """On the worker. One thread, as everywhere: sums in another order give other last bits."""
    with threadpool_limits(limits=1):
        return task()


def _fetch(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # the task's own error, as other runners raise it, instead of Ray's mixture of both
        if isinstance(error.cause, Exception):
            raise error.cause from error
        raise


def _import_ray() -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        return import_module("ray")
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "Running on a Ray cluster") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
