from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from core.fakes import CentroidFactory, two_blobs
from core.test_out_of_subset import World
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import AUTHORS_GTSRB, PAPER_CIFAR10, PAPER_GTSRB, settings_for
from unpoison.defenses.incompatibility import Incompatibility
from unpoison.errors import InputError
from unpoison.learners.sklearn import SklearnFactory

ROWS, LABELS = two_blobs(40)
FACTORY = CentroidFactory(ROWS, LABELS)
FEW = {
    "ispl": {"rounds": 2, "restarts": 2, "self_training_updates": 1},
    "out-of-subset": {"models": 4, "judges": 2},
}


@pytest.mark.parametrize("method", ["ispl", "out-of-subset"])
def test_it_decides_as_the_pipeline_does(method: str) -> None:
    defense = Incompatibility(method, changes=FEW[method])
    decision = defense.judge(LABELS, FACTORY, seed=5)
    settings = settings_for(LABELS, method=method, networks=True, **FEW[method])  # type: ignore[arg-type]
    expected = sanitize(LABELS, FACTORY, settings, seed=5)
    assert np.array_equal(decision.keep, expected.keep)
    assert np.array_equal(decision.suspicion, expected.suspicion)
    assert decision.cost == expected.cost
    assert decision.components is not None
    assert np.array_equal(decision.components, expected.components)
    assert decision.groups == (), "those of ispl are what was removed of each class, not what was judged"


def test_what_was_judged_together_is_counted_as_in_the_components() -> None:
    world = World()
    defense = Incompatibility("out-of-subset", changes={"alpha_low": 0.05, "alpha_high": 0.2})
    decision = defense.judge(world.labels, world, seed=0)
    assert decision.components is not None
    assert [group.size for group in decision.groups] == np.bincount(decision.components[0])[1:].tolist()
    assert [group.removed for group in decision.groups] == [True]


@pytest.mark.parametrize(
    ("preset", "expected"),
    [("paper-cifar10", PAPER_CIFAR10), ("paper-gtsrb", PAPER_GTSRB), ("authors-gtsrb", AUTHORS_GTSRB)],
)
def test_the_named_settings(preset: str, expected: Any) -> None:
    assert Incompatibility(preset=preset).settings(LABELS, FACTORY) == expected
    assert Incompatibility(preset=preset, changes={"restarts": 1}).settings(LABELS, FACTORY).restarts == 1


@pytest.mark.parametrize("method", ["ispl", "out-of-subset"])
def test_auto_knows_networks_from_plain_classifiers(method: str) -> None:
    plain = SklearnFactory(LogisticRegression(), ROWS, LABELS, 2)
    for_plain, for_networks = (
        settings_for(LABELS, method=method, networks=is_one) for is_one in (False, True)
    )
    assert for_plain != for_networks
    assert Incompatibility(method).settings(LABELS, plain) == for_plain
    assert Incompatibility(method).settings(LABELS, FACTORY) == for_networks
    assert Incompatibility(method, networks=False).settings(LABELS, FACTORY) == for_plain


@dataclass(frozen=True)
class AugmentingFactory(CentroidFactory):
    """As factories of networks are: what it trains on can be left as it is."""

    plain: bool = False

    def without_augmentation(self) -> AugmentingFactory:
        return replace(self, plain=True)

    def __call__(self, seed: int) -> Any:
        MADE.append(self.plain)
        return super().__call__(seed)


MADE: list[bool] = []


@pytest.mark.parametrize("method", ["out-of-subset", "ispl"])
def test_networks_are_augmented_as_they_were_meant_to_be(method: str) -> None:
    MADE.clear()
    Incompatibility(method, changes=FEW[method]).judge(LABELS, AugmentingFactory(ROWS, LABELS), seed=0)
    assert set(MADE) == {False}


def test_expansion_looks_at_samples_as_they_are() -> None:
    MADE.clear()
    with pytest.raises(InputError, match="embed"):
        Incompatibility("expansion").judge(LABELS, AugmentingFactory(ROWS, LABELS), seed=0)
    assert MADE == [True]


def test_auto_knows_texts() -> None:
    labels = np.repeat([0, 1], [400, 40])
    texts = SklearnFactory(LogisticRegression(), csr_matrix((440, 9)), labels, 2)
    settings = Incompatibility("out-of-subset").settings(labels, texts)
    assert settings == settings_for(labels, method="out-of-subset", wide=True)
    assert settings != settings_for(labels, method="out-of-subset")


def test_wrong_settings_are_refused() -> None:
    for settings in ({"method": "magic"}, {"preset": "paper"}, {"networks": "yes"}):
        with pytest.raises(InputError, match="parameter of Incompatibility must be one of"):
            Incompatibility(**settings)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no setting 'models'"):
        Incompatibility(changes={"models": 3}).judge(LABELS, FACTORY, seed=0)
