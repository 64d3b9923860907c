"""``unpoison bench``: the paper's experiments, run anywhere, and its tables and figures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unpoison.cli.given import command
from unpoison.cli.progress import progress_bars
from unpoison.cli.text import shown

if TYPE_CHECKING:
    from unpoison.evaluation.bench import BenchTask, Estimate, Outcome, Status
    from unpoison.evaluation.scenarios import Scenario

INTERRUPTED = 130
DEFAULT_TABLE = "summary"
FORMATS = ("text", "csv", "latex")
DEFENSE_HELP = (
    "A defense (random-50 removes half at random, NAME+clean is without poison); the recorded ones if none."
)

_out = click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Folder with the results, a file for each."
)
_scale = click.option(
    "--scale", default="laptop", show_default=True, metavar="NAME", help="Size of the experiments."
)


@click.group()
def bench() -> None:
    """Run the paper's experiments, and print its tables with your numbers beside its own."""


@bench.command(name="list")
@click.option("--scale", metavar="NAME", help="Only what this scale has; --long shows its sizes.")
@click.option("--table", metavar="NAME", help="Only the scenarios of this table of the paper.")
@click.option("--family", metavar="NAME", help="Only this kind of attack.")
@click.option("--dataset", metavar="NAME", help="Only on this dataset.")
@click.option("--long", "long", is_flag=True, help="Tell dataset, attack, tables and seeds too.")
def list_scenarios(
    scale: str | None, table: str | None, family: str | None, dataset: str | None, long: bool
) -> None:
    """List the scenarios by name, one a line."""
    from unpoison.evaluation.scales import scale_named
    from unpoison.evaluation.scenarios import catalog, of_table

    chosen = list(catalog() if table is None else of_table(table))
    chosen = _matching(chosen, "family", family)
    chosen = _matching(chosen, "dataset", dataset)
    size = None if scale is None else scale_named(scale)
    if size is not None:
        chosen = [scenario for scenario in chosen if scenario.dataset in size.setups]
    width = max((len(scenario.name) for scenario in chosen), default=0)
    for scenario in chosen:
        setup = size.setup_for(scenario) if size is not None else None
        click.echo(f"{scenario.name:<{width}}  {_details(scenario, setup)}" if long else scenario.name)


@bench.command()
@_out
@_scale
@click.option(
    "--table", "tables", multiple=True, metavar="NAME", help=f"Scenarios of a table; {DEFAULT_TABLE} if none."
)
@click.option("--scenario", "scenarios", multiple=True, metavar="NAME", help="A single scenario, by name.")
@click.option("--recorded", is_flag=True, help="All experiments whose results are published for the scale.")
@click.option("--held-out", is_flag=True, help="Those on scenarios that no defense was made with.")
@click.option("--taking-hold", is_flag=True, help="Only attacks that mislead undefended victims in --out.")
@click.option("--defense", "defenses", multiple=True, metavar="NAME", help=DEFENSE_HELP)
@click.option(
    "--seeds", metavar="LIST", help="0,2,5 are these; 3 is the first three. By scenario if not given."
)
@click.option(
    "--network", metavar="NAME", help="With --scale full: one of the paper's networks, and its 100 epochs."
)
@click.option(
    "--arrays", type=click.Path(path_type=Path), help="Official clean-label images; our own if not given."
)
@click.option(
    "--watermarks", type=click.Path(path_type=Path), help="Folder of the official watermarks; else our own."
)
@click.option(
    "--keep-evidence", type=click.Path(path_type=Path), help="Folder for what models saw, for bench replay."
)
@click.option("--workers", type=click.IntRange(min=1), help="Tasks at once. [default: 1; Ray: all that fit]")
@click.option("--runner", type=click.Choice(("local", "ray")), default="local", show_default=True)
@click.option("--address", metavar="ADDRESS", help="Of a Ray cluster: auto, host:port or ray://host:port.")
@click.option("--cpus-per-task", type=click.FloatRange(min=0), default=1, show_default=True, help="On Ray.")
@click.option("--gpus-per-task", type=click.FloatRange(min=0), default=0, show_default=True, help="On Ray.")
@click.option(
    "--retries", type=click.IntRange(min=0), default=1, show_default=True, help="More tries for what fails."
)
@click.option(
    "--limit-tasks", type=click.IntRange(min=1), metavar="N", help="Run at most N tasks, then stop."
)
@click.option("--estimate", "only_estimate", is_flag=True, help="Tell how long it will take; run nothing.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--no-progress", is_flag=True, help="Draw no progress bars.")
def run(out: Path, **given: Any) -> None:
    """Run experiments: those that --out has no result of yet. Exit 1 if any of them fails.

    A run that was stopped goes on with the same command.
    """
    from unpoison.evaluation import bench as running
    from unpoison.evaluation.store import Store

    store = Store(out)
    given["scale"] = _with_network(given["scale"], given["network"])
    tasks = _tasks(given, store)
    if given["keep_evidence"] is not None:
        evidence = str(given["keep_evidence"].resolve())
        tasks = [replace(task, evidence=evidence) for task in tasks]
    if given["only_estimate"]:
        _tell_estimate(running.estimate(tasks, store), given)
        return
    try:
        silent = given["quiet"] or given["no_progress"]
        with _runner(given) as runner, progress_bars(enabled=not silent) as listener:
            outcome = running.run(
                tasks, store, runner=runner, retries=given["retries"], listener=listener, command=command()
            )
    except KeyboardInterrupt:
        click.echo("interrupted; what is done stays, and the same command goes on from there", err=True)
        sys.exit(INTERRUPTED)
    _tell_outcome(outcome, out, quiet=given["quiet"])
    if outcome.failed:
        sys.exit(1)


@bench.command()
@click.option(
    "--evidence", required=True, type=click.Path(path_type=Path), help="Folder that --keep-evidence wrote."
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the defense, with another value.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON line a task, with every group.")
def replay(evidence: Path, changes: tuple[str, ...], as_json: bool) -> None:
    """Decide again from kept evidence, in seconds: another rule, nothing trained.

    Where other groups are proposed than the judges were trained without, they would have to be trained anew;
    that is told, and nothing else.
    """
    from unpoison.evaluation.evidence import replay as replayed

    for found in replayed(evidence, dict(map(_change, changes))):
        if as_json:
            click.echo(json.dumps(asdict(found)))
        elif found.needs:
            click.echo(f"{found.task}: needs training ({found.needs})")
        else:
            click.echo(
                f"{found.task}: {found.found:,} of {found.planted:,} found, {found.lost:,} clean removed, "
                f"{found.undecided:,} groups undecided"
            )


def _change(text: str) -> tuple[str, Any]:
    """A setting and its value, as JSON writes it."""
    name, equals, value = text.partition("=")
    try:
        return name.strip(), json.loads(value if equals else "")
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not NAME=VALUE, such as met=6.5.", param_hint="'--set'"
        ) from error


@bench.command()
@_out
def status(out: Path) -> None:
    """Count what is done, failed and waiting in --out, and tell what failed."""
    from unpoison.errors import InputError
    from unpoison.evaluation.bench import status as find_status
    from unpoison.evaluation.store import Store

    if not out.is_dir():
        raise InputError(f"{out} is not a folder; run: unpoison bench run --out {out}")
    _tell_status(find_status(Store(out)))


@bench.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), help="Folder with the results.")
@_scale
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--published", is_flag=True, help="The paper's numbers alone.")
@click.option(
    "--defense", "names", multiple=True, metavar="NAME", help="Of ours, only this defense; all if none."
)
def table(
    name: str, out: Path | None, scale: str, form: Any, published: bool, names: tuple[str, ...]
) -> None:
    """Print the table NAME of the paper, with the results in --out beside its numbers.

    Three tables are ours. 'comparison': the defenses on the scenarios that all of them were run on.
    'reproduction': each run of the paper's method beside the paper's row. 'components': where ISPL put what
    was planted.
    """
    from unpoison.evaluation.comparison import COMPARISON, compare
    from unpoison.evaluation.reproduction import COMPONENTS, REPRODUCTION, by_component, reproduce
    from unpoison.evaluation.tables import build

    if published == (out is not None):
        raise click.UsageError("Give either --out, the folder with your results, or --published.")
    if published and names:
        raise click.UsageError("--defense chooses among your results; leave it out with --published.")
    found = [] if out is None else _results(out, scale)
    only = _with_results(names, found)
    if name == COMPARISON and not published:
        click.echo(_shown_lines(compare(found, only=only).render(form)))
        return
    if name in (REPRODUCTION, COMPONENTS) and not published:
        build_one = reproduce if name == REPRODUCTION else by_component
        click.echo(_shown_lines(build_one(found, **({"defense": only[0]} if only else {})).render(form)))
        return
    found = [result for result in _attacked(found) if not only or result["defense"] in only]
    click.echo(_shown_lines(build(name, found).render(form)))


@bench.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), help="Folder with the results, for figures of them.")
@_scale
@click.option("--to", "target", required=True, type=click.Path(path_type=Path), help="File to draw into.")
def figure(name: str, out: Path | None, scale: str, target: Path) -> None:
    """Draw the figure NAME of the paper; with the results in --out beside its numbers, if it has any."""
    from unpoison.errors import InputError
    from unpoison.evaluation.figures import FIGURES, OF_FOLDERS

    if name in OF_FOLDERS:
        if out is None:
            raise click.UsageError(f"The figure {name!r} has no numbers of the paper: give --out.")
        OF_FOLDERS[name](out, target)
    elif name in FIGURES:
        FIGURES[name]([] if out is None else _attacked(_results(out, scale)), target)
    else:
        known = ", ".join([*FIGURES, *OF_FOLDERS])
        raise InputError(f"no figure is called {name!r}; the figures are: {known}")
    click.echo(f"drew {shown(target)}")


def _matching(scenarios: Sequence[Scenario], trait: str, value: str | None) -> list[Scenario]:
    from unpoison.errors import InputError
    from unpoison.evaluation.scenarios import catalog

    if value is None:
        return list(scenarios)
    known = sorted({getattr(scenario, trait) for scenario in catalog()})
    if value not in known:
        raise InputError(f"no {trait} is called {value!r}; there are: {', '.join(known)}")
    return [scenario for scenario in scenarios if getattr(scenario, trait) == value]


def _details(scenario: Scenario, setup: Any) -> str:
    options = " ".join(f"--{name} {value}" for name, value in scenario.options.items())
    seeds = ",".join(map(str, scenario.seeds))
    facts = [scenario.dataset, f"{scenario.attack} {options}", ",".join(scenario.tables), f"seeds {seeds}"]
    if setup is not None:
        size = "all samples" if setup.limit is None else f"{setup.limit:,} samples"
        facts += [setup.network, f"{setup.epochs} epochs", size]
    return "  ".join(facts)


def _tasks(given: dict[str, Any], store: Any) -> list[BenchTask]:
    """What the options ask for; with --limit-tasks, the first of those that are not done."""
    from unpoison.evaluation.bench import finished, taking_hold

    tasks = _listed_tasks(given) if given["recorded"] or given["held_out"] else _chosen_tasks(given)
    if given["taking_hold"]:
        tasks = taking_hold(tasks, store)
    if given["limit_tasks"] is None:
        return tasks
    done = finished((task.name for task in tasks), store).records
    return [task for task in tasks if task.name not in done][: given["limit_tasks"]]


def _listed_tasks(given: dict[str, Any]) -> list[BenchTask]:
    from unpoison.errors import InputError
    from unpoison.evaluation.bench import defenses, held_out, recorded

    if given["recorded"] and given["held_out"]:
        raise click.UsageError("Give either --recorded or --held-out.")
    option, listed = ("--recorded", recorded) if given["recorded"] else ("--held-out", held_out)
    if given["tables"] or given["scenarios"] or given["seeds"]:
        raise click.UsageError(f"{option} has its own scenarios and seeds; leave out the others.")
    tasks = listed(given["scale"])
    if not tasks:
        raise InputError(f"no results are published for the scale {given['scale']!r}; name a --table")
    if not given["defenses"]:
        return tasks
    there = list(dict.fromkeys(task.defense for task in tasks))
    for name in defenses(given["defenses"]):
        if name not in there:
            raise InputError(
                f"{name!r} is not among the {option[2:]} experiments, which are of {', '.join(there)}"
            )
    return [task for task in tasks if task.defense in given["defenses"]]


def _chosen_tasks(given: dict[str, Any]) -> list[BenchTask]:
    from unpoison.evaluation.bench import defenses, plan
    from unpoison.evaluation.scenarios import by_name, of_table

    tables = given["tables"] or (() if given["scenarios"] else (DEFAULT_TABLE,))
    scenarios = [scenario for table in tables for scenario in of_table(table)]
    scenarios += [by_name(name) for name in given["scenarios"]]
    return plan(
        {scenario.name: scenario for scenario in scenarios}.values(),
        scale=given["scale"],
        defenses=defenses(given["defenses"]),
        seeds=_seeds(given["seeds"]),
        arrays=_there(given["arrays"], "--arrays"),
        watermarks=_there(given["watermarks"], "--watermarks"),
    )


def _with_network(scale: str, network: str | None) -> str:
    """The name of the scale with another network: its results are its own, and lie apart."""
    from unpoison.evaluation.scales import FULL, with_network

    if network is None or network == FULL.setups["cifar10"].network:
        return scale
    if scale != FULL.name:
        raise click.UsageError(f"--network goes with --scale {FULL.name}.")
    return with_network(network).name


def _there(path: Path | None, option: str) -> str:
    """What workers are told: a whole path, wherever they run."""
    if path is None:
        return ""
    if not path.exists():
        raise click.BadParameter(f"{shown(path)} does not exist.", param_hint=f"'{option}'")
    return str(path.resolve())


def _seeds(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    is_list = "," in text
    if not numbers or min(numbers) < 0 or (numbers == [0] and not is_list):
        raise click.BadParameter(
            f"{text!r} is neither a list such as 0,2,5 (or 7, for one seed) nor a count such as 3.",
            param_hint="'--seeds'",
        )
    return numbers if is_list else list(range(numbers[0]))


def _runner(given: dict[str, Any]) -> Any:
    """A context that gives the runner."""
    if given["runner"] == "ray":
        from unpoison.runners.ray import RayRunner

        return RayRunner(
            given["address"],
            workers=given["workers"],
            cpus_per_task=given["cpus_per_task"],
            gpus_per_task=given["gpus_per_task"],
        )
    if given["address"] is not None:
        raise click.UsageError("--address is that of a Ray cluster: add --runner ray.")
    from unpoison.runners.local import LocalRunner

    return nullcontext(LocalRunner(given["workers"] or 1))


def _results(out: Path, scale: str) -> list[Any]:
    from unpoison.errors import InputError
    from unpoison.evaluation.bench import results
    from unpoison.evaluation.scales import scale_named
    from unpoison.evaluation.store import Store

    scale_named(scale)
    found, notes = results(Store(out), scale=scale)
    _note(notes)
    if not found:
        raise InputError(
            f"{out} holds no results at scale {scale!r}; run: unpoison bench run --scale {scale} --out {out}"
        )
    return found


def _attacked(found: Iterable[Any]) -> list[Any]:
    """Without results on clean data, which the paper has none of."""
    from unpoison.evaluation.bench import ON_CLEAN

    return [result for result in found if not result["defense"].endswith(ON_CLEAN)]


def _with_results(names: Iterable[str], found: Iterable[Any]) -> list[str]:
    """The defenses of these names, all of which must have results; NAME+clean belongs to NAME."""
    from unpoison.core.presets import REPLACED
    from unpoison.errors import InputError
    from unpoison.evaluation.bench import ON_CLEAN, defenses

    there = sorted({result["defense"] for result in found})
    names = [name.removesuffix(ON_CLEAN) for name in names]
    for name in names:
        if name not in there:
            if name not in REPLACED:
                defenses([name])  # refuses what is no defense
            raise InputError(f"there are no results of {name!r}, only of {', '.join(there)}")
    return list(dict.fromkeys(names))


def _tell_estimate(estimate: Estimate, given: dict[str, Any]) -> None:
    left = estimate.tasks - estimate.done
    click.echo(f"{estimate.tasks:,} tasks, {estimate.done:,} of them done, {left:,} to run")
    work = f"about {_time(estimate.seconds)} of work for one CPU core"
    workers = given["workers"] or (1 if given["runner"] == "local" else None)
    if workers is None:
        click.echo(f"{work}, divided by what the cluster runs at once")
    elif workers == 1:
        click.echo(work)
    else:
        click.echo(f"{work}: {_time(estimate.seconds / workers)} on {workers} workers")


def _time(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} hours" if seconds >= 3600 else f"{seconds / 60:,.0f} minutes"


def _tell_outcome(outcome: Outcome, out: Path, *, quiet: bool) -> None:
    _note(outcome.damaged)
    for name, line in outcome.failed.items():
        click.echo(f"failed: {shown(name)}: {shown(line)}", err=True)
    if not quiet:
        click.echo(
            f"done: {len(outcome.done):,}, done before: {len(outcome.skipped):,}, "
            f"failed: {len(outcome.failed):,}; results in {shown(out)}"
        )


def _tell_status(found: Status) -> None:
    rows = [("scale", "table", "family", "done", "failed", "waiting")]
    for group, each in [*found.groups.items(), (("all", "", ""), found.total)]:
        rows.append((*group, f"{each.done:,}", f"{each.failed:,}", f"{each.waiting:,}"))
    for line in _columns(rows):
        click.echo(shown(line))
    click.echo(f"running: {found.owner}" if found.owner else "no run is at work")
    for name, error in found.failed.items():
        click.echo(f"failed: {shown(name)}: {shown(error)}")
    _note(found.damaged)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with the columns under each other; the last three are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i >= len(row) - 3 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _shown_lines(text: str) -> str:
    """``text`` line by line without control characters."""
    return "\n".join(shown(line) for line in text.split("\n"))


def _note(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"note: {shown(line)}", err=True)
