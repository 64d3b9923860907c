from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from unpoison.errors import InputError  # noqa: E402
from unpoison.learners import devices  # noqa: E402
from unpoison.learners.devices import choose_device, forward_flops, lower_precision, product_rate, steady  # noqa: E402
from unpoison.learners.networks import NETWORKS  # noqa: E402

CPU = torch.device("cpu")


def test_auto_takes_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device("auto").type == "cpu"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("auto").type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto").type == "cuda"
    assert choose_device("cuda:1").index == 1


def test_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"'cuda' is not available to torch .* here; use auto or cpu"):
        choose_device("cuda")
    with pytest.raises(InputError, match="unknown device 'tpu'"):
        choose_device("tpu")
    with pytest.raises(InputError, match="unknown device 'cpu:one'; write a number"):
        choose_device("cpu:one")


def test_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_cpu_has", lambda _: False)
    assert lower_precision(CPU, "auto") is None
    assert lower_precision(CPU, "mixed") == torch.bfloat16
    monkeypatch.setattr(devices, "_cpu_has", lambda name: name == "amx_tile")
    assert lower_precision(CPU, "auto") == torch.bfloat16
    assert lower_precision(CPU, "full") is None
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    assert lower_precision(torch.device("cuda"), "auto") == torch.float16
    assert lower_precision(torch.device("mps"), "auto") is None
    with pytest.raises(InputError, match="unknown precision 'half'; choose one of auto, full, mixed"):
        lower_precision(CPU, "half")


def test_steady_gives_the_threads_back() -> None:
    before = torch.get_num_threads()
    with steady(CPU, threads=1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    with pytest.raises(ZeroDivisionError), steady(CPU, threads=1):
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


def test_product_rate() -> None:
    assert 1e8 < product_rate(CPU, threads=1, seconds=0.0) < 1e14


def test_operations_by_hand() -> None:
    def build(shape: tuple[int, ...], n_classes: int) -> torch.nn.Module:
        return torch.nn.Sequential(
            torch.nn.Conv2d(shape[0], 4, 3, padding=1, bias=False),
            torch.nn.Flatten(),
            torch.nn.Linear(256, n_classes),
        )

    # a multiplication and an addition for each weight at each of 8 x 8 places
    assert forward_flops(build, (3, 8, 8), 5) == 2 * (4 * 3 * 9 * 64) + 2 * 256 * 5


def test_operations_of_the_papers_networks() -> None:
    """0.56, 0.07 and 0.13 billion multiplications, as the literature has them."""
    for name, multiplications in (("preactresnet18", 0.556), ("resnet32", 0.069), ("resnet56", 0.126)):
        assert forward_flops(NETWORKS[name], (3, 32, 32), 10) / 2e9 == pytest.approx(
            multiplications, rel=0.02
        )
