"""What TorchLearner.activations gives, and a defense on a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.fakes import two_blobs
from unpoison.defenses.activation_clustering import ActivationClustering
from unpoison.defenses.spectral import SpectralSignatures
from unpoison.errors import InputError

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from learners.torch_builders import on_images, on_rows  # noqa: E402
from unpoison.learners.networks import NETWORKS, SPECTRAL_LAYERS  # noqa: E402
from unpoison.learners.recipes import TrainingOptions  # noqa: E402
from unpoison.learners.torch import TorchFactory, TorchLearner  # noqa: E402

ROWS, LABELS = two_blobs(60, n_classes=3)
ROWS = np.column_stack([ROWS, ROWS[:, 0]])
EVERYONE = np.arange(60)


def trained_on_rows() -> TorchLearner:
    learner = on_rows(ROWS, LABELS, n_classes=3)(0)
    learner.fit(EVERYONE, epochs=2, final=True)
    return learner


def test_the_input_of_the_last_linear_layer_leads_to_the_answer() -> None:
    learner = trained_on_rows()
    given = learner.activations(EVERYONE)
    assert given.shape == (60, 16)
    assert given.dtype == np.float64
    head: Any = learner.network[-1]  # type: ignore[index]
    with torch.no_grad():
        scores = head(torch.from_numpy(given.astype(np.float32))).numpy()
    assert scores.argmax(axis=1).tolist() == learner.assess(EVERYONE).predictions.tolist()


def test_rows_come_in_the_order_asked_for() -> None:
    learner = trained_on_rows()
    mixed = np.random.default_rng(0).permutation(60)[:23]
    assert learner.activations(mixed) == pytest.approx(learner.activations(EVERYONE)[mixed], abs=1e-6)
    assert learner.activations(EVERYONE[:0]).shape[0] == 0


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = trained_on_rows()
    whole = learner.activations(EVERYONE)
    monkeypatch.setattr("unpoison.learners.torch.SCORED_AT_ONCE", 7)
    assert learner.activations(EVERYONE) == pytest.approx(whole, abs=1e-6)


def test_asking_changes_nothing_and_is_counted() -> None:
    learner = trained_on_rows()
    before = learner.assess(EVERYONE).losses
    scored = learner.cost.scored
    first = learner.activations(EVERYONE)
    assert np.array_equal(first, learner.activations(EVERYONE))
    assert learner.cost.scored == scored + 120
    assert np.array_equal(before, learner.assess(EVERYONE).losses)
    assert not any(module._forward_pre_hooks for module in learner.network.modules())


def test_a_layer_is_chosen_by_name_and_flattened() -> None:
    learner = on_images(ROWS, LABELS, n_classes=3)(0)
    assert learner.activations(EVERYONE).shape == (60, 32)
    assert learner.activations(EVERYONE, layer="1").shape == (60, 8 * 12 * 12)


def test_what_a_layer_changes_in_place_is_seen_as_it_was() -> None:
    def build(shape: Any, n_classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(shape[0], 6), nn.ReLU(inplace=True), nn.Linear(6, n_classes))

    learner = TorchFactory(build, ROWS.astype(np.float32), LABELS, 3)(0)
    before, after = learner.activations(EVERYONE, layer="1"), learner.activations(EVERYONE)
    assert before.min() < 0
    assert after == pytest.approx(np.maximum(before, 0.0))


def test_wrong_layers_are_refused() -> None:
    learner = trained_on_rows()
    with pytest.raises(InputError, match=r"no layer 'stages\.6'; it has 0, 1, 2"):
        learner.activations(EVERYONE, layer="stages.6")

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unused = nn.Conv1d(1, 1, 1)
            self.across = nn.Identity()
            self.weights = nn.Parameter(torch.zeros(4, 3))

        def forward(self, inputs: Any) -> Any:
            self.across(inputs.T)
            return inputs @ self.weights

    learner = TorchFactory(lambda *_: Odd(), ROWS.astype(np.float32), LABELS, 3)(0)
    for layer in ("unused", "across"):
        with pytest.raises(InputError, match=f"{layer!r} is not given one row a sample"):
            learner.activations(EVERYONE, layer=layer)
    with pytest.raises(InputError, match="no linear layer"):
        learner.activations(EVERYONE)


def images(n: int) -> Any:
    return np.random.default_rng(0).integers(0, 256, size=(n, 16, 16, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("name", "width"), [("resnet32", 64 * 4 * 4), ("preactresnet18", 256 * 4 * 4), ("compact", 128)]
)
def test_the_papers_networks_are_looked_into_where_the_appendix_says(name: str, width: int) -> None:
    """16 pixels are halved twice before the third stage: 64 or 256 channels of 4 x 4."""
    options = TrainingOptions(device="cpu")
    learner = TorchFactory(NETWORKS[name], images(3), np.array([0, 1, 0]), 2, options)(0)
    assert learner.activations(np.arange(3)).shape == (3, width)


def test_the_layers_are_the_blocks_that_the_appendix_names() -> None:
    """Block numbers run through the stages: five a stage, and two."""
    assert set(SPECTRAL_LAYERS) <= set(NETWORKS)
    assert SPECTRAL_LAYERS["resnet32"] == f"stages.{2 * 5 + 3 - 1}"
    assert SPECTRAL_LAYERS["preactresnet18"] == f"stages.{3 * 2 + 1 - 1}"


@pytest.mark.parametrize("defense", [SpectralSignatures(epochs=2), ActivationClustering(epochs=2, layer="1")])
def test_a_defense_on_a_network(defense: Any) -> None:
    factory = on_images(ROWS, LABELS, n_classes=3)
    decision = defense.judge(LABELS, factory, seed=3)
    again = defense.judge(LABELS, factory, seed=3)
    assert np.array_equal(decision.keep, again.keep)
    assert np.array_equal(decision.suspicion, again.suspicion)
    assert 0 < decision.n_removed < 60
    assert decision.cost.trained == 120
    assert decision.cost.flops > 0
    if isinstance(defense, SpectralSignatures):
        assert decision.n_removed == 3 * 4
