"""What experiments rely on, for every defense."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from unpoison.core.tasks import Task
from unpoison.defenses.activation_clustering import ActivationClustering
from unpoison.defenses.base import Decision, Defense
from unpoison.defenses.confident_learning import ConfidentLearning
from unpoison.defenses.controls import Given, Nothing, RandomFilter
from unpoison.defenses.incompatibility import Incompatibility
from unpoison.defenses.spectral import SpectralSignatures
from unpoison.defenses.trimmed_loss import TrimmedLoss
from unpoison.events import Progress
from unpoison.learners.sklearn import SklearnFactory
from unpoison.types import Arrays

N = 243
FEW_ROUNDS = {
    "rounds": 2, "restarts": 1, "first_epochs": 2, "epochs": 1, "weak_epochs": 2, "min_steps": 0,
    "weak_min_steps": 0, "self_training_updates": 2, "self_training_interval": 1,
}  # fmt: skip

DEFENSES: dict[str, Defense] = {
    "nothing": Nothing(),
    "random": RandomFilter(40),
    "given": Given(np.arange(N) % 7 > 0),
    "spectral": SpectralSignatures(epochs=3),
    "spectral-uncentred": SpectralSignatures(0.3, centred=False, epochs=3),
    "clustering": ActivationClustering(epochs=3),
    "clustering-fastica": ActivationClustering(n_components=3, epochs=3, reducer="fastica"),
    "clustering-relative": ActivationClustering(epochs=3, rule="relative-size"),
    "confident-learning": ConfidentLearning(3, epochs=3),
    "trimmed-loss": TrimmedLoss(0.9, first_epochs=3, later_epochs=2, rounds=2),
    "ispl": Incompatibility("ispl", changes=FEW_ROUNDS),
    "ispl-authors": Incompatibility("ispl", "authors-cifar10", changes=FEW_ROUNDS),
    "groups": Incompatibility("groups", changes={"epochs": 2, "judge_epochs": 2, "min_steps": 0, "met": 2.0}),
}
CONTROLS = ("nothing", "random", "given")


def some_digits() -> tuple[Any, Any]:
    """Three classes of 80, one of two samples and one of a single one; read-only."""
    images, labels = load_digits(return_X_y=True)
    sizes = {0: 80, 1: 80, 2: 80, 3: 2, 4: 1}
    chosen = np.concatenate([np.flatnonzero(labels == label)[:size] for label, size in sizes.items()])
    chosen = np.random.default_rng(0).permutation(chosen)
    rows, labels = images[chosen] / 16.0, labels[chosen].astype(np.int64)
    rows.flags.writeable = labels.flags.writeable = False
    return rows, labels


ROWS, LABELS = some_digits()


@pytest.fixture(params=DEFENSES)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    with threadpool_limits(limits=1):
        yield request.param


def mlp() -> SklearnFactory:
    estimator = MLPClassifier((16,), batch_size=32, learning_rate_init=0.01)
    return SklearnFactory(estimator, ROWS, LABELS, 5)


def judged(name: str, factory: SklearnFactory | None = None, *, seed: int = 1, **options: Any) -> Decision:
    return DEFENSES[name].judge(LABELS, factory or mlp(), seed=seed, **options)


def check_sound(decision: Decision) -> None:
    assert decision.keep.shape == decision.suspicion.shape == (N,)
    assert decision.keep.dtype == np.bool_
    assert decision.suspicion.dtype == np.float64
    assert np.isfinite(decision.suspicion).all()
    assert ((decision.suspicion >= 0) & (decision.suspicion <= 1)).all()
    if decision.components is not None:
        assert decision.components.ndim == 2
        assert decision.components.shape[1] == N
        assert decision.components.dtype == np.int64
        assert decision.components.min() >= -1


def same(left: Decision, right: Decision) -> bool:
    return (
        np.array_equal(left.keep, right.keep)
        and np.array_equal(left.suspicion, right.suspicion)
        and left.cost == right.cost
        and (left.components is None) == (right.components is None)
        and (left.components is None or np.array_equal(left.components, right.components))
    )


def test_it_decides_about_every_sample(name: str) -> None:
    decision = judged(name)
    check_sound(decision)
    assert isinstance(DEFENSES[name].name, str)
    if decision.n_removed:
        suspicion = decision.suspicion
        assert suspicion[~decision.keep].mean() > suspicion[decision.keep].mean()


def test_it_removes_what_its_settings_say(name: str) -> None:
    decision = judged(name)
    removed = np.bincount(LABELS[~decision.keep], minlength=5)
    if name == "nothing":
        assert removed.sum() == 0
    elif name == "random":
        assert removed.sum() == 40
    elif name == "trimmed-loss":
        assert removed.sum() == N - int(0.9 * N)
    elif name == "spectral":
        assert removed.tolist() == [16, 16, 16, 1, 0]
    elif name == "spectral-uncentred":
        assert removed.tolist() == [24, 24, 24, 1, 0]
    elif name.startswith("clustering") and name != "clustering-relative":
        assert all(1 <= count <= 40 for count in removed[:3])
        assert removed[3:].tolist() == [1, 0]


def test_the_same_seed_gives_the_same_bits(name: str) -> None:
    state = np.random.get_state()[1].copy()  # type: ignore[index,union-attr]
    assert same(judged(name), judged(name))
    assert np.array_equal(state, np.random.get_state()[1])  # type: ignore[index]


def test_where_and_in_which_order_tasks_run_changes_nothing(name: str) -> None:
    def elsewhere(tasks: Mapping[str, Task]) -> Iterator[tuple[str, Arrays]]:
        for key in reversed(list(tasks)):
            yield key, pickle.loads(pickle.dumps(tasks[key]))()  # noqa: S301

    assert same(judged(name), judged(name, runner=elsewhere))


def test_costs_are_counted_and_progress_is_told(name: str) -> None:
    told: list[Progress] = []
    decision = judged(name, listener=told.append)
    if name in CONTROLS:
        assert decision.cost.trained == decision.cost.scored == 0
    else:
        assert decision.cost.trained >= N
        assert decision.cost.scored > 0
        assert (told[-1].done, told[0].done) == (told[-1].total, 0)


def test_samples_that_are_all_alike(name: str) -> None:
    """Nothing to see, nothing to learn, and no warning."""
    constant = SklearnFactory(LogisticRegression(max_iter=20), np.full((N, 6), 0.1), LABELS, 5)
    decision = judged(name, constant)
    check_sound(decision)
    assert same(decision, judged(name, constant))


def test_settings_stay_as_they_were_made(name: str) -> None:
    for field in vars(DEFENSES[name]):
        with pytest.raises(AttributeError):
            setattr(DEFENSES[name], field, None)
