from __future__ import annotations

import pytest

from unpoison.data.named.catalog import CATALOG, NAMES, closest, find
from unpoison.errors import InputError


@pytest.mark.parametrize("spec", CATALOG.values(), ids=lambda spec: spec.name)
def test_each_is_complete(spec):
    assert CATALOG[spec.name] is spec
    assert len(set(spec.class_names)) == len(spec.class_names)
    assert spec.origins
    assert all(len(file.digest) in (32, 64) and int(file.digest, 16) for file in spec.known)
    assert all(file.max_bytes > 0 for file in spec.known)
    assert len({file.name for file in spec.known}) == len(spec.known)


def test_class_numbers_follow_the_order_of_names_where_folders_are_sorted():
    for name, n in (("gtsrb", 43), ("imagenette", 10)):
        names = CATALOG[name].class_names
        assert list(names) == sorted(names)
        assert len(names) == n
    assert all(name.startswith(f"{i:02d} ") for i, name in enumerate(CATALOG["gtsrb"].class_names))


def test_signs_are_never_mirrored():
    assert {name: spec.augmentation for name, spec in CATALOG.items()} == {
        "cifar10": "crop-flip", "gtsrb": "crop", "imagenette": "crop-flip", "fashion-mnist": "crop-flip",
    }  # fmt: skip


def test_find():
    assert find("gtsrb").n_train == 26_640
    with pytest.raises(InputError, match=r"digits comes with scikit-learn"):
        find("digits")
    with pytest.raises(
        InputError, match=r"no dataset is called 'cifar-10'; did you mean cifar10\? The names are: "
    ):
        find("cifar-10")
    with pytest.raises(InputError, match=r"no dataset is called 'svhn'; The names are: digits, cifar10, "):
        find("svhn")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("cifar-10", "cifar10"),
        ("CIFAR10", "cifar10"),
        ("fashion_mnist", "fashion-mnist"),
        ("FashionMNIST", "fashion-mnist"),
        ("imagenet", "imagenette"),
        ("gtrsb", "gtsrb"),
        ("digit", "digits"),
        ("mnist", None),
        ("cifar10.npz", None),
        ("./cifar10", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_closest(said, meant):
    assert closest(said) == meant
    assert meant is None or meant in NAMES
