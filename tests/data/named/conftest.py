from __future__ import annotations

from pathlib import Path

import pytest

from unpoison.data.named import catalog

from .builders import SMALL


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of the test's own."""
    monkeypatch.setenv("UNPOISON_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def few(monkeypatch) -> None:
    """Every dataset with few samples and nowhere to get it from, so that no test reaches for the network."""
    for name, spec in SMALL.items():
        monkeypatch.setitem(catalog.CATALOG, name, spec)


@pytest.fixture
def written(tmp_path) -> Path:
    """A folder to convert into."""
    (tmp_path / "written").mkdir()
    return tmp_path / "written"
