"""What comes after a run: taking people's decisions into its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unpoison.data.container import Dataset
from unpoison.data.load import LoadOptions, load
from unpoison.errors import InputError
from unpoison.events import Listener, Progress, ignore
from unpoison.outputs import place
from unpoison.outputs.bundle import finish_review, rewrite
from unpoison.outputs.manifest import check_reviewer
from unpoison.outputs.overrides import Overrides, read_overrides
from unpoison.outputs.record import read_record, reviewed
from unpoison.outputs.stored import Stored, read_stored
from unpoison.report.review import Review
from unpoison.report.text import printable


def apply(
    directory: Path,
    overrides: Path,
    *,
    source: str | None = None,
    by: str | None = None,
    listener: Listener = ignore,
) -> dict[str, Any]:
    """Decide as ``overrides`` says, and write the results in ``directory`` anew; return their ``run.json``.

    A sample that the overrides do not name stays as it is, decided by the run or by an earlier review. The
    data is read again from where the run read it, or from ``source``. ``by`` is who decided, for the record.

    Raises:
        UnpoisonError: Something does not fit together. Then nothing was changed.
    """
    if by is not None:
        check_reviewer(by)
    place.check_folder(directory)
    finish_review(directory)
    stored = read_stored(directory)
    decisions = read_overrides(overrides)
    review = _decided(stored, decisions, by=by, name=place.show(overrides))
    listener(Progress("reading the data", 0, 1))
    dataset = _read_again(stored, source)
    listener(Progress("reading the data", 1, 1))
    listener(Progress("writing the results", 0, 1))
    result = stored.result
    facts = reviewed(stored.record, dataset, result, review=review, overrides=decisions, by=by)
    rewrite(dataset, result, directory, facts=facts, review=review)
    listener(Progress("writing the results", 1, 1))
    return read_record(directory)


def _decided(stored: Stored, overrides: Overrides, *, by: str | None, name: str) -> Review:
    """The decisions so far, changed by the overrides."""
    fingerprint = stored.record["data"]["fingerprint"]
    if overrides.fingerprint != fingerprint:
        raise InputError(
            f"{name}: is for data with the fingerprint {printable(overrides.fingerprint, 20)}, but these "
            f"results are of {printable(str(fingerprint), 20)}; use overrides saved from this run's report"
        )
    position = {sample: index for index, sample in enumerate(stored.ids)}
    unknown = sorted((overrides.keep | overrides.remove) - set(position))
    if unknown:
        raise InputError(
            f"{name}: names {len(unknown):,} ids that these results do not have, the first "
            f"'{printable(unknown[0])}'; nothing was changed"
        )
    before = stored.review
    keep, decided, names = before.keep.copy(), before.decided.copy(), dict(before.by)
    for ids, kept in ((overrides.keep, True), (overrides.remove, False)):
        chosen = np.array([position[sample] for sample in ids], dtype=np.int64)
        keep[chosen] = kept
        decided[chosen] = True
        for index in chosen.tolist():
            names.pop(index, None)
            if by is not None:
                names[index] = by
    return Review(keep, decided, names)


def _read_again(stored: Stored, source: str | None) -> Dataset:
    """The data of the run, from where it lies now."""
    recorded = stored.record.get("source") or {}
    where = source or recorded.get("place")
    if not where:
        raise InputError("run.json does not say where the data was read from; name it with --source")
    moved = "if the data was moved, say where it is with --source"
    try:
        options = LoadOptions(**stored.record["input"], link=not recorded.get("copy", False))
        dataset = load(where, options=options)
    except (InputError, TypeError) as error:  # TypeError: run.json names options that there are not
        raise InputError(f"the data cannot be read again: {error}; {moved}") from error
    data = stored.record["data"]
    if dataset.fingerprint != data["fingerprint"] or dataset.origin.form != data["form"]:
        raise InputError(
            f"{printable(str(where), 300)}: is not the data of this run any more (its fingerprint is "
            f"{dataset.fingerprint[:12]}..., that of the run {str(data['fingerprint'])[:12]}...); "
            f"put it back as it was, or {moved}"
        )
    return dataset
