"""What is special about the torch learner; what every learner does is in tests/contracts."""

from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from learners.torch_builders import RECIPE, convolution, perceptron  # noqa: E402
from unpoison.errors import InputError  # noqa: E402
from unpoison.learners.networks import compact  # noqa: E402
from unpoison.learners.recipes import Recipe, TrainingOptions  # noqa: E402
from unpoison.learners.torch import TorchFactory, TorchLearner  # noqa: E402

LABELS = np.arange(60) % 3
ROWS = (np.random.default_rng(0).normal(size=(60, 5)) + 2 * np.eye(3, 5)[LABELS]).astype(np.float32)
IMAGES = np.random.default_rng(1).integers(0, 256, (60, 16, 16, 3), dtype=np.uint8)
EVERYONE = np.arange(60)


def factory(build: Any = perceptron, samples: Any = ROWS, **options: Any) -> TorchFactory:
    given = {"recipe": RECIPE, "device": "cpu", **options}
    return TorchFactory(build, samples, LABELS, 3, TrainingOptions(**given))


class Spy(nn.Module):
    """A linear model that writes down what it is given."""

    def __init__(self, shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(int(np.prod(shape)), n_classes)
        self.training_batches: list[Any] = []
        self.other_batches: list[Any] = []

    def forward(self, inputs: Any) -> Any:
        (self.training_batches if self.training else self.other_batches).append(inputs.detach().clone())
        return self.layer(inputs.flatten(1))


def spied(samples: Any = ROWS, **options: Any) -> tuple[TorchLearner, Spy]:
    learner = factory(Spy, samples, **options)(0)
    network = learner.network
    assert isinstance(network, Spy)
    return learner, network


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 60])
def test_every_sample_once_an_epoch_in_equal_batches(n: int) -> None:
    learner, spy = spied()
    learner.fit(EVERYONE[:n], epochs=3)
    sizes = [len(batch) for batch in spy.training_batches]
    assert len(sizes) == 3 * ceil(n / 16)
    if n > 1:
        assert sum(sizes) == 3 * n
        assert max(sizes) - min(sizes) <= 1
        plain = learner._data.plain(EVERYONE[:n])
        epoch = torch.cat(spy.training_batches[: len(sizes) // 3])
        assert sorted(epoch[:, 0].tolist()) == sorted(plain[:, 0].tolist())
    assert learner.cost.trained == 3 * n


@pytest.mark.parametrize(
    ("n", "min_steps", "steps"), [(5, 0, 2), (5, 7, 7), (40, 7, 9), (40, 6, 6), (60, 3, 8)]
)
def test_budgets_are_in_steps(n: int, min_steps: int, steps: int) -> None:
    """Two epochs, or as many more as give the steps asked for; epochs are not cut short."""
    learner, spy = spied()
    learner.fit(EVERYONE[:n], epochs=2, min_steps=min_steps)
    assert len(spy.training_batches) == steps


def test_nothing_to_train_on() -> None:
    learner, spy = spied()
    learner.fit(EVERYONE[:0], epochs=2, min_steps=5)
    assert spy.training_batches == []


def test_losses_are_measured_without_augmentation() -> None:
    learner, spy = spied(IMAGES, augmentation="crop-flip")
    learner.fit(EVERYONE, epochs=1)
    spy.other_batches.clear()
    first, again = learner.assess(EVERYONE), learner.assess(EVERYONE)
    assert (first.losses == again.losses).all()
    plain = learner._data.plain(EVERYONE)
    assert torch.equal(torch.cat(spy.other_batches[:1]), plain)
    assert not any(torch.equal(batch[0], plain[0]) for batch in spy.training_batches[:1])


def rates_of(learner: TorchLearner) -> list[float]:
    seen: list[float] = []
    optimizer = learner._optimizer
    optimizer.register_step_pre_hook(lambda *_: seen.append(optimizer.param_groups[0]["lr"]))
    return seen


def test_the_schedule_runs_over_the_final_call_only() -> None:
    recipe = Recipe(0.2, batch_size=20, schedule="one-cycle", continued_rate=0.05)
    learner = factory(recipe=recipe)(0)
    seen = rates_of(learner)
    learner.fit(EVERYONE, epochs=2)
    assert seen == [0.05] * 6
    seen.clear()
    learner.fit(EVERYONE, epochs=4, final=True)
    assert seen == pytest.approx([recipe.rate_at((step + 0.5) / 12) for step in range(12)])


def test_milestones_of_the_paper() -> None:
    recipe = Recipe(0.1, batch_size=60, schedule="steps", milestones=(0.5, 0.75))
    learner = factory(recipe=recipe)(0)
    seen = rates_of(learner)
    learner.fit(EVERYONE, epochs=8, final=True)
    assert seen == pytest.approx([0.1] * 4 + [0.01] * 2 + [0.001] * 2)


def test_the_optimizer_is_the_recipes() -> None:
    recipe = Recipe(0.3, momentum=0.8, weight_decay=0.02, nesterov=True)
    group = factory(recipe=recipe)(0)._optimizer.param_groups[0]
    assert (group["momentum"], group["weight_decay"], group["nesterov"]) == (0.8, 0.02, True)


@pytest.mark.parametrize(("build", "samples"), [(perceptron, ROWS), (convolution, IMAGES), (compact, IMAGES)])
@pytest.mark.parametrize("precision", ["full", "mixed"])
def test_mixed_precision_trains_as_well(build: Any, samples: Any, precision: str) -> None:
    learner = factory(build, samples, precision=precision)(3)
    before = learner.assess(EVERYONE)
    learner.fit(EVERYONE, epochs=15, final=True)
    after = learner.assess(EVERYONE)
    assert np.isfinite(after.losses).all()
    assert after.losses.mean() < 0.8 * before.losses.mean()


def test_repeatable_and_alone() -> None:
    """The same bits twice, whatever else happens to torch's random numbers, which stay as they were."""
    make = factory(compact, IMAGES, augmentation="crop-flip")

    def run(noise: int) -> Any:
        torch.manual_seed(noise)
        state = torch.get_rng_state()
        learner = make(5)
        learner.fit(EVERYONE, epochs=2)
        learner.fit(EVERYONE[::2], epochs=1, final=True)
        answer = learner.assess(EVERYONE)
        assert torch.equal(state, torch.get_rng_state())
        return answer.losses

    assert (run(1) == run(2)).all()


def test_two_learners_in_turns_are_as_two_alone() -> None:
    make = factory()
    alone = make(1)
    for _ in range(3):
        alone.fit(EVERYONE, epochs=1)
    left, right = make(1), make(2)
    for _ in range(3):
        left.fit(EVERYONE, epochs=1)
        right.fit(EVERYONE, epochs=1)
    assert (left.assess(EVERYONE).losses == alone.assess(EVERYONE).losses).all()


def test_the_number_of_threads_outside_does_not_matter() -> None:
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            learner = factory(compact, IMAGES)(0)
            learner.fit(EVERYONE, epochs=2)
            results.append(learner.assess(EVERYONE).losses)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert (results[0] == results[1]).all()


def test_cost() -> None:
    learner = factory(compact, IMAGES)(0)
    learner.fit(EVERYONE, epochs=2)
    learner.assess(EVERYONE[:10])
    cost = learner.cost
    assert (cost.trained, cost.scored) == (120, 10)
    assert cost.seconds > 0
    assert cost.flops == (3 * 120 + 10) * learner._meter.flops_forward
    assert learner._meter.flops_forward > 1e6


class Broken(nn.Module):
    """Answers NaN for some samples."""

    def __init__(self, shape: tuple[int, ...], n_classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(shape[0], n_classes)

    def forward(self, inputs: Any) -> Any:
        scores = self.layer(inputs)
        return scores if self.training else torch.where(inputs[:, :1] > 0, scores, torch.nan)


def test_a_network_that_answers_nan_votes_against_the_label() -> None:
    learner = factory(Broken)(0)
    learner.fit(EVERYONE, epochs=1)
    answer = learner.assess(EVERYONE)
    broken = learner._data.plain(EVERYONE)[:, 0].numpy() <= 0
    assert broken.any()
    assert (answer.predictions[broken] != LABELS[broken]).all()
    assert (answer.losses[broken] > 27).all()


def test_the_data_is_made_resident_once_and_not_pickled() -> None:
    make = factory(compact, IMAGES)
    assert make(0)._data is make(1)._data
    assert len(pickle.dumps(make)) < IMAGES.nbytes + 4000
    copy = pickle.loads(pickle.dumps(make))  # noqa: S301
    assert copy.options == make.options


@pytest.mark.parametrize(
    "samples",
    [IMAGES.astype(np.float32), IMAGES[0], ROWS.astype(np.int64), ROWS[:, 0]],
    ids=lambda x: f"{x.dtype}{x.ndim}",
)
def test_other_data_is_refused(samples: Any) -> None:
    with pytest.raises(InputError, match="a torch learner takes uint8 images"):
        factory(samples=samples)


def no_network(shape: tuple[int, ...], n_classes: int) -> Any:
    return lambda inputs: inputs


def two_scores(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    return nn.Linear(shape[0], 2)


def needs_more(shape: tuple[int, ...], n_classes: int, depth: int) -> nn.Module:
    return nn.Linear(shape[0], depth)


def nothing_to_train(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    return nn.Flatten()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (no_network, "builder no_network fails"),
        (two_scores, r"must give a torch.nn.Module with 3 scores a sample.*shape \(2, 2\)"),
        (needs_more, r"builder needs_more fails for inputs of shape \(5,\) and 3 classes \(TypeError"),
    ],
)
def test_builders_are_checked_first(build: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        factory(build).check()


def test_a_network_without_parameters() -> None:
    with pytest.raises(InputError, match="Flatten has no parameters to train"):
        factory(nothing_to_train)(0)


@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler uses what torch deprecates
def test_compiled_gives_the_same_kind_of_answer() -> None:
    """Not bit for bit: a compiler may add in another order."""
    answers = []
    for compiled in (False, True):
        recipe = replace(RECIPE, label_smoothing=0.05)
        learner = factory(convolution, IMAGES, compile=compiled, recipe=recipe)(0)
        learner.fit(EVERYONE[:32], epochs=2)
        answers.append(learner.assess(EVERYONE).losses)
    np.testing.assert_allclose(answers[0], answers[1], rtol=0.05, atol=0.02)
