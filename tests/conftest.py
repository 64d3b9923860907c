"""Real data beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def beside(name: str) -> Path:
    path = SHARED_DATA / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside the repository (../shared/data/{name})")
    return path


@pytest.fixture(scope="session")
def sms_spam() -> Path:
    return beside("sms_spam.tsv")


@pytest.fixture(scope="session")
def gtsrb_32() -> Path:
    return beside("gtsrb_32.npz")


@pytest.fixture(scope="session")
def imagenette_112() -> Path:
    return beside("imagenette_112.tar.xz")


@pytest.fixture(scope="session")
def authors_gtsrb_peace() -> Path:
    """What the authors' code makes of GTSRB with a peace sign on a tenth of class 1, labelled 2."""
    return beside("authors_gtsrb_peace.npz")


@pytest.fixture(scope="session")
def peace_sign() -> Path:
    return beside("triggers/peace.png")
