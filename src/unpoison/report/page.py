"""The page: what was found, the evidence, and the samples to look at and decide about.

Everything shown comes from the attacker's data or may do so. Four things keep it harmless: the template
escapes every value, :func:`unpoison.report.text.neutral` spells out every invisible character of every
value, the script puts text in as text only, and the page's own policy forbids the network and every script
but that one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset
from unpoison.report import embed, text
from unpoison.report.evidence import EvidenceLine, explain
from unpoison.report.histogram import histogram
from unpoison.report.matrix import removal_matrix
from unpoison.report.review import Review
from unpoison.report.samples import PICTURES_A_CHUNK, PageSamples, page_samples
from unpoison.report.scatter import scatter
from unpoison.report.study import Study, study
from unpoison.report.votes import GROUPING, vote_matrix

STILL_REMOVED = 24
STILL_KEPT = 12
"""Cards that stand in the page itself, for readers without JavaScript."""

MAX_GROUPS = 24
MAX_UNTOUCHED = 100
MAX_FACTS = 80

_STATES = ("removed", "undecided", "kept")
"""Of groups, in the order of their cards."""
_PASSES = "passes, each of one sample through one model"
_FORMS = {
    "folder": "a folder for each class",
    "npz": "one .npz file",
    "csv": "one CSV file",
    "tsv": "one TSV file",
    "parquet": "one Parquet file",
    "hub": "a dataset for Hugging Face's load_from_disk",
}


@dataclass(frozen=True)
class GroupCard:
    """A judged group as the page shows it."""

    label: str
    called: str | None
    size: int
    state: str
    """``removed``, ``undecided`` or ``kept``."""
    reason: str
    """Why, in one sentence; empty where the method gives none."""
    evidence: list[EvidenceLine]
    number: int | None
    """As the table of components counts it; None where components are not groups."""
    n_more: int
    """Removed samples of its label that are not in it, where it is the only removed group of the label."""


def render(
    dataset: Dataset,
    result: Sanitization,
    *,
    record: Mapping[str, Any],
    found: Study | None = None,
    review: Review | None = None,
) -> str:
    """The report as one HTML document below 30 MB that needs no other file.

    ``record`` is what goes into ``run.json`` (see :mod:`unpoison.outputs.record`), so that both say the same.
    ``result`` is what the run decided, ``review`` what people decided after it. The same input gives the same
    text.
    """
    found = found or study(dataset, result)
    review = review or Review.none(result)
    samples = page_samples(dataset, result, found, review)
    groups = record["result"]["groups"]
    return _template("page.html.j2").render(
        record=record,
        data=record["data"],
        found=record["result"],
        class_names=dataset.class_names,
        n_kept=int(review.keep.sum()),
        clean_form=_FORMS.get(dataset.origin.form, dataset.origin.form),
        study=found,
        matrix=removal_matrix(dataset, result),
        max_untouched=MAX_UNTOUCHED,
        samples=samples,
        still_removed=[card for card in samples.cards if not card.run_keep][:STILL_REMOVED],
        still_kept=[card for card in samples.cards if card.run_keep][:STILL_KEPT],
        histogram=histogram(result.suspicion, result.keep),
        groups=_group_cards(dataset, result, record),
        scatter=scatter(groups, record["settings"]),
        n_more_groups=max(0, len(groups) - MAX_GROUPS),
        votes=vote_matrix(dataset.labels, result, method=record["method"]),
        facts=_facts(record),
        title_limit=text.TITLE_LIMIT,
        page_data=embed.as_markup(_page_data(dataset, samples, record)),
        picture_chunks=[embed.as_markup(chunk) for chunk in samples.chunks()],
        style=embed.style(),
        script=embed.script(),
        content_policy=embed.content_policy(),
    )


@cache
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("unpoison.report", "web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        printable=text.printable,
        count=text.count,
        percent=text.percent,
    )
    return environment.get_template(name)


def _finalize(value: Any) -> Any:
    """Every value on its way into the page; markup is the template's own and passes."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return text.neutral(value)
    return value


def _page_data(dataset: Dataset, samples: PageSamples, record: Mapping[str, Any]) -> str:
    """The data that the script reads, without the pictures."""
    head = {
        "fingerprint": record["data"]["fingerprint"],
        "kind": dataset.kind,
        "classes": [text.printable(name) or "(empty)" for name in dataset.class_names],
        "columns": samples.columns,
        "tiny": samples.tiny,
        "picturesInChunk": PICTURES_A_CHUNK,
    }
    return f'{embed.to_json(head)[:-1]},"samples":[{",".join(samples.rows)}]}}'


def _group_cards(dataset: Dataset, result: Sanitization, record: Mapping[str, Any]) -> list[GroupCard]:
    groups = list(enumerate(record["result"]["groups"], start=1))
    numbered = record["method"] in GROUPING
    n_groups = Counter(group["label"] for _, group in groups if group["removed"])
    n_removed = Counter(dataset.class_names[label] for label in dataset.labels[~result.keep])
    groups.sort(key=lambda item: (_STATES.index(_state(item[1])), -item[1]["size"]))
    return [
        GroupCard(
            label=group["label"],
            called=group["called"],
            size=group["size"],
            state=_state(group),
            reason=group.get("reason", ""),
            evidence=explain(group["evidence"]),
            number=number if numbered else None,
            n_more=max(0, n_removed[group["label"]] - group["size"])
            if group["removed"] and n_groups[group["label"]] == 1
            else 0,
        )
        for number, group in groups[:MAX_GROUPS]
    ]


def _state(group: Mapping[str, Any]) -> str:
    if group["removed"]:
        return "removed"
    return "undecided" if group.get("undecided") else "kept"


def _facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Settings, versions and the rest as names and values, in reading order."""
    data = record["data"]
    facts: list[tuple[str, Any]] = [
        ("Command", record["command"] or "called from Python"),
        ("Method", record["method"]),
        ("Learner", record["learner"]),
        ("Seed", record["seed"]),
        ("Data", f"{data['name']} ({data['kind']}, {data['form']})"),
        ("Fingerprint of the data", data["fingerprint"]),
        ("Time", text.duration(record["timings"]["seconds"])),
        ("Trained", f"{text.count(record['cost']['trained'])} {_PASSES}"),
        ("Scored", f"{text.count(record['cost']['scored'])} {_PASSES}"),
        ("Time inside the models", text.duration(record["cost"]["seconds"])),
        ("unpoison", record["tool"]["version"]),
    ]
    share = record["cost"]["matmul_share"]
    if share is not None:
        facts.append(("Speed, of a large matrix product's", text.percent(share)))
    facts += record["versions"].items()
    facts += [(f"training: {name}", value) for name, value in (record["training"] or {}).items()]
    facts += [(f"setting: {name}", value) for name, value in record["settings"].items()]
    facts += [(f"note: {name}", value) for name, value in record["result"]["notes"].items()]
    return [(text.printable(name), text.printable(str(value), 500)) for name, value in facts[:MAX_FACTS]]
