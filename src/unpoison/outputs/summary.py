"""The result as Markdown, for a pull request or the page of a job.

Names of classes come from whoever made the data. They stand in code spans only, where neither markup nor
mentions nor addresses mean anything.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from unpoison.outputs import place
from unpoison.outputs.record import Record
from unpoison.report.shared import listed
from unpoison.report.text import NAME_LIMIT, count, percent, printable

MAX_ROWS = 20
"""Rows of a table; the rest is counted. Job pages take a megabyte at most, and people less."""


def build(record: Record, *, out: Path) -> str:
    """Verdict, what the removed share, removals by class, groups and how to review the run in ``out``."""
    parts = (_head(record), _shared(record), _classes(record), _groups(record), _review(record, out))
    return "\n".join(line for part in parts for line in part) + "\n"


def code(text: str, limit: int = NAME_LIMIT) -> str:
    r"""``text`` as a code span that also fits into a table; what could end it is written out.

    >>> code("cat|dog `@admin`")
    '`cat\\x7cdog \\x60@admin\\x60`'
    """
    shown = printable(text, limit).replace("`", r"\x60").replace("|", r"\x7c")
    return f"`{shown or ' '}`"


def _head(record: Record) -> Iterator[str]:
    data, result = record["data"], record["result"]
    n, removed = data["n"], result["n_removed"]
    if removed:
        looks = f"look{'s' if removed == 1 else ''} planted"
        found = "removed after a review" if record.get("review") else looks
        yield f"## unpoison: {count(removed)} of {count(n)} samples ({percent(removed / n)}) {found}"
    else:
        yield f"## unpoison: nothing in {count(n)} samples looks planted"
    yield ""
    yield (
        f"{code(data['name'])}, {count(len(data['classes']))} classes, judged by {code(record['learner'])} "
        f"with the method {code(record['method'])}, seed {record['seed']}."
    )
    sure = result.get("certainty")
    if sure:
        yield ""
        yield f"How sure: {_prose(sure['level'])}. {_prose(sure.get('measured') or sure.get('votes', ''))}"
    if result.get("caution"):
        yield ""
        yield f"> **Caution:** {_prose(result['caution'])}"
    if record.get("review"):
        yield ""
        yield _prose(record["review"]["summary"])


def _shared(record: Record) -> Iterator[str]:
    """For each label what its removed samples have in common, or that nothing was found."""
    rows = record["result"].get("shared", [])
    if rows:
        yield ""
    for row in rows[:MAX_ROWS]:
        traits = [_trait(trait) for trait in row["traits"]]
        found = traits if row["pattern"] is None else [f"a pattern {_prose(row['pattern'])}"]
        what = f"share {listed(found)}" if found else "share no mark that was found: look there first"
        yield f"- {count(row['removed'])} labelled {code(row['label'])} {what}"
    if len(rows) > MAX_ROWS:
        yield f"- and those of {count(len(rows) - MAX_ROWS)} more labels"


def _trait(trait: Record) -> str:
    if trait["column"] is None:
        return f"the word {code(trait['value'])}"
    return f"{code(trait['column'])} {'' if trait['is_range'] else '= '}{code(trait['value'])}"


def _classes(record: Record) -> Iterator[str]:
    rows = [row for row in record["result"]["by_class"] if row["removed"]]
    rows.sort(key=lambda row: (-row["removed"], row["class"]))
    if not rows:
        return
    yield from ("", "### By class", "")
    yield from _table(
        ("class", "samples", "removed", "share", "most often called"),
        [
            (
                code(row["class"]),
                count(row["samples"]),
                count(row["removed"]),
                percent(row["removed"] / row["samples"]),
                _called(row["most_called"], row["most_called_times"]),
            )
            for row in rows
        ],
    )


def _groups(record: Record) -> Iterator[str]:
    groups = [group for group in record["result"]["groups"] if group["removed"]]
    groups.sort(key=lambda group: -group["size"])
    if not groups:
        return
    yield from ("", "### Groups that were removed", "")
    yield from _table(
        (
            "labelled",
            "called",
            "samples",
            "why" if any(group.get("reason") for group in groups) else "evidence",
        ),
        [
            (
                code(group["label"]),
                "" if group["called"] is None else code(group["called"]),
                count(group["size"]),
                _why(group),
            )
            for group in groups
        ],
    )


def _why(group: Record) -> str:
    """The reason where there is one, else the numbers."""
    if group.get("reason"):
        return _prose(group["reason"])
    numbers = [(name, value) for name, value in group["evidence"].items() if value is not None]
    return ", ".join(f"{_prose(name)} {value:.2f}" for name, value in numbers)


def _review(record: Record, out: Path) -> Iterator[str]:
    report, table = _path(out / place.REPORT), _path(out / place.MANIFEST_CSV)
    yield from ("", "### What to do", "")
    if record["result"]["n_removed"]:
        apply = code(f"unpoison apply {shlex.quote(str(out))} --overrides overrides.json", 250)
        yield f"- Look at the samples in {report}: some may be honest oddities. Mark those there and save"
        yield f"  your decisions; {apply} puts them into the results."
        yield f"- {table} has a row a sample; those with `keep` false are not in {_path(out / place.CLEAN)}."
    else:
        yield f"- {report} shows what was looked at, {table} the suspicion of every sample."
    yield f"- The same data has the fingerprint {code(record['data']['fingerprint'], 64)}."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows[:MAX_ROWS]:
        yield f"| {' | '.join(row)} |"
    if len(rows) > MAX_ROWS:
        yield ""
        yield f"and {count(len(rows) - MAX_ROWS)} more"


def _called(name: str | None, times: int) -> str:
    return "" if name is None else f"{code(name)} ({count(times)})"


def _path(path: Path) -> str:
    return code(str(path), 200)


def _prose(text: str) -> str:
    """A sentence of our own; escaped all the same, for it was read from a file."""
    return re.sub(r"([!-$&*+/:<-@\[-`{-~])", r"\\\1", printable(text, 1000))
