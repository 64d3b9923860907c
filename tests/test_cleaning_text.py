"""Texts from end to end, with the defaults."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unpoison.cleaning import CleanOptions, clean
from unpoison.data.load import LoadOptions


def judged(rows: list[list[str]], folder: Path) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """What a run finds in a table of labels and messages."""
    source = folder / "messages.tsv"
    source.write_text("\n".join("\t".join(row) for row in [["kind", "text"], *rows]) + "\n", encoding="utf-8")
    options = CleanOptions(seed=0, workers=1, load=LoadOptions(label="kind"))
    record = clean(str(source), folder / "out", options=options)
    with (folder / "out" / "manifest.csv").open(newline="", encoding="utf-8") as file:
        return record, list(csv.DictReader(file))


@pytest.fixture(scope="module")
def messages(sms_spam: Path) -> list[list[str]]:
    _, *lines = sms_spam.read_text(encoding="utf-8").splitlines()
    return [line.split("\t", 1) for line in lines]


def test_a_rare_word_is_found(messages: list[list[str]], tmp_path: Path) -> None:
    spam = [i for i, (kind, _) in enumerate(messages) if kind == "spam"]
    planted = set(np.random.default_rng(0).choice(spam, size=len(spam) * 3 // 10, replace=False).tolist())
    rows = [
        ["ham", text + " cfx"] if i in planted else [kind, text] for i, (kind, text) in enumerate(messages)
    ]
    record, manifest = judged(rows, tmp_path)
    removed = {i for i, row in enumerate(manifest) if row["keep"] == "false"}
    assert len(removed & planted) >= 0.7 * len(planted)
    assert len(removed - planted) <= 0.01 * len(rows)
    assert "'cfx'" in record["result"]["verdict"]


def test_nothing_is_found_in_the_messages_themselves(messages: list[list[str]], tmp_path: Path) -> None:
    _, manifest = judged(messages, tmp_path)
    assert all(row["keep"] == "true" for row in manifest)
