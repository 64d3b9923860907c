"""How large an experiment is: the paper's, all data with a small network, or a laptop's.

Separate from what is attacked.

Results of different scales are never in one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from unpoison.attacks.options import meant
from unpoison.errors import InputError
from unpoison.evaluation.attack_sets import held_out_sets
from unpoison.evaluation.scenarios import NETWORKS, PAPER_EPOCHS, Scenario
from unpoison.learners.recipes import PAPER as PAPER_RECIPES

LONG_EPOCHS = 200
"""Of final models in two tables of the appendix ("Varying the Training Setup")."""


@dataclass(frozen=True)
class Setup:
    """What a scale makes of a dataset: how much of it, what is trained on it, how it is defended."""

    network: str
    """Of the victim and of the defense."""
    epochs: int
    """Of the victim, where the paper has 100."""
    limit: int | None = None
    """Training samples, the same share of each class; None for all."""
    image_size: int | None = None
    """Side in pixels that images of different sizes are scaled to."""
    augmentation: str | None = None
    """What networks are trained with; None for what suits the dataset."""
    ispl_recipe: str | None = None
    """How the models of ISPL are trained, if not as is usual for the network."""
    victim_recipe: str | None = None
    """How the victim is trained, if not as the models of a defense: with 200 epochs."""
    changes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Settings of ISPL in which the scenario differs from the paper's usual ones (the ablation)."""
    reduced: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Settings of ISPL that ``ispl-reduced`` has less of, to be quick."""

    def __post_init__(self) -> None:
        for name in ("epochs", "limit", "image_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"The {name!r} parameter of Setup must be at least 1. Got {value} instead.")


@dataclass(frozen=True)
class Scale:
    """A size for every dataset."""

    name: str
    setups: Mapping[str, Setup] = field(hash=False)
    """By dataset."""
    own_networks: bool
    """Whether a scenario brings its network, or the scale has one for all."""
    recorded: tuple[tuple[str, int], ...] = ()
    """The scenarios, each with its seed, whose results are published with this package's sources."""
    held_out: tuple[tuple[str, int], ...] = ()
    """More of them, listed before any defense had met them: what a rule that is finished is tried on."""

    def setup_for(self, scenario: Scenario) -> Setup:
        """What this scale makes of a scenario; more epochs where the paper has more.

        >>> from unpoison.evaluation.scenarios import by_name
        >>> LAPTOP.setup_for(by_name("gtsrb-watermark-1-2-eps10")).limit
        6000
        """
        if scenario.dataset not in self.setups:
            raise InputError(
                f"the scale {self.name!r} has no setup for {scenario.dataset!r}, only for "
                f"{', '.join(self.setups)}; choose another scenario or scale"
            )
        setup = self.setups[scenario.dataset]
        network = scenario.network if self.own_networks else setup.network
        is_long = scenario.epochs == LONG_EPOCHS and network in PAPER_RECIPES
        return replace(
            setup,
            network=network,
            victim_recipe="paper-200" if is_long else None,
            epochs=max(1, round(setup.epochs * scenario.epochs / PAPER_EPOCHS)),
            changes=scenario.defense,
        )


def scale_named(name: str) -> Scale:
    """The scale of that name.

    >>> scale_named("paper").name
    'paper'
    """
    if name in SCALES:
        return SCALES[name]
    size, _, network = name.partition("-")
    if size == FULL.name and network in PAPER_RECIPES:
        return with_network(network)
    raise InputError(f"no scale is called {name!r}; {meant(name, SCALES)}the scales are: {', '.join(SCALES)}")


PAPER = Scale(
    "paper",
    {
        "cifar10": Setup(NETWORKS["cifar10"], PAPER_EPOCHS),
        "gtsrb": Setup(NETWORKS["gtsrb"], PAPER_EPOCHS),
        "imagenette": Setup(NETWORKS["imagenette"], PAPER_EPOCHS, image_size=224),
    },
    own_networks=True,
)
"""All of the data, the paper's networks and epochs."""

FULL = Scale(
    "full",
    {
        dataset: Setup("compact", epochs, image_size=size, ispl_recipe=NETWORKS[dataset])
        for dataset, epochs, size in (("cifar10", 20, None), ("gtsrb", 8, None), ("imagenette", 16, 64))
    },
    own_networks=False,
    held_out=tuple((scenario.name, scenario.seeds[0]) for scenario in held_out_sets()),
)
"""All of the data and the paper's own defense settings, with a network that a CPU can train. ISPL trains it
as the paper trains the network that it stands in for: plain SGD, that network's rate and decay. Victims are
trained as the dataset asks (crop, and flip where it may be), for as few epochs as reach 85% on CIFAR-10 and
96% on GTSRB. ``full-NETWORK`` is the same with one of the paper's networks, and its 100 epochs."""


def with_network(network: str) -> Scale:
    """``full`` with one of the paper's networks for every dataset, trained by the paper's recipe.

    >>> with_network("resnet32").setups["gtsrb"].epochs
    100
    """
    if network not in PAPER_RECIPES:
        known = ", ".join(PAPER_RECIPES)
        raise InputError(f"{network!r} is not one of the paper's networks, which are {known}")
    setups = {
        dataset: replace(setup, network=network, epochs=PAPER_EPOCHS, ispl_recipe=None)
        for dataset, setup in FULL.setups.items()
    }
    return Scale(f"{FULL.name}-{network}", setups, own_networks=False)


_QUICK_ISPL = {
    "rounds": 4, "restarts": 1, "alpha": 0.5, "first_epochs": 4, "epochs": 2, "weak_epochs": 10,
    "weak_min_steps": 150, "weak_annealing": True, "beta_from": "fits",
    "self_training_updates": 4, "self_training_interval": 2, "self_training_returns": "updated",
}  # fmt: skip
"""One restart, and epochs cut as the victim's are; components as large as the paper's are on GTSRB."""

_X_SHAPE = 7
"""A seed whose mark was the X in a strong color where the authors' is not known, and still is in all-to-one
and all-to-all; between two classes marks depend on the pair since the results were recorded. One or three
gray pixels are not learned from this little data."""
_RECORDED = (
    *((f"gtsrb-watermark-1-2-eps{k}", 0) for k in (5, 10, 20)),
    *((f"gtsrb-watermark-38-4-eps{k}", 0) for k in (10, 20)),
    *((f"gtsrb-dirty-label-1-2-eps{k}", _X_SHAPE) for k in (5, 10, 20)),
    *((f"gtsrb-dirty-label-2-13-eps{k}", _X_SHAPE) for k in (10, 20)),
    *((f"cifar10-watermark-1-3-eps{k}", 0) for k in (5, 10, 20)),
    ("cifar10-watermark-7-4-eps20", 0),
    *((f"cifar10-dirty-label-3-7-eps{k}", 0) for k in (10, 20)),
    ("cifar10-dirty-label-7-4-eps20", 1),
    *((f"cifar10-all-to-one-7-eps{k}", _X_SHAPE) for k in (10, 20)),
    *((f"cifar10-all-to-all-5-eps{k}", _X_SHAPE) for k in (5, 10)),
    *((f"cifar10-clean-label-linf-0-eps{k}", 0) for k in (10, 20)),
    ("cifar10-clean-label-l2-4-eps20", 0),
    ("cifar10-clean-label-gan-7-eps20", 0),
)

_RED_X = 39
"""Another seed whose mark was the X, in red; on pairs of classes marks depend on the pair since."""
_HELD_OUT = (
    *((f"gtsrb-watermark-1-0-eps{k}", 1) for k in (5, 10, 20)),
    *((f"gtsrb-watermark-9-18-eps{k}", 1) for k in (5, 10, 20)),
    *((f"gtsrb-watermark-31-24-eps{k}", 1) for k in (10, 20)),
    ("gtsrb-watermark-15-29-eps20", 1),
    ("gtsrb-dirty-label-1-0-eps20", _RED_X),
    *((f"gtsrb-dirty-label-9-18-eps{k}", _RED_X) for k in (10, 20)),
    ("gtsrb-dirty-label-31-24-eps20", _RED_X),
    *((f"cifar10-watermark-0-2-eps{k}", 1) for k in (5, 10, 20)),
    *((f"cifar10-watermark-2-5-eps{k}", 1) for k in (5, 20)),
    *((f"cifar10-watermark-3-7-eps{k}", 1) for k in (10, 20)),
    ("cifar10-dirty-label-0-2-eps20", _RED_X),
    *((f"cifar10-dirty-label-1-3-eps{k}", _RED_X) for k in (10, 20)),
    ("cifar10-dirty-label-9-2-eps20", _RED_X),
    *((f"cifar10-all-to-one-{k}-eps20", _RED_X) for k in (2, 5)),
    *((f"cifar10-all-to-all-{k}-eps10", _RED_X) for k in (2, 3)),
    ("cifar10-clean-label-linf-2-eps20", 1),
    *((f"cifar10-clean-label-linf-7-eps{k}", 1) for k in (10, 20)),
    *((f"cifar10-clean-label-l2-{k}-eps20", 1) for k in (0, 9)),
    ("cifar10-clean-label-gan-0-eps20", 1),
)
"""Pairs, targets and seeds that no rule was made or tried on, nor looked at for how well an attack holds."""

LAPTOP = Scale(
    "laptop",
    {
        "cifar10": Setup("compact", 10, limit=6_000, augmentation="none", reduced=_QUICK_ISPL),
        "gtsrb": Setup("compact", 8, limit=6_000, augmentation="none", reduced=_QUICK_ISPL),
        "imagenette": Setup(
            "compact", 30, limit=2_000, image_size=32, augmentation="none", reduced=_QUICK_ISPL
        ),
    },
    own_networks=False,
    recorded=_RECORDED,
    held_out=_HELD_OUT,
)
"""Minutes on two cores. Without augmentation, which hides triggers from a victim that sees little data."""

SCALES: dict[str, Scale] = {scale.name: scale for scale in (PAPER, FULL, LAPTOP)}
