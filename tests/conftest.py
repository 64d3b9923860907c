"""Real data beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def sms_spam() -> Path:
    path = SHARED_DATA / "sms_spam.tsv"
    if not path.is_file():
        pytest.skip("the SMS Spam Collection is not beside the repository (../shared/data/sms_spam.tsv)")
    return path
