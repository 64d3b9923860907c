"""Where torch computes, how precisely, and how fast that place is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from unpoison.errors import InputError
from unpoison.learners.recipes import PRECISIONS

DEVICES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str = "auto") -> torch.device:
    """The device that ``name`` means here; ``auto`` takes the fastest."""
    kind = name.partition(":")[0]
    if kind not in DEVICES:
        raise InputError(f"unknown device {name!r}; choose one of {', '.join(DEVICES)}, or such as cuda:1")
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if kind == "auto":
        return torch.device(next(device for device in ("cuda", "mps", "cpu") if present[device]))
    if not present[kind]:
        raise InputError(
            f"the device {name!r} is not available to torch {torch.__version__} here; use auto or cpu"
        )
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise InputError(f"unknown device {name!r}; write a number after the colon, as in cuda:1") from error


def lower_precision(device: torch.device, precision: str = "auto") -> torch.dtype | None:
    """The type for mixed precision on ``device``; None where full precision is meant or as fast."""
    if precision not in PRECISIONS:
        raise InputError(f"unknown precision {precision!r}; choose one of {', '.join(PRECISIONS)}")
    if precision == "full" or (precision == "auto" and not _gains(device)):
        return None
    if device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return torch.float16
    return torch.bfloat16


def _gains(device: torch.device) -> bool:
    """Whether mixed precision is faster: on GPUs, and on processors with instructions for it."""
    if device.type != "cpu":
        return device.type == "cuda"
    return any(_cpu_has(name) for name in ("amx_tile", "avx512_bf16"))


def _cpu_has(name: str) -> bool:
    ask = getattr(torch.cpu, f"_is_{name}_supported", None)
    return ask is not None and bool(ask())


@contextmanager
def steady(device: torch.device, *, threads: int) -> Iterator[None]:
    """Inside, the same work gives the same bits: a fixed number of threads, no trial of kernels."""
    threads_before = torch.get_num_threads()
    cudnn: Any = torch.backends.cudnn
    flags = cudnn.flags(enabled=cudnn.enabled, benchmark=False, deterministic=True)
    torch.set_num_threads(threads)
    try:
        if device.type == "cuda":
            with flags:
                yield
        else:
            yield
    finally:
        torch.set_num_threads(threads_before)


def product_rate(device: torch.device, *, threads: int, seconds: float = 0.25) -> float:
    """Floating-point operations a second that a large float32 matrix product reaches here."""
    side = 2048
    left, right = torch.ones(side, side, device=device), torch.ones(side, side, device=device)
    with steady(device, threads=threads):
        best, started = 0.0, time.perf_counter()
        while best == 0.0 or time.perf_counter() - started < seconds:
            _wait(device)
            began = time.perf_counter()
            torch.mm(left, right)
            _wait(device)
            best = max(best, 2.0 * side**3 / (time.perf_counter() - began))
    return best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


@cache
def forward_flops(build: Any, shape: tuple[int, ...], n_classes: int) -> float:
    """Operations in convolutions and matrix products to pass one sample through a network of this kind.

    Convolutions count as defined, also where a faster algorithm computes them.
    """
    try:
        return _flops_on("meta", build, shape, n_classes)  # shapes only: nothing is computed
    except Exception:  # a network of the user's may look at values
        return _flops_on("cpu", build, shape, n_classes)


def _flops_on(device: str, build: Any, shape: tuple[int, ...], n_classes: int) -> float:
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device(device), torch.no_grad(), FlopCounterMode(display=False) as counter:
        build(shape, n_classes).eval()(torch.zeros(1, *shape))
    return float(counter.get_total_flops())
