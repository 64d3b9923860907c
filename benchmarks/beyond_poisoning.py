"""Two sources with conflicting labels in one set, without an attacker: are they told apart?

    python benchmarks/beyond_poisoning.py [--seeds 10] [--first-seed 100]

Four mixtures of real images (``unpoison data fetch fashion-mnist`` for the last):

- conventions: digits, a quarter of them labelled by another convention, one higher (a nine is a 0)
- even conventions: the same, but 45% of them
- class noise: digits, of five classes a share of its own (15 to 35%) carries the label of a look-alike
- subpopulation: Fashion-MNIST, footwear and clothes, where all sandals are filed under clothes

Score: the adjusted Rand index between the two sources and the parts that a method makes of the set; 1 is
perfect, 0 is chance. Nothing is told how large the second source is.

- ours: components; components merged by the vote on components (Algorithm 2, ISPL only); samples whose voted
  label is not theirs; samples removed. All with the defaults and the learner "logistic".
- cleanlab: label issues with its defaults, from 5-fold out-of-fold probabilities of the same learner.
- k-means and Gaussian mixtures on 20 principal components of the images: two clusters of everything, with or
  without one-hot labels of the same variance, or two within each label, the smaller being the second source.

First, per mixture, whether the sources are incompatible (``unpoison.core.expansion``), in both directions.
Seeds 0 to 2 were used to choose (docs/beyond_poisoning.md); the reported ones start at 100. The last line is
JSON.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from cleanlab.filter import find_label_issues
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from unpoison import IncompatibilityClustering
from unpoison.core.expansion import compatibility_matrix
from unpoison.data.load import load
from unpoison.learners.choose import meant
from unpoison.learners.defaults import named_estimator
from unpoison.learners.features import as_matrix
from unpoison.seeds import Seeds
from unpoison.types import BoolArray, FloatArray, LabelArray

LEARNER = "logistic"
LOOK_ALIKES = {1: (8, 0.25), 3: (9, 0.35), 4: (7, 0.15), 5: (9, 0.2), 8: (1, 0.3)}
"""What a class is taken for, and how often."""
FOOTWEAR, SANDALS, BAGS = (5, 7, 9), 5, 8
FASHION_SIZE = 3000
N_COMPONENTS = 20


@dataclass(frozen=True)
class Mixture:
    """Images, the labels that a user would be given, and the truth: who is from the second source."""

    images: NDArray[np.uint8]
    labels: LabelArray
    second: BoolArray


def conventions(rng: np.random.Generator, *, share: float) -> Mixture:
    digits = load("digits")
    second = rng.random(len(digits)) < share
    return Mixture(digits.features, np.where(second, (digits.labels + 1) % 10, digits.labels), second)


def class_noise(rng: np.random.Generator) -> Mixture:
    digits = load("digits")
    labels = digits.labels.copy()
    for label, (taken_for, share) in LOOK_ALIKES.items():
        labels[(digits.labels == label) & (rng.random(len(labels)) < share)] = taken_for
    return Mixture(digits.features, labels, labels != digits.labels)


def subpopulation(rng: np.random.Generator) -> Mixture:
    fashion = load("fashion-mnist")
    usable = np.flatnonzero(fashion.labels != BAGS)
    chosen = np.sort(rng.choice(usable, size=FASHION_SIZE, replace=False))
    kinds = fashion.labels[chosen]
    second = kinds == SANDALS
    labels = (np.isin(kinds, FOOTWEAR) & ~second).astype(np.int64)
    return Mixture(fashion.features[chosen], labels, second)


MIXTURES: dict[str, Callable[[np.random.Generator], Mixture]] = {
    "conventions": lambda rng: conventions(rng, share=0.25),
    "even conventions": lambda rng: conventions(rng, share=0.45),
    "class noise": class_noise,
    "subpopulation": subpopulation,
}


def groups(mixture: Mixture, seed: int) -> dict[str, Any]:
    fitted = _ours(mixture, seed, method="groups")
    return {
        "groups: judged": fitted.labels_ > 0,
        "groups: vote": fitted.predicted_ != mixture.labels,
        "groups: removed": ~fitted.keep_,
    }


def ispl(mixture: Mixture, seed: int) -> dict[str, Any]:
    fitted = _ours(mixture, seed, method="ispl")
    merged = _ours(mixture, seed, method="ispl", keep_rule="component", self_training=False)
    return {
        "ispl: components": fitted.labels_,
        "ispl: components, merged": merged.keep_,
        "ispl: vote": fitted.predicted_ != mixture.labels,
        "ispl: removed": ~fitted.keep_,
    }


def _ours(mixture: Mixture, seed: int, **settings: Any) -> IncompatibilityClustering:
    return IncompatibilityClustering(LEARNER, random_state=seed, **settings).fit(
        mixture.images, mixture.labels
    )


def label_issues(mixture: Mixture, seed: int) -> dict[str, Any]:
    model = named_estimator(LEARNER).set_params(random_state=seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the learner's budget is meant
        probabilities = cross_val_predict(
            model, as_matrix(mixture.images), mixture.labels, cv=folds, method="predict_proba"
        )
    return {"cleanlab": find_label_issues(mixture.labels, probabilities, n_jobs=1)}


def clusters(mixture: Mixture, seed: int) -> dict[str, Any]:
    """k-means and Gaussian mixtures: of all images, with their labels, and within each label."""
    images = PCA(N_COMPONENTS, random_state=seed).fit_transform(as_matrix(mixture.images))
    images /= np.sqrt(images.var(axis=0).sum())
    one_hot = np.eye(int(mixture.labels.max()) + 1)[mixture.labels]
    one_hot /= np.sqrt(one_hot.var(axis=0).sum())
    makers: dict[str, Callable[[], Any]] = {
        "k-means": lambda: KMeans(2, n_init=10, random_state=seed),
        "Gaussian mixture": lambda: GaussianMixture(2, n_init=3, reg_covar=1e-4, random_state=seed),
    }
    parts: dict[str, Any] = {}
    for name, make in makers.items():
        parts[f"{name}, images"] = make().fit_predict(images)
        parts[f"{name}, images and labels"] = make().fit_predict(np.hstack([images, one_hot]))
        parts[f"{name}, within labels"] = _smaller_within(images, mixture.labels, make)
    return parts


def _smaller_within(images: FloatArray, labels: LabelArray, make: Callable[[], Any]) -> BoolArray:
    smaller = np.zeros(len(labels), dtype=np.bool_)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        side = make().fit_predict(images[members]) == 1
        smaller[members] = side if 2 * side.sum() <= len(side) else ~side
    return smaller


METHODS = (groups, ispl, label_issues, clusters)


def measure(mixture: Mixture, seed: int) -> dict[str, tuple[float, float]]:
    """Score and seconds of every method."""
    scores: dict[str, tuple[float, float]] = {}
    for method in METHODS:
        started = time.process_time()
        parts = method(mixture, seed)
        seconds = time.process_time() - started
        for name, part in parts.items():
            scores[name] = float(adjusted_rand_score(mixture.second, part)), seconds
    return scores


def premise(mixture: Mixture, seed: int) -> str:
    """What each source does for the other."""
    labels = mixture.labels
    chosen = meant(LEARNER, mixture.images, labels, n_classes=int(labels.max()) + 1)
    sources = {"first": np.flatnonzero(~mixture.second), "second": np.flatnonzero(mixture.second)}
    found = compatibility_matrix(labels, chosen.factory, sources, seed=seed)
    return "; ".join(
        f"{of} given {given}: {pair.decision} ({pair.alone.mean:.3f} to {pair.given.mean:.3f})"
        for (of, given), pair in found.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=100)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    started = time.process_time()
    summary: dict[str, dict[str, dict[str, float]]] = {}
    for name, make in MIXTURES.items():
        mixtures = [make(Seeds(seed).stream(name)) for seed in seeds]
        print(f"{name}: {premise(mixtures[0], seeds[0])}")
        runs = [measure(mixture, seed) for mixture, seed in zip(mixtures, seeds, strict=True)]
        summary[name] = {method: summarize([run[method] for run in runs]) for method in runs[0]}
        for method, row in summary[name].items():
            print(
                f"  {method:36} {row['median']:6.3f} ({row['least']:.3f} to {row['most']:.3f}) "
                f"{row['seconds']:6.1f} s",
                flush=True,
            )
    print(
        json.dumps(
            {
                "seeds": [*seeds],
                "adjusted_rand_index": summary,
                "cpu_seconds": round(time.process_time() - started),
            }
        )
    )


def summarize(scores: list[tuple[float, float]]) -> dict[str, float]:
    values = [score for score, _ in scores]
    return {
        "median": round(float(np.median(values)), 3),
        "least": round(min(values), 3),
        "most": round(max(values), 3),
        "seconds": round(float(np.mean([seconds for _, seconds in scores])), 1),
    }


if __name__ == "__main__":
    main()
