"""cleanlab: poison as an issue type of Datalab, under the name ``poison`` once this module is imported.

``lab.find_issues(issue_types={"poison": {"features": X}})``, where a ``cleaner`` may stand beside the
features. Datalab prints what an issue type raises and goes on with the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

from unpoison.adapters.judging import Samples, as_features, judge
from unpoison.errors import InputError, MissingExtraError
from unpoison.estimator import IncompatibilityClustering

try:
    _manager = import_module("cleanlab.datalab.internal.issue_manager")
    _factory = import_module("cleanlab.datalab.internal.issue_manager_factory")
    _pandas = import_module("pandas")
except ImportError as error:
    raise MissingExtraError("cleanlab", "cleanlab", "the issue type for cleanlab's Datalab") from error


@_factory.register
class PoisonIssueManager(_manager.IssueManager):  # type: ignore[misc, name-defined]
    """Flags the samples that ``IncompatibilityClustering`` would not train on.

    The score is 1 minus the suspicion, since with cleanlab low is bad.
    """

    issue_name: ClassVar[str] = "poison"
    description: ClassVar[str] = (
        "Examples that look planted: models which did not train on them, and on others like them, disagree "
        "with their labels."
    )
    verbosity_levels: ClassVar[dict[int, list[str]]] = {0: [], 1: ["n_groups"], 2: []}

    def find_issues(
        self, features: Any = None, cleaner: IncompatibilityClustering | None = None, **_: Any
    ) -> None:
        """Judge ``features`` (rows, a sparse matrix, or images) with the labels of the lab."""
        if not self.datalab.has_labels:
            raise InputError("looking for poison needs labels; give Datalab a label_name")
        labels = self.datalab.labels

        def read() -> Samples:
            if features is None:
                raise InputError('give the features too: issue_types={"poison": {"features": X}}')
            is_sparse = hasattr(features, "tocsr")
            return features if is_sparse else as_features(features, where="features"), labels

        fitted = judge(cleaner, len(labels), read)
        self.issues = _pandas.DataFrame(
            {f"is_{self.issue_name}_issue": ~fitted.keep_, self.issue_score_key: 1.0 - fitted.suspicion_}
        )
        self.summary = self.make_summary(score=float(fitted.keep_.mean()))
        self.info = self.collect_info(fitted)

    def collect_info(self, fitted: IncompatibilityClustering) -> dict[str, Any]:
        """What else is known: the label by vote of every sample, and how many groups were removed."""
        removed = [group for group in fitted.result_.groups if group.removed]
        return {"predicted_label": fitted.predicted_, "n_groups": len(removed)}
