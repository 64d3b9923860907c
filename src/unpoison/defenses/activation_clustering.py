"""Activation Clustering (Chen et al., 2018), as the Adversarial Robustness Toolbox does it by default."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from unpoison.core.config import check_choice, check_counts
from unpoison.core.learner import LearnerFactory
from unpoison.core.tasks import Runner, Workshop, run_serially
from unpoison.defenses.activations import ClassVerdict, judge_by_activations
from unpoison.defenses.base import Decision
from unpoison.errors import InputError
from unpoison.events import Listener, ignore
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, FloatArray, LabelArray

STARTS = 10
"""Starts of k-means: scikit-learn's default when the paper used the toolbox 1.6.2; today's is one."""
SMALL_SHARE = 0.35
"""``relative-size``: the toolbox calls a cluster poisoned below this share of its class, to two decimals."""


@dataclass(frozen=True)
class ActivationClustering:
    """Splits every class in clusters of activations and removes the smallest one, whatever its size.

    The defaults are those of the Adversarial Robustness Toolbox: ten principal components where there are
    more activations than that, k-means with two clusters. With ``rule="relative-size"`` a cluster is removed
    only if it has less than 35% of the class.
    """

    name: ClassVar[str] = "activation-clustering"

    n_clusters: int = 2
    n_components: int = 10
    _: KW_ONLY
    reducer: Literal["pca", "fastica"] = "pca"
    rule: Literal["smaller", "relative-size"] = "smaller"
    layer: str | None = None
    """The module whose input is looked at; None leaves it to the learner (``activations``)."""
    epochs: int = 100
    """Of the model that is looked into; the appendix trains final models for 100."""
    min_steps: int = 0

    def __post_init__(self) -> None:
        check_counts(self, "n_clusters", least=2)
        check_counts(self, "n_components", "epochs", least=1)
        check_counts(self, "min_steps", least=0)
        check_choice(self, "reducer", ("pca", "fastica"))
        check_choice(self, "rule", ("smaller", "relative-size"))
        if self.rule == "relative-size" and self.n_clusters != 2:
            raise InputError(
                "The 'n_clusters' parameter of ActivationClustering must be 2 for the rule 'relative-size'. "
                f"Got {self.n_clusters} instead."
            )

    def judge(
        self,
        labels: LabelArray,
        factory: LearnerFactory,
        *,
        seed: int,
        runner: Runner = run_serially,
        listener: Listener = ignore,
    ) -> Decision:
        """Train on everything, then split each class and remove a part."""
        workshop = Workshop(runner=runner, listener=listener)
        seeds = Seeds(seed).within(self.name)
        return judge_by_activations(self, labels, factory, seeds=seeds, workshop=workshop)

    def judge_class(self, activations: FloatArray, *, seeds: Seeds) -> ClassVerdict:
        """A class whose activations do not make as many clusters as asked for is kept whole."""
        from sklearn.cluster import KMeans

        n = len(activations)
        whole = ClassVerdict(np.zeros(n, dtype=np.bool_), np.zeros(n), np.zeros(n, dtype=np.int64))
        if (activations == activations[0]).all():
            return whole
        reduced = self._reduced(activations, seeds)
        if len(np.unique(reduced, axis=0)) < self.n_clusters:
            return whole
        clustering = KMeans(self.n_clusters, n_init=STARTS, random_state=seeds.integer("k-means"))
        with _quietly():
            groups = clustering.fit_predict(reduced).astype(np.int64)
        sizes = np.bincount(groups, minlength=self.n_clusters)
        smallest = np.arange(self.n_clusters) == sizes.argmin()
        suspected = _nearness(clustering.transform(reduced), smallest)
        if self.rule == "relative-size" and not round(sizes.min() / n, 2) < SMALL_SHARE:
            return ClassVerdict(whole.removed, 0.5 * suspected, groups)
        return ClassVerdict(smallest[groups], suspected, groups)

    def _reduced(self, activations: FloatArray, seeds: Seeds) -> FloatArray:
        from sklearn.decomposition import PCA, FastICA

        n, width = activations.shape
        if width <= self.n_components:
            return activations
        seed = seeds.integer("reducer")
        principal: FloatArray = PCA(min(self.n_components, n), random_state=seed).fit_transform(activations)
        if self.reducer == "pca":
            return principal
        # FastICA's own whitening gives NaN where the first activation is always 0, as rectified ones can be
        spread = principal.std(axis=0)
        varied = spread > 1e-9 * spread.max()
        separation = FastICA(whiten=False, max_iter=1000, tol=0.005, random_state=seed)
        with _quietly():
            result: FloatArray = separation.fit_transform(principal[:, varied] / spread[varied])
        return result


def _nearness(distances: FloatArray, suspected: BoolArray) -> FloatArray:
    """0..1: how much nearer a sample is to a suspected centre than to another; one half between them."""
    other, own = distances[:, ~suspected].min(axis=1), distances[:, suspected].min(axis=1)
    total = own + other
    result: FloatArray = other / np.where(total > 0.0, total, 1.0)
    return result


def _quietly() -> Any:
    """Fewer clusters than asked for, or components not yet independent, are answers like others."""
    from sklearn.exceptions import ConvergenceWarning

    return warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
