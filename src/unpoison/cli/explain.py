"""``unpoison explain``: what a run knows about one sample."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from unpoison.outputs.explanation import Explanation, JudgedGroup, Vote

_ROUND = re.compile(r"restart (\d+), round (\d+)")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("sample", metavar="ID")
def explain(directory: Path, sample: str) -> None:
    """Tell what the run in DIRECTORY, the --out of an earlier clean, knows about the sample ID.

    Its label and decision, its component and group, the kept samples most like it, and what every voter says
    of it with which loss: one for each model that judges, and with ispl for each round of each restart. The
    column id of manifest.csv has the ids.
    """
    from rich.console import Console

    from unpoison.outputs.explanation import explain_sample
    from unpoison.outputs.stored import read_stored

    found = explain_sample(read_stored(directory), sample)
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for name, value in _lines(found):
        console.print(f"{name:<11} {value}")
    if found.votes:
        console.print()
        _show_votes(console, found)


def _lines(found: Explanation) -> list[tuple[str, str]]:
    """What is known, as names and values of one line each."""
    from unpoison.report.text import percent, printable

    def quoted(name: str) -> str:
        return f"'{printable(name)}'"

    lines = [
        ("sample", printable(found.id, 200)),
        ("source", printable(found.source, 200)),
        ("label", quoted(found.label)),
        ("called", quoted(found.called) if found.called else "no vote"),
        ("decision", _decision(found)),
        ("suspicion", f"{found.suspicion:.3f}, more than {percent(found.less_suspicious)} of the samples"),
        ("components", ", ".join(found.components) or "none"),
    ]
    if found.group is not None:
        lines.append(("group", _group(found.group)))
        if found.group.is_member and found.group.reason:
            lines.append(("reason", printable(found.group.reason, 500)))
    near = [
        f"{quoted(sample)}, labelled {quoted(label)}"
        for sample, label in ((found.near_label, found.label), (found.near_called, found.called))
        if sample is not None
    ]
    lines.append(("most like", "; ".join(near) or "not looked for: it is kept and not suspicious"))
    return lines


def _decision(found: Explanation) -> str:
    from unpoison.report.text import printable

    run = "kept by the run" if found.run_keep else "removed by the run"
    if not found.reviewed:
        return run
    review = printable(found.decided_by.replace(": ", " by ", 1), 120)
    return f"{'kept' if found.keep else 'removed'} in a {review} ({run})"


def _group(group: JudgedGroup) -> str:
    from unpoison.report.text import count, printable

    called = f", called '{printable(group.called)}'" if group.called else ""
    evidence = "".join(f", {line.name} {line.value}" for line in group.evidence)
    decision = "removed" if group.removed else "kept as undecided" if group.undecided else "kept"
    here = "with this sample" if group.is_member else "without this sample"
    judged = f"{count(group.size)} samples of its label were judged together and {decision}"
    return f"{judged}, {here}{called}{evidence}"


def _show_votes(console: Console, found: Explanation) -> None:
    from rich.table import Table

    from unpoison.report.text import printable

    tally = ", ".join(f"{n} '{printable(name)}'" for name, n in found.tally)
    console.print(f"votes       {tally or 'none that counts'}")
    rows = _by_restart(found.votes)
    heads = [f"round {i + 1}" for i in range(len(rows[0][1]))] if rows else ["says", "loss on its own label"]
    table = Table("voter", *heads)
    if rows:
        for name, votes in rows:
            table.add_row(name, *(_cell(vote) for vote in votes))
    else:
        for vote in found.votes:
            says = (printable(vote.called, 40), f"{vote.loss:.3f}")
            table.add_row(
                printable(vote.voter, 40), *(says if vote.counts else ("(not asked: trained on it)", ""))
            )
    console.print(table, soft_wrap=False)
    if rows:
        console.print("Each cell: what the voter says, and the sample's loss on its own label.")


def _by_restart(votes: tuple[Vote, ...]) -> list[tuple[str, list[Vote | None]]]:
    """The votes of each restart in the order of its rounds; empty where voters are not rounds."""
    found: dict[int, dict[int, Vote]] = {}
    for vote in votes:
        match = _ROUND.fullmatch(vote.voter)
        if match is None:
            return []
        found.setdefault(int(match[1]), {})[int(match[2])] = vote
    n_rounds = max((max(rounds) for rounds in found.values()), default=0)
    if n_rounds > len(votes):
        return []
    return [
        (f"restart {restart}", [rounds.get(i + 1) for i in range(n_rounds)])
        for restart, rounds in sorted(found.items())
    ]


def _cell(vote: Vote | None) -> str:
    from unpoison.report.text import printable

    return "" if vote is None else f"{printable(vote.called, 24)} {vote.loss:.2f}"
