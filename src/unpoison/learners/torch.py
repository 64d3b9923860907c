"""Any PyTorch network as a learner: resident data, index arithmetic, mixed precision where it pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import ceil, prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from unpoison.core.learner import Assessment
from unpoison.core.result import Cost
from unpoison.errors import InputError
from unpoison.learners.answers import assess_in_parts, in_parts, softmax, without
from unpoison.learners.batches import Resident, as_tensor
from unpoison.learners.devices import choose_device, forward_flops, lower_precision, steady
from unpoison.learners.marks import marked_copies
from unpoison.learners.meter import Meter
from unpoison.learners.networks import NETWORKS, SPECTRAL_LAYERS, NetworkBuilder
from unpoison.learners.recipes import Recipe, TrainingOptions
from unpoison.seeds import Seeds
from unpoison.types import FloatArray, IndexArray, LabelArray

SCORED_AT_ONCE = 512


@dataclass(frozen=True)
class TorchFactory:
    """Fresh networks over ``samples``: uint8 images ``(n, h, w, c)`` or float32 rows ``(n, d)``.

    ``build(shape, n_classes)`` makes a network that gives one score a class; ``shape`` is that of one sample,
    channels first. ``labels`` are 0 .. n_classes - 1. The data is moved to the device once a process.
    """

    build: NetworkBuilder
    samples: NDArray[Any]
    labels: LabelArray
    n_classes: int
    options: TrainingOptions = field(default_factory=TrainingOptions)

    def __post_init__(self) -> None:
        allowed = {4: (np.uint8,), 2: (np.float32, np.float64)}.get(self.samples.ndim, ())
        if self.samples.dtype not in allowed:
            raise InputError(
                "a torch learner takes uint8 images of shape (n, height, width, channels) or rows of floats, "
                f"not {self.samples.dtype} of shape {self.samples.shape}"
            )
        choose_device(self.options.device)

    def __call__(self, seed: int) -> TorchLearner:
        """An untrained network whose every random choice follows from ``seed``."""
        return TorchLearner(self, self._resident(), seed=seed)

    def without_augmentation(self) -> TorchFactory:
        """The same networks, trained on samples as they are."""
        if self.options.augmentation == "none":
            return self
        return replace(self, options=replace(self.options, augmentation="none"))

    def with_marked_copies(
        self, indices: IndexArray, labels: LabelArray, groups: IndexArray, *, seed: int
    ) -> TorchFactory:
        """The same samples, and after them copies of some under other labels, each group with its mark."""
        copies = marked_copies(self.samples, indices, groups, seed=seed)
        return replace(
            self, samples=np.concatenate([self.samples, copies]), labels=np.concatenate([self.labels, labels])
        )

    def check(self) -> None:
        """Refuse a builder that does not make a network for this data, before any work is done."""
        data = self._resident()
        name = getattr(self.build, "__qualname__", repr(self.build))
        try:
            network = self.build(data.shape, self.n_classes)
            with torch.no_grad():
                scores = network.eval()(torch.zeros(2, *data.shape))
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"the network builder {name} fails for inputs of shape {data.shape} and "
                f"{self.n_classes} classes ({type(error).__name__}: {error}); it is called as "
                f"{name}(shape, n_classes), channels first"
            ) from error
        if not isinstance(network, nn.Module) or tuple(scores.shape) != (2, self.n_classes):
            raise InputError(
                f"the network builder {name} must give a torch.nn.Module with {self.n_classes} scores a "
                f"sample; for two samples its output has shape {tuple(scores.shape)}"
            )

    def _resident(self) -> Resident:
        kept: Resident | None = self.__dict__.get("_kept")
        if kept is None:
            device = choose_device(self.options.device)
            kept = Resident(self.samples, device=device, augmentation=self.options.augmentation)
            object.__setattr__(self, "_kept", kept)  # a cache: the factory itself stays what it is
        return kept

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}


class TorchLearner:
    """One network, trained on subsets of resident data."""

    def __init__(self, factory: TorchFactory, data: Resident, *, seed: int) -> None:
        options = factory.options
        seeds = Seeds(seed)
        self._options = options
        self._data = data
        self._device = data.device
        self._labels = factory.labels
        self._targets = as_tensor(factory.labels).to(self._device)
        self._shuffling = seeds.stream("shuffle")
        self._varying = seeds.stream("augmentation")
        self._chance = _random_state(seeds.integer("network"), self._device)
        with self._session():
            network = factory.build(data.shape, factory.n_classes)
        self._network: nn.Module = network.to(self._device)
        self._network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._forward: Any = torch.compile(self._network, dynamic=True) if options.compile else self._network
        self._optimizer = _optimizer(self._network, options.recipe)
        self._low = lower_precision(self._device, options.precision)
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=self._low == torch.float16)
        self._spectral_layer = next(
            (layer for name, layer in SPECTRAL_LAYERS.items() if NETWORKS[name] is factory.build), None
        )
        self._seen = np.zeros(factory.n_classes, dtype=np.bool_)
        self._meter = Meter(forward_flops(factory.build, data.shape, factory.n_classes))

    @property
    def cost(self) -> Cost:
        """Passes, seconds and operations spent so far."""
        return self._meter.cost

    @property
    def network(self) -> nn.Module:
        """The network as trained so far."""
        return self._network

    def inputs(self, pixels: Tensor) -> Tensor:
        """What the network is given for images ``(n, channels, height, width)`` of values 0 to 255."""
        return self._data.prepared(pixels.to(self._device))

    def fit(self, indices: IndexArray, *, epochs: int, min_steps: int = 0, final: bool = False) -> None:
        """Train on. Batches of a pass are of equal size, give or take one: none is dropped, none is tiny."""
        if len(indices) == 0:
            return
        recipe = self._options.recipe
        batches = ceil(len(indices) / recipe.batch_size)
        epochs = max(epochs, ceil(min_steps / batches))
        self._seen[self._labels[indices]] = True
        with self._meter.running(trained=epochs * len(indices)), self._session():
            self._network.train()
            for epoch in range(epochs):
                order = self._shuffling.permutation(indices).astype(np.int64)
                for number, batch in enumerate(np.array_split(order, batches)):
                    progress = (epoch * batches + number + 0.5) / (epochs * batches)
                    self._step(batch, recipe.rate_at(progress) if final else recipe.continued())

    def assess(self, indices: IndexArray) -> Assessment:
        """Cross-entropies and predictions without augmentation; a class never seen has the worst loss."""
        with self._meter.running(scored=len(indices)), self._session(), torch.inference_mode():
            self._network.eval()
            return self._assessed(indices, self._probabilities)

    def probabilities(self, indices: IndexArray) -> FloatArray:
        """Of each class, a row a sample; without augmentation."""
        with self._meter.running(scored=len(indices)), self._session(), torch.inference_mode():
            self._network.eval()
            return in_parts(np.asarray(indices, dtype=np.int64), self._probabilities, at_once=SCORED_AT_ONCE)

    def activations(self, indices: IndexArray, *, layer: str | None = None) -> FloatArray:
        """What goes into ``layer`` for each sample: one row, maps flattened; no augmentation, full precision.

        ``layer`` is a name in ``network.named_modules()``. By default it is the paper's choice for its own
        networks (``SPECTRAL_LAYERS``), and the last linear layer of any other.
        """
        name = layer or self._spectral_layer or _last_linear(self._network)
        return self._rows(indices, lambda inputs: _input_of(name, self._network, inputs))

    def embed(self, indices: IndexArray) -> FloatArray:
        """What the network sees in each sample, one row: its last maps, each by its highest point.

        A small mark lights up one place of a map. The mean over places, which goes into the last layer, hides
        it; the maximum does not. A network without maps is looked at before its last linear layer.
        """
        return self.look(indices)[1]

    def look(self, indices: IndexArray) -> tuple[Assessment, FloatArray]:
        """What it says of each sample and what it sees in it, in one pass of full precision."""
        maps = _last_maps(self._network, self._data.plain(np.zeros(1, dtype=np.int64)))
        views: list[NDArray[np.float32]] = []

        def note(_: nn.Module, given: tuple[Any, ...], output: Tensor) -> None:
            rows = given[0].flatten(1) if maps is None else output.amax(dim=_place_axes(self._network))
            views.append(rows.float().cpu().numpy().copy())

        watched = dict(self._network.named_modules())[_last_linear(self._network)] if maps is None else maps
        with self._meter.running(scored=len(indices)), self._session(), torch.inference_mode():
            self._network.eval()
            hook = watched.register_forward_hook(note)
            try:
                said = self._assessed(indices, self._exact_probabilities)
            finally:
                hook.remove()
        return said, np.concatenate(views, dtype=np.float64) if views else np.empty((0, 0))

    def _assessed(self, indices: IndexArray, probabilities: Callable[[IndexArray], FloatArray]) -> Assessment:
        return assess_in_parts(
            np.asarray(indices, dtype=np.int64), self._labels, probabilities, at_once=SCORED_AT_ONCE
        )

    def _rows(self, indices: IndexArray, of: Callable[[Tensor], NDArray[np.float32]]) -> FloatArray:
        """What ``of`` makes of the samples, some at a time, without augmentation."""
        if len(indices) == 0:
            return np.empty((0, 0))
        parts = np.array_split(np.asarray(indices, dtype=np.int64), ceil(len(indices) / SCORED_AT_ONCE))
        with self._meter.running(scored=len(indices)), self._session(), torch.inference_mode():
            self._network.eval()
            return np.concatenate([of(self._data.plain(part)) for part in parts], dtype=np.float64)

    def _step(self, batch: NDArray[np.int64], rate: float) -> None:
        if len(batch) == 1:  # batch normalisation has nothing to normalise over
            batch = np.repeat(batch, 2)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        inputs = self._data.varied(batch, self._varying)
        targets = self._targets[torch.from_numpy(batch).to(self._device)]
        scores = self._scores(inputs)
        loss = functional.cross_entropy(scores, targets, label_smoothing=self._options.recipe.label_smoothing)
        self._optimizer.zero_grad(set_to_none=True)
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self._scaler.step(self._optimizer)
        self._scaler.update()

    def _scores(self, inputs: Tensor) -> Tensor:
        with torch.autocast(self._device.type, dtype=self._low, enabled=self._low is not None):
            scores: Tensor = self._forward(inputs)
        return scores.float()

    def _probabilities(self, indices: IndexArray) -> FloatArray:
        return self._as_probabilities(self._scores(self._data.plain(indices)))

    def _exact_probabilities(self, indices: IndexArray) -> FloatArray:
        return self._as_probabilities(self._network(self._data.plain(indices)).float())

    def _as_probabilities(self, scores: Tensor) -> FloatArray:
        numbers = scores.cpu().numpy().astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            return without(softmax(numbers), ~self._seen)

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Everything inside is repeatable, and draws on this learner's own chance (as dropout does)."""
        with steady(self._device, threads=self._options.threads), _fork(self._device):
            _set_random_state(self._chance, self._device)
            yield
            self._chance = _get_random_state(self._device)


def _optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    if not parameters:
        raise InputError(f"the network {type(network).__name__} has no parameters to train")
    return torch.optim.SGD(
        parameters,
        lr=recipe.learning_rate,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        nesterov=recipe.nesterov and recipe.momentum > 0,
        fused=parameters[0].device.type in ("cpu", "cuda"),
    )


def _last_linear(network: nn.Module) -> str:
    names: list[str] = [name for name, part in network.named_modules() if isinstance(part, nn.Linear)]
    if not names:
        raise InputError(
            f"the network {type(network).__name__} has no linear layer to take activations from; name a layer"
        )
    return names[-1]


def _last_maps(network: nn.Module, inputs: Tensor) -> nn.Module | None:
    """The module that gives a network's last maps, found with one image; None if there are no maps."""
    found: list[nn.Module] = []

    def note(module: nn.Module, _: object, output: object) -> None:
        if isinstance(output, Tensor) and output.ndim == 4 and _places(network, output) > 1:
            found.append(module)

    hooks = [module.register_forward_hook(note) for module in network.modules() if module is not network]
    try:
        with torch.inference_mode():
            network.eval()(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return found[-1] if found else None


def _places(network: nn.Module, maps: Tensor) -> int:
    return prod(maps.shape[axis] for axis in _place_axes(network))


def _place_axes(network: nn.Module) -> tuple[int, int]:
    """Where the height and width of maps are; the usual place unless the network says otherwise."""
    axes: tuple[int, int] = getattr(network, "place_axes", (2, 3))
    return axes


def _input_of(layer: str, network: nn.Module, inputs: Tensor) -> NDArray[np.float32]:
    """What ``layer`` is given when ``inputs`` pass through the network, one row a sample."""
    modules = dict(network.named_modules())
    if layer not in modules:
        inside = ", ".join(name for name, _ in network.named_children())
        raise InputError(f"the network has no layer {layer!r}; it has {inside}, and those inside of them")
    seen: list[NDArray[np.float32]] = []

    def note(_: nn.Module, given: tuple[Any, ...]) -> None:
        # a copy at once: what follows may change it in place
        seen[:] = [tensor.reshape(len(tensor), -1).float().cpu().numpy().copy() for tensor in given[:1]]

    hook = modules[layer].register_forward_pre_hook(note)
    try:
        network(inputs)
    finally:
        hook.remove()
    if not seen or len(seen[0]) != len(inputs):
        raise InputError(f"the layer {layer!r} is not given one row a sample; name another")
    return seen[0]


def _fork(device: torch.device) -> Any:
    """torch's random numbers outside are as if nothing had happened inside."""
    if device.type == "cpu":
        return torch.random.fork_rng(devices=[])
    index = device.index if device.index is not None else 0
    return torch.random.fork_rng(devices=[index], device_type=device.type)


def _random_state(seed: int, device: torch.device) -> list[Tensor]:
    with _fork(device):
        torch.manual_seed(seed)
        return _get_random_state(device)


def _get_random_state(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state())
    return states


def _set_random_state(states: list[Tensor], device: torch.device) -> None:
    torch.set_rng_state(states[0])
    if device.type != "cpu":
        torch.get_device_module(device).set_rng_state(states[1])
