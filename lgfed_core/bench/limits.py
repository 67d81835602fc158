"""The work that any implementation has to do, and what this machine can do."""

import math
from collections.abc import Callable

import numpy as np
import torch

from lgfed_core.models.layout import joined

from .task import Task
from .times import Times, timed


def limits(task: Task, device: torch.device) -> dict:
    """Arithmetic and memory traffic of one round, and what this machine can do.

    Products are PyTorch's, which on some processors take a slow path; NumPy's stand beside them.

    Bytes: each step reads the weights forward and backward, writes the gradient, and SGD with
    momentum reads weight, gradient and momentum and writes two of them: 8 passes over P floats
    (where a device's parameters stay in cache, this is cache traffic).
    """
    rows = {"mnist": 60_000, "cifar10": 50_000}[task.dataset] // task.devices
    size, passes = joined(task.net()).numel(), task.cohort * task.training.epochs
    steps = passes * -(-rows // task.training.batch_size)
    a = torch.randn(1024, 1024, device=device)
    gemm = _best(lambda: a @ a)
    there = np.ones((1024, 1024), np.float32)
    other = _best(lambda: there @ there) if device.type == "cpu" else math.nan
    big = torch.empty(64 * 1024 * 1024, device=device)
    copy_s = _best(lambda: big[: big.numel() // 2].copy_(big[big.numel() // 2 :]))
    flops, nbytes = passes * rows * task.flops_per_row, steps * 8 * 4 * size
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


def _best(function: Callable) -> float:
    times: Times = {}
    for _ in range(5):
        timed(times, ("", 0), function)
    return min(times["", 0])
