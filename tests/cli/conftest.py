"""Runs that are about what surrounds the method, not about what it finds."""

from __future__ import annotations

from typing import Any

import pytest

from unpoison.core.config import Settings
from unpoison.core.presets import settings_for


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """``clean`` in this process with a few models only."""

    def fewer_models(labels: Any, **options: Any) -> Settings:
        small = {"pairs": 1} if options["method"] == "groups" else {}
        return settings_for(labels, **options, **small)

    monkeypatch.setattr("unpoison.cleaning.settings_for", fewer_models)
