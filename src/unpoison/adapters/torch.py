"""torch: a map-style Dataset of samples with labels in, the Subset of those to train on out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unpoison.adapters.judging import CHANNELS, Samples, as_features, judge
from unpoison.errors import InputError, MissingExtraError
from unpoison.estimator import IncompatibilityClustering

if TYPE_CHECKING:
    from torch.utils.data import Dataset, Subset

NAME = "the dataset"
BATCH = 512


def kept(dataset: Dataset[Any], cleaner: IncompatibilityClustering | None = None) -> Subset[Any]:
    """The samples of ``dataset`` that are safe to train on.

    ``cleaner`` is fitted on the dataset, or taken as it is where it was fitted already; without one it is the
    usual of ``unpoison clean``. Give the dataset without random transformations, which would be judged too;
    the positions hold for the one with them: ``Subset(augmented, kept(plain).indices)``.
    """
    data = _package()
    fitted = judge(cleaner, _length(dataset), lambda: samples(dataset))
    subset: Subset[Any] = data.Subset(dataset, np.flatnonzero(fitted.keep_).tolist())
    return subset


def samples(dataset: Dataset[Any]) -> Samples:
    """Features and labels, read once: images as bytes ``(n, height, width, channels)``, or rows.

    A sample is a pair (or longer, the rest is not looked at) of an image or row and a label. Images that are
    tensors have their channels first, arrays and PIL images have them last.
    """
    data = _package()
    if _length(dataset) == 0:
        raise InputError(f"{NAME} has no samples")
    if type(dataset) is data.TensorDataset:  # all of it is there already
        tensors: Any = dataset.tensors  # type: ignore[attr-defined]
        images, labels = _channels_last(tensors[0]), tensors[1].cpu().numpy()
    else:
        images, labels = _read(dataset)
    return as_features(images, where=NAME), labels


def _read(dataset: Dataset[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """All images and labels, batch by batch."""
    start = 0
    labels: list[Any] = []
    for part, names in _package().DataLoader(dataset, batch_size=BATCH, collate_fn=_stacked):
        if start == 0:
            images = np.empty((_length(dataset), *part.shape[1:]), dtype=part.dtype)
        if (part.shape[1:], part.dtype) != (images.shape[1:], images.dtype):
            raise InputError(
                f"{NAME}: sample {start} is {part.dtype} of shape {part.shape[1:]}, the first one "
                f"{images.dtype} of shape {images.shape[1:]}; make them alike"
            )
        images[start : start + len(part)] = part
        start += len(part)
        labels.extend(names)
    return images, np.array(labels)


def _stacked(batch: list[Any]) -> tuple[NDArray[Any], list[Any]]:
    """The images of a batch as one array, and its labels."""
    import torch

    try:
        images, labels = zip(*((sample[0], sample[1]) for sample in batch), strict=True)
    except (TypeError, IndexError, KeyError) as error:
        raise InputError(f"{NAME} must give pairs of an image (or row) and a label ({error!r})") from error
    try:
        stacked = (
            _channels_last(torch.stack(images))
            if isinstance(images[0], torch.Tensor)
            else np.stack([np.asarray(image) for image in images])
        )
    except (RuntimeError, ValueError, TypeError) as error:
        raise InputError(f"{NAME}: the images have not all one shape ({error}); resize them in it") from error
    return stacked, [label.item() if hasattr(label, "item") else label for label in labels]


def _channels_last(images: Any) -> NDArray[Any]:
    """Tensors have their channels first, where they have any."""
    array: NDArray[Any] = images.detach().cpu().numpy()
    return np.moveaxis(array, 1, -1) if array.ndim == 4 and array.shape[1] in CHANNELS else array


def _length(dataset: Any) -> int:
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise InputError(
            f"{NAME} must be map-style, with a length and samples by position; got {type(dataset).__name__}"
        )
    return len(dataset)


def _package() -> Any:
    try:
        import torch.utils.data
    except ImportError as error:
        raise MissingExtraError("torch", "torch", "judging a torch dataset") from error
    return torch.utils.data
