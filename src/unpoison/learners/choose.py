"""From the name of a learner and the data to a factory. torch is imported only where it is needed."""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpoison.core.result import Cost
from unpoison.errors import InputError, MissingExtraError
from unpoison.learners.defaults import (
    DEFAULT_LEARNER,
    LEARNERS,
    NETWORK_NAMES,
    SMALLEST_SIDE,
    named_estimator,
)
from unpoison.learners.features import as_matrix
from unpoison.learners.recipes import TrainingOptions, recipe_for
from unpoison.learners.sklearn import SklearnFactory
from unpoison.types import LabelArray

if TYPE_CHECKING:
    from unpoison.learners.torch import TorchFactory

AUTO = "auto"


@dataclass(frozen=True)
class LearnerChoice:
    """A learner by name, and how to train it if it is a network."""

    name: str = AUTO
    recipe: str | None = None
    """``fast`` or ``paper``; by default the paper's for the networks that it used."""
    training: TrainingOptions = field(default_factory=TrainingOptions)
    """Its ``recipe`` is replaced by the one named above."""


@dataclass(frozen=True)
class Chosen:
    """A factory, and what there is to know about it."""

    factory: SklearnFactory | TorchFactory
    name: str
    """Never ``auto``."""
    training: dict[str, Any] | None
    """How the network is trained; None for scikit-learn."""

    @property
    def is_network(self) -> bool:
        """Whether it is a torch network."""
        return self.training is not None

    def suited_to(self, method: str) -> Chosen:
        """As the method was made for (:func:`suited_to`)."""
        factory = suited_to(self.factory, method)
        if factory is self.factory or self.training is None:
            return self
        return replace(self, factory=factory, training={**self.training, "augmentation": "none"})

    def suitable_workers(self) -> int:
        """How many processes pay off here.

        A GPU does one thing at a time; on a CPU, starting a process takes a second or two, and small data is
        done by then.
        """
        cores = os.cpu_count() or 1
        if self.training is not None:
            return (
                1 if self.training["device"] != "cpu" else max(1, min(cores // self.training["threads"], 8))
            )
        matrix: Any = self.factory.matrix  # type: ignore[union-attr]
        n_values = matrix.nnz if hasattr(matrix, "nnz") else matrix.size
        return 1 if n_values < 1_000_000 else min(cores, 8)


def suited_to(factory: Any, method: str) -> Any:
    """As the method was made for: ``groups`` looks at networks that see images as they are.

    Images that are shifted and mirrored hide a small trigger, and teach judges too little in the few passes
    that they get.
    """
    is_network = hasattr(factory, "without_augmentation")
    return factory.without_augmentation() if is_network and method == "groups" else factory


def choose(choice: LearnerChoice, features: Any, labels: LabelArray, *, n_classes: int) -> Chosen:
    """The factory that ``choice`` means for these features."""
    name = default_for(features) if choice.name == AUTO else choice.name
    if name in LEARNERS:
        matrix = as_matrix(features, standardize=True)
        estimator = named_estimator(name, sparse=hasattr(matrix, "tocsr"))
        return Chosen(SklearnFactory(estimator, matrix, labels, n_classes), name, None)
    if name not in NETWORK_NAMES and ":" not in name:
        known = ", ".join((*LEARNERS, *NETWORK_NAMES))
        raise InputError(f"unknown learner {name!r}; choose one of {known}, or your own as module:callable")
    _check_network(name, features)
    return _network(name, _builder(name), choice, features, labels, n_classes)


def default_for(features: Any) -> str:
    """``compact`` for images that are large enough (PreActResNet-18 with a GPU), where torch is installed."""
    is_image = getattr(features, "ndim", 2) == 4
    if not is_image or min(features.shape[1:3]) < SMALLEST_SIDE or not has_torch():
        return DEFAULT_LEARNER
    from unpoison.learners.devices import choose_device

    return "preactresnet18" if choose_device().type == "cuda" else "compact"


def matmul_share(chosen: Chosen, cost: Cost) -> float | None:
    """The rate at which the networks computed, over that of a large matrix product; None for scikit-learn."""
    if chosen.training is None or cost.seconds <= 0:
        return None
    from unpoison.learners.devices import choose_device, product_rate

    rate = product_rate(choose_device(chosen.training["device"]), threads=chosen.training["threads"])
    return cost.flops / cost.seconds / rate


def has_torch() -> bool:
    """Whether torch is installed."""
    return find_spec("torch") is not None


def meant(model: Any, features: Any, labels: LabelArray, *, n_classes: int) -> Chosen:
    """What a caller means by a model: a name, a classifier, a builder of networks; None for the default."""
    if model is None or isinstance(model, str):
        choice = LearnerChoice(DEFAULT_LEARNER if model is None else model)
        return choose(choice, features, labels, n_classes=n_classes)
    return own(model, features, labels, n_classes=n_classes)


def own(model: Any, features: Any, labels: LabelArray, *, n_classes: int) -> Chosen:
    """A classifier of the caller's, or a callable that builds torch networks."""
    if callable(model) and not hasattr(model, "fit"):
        name = getattr(model, "__qualname__", type(model).__name__)
        _check_network(name, features)
        return _network(name, model, LearnerChoice(name), features, labels, n_classes)
    return Chosen(SklearnFactory(model, as_matrix(features), labels, n_classes), type(model).__name__, None)


def _check_network(name: str, features: Any) -> None:
    if not has_torch():
        raise MissingExtraError("torch", "torch", f"the learner {name!r}")
    if hasattr(features, "tocsr"):
        raise InputError(f"the learner {name!r} cannot take text or wide tables; choose {DEFAULT_LEARNER}")


def _network(
    name: str, build: Any, choice: LearnerChoice, features: Any, labels: LabelArray, n_classes: int
) -> Chosen:
    from unpoison.learners.devices import choose_device, lower_precision
    from unpoison.learners.torch import TorchFactory

    options = replace(choice.training, recipe=recipe_for(name, choice.recipe))
    device = choose_device(options.device)
    low = lower_precision(device, options.precision)
    training = {
        "recipe": options.recipe.as_dict(),
        "augmentation": options.augmentation,
        "device": device.type,
        "precision": "float32" if low is None else str(low).removeprefix("torch."),
        "threads": options.threads,
        "compile": options.compile,
    }
    factory = TorchFactory(build, features, labels, n_classes, options)
    factory.check()
    return Chosen(factory, name, training)


def _builder(name: str) -> Any:
    from unpoison.learners.networks import NETWORKS

    return NETWORKS[name] if name in NETWORKS else _imported(name)


def _imported(name: str) -> Callable[..., Any]:
    """``module:callable``, from the environment or the current folder."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last: nothing there may stand in for an installed package
    try:
        build = pkgutil.resolve_name(name)
    except Exception as error:
        raise InputError(
            f"the learner {name!r} cannot be imported ({type(error).__name__}: {error}); give "
            "module:callable, where the module is installed or in the current folder"
        ) from error
    if not callable(build):
        raise InputError(f"the learner {name!r} is not callable; give module:callable")
    found: Callable[..., Any] = build
    return found
