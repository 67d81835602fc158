"""Seconds a round, contender by contender, in turn; what it computes, and a machine at its best."""

import math
import statistics
import time
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lgfed_core.errors import LgfedError
from lgfed_core.models.layout import joined

from .task import Task

Who = tuple[str, int]  # and the seeds that it trains at once
Times = dict[Who, list[float]]  # seconds a round


def timed(times: Times, who: Who, function: Callable, *args):
    """Call ``function`` and note the seconds that it took under ``who``; what it returned."""
    began = time.perf_counter()
    found = function(*args)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    times.setdefault(who, []).append(time.perf_counter() - began)
    return found


def lines_of(task: Task, times: Times, plain: Iterable[Who]) -> list[dict]:
    """One line per contender, beside the best of ``plain``; their first times were the warm-up."""
    median = {who: statistics.median(seconds[1:]) for who, seconds in times.items()}
    best = min(median[who] for who in plain)
    return [
        {
            "task": task.name,
            "who": who,
            "seeds": seeds,
            "median_s": median[who, seeds],
            "min_s": min(s[1:]),
            "max_s": max(s[1:]),
            "rounds_per_s": 1 / median[who, seeds],
            "plain_over_this": best / median[who, seeds],
        }
        for (who, seeds), s in times.items()
    ]


def same(expected: Tensor, found: Tensor, where: str) -> None:
    """Raise unless both are equal up to rounding; later rounds amplify the rounding of float32."""
    gap = (expected.detach() - found.detach()).abs().max().item()
    if not gap < 1e-3:
        raise LgfedError(f"{where}: parameters differ by {gap:.1e}; all contenders must agree")


def limits(task: Task, device: torch.device) -> dict:
    """Arithmetic and memory traffic of one round, and what this machine can do.

    Products are PyTorch's, which on some processors take a slow path; NumPy's stand beside them.

    Bytes: each step reads the weights forward and backward, writes the gradient, and SGD with
    momentum reads weight, gradient and momentum and writes two of them: 8 passes over P floats
    (where a device's parameters stay in cache, this is cache traffic).
    """
    fed = task.federation([0])
    rows, passes = len(fed.data.train.y) // task.devices, task.cohort * task.training.epochs
    steps = passes * -(-rows // task.training.batch_size)
    a = torch.randn(1024, 1024, device=device)
    gemm = _best(lambda: a @ a)
    there = np.ones((1024, 1024), np.float32)
    other = _best(lambda: there @ there) if device.type == "cpu" else math.nan
    big = torch.empty(64 * 1024 * 1024, device=device)
    copy_s = _best(lambda: big[: big.numel() // 2].copy_(big[big.numel() // 2 :]))
    flops = passes * rows * flops_per_row(fed.net, fed.data.train.x[:1])
    nbytes = steps * 8 * 4 * joined(fed.net).numel()
    peak, bandwidth = 2 * 1024**3 / gemm, 4 * big.numel() / copy_s
    return {
        "task": task.name,
        "device": device.type,
        "gflop": flops / 1e9,
        "gbyte": nbytes / 1e9,
        "gflop_per_s_of_this_machine": peak / 1e9,
        "gflop_per_s_of_numpy_here": 2 * 1024**3 / other / 1e9,
        "gbyte_per_s_of_this_machine": bandwidth / 1e9,
        "seconds_at_least_arithmetic": flops / peak,
        "seconds_memory": nbytes / bandwidth,
    }


def flops_per_row(net: nn.Module, x: Tensor) -> int:
    """Operations of a step on one row [1, ...], forward and backward; multiply-adds are two."""
    with FlopCounterMode(display=False) as counted:
        net(x).sum().backward()
    return counted.get_total_flops()


def _best(function: Callable) -> float:
    times: Times = {}
    for _ in range(5):
        timed(times, ("", 0), function)
    return min(times["", 0])
