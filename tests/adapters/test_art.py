from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import numpy as np
import pytest

from unpoison.errors import InputError, MissingExtraError

from .builders import EXPECTED, WRONG, N, images, labels, quick, rows


@pytest.fixture(scope="module")
def art(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Our adapter; ART writes a configuration into the home folder when imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        pytest.importorskip("art", reason="the extra 'art' is not installed")
        return importlib.import_module("unpoison.adapters.art")


@pytest.fixture(scope="module")
def classifier(art: Any) -> Any:
    """A classifier of ART, as its users have one: torch, channels first."""
    torch = pytest.importorskip("torch")
    from art.estimators.classification import PyTorchClassifier

    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 3, 2))
    return PyTorchClassifier(model, torch.nn.CrossEntropyLoss(), (3, 8, 8), 2)


def channels_first() -> Any:
    return np.moveaxis(images(), -1, 1).astype(np.float32) / 255


@pytest.mark.parametrize(
    "y", [labels(), labels()[:, None], np.eye(2)[labels()]], ids=["numbers", "column", "one-hot"]
)
def test_poison_is_detected(art: Any, classifier: Any, y: Any) -> None:
    defence = art.IncompatibilityDefence(classifier, channels_first(), y, cleaner=quick())
    report, is_clean = defence.detect_poison()
    assert is_clean == EXPECTED.astype(int).tolist()
    assert sorted(report) == WRONG.tolist()
    assert all(type(score) is float and score > 0.5 for score in report.values())
    assert defence.fitted_.predicted_[WRONG].tolist() == (1 - labels()[WRONG]).tolist()


def test_it_is_one_of_their_defences(art: Any, classifier: Any) -> None:
    from art.defences.detector.poison import PoisonFilteringDefence, SpectralSignatureDefense

    defence = art.IncompatibilityDefence(classifier, channels_first(), labels())
    theirs = SpectralSignatureDefense(classifier, channels_first(), np.eye(2)[labels()])
    assert isinstance(defence, PoisonFilteringDefence)
    assert set(defence.get_params()) == {"classifier", "x_train", "y_train", "cleaner"}
    report, is_clean = theirs.detect_poison()
    defence.cleaner = quick()
    assert [type(part) for part in defence.detect_poison()] == [type(report), type(is_clean)]


def test_the_evaluation_is_theirs(art: Any, classifier: Any) -> None:
    truth = EXPECTED.astype(int)
    truth[[0, 3]] = 0, 1  # one planted sample that is missed, and one clean one that is not
    defence = art.IncompatibilityDefence(classifier, channels_first(), np.eye(2)[labels()], cleaner=quick())
    matrix = json.loads(defence.evaluate_defence(truth))
    assert sorted(matrix) == ["class_0", "class_1"]
    by_class = [{name: cell["numerator"] for name, cell in matrix[f"class_{c}"].items()} for c in (0, 1)]
    total = {name: sum(part[name] for part in by_class) for name in by_class[0]}
    assert total == {"TruePositive": 2, "TrueNegative": N - 4, "FalsePositive": 1, "FalseNegative": 1}
    of_class_0 = labels() == 0
    assert by_class[0]["FalseNegative"] == int(of_class_0[0])
    assert by_class[0]["FalsePositive"] == int(of_class_0[3])


def test_it_is_judged_once_until_something_changes(
    art: Any, classifier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    defence = art.IncompatibilityDefence(classifier, rows(), labels(), cleaner=quick())
    defence.detect_poison()
    first = defence.fitted_
    defence.evaluate_defence(EXPECTED)
    assert defence.fitted_ is first
    defence.evaluate_defence(EXPECTED[:100], x_train=rows()[:100], y_train=labels()[:100])
    assert len(defence.fitted_.keep_) == 100


def test_rows_without_a_classifier_and_a_fitted_cleaner(art: Any) -> None:
    cleaner = quick().fit(rows(), labels())
    defence = art.IncompatibilityDefence(None, rows(), labels(), cleaner)
    assert defence.detect_poison()[1] == EXPECTED.astype(int).tolist()
    assert defence.fitted_ is cleaner


@pytest.mark.parametrize(
    ("y", "truth", "message"),
    [
        (labels()[:-1], EXPECTED, r"y_train has shape \(199,\) for 200 samples"),
        (np.zeros((N, 2, 2)), EXPECTED, r"y_train has shape \(200, 2, 2\)"),
        (labels(), EXPECTED[:-1], r"is_clean must have one number for each of 200 samples, got \(199,\)"),
        (labels(), None, "is_clean must have one number"),
    ],
)
def test_bad_arguments_are_named(art: Any, y: Any, truth: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        art.IncompatibilityDefence(None, rows(), y, quick()).evaluate_defence(truth)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "art.defences.detector.poison", None)
    monkeypatch.delitem(sys.modules, "unpoison.adapters.art", raising=False)
    with pytest.raises(MissingExtraError, match=r"adversarial-robustness-toolbox.*unpoison\[art\]"):
        importlib.import_module("unpoison.adapters.art")
