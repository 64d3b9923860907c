from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from PIL import Image

from unpoison.adapters.torch import BATCH, kept, samples
from unpoison.errors import InputError, MissingExtraError

from .builders import EXPECTED, WRONG, N, images, labels, quick, rows

torch = pytest.importorskip("torch", reason="the extra 'torch' is not installed")
data = torch.utils.data


class Listed(data.Dataset):
    """Samples from a list, as most datasets of people are; counts how often each is read."""

    def __init__(self, samples: list[Any]) -> None:
        self.samples = samples
        self.reads = np.zeros(len(samples), dtype=int)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        self.reads[index] += 1
        return self.samples[index]


def as_tensor(image: Any) -> Any:
    """What torchvision's ToTensor makes of an image."""
    return torch.from_numpy(np.moveaxis(image, -1, 0).copy()).float() / 255


FORMS: dict[str, Any] = {
    "tensors": as_tensor,
    "bytes": lambda image: torch.from_numpy(np.moveaxis(image, -1, 0).copy()),
    "channels last": torch.from_numpy,
    "arrays": lambda image: image,
    "pictures": Image.fromarray,
    "with gradients": lambda image: as_tensor(image).requires_grad_(),
}


@pytest.mark.parametrize("form", FORMS)
def test_images_of_every_form_become_the_same_bytes(form: str) -> None:
    dataset = Listed([(FORMS[form](image), label) for image, label in zip(images(), labels(), strict=True)])
    X, y = samples(dataset)
    assert X.dtype == np.uint8
    assert np.array_equal(X, images())
    assert np.array_equal(y, labels())
    assert (dataset.reads == 1).all()


def test_the_subset_of_those_to_train_on() -> None:
    dataset = Listed(list(zip(images(), labels(), strict=True)))
    subset = kept(dataset, quick())
    assert isinstance(subset, data.Subset)
    assert subset.dataset is dataset
    assert subset.indices == np.flatnonzero(EXPECTED).tolist()
    assert (dataset.reads == 1).all()
    loader = data.DataLoader(subset, batch_size=50)
    assert sum(len(batch) for _, batch in loader) == N - len(WRONG)


def test_all_tensors_at_once() -> None:
    pixels = torch.from_numpy(np.moveaxis(images(), -1, 1).copy())
    dataset = data.TensorDataset(pixels, torch.from_numpy(labels()))
    assert np.array_equal(samples(dataset)[0], images())
    assert kept(dataset, quick()).indices == np.flatnonzero(EXPECTED).tolist()


def test_rows_and_more_than_two_parts() -> None:
    dataset = Listed(
        [(row, label, "name") for row, label in zip(rows(), torch.from_numpy(labels()), strict=True)]
    )
    X, y = samples(dataset)
    assert np.array_equal(X, rows())
    assert np.array_equal(y, labels())


def test_a_subset_of_a_subset_and_more_than_one_batch() -> None:
    n = BATCH + 30
    dataset = Listed([(np.full((4, 4), i % 251, dtype=np.uint8), i % 2) for i in range(2 * n)])
    part = data.Subset(dataset, range(n, 2 * n))
    X, y = samples(part)
    assert X.shape == (n, 4, 4, 1)
    assert X[:, 0, 0, 0].tolist() == [i % 251 for i in range(n, 2 * n)]
    assert y.tolist() == [i % 2 for i in range(n, 2 * n)]
    assert dataset.reads.sum() == n


def test_datasets_that_read_many_at_once_are_asked_so() -> None:
    class Many(Listed):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            self.reads[indices] += 1
            return [self.samples[i] for i in indices]

        def __getitem__(self, index: int) -> Any:
            raise AssertionError("one by one")

    dataset = Many(list(zip(images(), labels(), strict=True)))
    assert np.array_equal(samples(dataset)[0], images())


def test_a_fitted_cleaner_reads_nothing() -> None:
    dataset = Listed(list(zip(images(), labels(), strict=True)))
    cleaner = quick().fit(*samples(dataset))
    dataset.reads[:] = 0
    assert kept(dataset, cleaner).indices == np.flatnonzero(EXPECTED).tolist()
    assert dataset.reads.sum() == 0


def test_words_as_labels() -> None:
    dataset = Listed([(image, "ab"[label]) for image, label in zip(images(), labels(), strict=True)])
    assert kept(dataset, quick()).indices == np.flatnonzero(EXPECTED).tolist()


class Stream(data.IterableDataset):
    def __iter__(self) -> Any:
        return iter(())


def late(image: Any) -> list[Any]:
    """The odd one is alone in the second batch."""
    return [(np.zeros((4, 4), dtype=np.uint8), 0)] * BATCH + [(image, 1)]


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Stream(), "the dataset must be map-style, .* got Stream"),
        (Listed([]), "the dataset has no samples"),
        (Listed([1, 2]), "must give pairs of an image"),
        (Listed([(np.zeros((4, 4)), 0), (np.zeros((5, 5)), 1)]), "images have not all one shape"),
        (Listed([(torch.zeros(4, 4), 0), (torch.zeros(5, 5), 1)]), "images have not all one shape"),
        (
            Listed(late(np.zeros((5, 5), dtype=np.uint8))),
            f"sample {BATCH} is uint8 of shape \\(5, 5\\), the first",
        ),
        (Listed(late(np.zeros((4, 4)))), f"sample {BATCH} is float64 of shape"),
        (Listed([("a picture", 0)]), "the dataset has samples of type <U9; they must be numbers"),
    ],
)
def test_bad_datasets_are_named(dataset: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        kept(dataset, quick())


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.data", None)
    with pytest.raises(MissingExtraError, match=r"unpoison\[torch\]"):
        kept(Listed([]), quick())
