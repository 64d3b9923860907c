"""imbalanced-learn takes ``IncompatibilityClustering`` as one of its samplers; no adapter stands between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from .builders import EXPECTED, labels, quick, rows

pipeline = pytest.importorskip("imblearn.pipeline", reason="imbalanced-learn is not installed")


def steps(*more: tuple[str, Any]) -> list[tuple[str, Any]]:
    return [("scale", StandardScaler()), ("clean", quick()), *more, ("model", LogisticRegression())]


def test_the_model_learns_from_what_is_kept_and_predicts_for_all() -> None:
    fitted = pipeline.Pipeline(steps()).fit(rows(), labels())
    scaled = StandardScaler().fit_transform(rows())
    expected = LogisticRegression().fit(scaled[EXPECTED], labels()[EXPECTED])
    assert np.allclose(fitted["model"].coef_, expected.coef_)
    assert np.array_equal(fitted["clean"].keep_, EXPECTED)
    assert fitted.predict(rows()).shape == (200,)


def test_before_one_of_their_own_samplers() -> None:
    from imblearn.under_sampling import RandomUnderSampler

    fitted = pipeline.Pipeline(steps(("balance", RandomUnderSampler(random_state=0)))).fit(rows(), labels())
    assert fitted.score(rows()[EXPECTED], labels()[EXPECTED]) == 1.0


def test_its_settings_are_searched_like_any_others() -> None:
    search = GridSearchCV(pipeline.Pipeline(steps()), {"clean__rounds": [1, 2]}, cv=2).fit(rows(), labels())
    assert search.best_params_["clean__rounds"] in (1, 2)


def test_in_a_pipeline_that_keeps_what_it_computed(tmp_path: Any) -> None:
    cached = pipeline.Pipeline(steps(), memory=str(tmp_path))
    first = cached.fit(rows(), labels())["model"].coef_
    assert np.array_equal(cached.fit(rows(), labels())["model"].coef_, first)
    assert np.array_equal(cached["clean"].keep_, EXPECTED)


def test_as_the_last_step() -> None:
    X, y = pipeline.Pipeline(steps()[:2]).fit_resample(rows(), labels())
    assert len(X) == len(y) == EXPECTED.sum()
