"""A run that dies anywhere goes on with ``--resume`` and ends with the same bytes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unpoison.cleaning import CleanOptions, clean
from unpoison.outputs.verify import verify

from .builders import call, command, environment, manifest_bytes, poisoned_npz, tree

MOMENTS = 20
METHODS = ("groups", "ispl")


# --- SIGKILL, at random moments ----------------------------------------------------------------------------


class Bench:
    """Runs ``clean`` on one small poisoned file, disturbed and not.

    Most of a small run is Python importing scikit-learn. A few runs are programs of their own, in which that
    is part of what is killed; the others fork off a process that has it imported, and die at their work.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = poisoned_npz(root)
        self.undisturbed = cache(self._undisturbed)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(
            ["sklearn.linear_model", "unpoison.cleaning", "unpoison.cli.app"]
        )

    def arguments(self, out: Path, method: str, workers: int) -> list[str]:
        options = ["--method", method, "--workers", str(workers), "--resume", "--no-progress"]
        return ["clean", str(self.source), "--out", str(out), *options]

    def run(self, how: str, arguments: list[str], *, kill_after: float | None = None) -> int:
        """The exit code."""
        return (self._run_program if how == "program" else self._run_fork)(arguments, kill_after)

    def _undisturbed(self, how: str, method: str, workers: int) -> tuple[float, Path]:
        """How long a run takes, and where its results are."""
        out = self.root / f"undisturbed-{how}-{method}-{workers}"
        if how == "fork":
            assert self.run("fork", ["--version"]) == 0  # the first fork waits for the imports
        started = time.monotonic()
        assert self.run(how, self.arguments(out, method, workers)) == 0
        return time.monotonic() - started, out

    def _run_fork(self, arguments: list[str], kill_after: float | None) -> int:
        process = self._context.Process(target=call_or_fail, args=(arguments,))
        process.start()
        process.join(kill_after)
        process.kill()
        process.join()
        assert process.exitcode is not None
        return process.exitcode

    def _run_program(self, arguments: list[str], kill_after: float | None) -> int:
        with subprocess.Popen(
            command(*arguments),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(kill_after)
            process.kill()
            process.wait()
            with contextlib.suppress(ProcessLookupError):  # workers that a killed process started
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode


def call_or_fail(arguments: list[str]) -> None:
    done = call(*arguments)
    assert (done.code, done.err) == (0, "")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("kill"))


def plans() -> list[tuple[str, int, str, float]]:
    """How to run, workers, method, and the share of an undisturbed run's time after which to kill.

    Within the four programs, and within the sixteen forks, the shares lie anywhere in equal parts of the
    time, one in each: starting up, rounds, writing.
    """
    rng = np.random.default_rng(20)
    ways = [("program", 2), ("program", 1), ("program", 1), ("program", 2), *[("fork", 1)] * 16]
    parts = np.concatenate([np.array([2, 0, 3, 1]) / 4, rng.permutation(16) / 16])
    width = np.repeat([1 / 4, 1 / 16], [4, 16])
    shares = parts + width * rng.random(MOMENTS)
    return [(*way, METHODS[i % 2], round(float(shares[i]), 3)) for i, way in enumerate(ways)]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL")
@pytest.mark.parametrize(("how", "workers", "method", "share"), plans())
def test_killed_at_a_random_moment(
    how: str, workers: int, method: str, share: float, bench: Bench, tmp_path: Path
) -> None:
    # one measured run tells for both methods how long starting two workers takes
    seconds, _ = bench.undisturbed(how, METHODS[0] if workers > 1 else method, workers)
    _, whole = bench.undisturbed("fork", method, 1)
    out = tmp_path / "out"
    arguments, moment = bench.arguments(out, method, workers), share * seconds
    while bench.run(how, arguments, kill_after=moment) != -signal.SIGKILL:
        shutil.rmtree(out)  # this time it was faster
        moment *= 0.8
    before = sorted(tree(out)) if out.exists() else []
    assert bench.run(how, arguments) == 0, f"killed after {moment:.2f} s with {before}"
    assert manifest_bytes(out) == manifest_bytes(whole)
    assert tree(out / "clean") == tree(whole / "clean")
    assert verify(out) == []


@pytest.mark.slow
def test_undisturbed_runs_are_the_same_with_1_and_2_workers(bench: Bench) -> None:
    _, one = bench.undisturbed("fork", METHODS[0], 1)
    _, two = bench.undisturbed("program", METHODS[0], 2)
    assert manifest_bytes(one) == manifest_bytes(two)


# --- at every step that changes a file, in this process ----------------------------------------------------


class DeadError(BaseException):
    """Stands for a process that stops where it is."""


class Clock:
    """Counts the steps at which folders and files change, and stops the run for good before one of them.

    From then on every such step stops again, so that nothing is tidied up: a killed process does not.
    """

    STEPS = (
        (Path, "replace"),
        (Path, "mkdir"),
        (Path, "rmdir"),
        (Path, "unlink"),
        (Path, "touch"),
        (shutil, "rmtree"),
    )

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.steps: list[str] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in self.STEPS:
                patch.setattr(owner, name, self._ticking(name, getattr(owner, name)))
            yield

    def _ticking(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def tick(*arguments: Any, **options: Any) -> Any:
            if self.stop_at is not None and len(self.steps) >= self.stop_at:
                raise DeadError
            self.steps.append(name)
            return step(*arguments, **options)

        return tick


ALL_STEPS = {name for _, name in Clock.STEPS}

SMALL: dict[str, dict[str, Any]] = {
    "groups": {"pairs": 1},
    "ispl": {"rounds": 2, "restarts": 1, "min_steps": 1, "weak_min_steps": 1, "self_training_updates": 2},
}


def run_small(source: Path, out: Path, method: str, clock: Clock) -> bool:
    """Whether the run got to its end."""
    options = CleanOptions(method=method, changes=SMALL[method], resume=True, workers=1)
    try:
        with clock.running():
            clean(str(source), out, options=options)
    except DeadError:
        return False
    return True


@pytest.fixture(scope="module")
def small_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return poisoned_npz(tmp_path_factory.mktemp("small"), per_class=8)


@pytest.mark.parametrize(("method", "kinds"), [("groups", ALL_STEPS), ("ispl", {"replace"})])
def test_killed_at_every_step(method: str, kinds: set[str], small_source: Path, tmp_path: Path) -> None:
    clock, whole = Clock(), tmp_path / "whole"
    assert run_small(small_source, whole, method, clock)
    assert clock.steps.count("replace") >= 11, "one for each checkpoint and result"
    for stop_at, step in enumerate(clock.steps):
        if step not in kinds:
            continue
        out = tmp_path / f"out-{stop_at}"
        assert not run_small(small_source, out, method, Clock(stop_at))
        assert run_small(small_source, out, method, Clock()), f"before step {stop_at}, {step}"
        assert manifest_bytes(out) == manifest_bytes(whole)
        assert tree(out / "clean") == tree(whole / "clean")
        assert verify(out) == []
        shutil.rmtree(out)


@pytest.mark.parametrize("seed", range(3))
def test_killed_again_and_again(seed: int, small_source: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    clock = Clock()
    assert run_small(small_source, whole, "groups", clock)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        run_small(small_source, out, "groups", Clock(int(rng.integers(len(clock.steps)))))
    assert run_small(small_source, out, "groups", Clock())
    assert manifest_bytes(out) == manifest_bytes(whole)
    assert verify(out) == []


def test_finished_rounds_are_not_computed_again(small_source: Path, tmp_path: Path) -> None:
    """Killed when the first result is put in place, all tasks are done: resuming trains nothing."""
    clock = Clock()
    assert run_small(small_source, tmp_path / "whole", "groups", clock)
    last_save = [i for i, step in enumerate(clock.steps) if step == "replace"][-5]
    out = tmp_path / "out"
    assert not run_small(small_source, out, "groups", Clock(last_save))
    options = CleanOptions(changes=SMALL["groups"], resume=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unpoison.learners.sklearn.SklearnLearner.fit", None)
        clean(str(small_source), out, options=options)
    assert manifest_bytes(out) == manifest_bytes(tmp_path / "whole")


def test_a_checkpoint_that_the_disk_lost_is_computed_again(small_source: Path, tmp_path: Path) -> None:
    clock = Clock()
    assert run_small(small_source, tmp_path / "whole", "groups", clock)
    out = tmp_path / "out"
    assert not run_small(small_source, out, "groups", Clock(len(clock.steps) // 2))
    (_, saved, *_) = sorted((out / ".unpoison-work" / "rounds").glob("*.npz"))
    saved.write_bytes(saved.read_bytes()[:100])
    assert run_small(small_source, out, "groups", Clock())
    assert manifest_bytes(out) == manifest_bytes(tmp_path / "whole")


def test_verify_tells_of_an_unfinished_run(small_source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert not run_small(small_source, out, "groups", Clock(10))
    done = call("verify", out)
    assert (done.code, done.out) == (2, "")
    assert "holds an unfinished run; finish it with --resume" in done.err
