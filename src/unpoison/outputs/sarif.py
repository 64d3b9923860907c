"""The removed samples as SARIF 2.1.0, the form in which code hosts take findings."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np

from unpoison.outputs.manifest import Table
from unpoison.report.text import TITLE_LIMIT, count, neutral, printable

MAX_RESULTS = 5000
"""The most suspicious removed samples that are listed; GitHub shows no more of one file."""

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
WORKING_FOLDER = "%SRCROOT%"
"""Paths are relative to where the program ran: in a pipeline, the root of the repository."""
SOURCE_FOLDER = "%SOURCE%"
"""Paths are relative to the folder that holds the source, which is not below the working folder."""

Json: TypeAlias = dict[str, Any]

_RULES = (
    (
        "other-label",
        "OtherLabel",
        "A training sample looks planted: models call it something else.",
        "The sample is among those that unpoison would not train on, and models that did not train on it "
        "give it another label than its own.",
    ),
    (
        "own-label",
        "OwnLabel",
        "A training sample looks planted: it belongs with others that do.",
        "The sample is among those that unpoison would not train on, although models give it the label that "
        "it has: it is explained only by samples of its own kind.",
    ),
)
_HELP = (
    "Look at the sample in report.html, beside samples that were kept. Remove it or correct its label if it "
    "was planted; it may be an honest oddity."
)
_ROW = re.compile(r"\[(\d+)\]\Z")
_LINE = re.compile(r":(\d+)\Z")


def build(record: Json, table: Table, *, source: Path | None) -> Json:
    """One result for each removed sample, the most suspicious first, at most :data:`MAX_RESULTS`.

    ``source`` is the file or folder that was cleaned, or None for data that has none.
    """
    samples = _removed(table)
    listed = samples[:MAX_RESULTS]
    form = record["data"]["form"]
    base, prefix = _base(None if form == "hub" else source)
    seen: Counter[str] = Counter()
    results = [_result(sample, form, base, prefix, seen) for sample in listed]
    run: Json = {
        "tool": {"driver": _driver(record)},
        "invocations": [{"executionSuccessful": True, **_notice(len(samples), len(listed))}],
        "originalUriBaseIds": _bases(base),
        "results": results,
        "properties": {
            "samples": record["data"]["n"],
            "removed": len(samples),
            "fingerprint": record["data"]["fingerprint"],
        },
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _removed(table: Table) -> list[Json]:
    columns = ("id", "source", "label", "suspicion", "predicted", "sha256")
    chosen = np.flatnonzero(~np.array(table["keep"].to_pylist(), dtype=bool))
    part = table.select(columns).take(chosen)
    samples: list[Json] = part.to_pylist()
    return sorted(samples, key=lambda sample: -sample["suspicion"])


def _result(sample: Json, form: str, base: str, prefix: str | None, seen: Counter[str]) -> Json:
    index = 0 if sample["predicted"] not in ("", sample["label"]) else 1
    seen[sample["sha256"]] += 1
    # how GitHub knows a finding again: by what the sample is, wherever it moves in its file
    known = f"{sample['sha256'][:16]}:{seen[sample['sha256']]}"
    return {
        "ruleId": _RULES[index][0],
        "ruleIndex": index,
        "level": "warning",
        "rank": round(100 * sample["suspicion"], 2),
        "message": {"text": _message(sample, index)},
        "locations": [_location(sample, form, base, prefix)],
        "partialFingerprints": {"primaryLocationLineHash": known},
        "properties": {
            "label": sample["label"],
            "predicted": sample["predicted"],
            "suspicion": sample["suspicion"],
        },
    }


def _message(sample: Json, index: int) -> str:
    called = f", called '{_plain(sample['predicted'])}'" if index == 0 else ""
    labelled = f"labelled '{_plain(sample['label'])}'{called}"
    return f"Looks planted: {labelled}, suspicion {sample['suspicion']:.2f}."


def _location(sample: Json, form: str, base: str, prefix: str | None) -> Json:
    named = {"name": neutral(sample["id"]), "fullyQualifiedName": neutral(sample["source"])}
    place: Json = {"logicalLocations": [named]}
    if prefix is None:
        return place
    is_file = form == "folder"
    place["physicalLocation"] = {
        "artifactLocation": {
            "uri": f"{prefix}/{quote(sample['source'])}" if is_file else prefix,
            "uriBaseId": base,
        },
        # an image has no lines, but GitHub shows no finding without one
        "region": {"startLine": 1 if is_file else _line(sample["source"])},
    }
    return place


def _line(source: str) -> int:
    """The line of a text table; the row of other files, counted from 1."""
    if found := _LINE.search(source):
        return max(1, int(found[1]))
    return int(found[1]) + 1 if (found := _ROW.search(source)) else 1


def _base(source: Path | None) -> tuple[str, str | None]:
    """What paths are relative to, and the path of the source."""
    if source is None:
        return WORKING_FOLDER, None
    real, here = source.resolve(), Path.cwd().resolve()
    if real != here and real.is_relative_to(here):
        return WORKING_FOLDER, quote(real.relative_to(here).as_posix())
    return SOURCE_FOLDER, quote(real.name)


def _bases(base: str) -> Json:
    where = "The working folder" if base == WORKING_FOLDER else "The folder that holds the source"
    return {base: {"description": {"text": f"{where} of the run."}}}


def _driver(record: Json) -> Json:
    rules = [
        {
            "id": rule,
            "name": name,
            "shortDescription": {"text": short},
            "fullDescription": {"text": full},
            "help": {"text": _HELP},
            "defaultConfiguration": {"level": "warning"},
            "properties": {"tags": ["training-data"]},
        }
        for rule, name, short, full in _RULES
    ]
    return {"name": "unpoison", "version": record["tool"]["version"], "rules": rules}


def _notice(removed: int, listed: int) -> Json:
    if removed == listed:
        return {}
    text = f"{count(listed)} of {count(removed)} removed samples are listed; manifest.csv has all of them."
    return {"toolExecutionNotifications": [{"level": "note", "message": {"text": text}}]}


def _plain(name: str) -> str:
    """A name in a message, where brackets would make a link."""
    shown = printable(name, TITLE_LIMIT)
    return re.sub(r"([\\\[\]])", r"\\\1", shown)
