"""The page: what was found, the evidence, and the samples to look at.

Everything shown comes from the attacker's data or may do so. Three things keep it harmless: the template
escapes every value, :func:`unpoison.report.text.neutral` spells out every invisible character of every
value, and the page's own policy forbids scripts, forms and the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import jinja2
import numpy as np

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset, Preview
from unpoison.errors import UnpoisonError
from unpoison.report import text
from unpoison.report.evidence import EvidenceLine, explain
from unpoison.report.histogram import histogram
from unpoison.report.thumbnails import Picture, mean_panels, picture
from unpoison.report.traits import Trait, common_traits
from unpoison.types import IndexArray

MAX_REMOVED = 60
MAX_KEPT = 24
MAX_CLASSES = 100
MAX_GROUPS = 24
MAX_COLUMNS = 10
MAX_FACTS = 80
MAX_REFERENCES = 100
"""Kept samples looked at to tell what is peculiar to the removed."""

_FORMS = {
    "folder": "a folder for each class",
    "npz": "one .npz file",
    "csv": "one CSV file",
    "tsv": "one TSV file",
    "parquet": "one Parquet file",
    "hub": "a dataset for Hugging Face's load_from_disk",
}


@dataclass(frozen=True)
class Card:
    """One sample as the page shows it."""

    id: str
    label: str
    called: str
    suspicion: float
    picture: Picture | None = None
    excerpt: str | None = None
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gallery:
    """Samples shown together; ``columns`` names the cells when they are rows of a table."""

    cards: tuple[Card, ...]
    total: int
    columns: tuple[str, ...] = ()
    n_more_columns: int = 0


@dataclass(frozen=True)
class GroupCard:
    """A judged group as the page shows it."""

    label: str
    called: str | None
    size: int
    removed: bool
    evidence: list[EvidenceLine]


def render(dataset: Dataset, result: Sanitization, *, record: Mapping[str, Any]) -> str:
    """The report as one HTML document below 3 MB that needs no other file.

    ``record`` is what goes into ``run.json`` (see :mod:`unpoison.outputs.record`), so that both say the same.
    The same input gives the same text.
    """
    removed = _most_suspicious(result, removed=True)
    kept = _most_suspicious(result, removed=False)
    by_class = _ranked_classes(record["result"]["by_class"])
    touched = [row for row in by_class if row["removed"]]
    untouched = [row for row in by_class if not row["removed"]]
    return _template().render(
        record=record,
        data=record["data"],
        found=record["result"],
        n_kept=len(dataset) - result.n_removed,
        n_touched=len(touched),
        n_untouched=len(untouched),
        clean_form=_FORMS.get(dataset.origin.form, dataset.origin.form),
        touched=touched[:MAX_CLASSES],
        untouched=untouched[:MAX_CLASSES],
        n_more_touched=max(0, len(touched) - MAX_CLASSES),
        groups=_group_cards(record["result"]["groups"]),
        n_more_groups=max(0, len(record["result"]["groups"]) - MAX_GROUPS),
        histogram=histogram(result.suspicion, result.keep),
        means=mean_panels(dataset, result),
        traits=_traits(dataset, result, removed[:MAX_REMOVED]),
        class_names=dataset.class_names,
        removed=_gallery(dataset, result, removed[:MAX_REMOVED], total=len(removed)),
        kept=_gallery(dataset, result, kept[:MAX_KEPT], total=len(kept)),
        facts=_facts(record),
        title_limit=text.TITLE_LIMIT,
    )


@cache
def _template() -> jinja2.Template:
    source = resources.files("unpoison.report").joinpath("page.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(
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
        duration=text.duration,
    )
    return environment.from_string(source)


def _finalize(value: Any) -> Any:
    """Every value on its way into the page; markup is the template's own and passes."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return text.neutral(value)
    return value


def _most_suspicious(result: Sanitization, *, removed: bool) -> IndexArray:
    """The removed or the kept samples, highest suspicion first, ties in the order of the dataset."""
    chosen = np.flatnonzero(~result.keep if removed else result.keep)
    order: IndexArray = chosen[np.argsort(-result.suspicion[chosen], kind="stable")]
    return order


def _ranked_classes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (-row["removed"], -row["samples"]))


def _group_cards(groups: list[dict[str, Any]]) -> list[GroupCard]:
    ranked = sorted(groups, key=lambda group: (not group["removed"], -group["size"]))
    return [
        GroupCard(
            label=group["label"],
            called=group["called"],
            size=group["size"],
            removed=group["removed"],
            evidence=explain(group["evidence"]),
        )
        for group in ranked[:MAX_GROUPS]
    ]


def _gallery(dataset: Dataset, result: Sanitization, indices: IndexArray, *, total: int) -> Gallery:
    previews = [_preview(dataset, int(index)) for index in indices]
    named = next((preview.columns for preview in previews if preview.columns), ())
    shown = tuple(name for name, _ in named[:MAX_COLUMNS])
    cards = tuple(
        _card(dataset, result, int(index), preview, columns=shown)
        for index, preview in zip(indices, previews, strict=True)
    )
    return Gallery(cards=cards, total=total, columns=shown, n_more_columns=len(named) - len(shown))


def _traits(dataset: Dataset, result: Sanitization, removed: IndexArray) -> list[Trait]:
    """What the removed rows or texts share; images have their averages instead."""
    if dataset.kind == "image" or not len(removed):
        return []
    references = []
    for classes in (dataset.labels[removed], result.predicted[removed]):
        alike = np.flatnonzero(result.keep & np.isin(dataset.labels, classes))
        step = max(1, len(alike) // MAX_REFERENCES)
        references.append([_preview(dataset, int(index)) for index in alike[::step][:MAX_REFERENCES]])
    return common_traits([_preview(dataset, int(index)) for index in removed], *references)


def _preview(dataset: Dataset, index: int) -> Preview:
    try:
        return dataset.origin.preview(index)
    except (OSError, UnpoisonError, ValueError):  # a sample that cannot be shown must not cost the report
        return Preview()


def _card(
    dataset: Dataset, result: Sanitization, index: int, preview: Preview, *, columns: tuple[str, ...]
) -> Card:
    called = int(result.predicted[index])
    return Card(
        id=dataset.ids[index],
        label=dataset.class_names[dataset.labels[index]],
        called=dataset.class_names[called] if called >= 0 else "no vote",
        suspicion=float(result.suspicion[index]),
        picture=picture(preview.image) if preview.image is not None else None,
        excerpt=text.excerpt(preview.text) if preview.text is not None else None,
        cells=tuple(value for _, value in (preview.columns or ())[: len(columns)]),
    )


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
        ("Passes trained", text.count(record["cost"]["trained"])),
        ("Passes scored", text.count(record["cost"]["scored"])),
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
