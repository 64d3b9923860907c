from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import numpy as np
import pytest

from unpoison.errors import MissingExtraError

from .builders import EXPECTED, WRONG, N, images, labels, quick, rows

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")  # read when datasets is imported
Datalab = pytest.importorskip(
    "cleanlab.datalab.datalab", reason="cleanlab with datasets, the extra 'cleanlab', is not installed"
).Datalab
pytest.importorskip("unpoison.adapters.cleanlab")


def lab(**columns: Any) -> Any:
    given = {"position": list(range(N)), "label": np.array(["cat", "dog"])[labels()].tolist(), **columns}
    return Datalab(given, label_name="label", verbosity=0)


def found(subject: Any, **settings: Any) -> Any:
    subject.find_issues(issue_types={"poison": settings})
    return subject.get_issues("poison")


@pytest.mark.parametrize("features", [rows, images], ids=["rows", "images"])
def test_poison_is_an_issue(features: Any) -> None:
    subject = lab()
    issues = found(subject, features=features(), cleaner=quick())
    assert issues.columns.tolist() == ["is_poison_issue", "poison_score"]
    assert np.array_equal(issues["is_poison_issue"], ~EXPECTED)
    assert set(issues["poison_score"].nsmallest(3).index) == set(WRONG.tolist())
    summary = subject.get_issue_summary("poison")
    assert summary["num_issues"].tolist() == [3]
    assert summary["score"].tolist() == [pytest.approx(EXPECTED.mean())]
    assert len(subject.get_info("poison")["predicted_label"]) == N


def test_the_report_tells_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    subject = lab()
    found(subject, features=rows(), cleaner=quick())
    subject.report(verbosity=1)
    printed = capsys.readouterr().out
    assert "poison issues" in printed
    assert "Number of examples with this issue: 3" in printed
    assert "Examples that look planted" in printed


def test_beside_their_own_issue_types() -> None:
    subject = lab()
    settings = {"outlier": {"features": rows()}, "poison": {"features": rows(), "cleaner": quick()}}
    subject.find_issues(issue_types=settings)
    assert {"is_outlier_issue", "is_poison_issue"} <= set(subject.get_issues().columns)


def test_sparse_features_and_a_fitted_cleaner() -> None:
    from scipy import sparse

    matrix = sparse.csr_matrix(rows())
    assert np.array_equal(found(lab(), features=matrix, cleaner=quick())["is_poison_issue"], ~EXPECTED)
    fitted = quick().fit(rows(), labels())
    assert np.array_equal(found(lab(), cleaner=fitted)["is_poison_issue"], ~EXPECTED)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "Error in poison: give the features too"),
        ({"features": rows()[:-1]}, "Error in poison: Found input variables with inconsistent"),
        ({"features": rows(), "cleaner": "logistic"}, "Error in poison: the cleaner must be"),
    ],
)
def test_what_is_wrong_is_printed(
    settings: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lab().find_issues(issue_types={"poison": {"cleaner": quick(), **settings}})
    assert message in capsys.readouterr().out


def test_labels_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    subject = Datalab({"position": list(range(N))}, verbosity=0)
    subject.find_issues(issue_types={"poison": {"features": rows()}})
    assert "Error in poison: looking for poison needs labels" in capsys.readouterr().out


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cleanlab.datalab.internal.issue_manager", None)
    monkeypatch.delitem(sys.modules, "unpoison.adapters.cleanlab")
    with pytest.raises(MissingExtraError, match=r"'cleanlab'.*unpoison\[cleanlab\]"):
        importlib.import_module("unpoison.adapters.cleanlab")
