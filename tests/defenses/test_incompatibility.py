from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from core.fakes import CentroidFactory, two_blobs
from core.groups.worlds import World
from unpoison.core.pipeline import sanitize
from unpoison.core.presets import AUTHORS_GTSRB, PAPER_CIFAR10, PAPER_GTSRB, settings_for
from unpoison.defenses.incompatibility import Incompatibility
from unpoison.errors import InputError
from unpoison.learners.sklearn import SklearnFactory

ROWS, LABELS = two_blobs(40)
FACTORY = CentroidFactory(ROWS, LABELS)
FEW = {
    "ispl": {"rounds": 2, "restarts": 2, "self_training_updates": 1},
    "groups": {"epochs": 2, "judge_epochs": 1},
}


@pytest.mark.parametrize("method", ["ispl", "groups"])
def test_it_decides_as_the_pipeline_does(method: str) -> None:
    world = World(planted=np.arange(400, 440))
    labels, factory = (LABELS, FACTORY) if method == "ispl" else (world.labels, world)
    decision = Incompatibility(method, changes=FEW[method]).judge(labels, factory, seed=5)
    settings = settings_for(labels, method=method, networks=True, **FEW[method])  # type: ignore[arg-type]
    expected = sanitize(labels, factory, settings, seed=5)
    assert 0 < decision.n_removed < len(labels)
    assert np.array_equal(decision.keep, expected.keep)
    assert np.array_equal(decision.suspicion, expected.suspicion)
    assert decision.cost == expected.cost
    assert decision.components is not None
    assert np.array_equal(decision.components, expected.components)
    if method == "ispl":
        assert decision.groups == (), "those of ispl are what was removed of each class, not what was judged"


def test_what_was_judged_together_is_counted_as_in_the_components() -> None:
    world = World(planted=np.arange(400, 440))
    decision = Incompatibility("groups").judge(world.labels, world, seed=0)
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


@pytest.mark.parametrize("method", ["ispl", "groups"])
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


def test_networks_are_augmented_as_they_were_meant_to_be() -> None:
    MADE.clear()
    Incompatibility("ispl", changes=FEW["ispl"]).judge(LABELS, AugmentingFactory(ROWS, LABELS), seed=0)
    assert set(MADE) == {False}


def test_groups_looks_at_samples_as_they_are() -> None:
    MADE.clear()
    with pytest.raises(InputError, match="embed"):
        Incompatibility("groups").judge(LABELS, AugmentingFactory(ROWS, LABELS), seed=0)
    assert MADE == [True]


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InputError, match="The 'method' parameter must be one of ispl, groups"):
        Incompatibility("magic")
    with pytest.raises(InputError, match="was replaced by 'groups'"):
        Incompatibility("expansion")
    for settings in ({"preset": "paper"}, {"networks": "yes"}):
        with pytest.raises(InputError, match="parameter of Incompatibility must be one of"):
            Incompatibility(**settings)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no setting 'pairs'"):
        Incompatibility(changes={"pairs": 3}).judge(LABELS, FACTORY, seed=0)
