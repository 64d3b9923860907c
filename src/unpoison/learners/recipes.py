"""How a network is trained: the paper's settings for each network, and a fast schedule beside them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Literal, TypeAlias, get_args

from unpoison.errors import InputError

Schedule: TypeAlias = Literal["constant", "steps", "one-cycle"]


@dataclass(frozen=True)
class Recipe:
    """Stochastic gradient descent with momentum, and how its learning rate changes.

    The schedule applies to the last training of a network (``final``): it runs over the steps of that one
    call. A network that is trained on from call to call keeps a constant rate, as in the paper's algorithm.

    >>> Recipe(learning_rate=0.1, milestones=(0.5, 0.75)).rate_at(0.6)
    0.01
    """

    learning_rate: float
    momentum: float = 0.9
    weight_decay: float = 5e-4
    batch_size: int = 128
    schedule: Schedule = "steps"
    milestones: tuple[float, ...] = ()
    """``steps``: shares of the training after which the rate falls to a tenth."""
    warm_up: float = 0.25
    """``one-cycle``: the share of the training in which the rate rises; it then falls to nothing."""
    continued_rate: float | None = None
    """The constant rate of a network that will be trained on; ``learning_rate`` if not given."""
    nesterov: bool = False
    label_smoothing: float = 0.0
    """Keep it at 0 where losses rank samples: smoothing pulls them together."""

    def __post_init__(self) -> None:
        if self.schedule not in get_args(Schedule):
            raise InputError(
                f"schedule must be one of {', '.join(get_args(Schedule))}, got {self.schedule!r}"
            )
        for name in ("learning_rate", "momentum", "weight_decay", "warm_up", "label_smoothing"):
            value = getattr(self, name)
            if (
                not isfinite(value)
                or value < 0
                or (value >= 1 and name not in ("learning_rate", "weight_decay"))
            ):
                raise InputError(f"{name} is {value}, which is out of its range")
        if self.batch_size < 2:
            raise InputError(f"batch_size must be at least 2, got {self.batch_size}")

    def rate_at(self, progress: float) -> float:
        """The learning rate when a share ``progress`` (0..1) of the last training is done."""
        if self.schedule == "one-cycle":
            rising = progress < self.warm_up
            return self.learning_rate * (
                progress / self.warm_up if rising else (1 - progress) / (1 - self.warm_up)
            )
        if self.schedule == "steps":
            passed = sum(progress >= milestone for milestone in self.milestones)
            return self.learning_rate / 10.0**passed
        return self.learning_rate

    def continued(self) -> float:
        """The learning rate of a network that will be trained on."""
        return self.learning_rate if self.continued_rate is None else self.continued_rate

    def as_dict(self) -> dict[str, object]:
        """Plain values, for records."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


PAPER: dict[str, Recipe] = {
    "preactresnet18": Recipe(0.02, weight_decay=5e-4, milestones=(0.5, 0.75, 0.9)),
    "resnet32": Recipe(0.1, weight_decay=1e-4, milestones=(0.75, 0.9)),
    "resnet56": Recipe(0.05, weight_decay=5e-4, milestones=(0.75, 0.9, 0.95, 0.98)),
}
"""Appendix "Models": plain SGD, momentum 0.9; milestones as shares of its 100 epochs."""

PAPER_200: dict[str, Recipe] = {**PAPER, "resnet32": replace(PAPER["resnet32"], milestones=(0.5, 0.75))}
"""Final models of 200 epochs. The paper does not say when their rate drops. In its authors' code it does at
epochs 100 and 150 for ResNet32, while the models of the defense keep 75 and 90; and at 100, 150 and 180 for
PreActResNet18, which are the shares of the 100 epochs."""

FAST = Recipe(0.1, weight_decay=5e-4, schedule="one-cycle", continued_rate=0.05, nesterov=True)
"""One cycle over few epochs; a rate that networks of any make stand."""

COMPACT = Recipe(0.3, weight_decay=5e-4, schedule="one-cycle", continued_rate=0.05, nesterov=True)
"""``fast`` for ``compact``, whose normalisation stands a higher rate, and needs fewer epochs with it."""

SLEEPER_AGENT = Recipe(0.1, weight_decay=5e-4, milestones=(14 / 80, 24 / 80, 35 / 80), nesterov=True)
"""How Sleeper Agent's authors train a victim on CIFAR-10, with shifts of up to 4 pixels and mirroring: their
code (github.com/hsouri/Sleeper-Agent, commit 9a5fdd2) with its default options. The rate, the decay and the
batch are those of ``CONSERVATIVE`` in forest/hyperparameters.py; momentum and drops those of
``get_optimizers`` in forest/victims/training.py, where 40 epochs are planned (40 // 2.667, 40 // 1.6 and
40 // 1.142 are 14, 24 and 35) though ``--val_max_epoch`` trains victims for 80: more than half of the
training is at a thousandth of the first rate. Which commit the paper used is not known."""
SLEEPER_AGENT_EPOCHS = 80
"""Of a victim (``--val_max_epoch``)."""
SLEEPER_AGENT_CRAFTING_EPOCHS = 40
"""Of a network that poison is crafted on (``CONSERVATIVE``)."""
ATTACKERS: dict[str, Recipe] = {"sleeper-agent": SLEEPER_AGENT}
"""By attack, how its authors train: for experiments. Any network can be trained so."""

RECIPES = ("fast", "paper", "paper-200")
AUGMENTATIONS = ("none", "crop", "crop-flip")
PRECISIONS = ("auto", "full", "mixed")


@dataclass(frozen=True)
class TrainingOptions:
    """Where and how a network is trained."""

    recipe: Recipe = FAST
    augmentation: str = "crop"
    """Images are shifted (``crop``), mirrored too (``crop-flip``), or left alone (``none``) in training."""
    device: str = "auto"
    precision: str = "auto"
    threads: int = 1
    """Threads of each learner on a CPU. Sums in another order give other last bits, so this is a setting; to
    use all cores, run several tasks at once."""
    compile: bool = False
    """Pass the network through ``torch.compile``: minutes of preparation, for long runs on GPUs."""

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InputError(f"threads must be at least 1, got {self.threads}")


def recipe_for(network: str, name: str | None = None) -> Recipe:
    """The recipe called ``name`` for a network; by default the paper's, if it used that network.

    ``name`` may also be one of the paper's networks, for another that stands in for it.

    >>> recipe_for("compact", "resnet32").learning_rate
    0.1
    """
    if name is None:
        name = "paper" if network in PAPER else "fast"
    if name in ATTACKERS or name in PAPER:
        return {**ATTACKERS, **PAPER}[name]
    if name not in RECIPES:
        raise InputError(f"unknown recipe {name!r}; choose one of {', '.join(RECIPES)}")
    if name == "fast":
        return COMPACT if network == "compact" else FAST
    recipes = PAPER if name == "paper" else PAPER_200
    if network not in recipes:
        raise InputError(
            f"the paper has no recipe for {network!r}, only for {', '.join(PAPER)}; choose the recipe fast"
        )
    return recipes[network]
