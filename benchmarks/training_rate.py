"""How much of the machine training uses, and what resident data gains over a DataLoader.

    python benchmarks/training_rate.py [--network compact] [--images 4096] [--rounds 5]

In every round, one after another on the same cores: a large float32 matrix product; the network trained by
the torch learner; the same network, loss and optimizer fed by a ``DataLoader`` with two workers that crops
and flips image by image. Ratios are taken within a round and the median over rounds is reported. Random
pixels: the work does not depend on what is in the images. The last line is JSON: ``{"matmul_share": ...,
"over_dataloader": ...}``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import replace

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from unpoison.learners.devices import choose_device, forward_flops, product_rate
from unpoison.learners.networks import NETWORKS
from unpoison.learners.recipes import TrainingOptions, recipe_for
from unpoison.learners.torch import TorchFactory

CLASSES = 10


class Cropped(Dataset):
    """As torchvision does it: one Pillow image at a time, padded, cropped, flipped, normalised."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images, labels
        self.mean = torch.tensor([0.491, 0.482, 0.447]).view(3, 1, 1)
        self.spread = torch.tensor([0.247, 0.243, 0.262]).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = ImageOps.expand(Image.fromarray(self.images[index]), border=4)
        top, left = (int(torch.randint(0, 9, (1,))) for _ in range(2))
        image = image.crop((left, top, left + 32, top + 32))
        if torch.rand(1) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image, copy=True)).permute(2, 0, 1).contiguous()
        return pixels.float().div(255).sub_(self.mean).div_(self.spread), int(self.labels[index])


def learner_rate(factory: TorchFactory, n: int) -> float:
    """Images a second, trained by the torch learner."""
    learner = factory(0)
    everyone = np.arange(n)
    learner.fit(everyone[:256], epochs=1)
    started = time.perf_counter()
    learner.fit(everyone, epochs=1)
    return n / (time.perf_counter() - started)


def loader_rate(network_name: str, images: np.ndarray, labels: np.ndarray, batch_size: int) -> float:
    """Images a second, fed by a DataLoader whose workers are running before the clock starts."""
    network = NETWORKS[network_name]((3, 32, 32), CLASSES)
    recipe = recipe_for(network_name)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=recipe.nesterov
    )
    loader = DataLoader(
        Cropped(images, labels), batch_size=batch_size, shuffle=True, num_workers=2, persistent_workers=True
    )
    for timed in (False, True):
        started = time.perf_counter()
        for number, (inputs, targets) in enumerate(loader):
            if not timed and number:
                continue
            optimizer.zero_grad()
            functional.cross_entropy(network(inputs), targets).backward()
            optimizer.step()
    return len(images) / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", choices=list(NETWORKS), default="compact")
    parser.add_argument("--images", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (options.images, 32, 32, 3), dtype=np.uint8)
    labels = rng.integers(0, CLASSES, options.images)
    threads = os.cpu_count() or 1
    training = replace(
        TrainingOptions(), augmentation="crop-flip", device="cpu", precision="full", threads=threads
    )
    factory = TorchFactory(NETWORKS[options.network], images, labels, CLASSES, training)
    flops = 3 * forward_flops(factory.build, (3, 32, 32), CLASSES)
    print(f"{options.network}: {flops / 3e6:.1f} MFLOP forward, {threads} threads, torch {torch.__version__}")
    shares, gains = [], []
    for number in range(options.rounds):
        before = product_rate(choose_device("cpu"), threads=threads)
        rate = learner_rate(factory, options.images)
        after = product_rate(choose_device("cpu"), threads=threads)
        fed = loader_rate(options.network, images, labels, training.recipe.batch_size)
        shares.append(rate * flops / max(before, after))
        gains.append(rate / fed)
        print(
            f"round {number}: product {max(before, after) / 1e9:.0f} GFLOP/s, learner {rate:.0f} images/s, "
            f"DataLoader {fed:.0f} images/s; share {shares[-1]:.2f}, gain {gains[-1]:.2f}"
        )
    figures = {
        "matmul_share": round(statistics.median(shares), 3),
        "over_dataloader": round(statistics.median(gains), 2),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
