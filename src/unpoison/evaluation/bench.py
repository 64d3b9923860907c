"""Many experiments: tasks that stand for themselves, run anywhere, each result kept as it arrives.

A task is a specification and a seed, never data. A worker reads what it needs, computes and answers; only
the process that called :func:`run` writes. So the workers of a cluster need no file system in common.
"""

from __future__ import annotations

import re
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from unpoison.attacks.options import meant
from unpoison.core.presets import REPLACED
from unpoison.errors import InputError, MissingExtraError, UnpoisonError
from unpoison.evaluation.outcomes import Result, check_values
from unpoison.evaluation.scales import scale_named
from unpoison.evaluation.scenarios import OFFICIAL, OURS, SUMMARY, WITH_IMAGES, Scenario, by_name, catalog
from unpoison.evaluation.store import Reading, Record, Store, code, machine
from unpoison.events import Listener, Progress, ignore

STAGE = "tasks"
UNDEFENDED = "nothing"
"""The defense that is none."""
ON_CLEAN = "+clean"
"""After the name of a defense: the same on the data before the attack."""
TOOK_HOLD = 0.1
"""An attack takes hold if it misleads an undefended victim more often than this."""
TRACEBACK_LIMIT = 20_000
"""Characters of a traceback that are kept, its end: an error inside of a compiler can be a book."""

RANDOM_PERCENT = re.compile(r"random-([1-9][0-9]?)")
"""The names of controls that remove so many percent at random."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_TASK = re.compile(r"(?P<scale>[^/]+)/(?P<scenario>[^/]+)/(?P<defense>[^/]+)-seed(?P<seed>[0-9]+)")


@dataclass(frozen=True)
class BenchTask:
    """One experiment: a scenario at a scale, defended, with a seed.

    >>> BenchTask("gtsrb-watermark-1-2-eps10", "laptop", "ispl", 0).name
    'laptop/gtsrb-watermark-1-2-eps10/ispl-seed0'
    """

    scenario: str
    scale: str
    defense: str
    seed: int
    arrays: str = ""
    """Where the official clean-label images are; empty for our own."""
    watermarks: str = ""
    """The folder of the official watermarks; empty for our own drawings."""
    evidence: str = ""
    """Where what the models saw and said is kept; empty for nowhere."""

    def __post_init__(self) -> None:
        for part in ("scenario", "scale", "defense"):
            value = getattr(self, part)
            if not _NAME.fullmatch(value):
                raise InputError(
                    f"The {part!r} of a task must be a plain name, since a file is called after it. "
                    f"Got {value!r} instead."
                )
        if self.seed < 0:
            raise InputError(f"The 'seed' of a task must be at least 0. Got {self.seed} instead.")

    @property
    def name(self) -> str:
        """Where the result lies, without the ending of the file."""
        return f"{self.scale}/{self.scenario}/{self.defense}-seed{self.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        """What tells it from other tasks, whatever folders images are taken from."""
        return {name: getattr(self, name) for name in ("scenario", "scale", "defense", "seed")}

    @property
    def images(self) -> str | None:
        """Whose images the attack uses, ``official`` or ``ours``; None where there is no choice."""
        family = by_name(self.scenario).family
        if family not in WITH_IMAGES:
            return None
        return OFFICIAL if {"clean-label": self.arrays, "watermark": self.watermarks}[family] else OURS


class Experiment(Protocol):
    """What a task does. It must be a function of a module that workers can import."""

    def __call__(self, task: BenchTask, *, work: Path) -> dict[str, Any]:
        """Plain values; ``work`` is an empty folder that is gone afterwards."""
        ...


def run_task(task: BenchTask, *, work: Path) -> dict[str, Any]:
    """Attack, defend, train the victim and measure (:mod:`unpoison.evaluation.experiment`)."""
    result: dict[str, Any] = _experiments().run_task(task, work=work)
    return result


def estimate_seconds(task: BenchTask) -> float:
    """How long one worker will take, roughly."""
    return float(_experiments().estimate_seconds(task))


def defenses(names: Sequence[str] = ()) -> list[str]:
    """The defenses of these names; those of recorded results if none is given."""
    experiments = _experiments()
    for name in names:
        check_defense(name, experiments.DEFENSES)
    return list(dict.fromkeys(names or experiments.COMPARED))


def check_defense(name: str, known: Collection[str]) -> None:
    """Refuse a name that neither is known nor says how much to remove at random.

    >>> check_defense("random-50+clean", ["ispl"])
    """
    plain = name.removesuffix(ON_CLEAN)
    if plain in REPLACED:
        raise InputError(f"the defense {plain!r} was replaced by 'groups'; use --defense groups")
    if plain not in known and not RANDOM_PERCENT.fullmatch(plain):
        raise InputError(
            f"no defense is called {name!r}; {meant(name, known)}the defenses are: {', '.join(known)} and "
            f"random-1 to random-99 (percent), each also with {ON_CLEAN} after it for the same on clean data"
        )


def plan(
    scenarios: Iterable[Scenario],
    *,
    scale: str,
    defenses: Sequence[str],
    seeds: Sequence[int] | None = None,
    arrays: str = "",
    watermarks: str = "",
) -> list[BenchTask]:
    """The tasks of these scenarios, with ``seeds`` or each with its own: all of them once before any twice.

    >>> from unpoison.evaluation.scenarios import of_table
    >>> len(plan(of_table("summary"), scale="paper", defenses=["ispl"]))
    495
    """
    chosen = list(scenarios)
    for scenario in chosen:
        scale_named(scale).setup_for(scenario)  # refuses what the scale does not have
    own = {scenario.name: scenario.seeds if seeds is None else tuple(seeds) for scenario in chosen}
    times = max(map(len, own.values()), default=0)
    return [
        BenchTask(scenario.name, scale, defense, own[scenario.name][i], arrays, watermarks)
        for i in range(times)
        for scenario in chosen
        if i < len(own[scenario.name])
        for defense in defenses
    ]


def recorded(scale: str) -> list[BenchTask]:
    """The experiments of :attr:`Scale.recorded`: every defense on every scenario, defense by defense.

    Then the defenses on the clean data of each dataset, once. The undefended victims come first: they tell
    which attacks take hold.
    """
    experiments = _experiments()
    chosen = scale_named(scale).recorded
    firsts = {by_name(name).dataset: (name, seed) for name, seed in reversed(chosen)}
    return [
        *_by_every_defense(chosen, scale),
        *(
            BenchTask(name, scale, by + ON_CLEAN, seed)
            for by in experiments.COMPARED
            if by not in experiments.CONTROLS
            for name, seed in firsts.values()
        ),
    ]


def held_out(scale: str) -> list[BenchTask]:
    """Every defense on the scenarios of :attr:`Scale.held_out`, defense by defense, undefended first."""
    return _by_every_defense(scale_named(scale).held_out, scale)


def _by_every_defense(chosen: Iterable[tuple[str, int]], scale: str) -> list[BenchTask]:
    return [BenchTask(name, scale, by, seed) for by in _experiments().COMPARED for name, seed in chosen]


def taking_hold(tasks: Iterable[BenchTask], store: Store) -> list[BenchTask]:
    """Those of ``tasks`` whose attack took hold, as the undefended victims in ``store`` tell."""
    tasks = list(tasks)
    undefended = {task: BenchTask(task.scenario, task.scale, UNDEFENDED, task.seed).name for task in tasks}
    found = finished(set(undefended.values()), store).records
    missing = sorted(set(undefended.values()) - found.keys())
    if missing:
        raise InputError(
            f"whether {len(missing)} of the attacks take hold is not known: there is no result of "
            f"{missing[0]}; run the same with --defense {UNDEFENDED} first"
        )
    return [task for task in tasks if found[undefended[task]]["result"]["tmr"] > TOOK_HOLD]


@dataclass(frozen=True)
class Report:
    """What comes back from a worker: a result, or why there is none."""

    started: str
    seconds: float
    machine: Record
    result: Record | None = None
    error: Record | None = None
    is_final: bool = False
    """The error is of a kind that another try cannot mend."""


Runner: TypeAlias = Callable[[Mapping[str, Callable[[], Report]]], Iterable[tuple[str, Report]]]
"""Runs named tasks, yields each name with its report as it arrives, in any order."""


@dataclass(frozen=True)
class Outcome:
    """What became of the tasks of a run, by name."""

    done: tuple[str, ...]
    skipped: tuple[str, ...]
    """Done before."""
    failed: dict[str, str]
    """With the first line of the error."""
    damaged: tuple[str, ...]
    """Lines about results of before that could not be read, and were computed again."""


def run(
    tasks: Iterable[BenchTask],
    store: Store,
    *,
    runner: Runner,
    run: Experiment = run_task,
    retries: int = 1,
    listener: Listener = ignore,
    command: str | None = None,
) -> Outcome:
    """Run the tasks that have no result in ``store`` yet; keep each result there as it arrives.

    One that fails does not stop the others. It is tried up to ``retries`` times more, after the others,
    unless its input is at fault. Killed at any moment, the same call goes on where it was.

    Raises:
        OutputError: Another run is at work in the store, or it cannot be written.
    """
    if retries < 0:
        raise InputError(f"The 'retries' parameter must be at least 0. Got {retries} instead.")
    wanted = {task.name: task for task in tasks}
    with store.lock():
        before = finished(wanted, store, run=run)
        _check_images(wanted, before)
        store.extend_plan(wanted)
        shift = _Shift(store, runner, run, retries, listener, command, len(wanted), len(before.records))
        shift.work([task for name, task in wanted.items() if name not in before.records])
    return Outcome(tuple(shift.done), tuple(before.records), shift.failed, before.damaged)


def _check_images(wanted: Mapping[str, BenchTask], before: Reading) -> None:
    """Official images and our own must not be mixed in one folder: their results have the same names."""
    for name, record in before.records.items():
        found, asked = record["result"].get("images"), wanted[name].images
        if found is not None and found != asked:
            raise InputError(
                f"{name} was run with the images {found!r}, and {asked!r} are asked for; choose another --out"
            )


def finished(names: Iterable[str], store: Store, *, run: Experiment = run_task) -> Reading:
    """The results there are of these tasks. Those of the paper's experiments must have sound values too."""
    done = store.listing().done
    return store.results((name for name in names if name in done), check=_check if run is run_task else None)


def _check(name: str, record: Record) -> None:
    found = _TASK.fullmatch(name)
    if found is None or record["task"] != {**found.groupdict(), "seed": int(found["seed"])}:
        raise ValueError("it is not of the task that it is called after")
    check_values(record["result"])


@dataclass(frozen=True)
class _Job:
    """A task as a runner gets it: it answers whatever happens."""

    task: BenchTask
    run: Experiment

    def __call__(self) -> Report:
        from unpoison.outputs.record import plain

        code()  # as it is now: the files may be changed while the task runs
        started, clock = _now(), time.perf_counter()
        try:
            with tempfile.TemporaryDirectory(prefix="unpoison-bench-") as work:
                result = plain(self.run(self.task, work=Path(work)))
        except Exception as error:  # told in the report
            seconds = time.perf_counter() - clock
            is_final = isinstance(error, (InputError, MissingExtraError))
            return Report(started, seconds, machine(), error=_described(error), is_final=is_final)
        return Report(started, time.perf_counter() - clock, machine(), result=result)


@dataclass
class _Shift:
    """One run: which tasks are done, which failed and how often."""

    store: Store
    runner: Runner
    run: Experiment
    retries: int
    listener: Listener
    command: str | None
    total: int
    resumed: int
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    tries: Counter[str] = field(default_factory=Counter)

    def work(self, tasks: list[BenchTask]) -> None:
        self._tell()
        while tasks:
            tasks = self._go_through(tasks)

    def _go_through(self, tasks: list[BenchTask]) -> list[BenchTask]:
        """Run the tasks once; those that are to be run again come back."""
        by_name = {task.name: task for task in tasks}
        arrived, again = set(), []
        handed = _Handed({name: _Job(task, self.run) for name, task in by_name.items()})
        with closing(self._reports(handed)) as reports:
            for name, report in reports:
                arrived.add(name)
                if not self._settle(by_name[name], report):
                    again.append(by_name[name])
        return [task for name, task in by_name.items() if name not in arrived] + again

    def _reports(self, handed: _Handed) -> Generator[tuple[str, Report]]:
        """What the runner gives; if it breaks, the error for each task that was under way.

        That is a worker that was killed, say for want of memory: one of these tasks is to blame. Those that
        were not started are not among them.
        """
        arrived = set()
        try:
            for name, report in self.runner(handed):
                arrived.add(name)
                yield name, report
        except UnpoisonError:
            raise
        except Exception as error:
            lost = sorted(handed.names - arrived)
            if not lost:
                raise
            for name in lost:
                yield name, Report(_now(), 0.0, machine(), error=_described(error))

    def _settle(self, task: BenchTask, report: Report) -> bool:
        """Keep what came; False if the task is to be tried again."""
        provenance = {
            **report.machine,
            "started": report.started,
            "seconds": round(report.seconds, 3),
            "command": self.command,
        }
        record: Record = {"task": task.identity, "provenance": provenance}
        self.tries[task.name] += 1
        if report.error is None:
            self.store.save(task.name, {**record, "result": report.result})
            self.done.append(task.name)
        else:
            tries = self.tries[task.name]
            self.store.save_failure(task.name, {**record, "error": report.error, "tries": tries})
            if not report.is_final and tries <= self.retries:
                return False
            self.failed[task.name] = first_line(report.error)
        self._tell()
        return True

    def _tell(self) -> None:
        finished = self.resumed + len(self.done) + len(self.failed)
        self.listener(Progress(STAGE, finished, self.total, self.resumed))


class _Handed(Mapping[str, _Job]):
    """Jobs, and the names of those that the runner has taken."""

    def __init__(self, jobs: Mapping[str, _Job]) -> None:
        self._jobs = jobs
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> _Job:
        job = self._jobs[name]
        self.names.add(name)
        return job

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)


@dataclass(frozen=True)
class Estimate:
    """What is left to do."""

    tasks: int
    done: int
    seconds: float
    """Of one worker."""


def estimate(
    tasks: Iterable[BenchTask],
    store: Store,
    *,
    seconds: Callable[[BenchTask], float] = estimate_seconds,
    run: Experiment = run_task,
) -> Estimate:
    """How long the tasks without a result would take one worker."""
    wanted = {task.name: task for task in tasks}
    done = finished(wanted, store, run=run).records
    return Estimate(
        len(wanted), len(done), sum(seconds(task) for name, task in wanted.items() if name not in done)
    )


@dataclass
class Tally:
    """How many tasks are where."""

    done: int = 0
    failed: int = 0
    waiting: int = 0


@dataclass(frozen=True)
class Status:
    """The state of a store."""

    total: Tally
    groups: dict[tuple[str, str, str], Tally]
    """By scale, table and family; a scenario of two tables counts in both."""
    failed: dict[str, str]
    """The first line of each error by the name of its task."""
    damaged: tuple[str, ...]
    owner: str | None
    """The process that is at work."""


def status(store: Store) -> Status:
    """Count what is there, by file names alone; only failures are read."""
    listing = store.listing()
    states = dict.fromkeys(store.plan(), "waiting")
    states |= dict.fromkeys(listing.failed, "failed") | dict.fromkeys(listing.done, "done")
    # by scenario first: there are ten thousand tasks, but a hundred scenarios
    counts = Counter(
        (found["scale"], found["scenario"], state)
        for found, state in ((_TASK.fullmatch(name), state) for name, state in states.items())
        if found is not None  # a file that no run wrote
    )
    known = {scenario.name: scenario for scenario in catalog()}
    total, groups = Tally(), defaultdict[tuple[str, str, str], Tally](Tally)
    for (scale, scenario, state), count in counts.items():
        for tally in (total, *(groups[scale, *kind] for kind in _kinds(known.get(scenario)))):
            setattr(tally, state, getattr(tally, state) + count)
    failures = store.failures(sorted(listing.failed))
    errors = {name: first_line(record["error"]) for name, record in failures.records.items()}
    return Status(total, dict(sorted(groups.items())), errors, failures.damaged, store.owner())


def results(store: Store, *, scale: str) -> tuple[list[Result], tuple[str, ...]]:
    """Results of one scale as :func:`unpoison.evaluation.tables.build` takes them, and notes about others.

    Whether an attack took hold follows from the undefended victim of the same scenario and seed, if a result
    does not say. Where there is none it cannot be told, and the result is left out, as are damaged ones.
    """
    names = (name for name in sorted(store.listing().done) if name.startswith(f"{scale}/"))
    reading = store.results(names, check=_check)
    rows = [{**record["result"], **record["task"]} for record in reading.records.values()]
    # the cells of an ablation share the victim of the scenario that they vary
    victims = {scenario.name: scenario.victim for scenario in catalog()}
    places = [(victims.get(row["scenario"], row["scenario"]), row["seed"]) for row in rows]
    undefended = {
        place: row["tmr"] > TOOK_HOLD
        for place, row in zip(places, rows, strict=True)
        if row["defense"] == UNDEFENDED
    }
    found = [{"took_hold": undefended.get(place), **row} for place, row in zip(places, rows, strict=True)]
    known: list[Result] = [row for row in found if row["took_hold"] is not None]
    if len(known) == len(found):
        return known, reading.damaged
    note = f"add --defense {UNDEFENDED}, which tells whether the attack takes hold"
    return known, (*reading.damaged, f"{len(found) - len(known)} results are left out: {note}")


def first_line(error: Mapping[str, Any]) -> str:
    """An error as failures keep it, in one line."""
    message = str(error.get("message", "")).strip().partition("\n")[0]
    return f"{error.get('type', 'Error')}: {message}" if message else str(error.get("type", "Error"))


def _kinds(scenario: Scenario | None) -> list[tuple[str, str]]:
    """The tables and families that a scenario counts in."""
    if scenario is None:
        return [("-", "-")]
    return [(table, "all" if table == SUMMARY else scenario.family) for table in scenario.tables]


def _experiments() -> Any:
    """Loaded where it is used: everything there is comes with it."""
    return import_module("unpoison.evaluation.experiment")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _described(error: Exception) -> Record:
    text = "".join(traceback.format_exception(error))
    return {"type": type(error).__name__, "message": str(error), "traceback": text[-TRACEBACK_LIMIT:]}
