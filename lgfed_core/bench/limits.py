"""The work that any implementation has to do, and what this machine can do."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lgfed_core.engine.batched import Batched
from lgfed_core.models.layout import joined

from .ours import Ours
from .task import Task
from .times import Times, timed


def limits(task: Task, device: torch.device) -> dict:
    """Arithmetic, memory traffic and, on a GPU, launches of one round; what this machine can do.

    Products are PyTorch's, which on some processors take a slow path; NumPy's stand beside them.

    Bytes: each step reads the weights forward and backward, writes the gradient, and SGD with
    momentum reads weight, gradient and momentum and writes two of them: 8 passes over P floats
    (where a device's parameters stay in cache, this is cache traffic).

    Launches: the operations of a stack of lanes, however many, at the rate of the smallest one;
    what a graph spares.
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
    } | (_launches(task, device) if device.type != "cpu" else {})


def shares(line: dict, bound: dict) -> dict:
    """How much of a contender's time the bounds of `limits` are; memory's is above 1 in a cache."""
    each = line["seeds"] / line["median_s"]
    return {
        "share_of_arithmetic": each * bound["seconds_at_least_arithmetic"],
        "share_of_memory": each * bound["seconds_memory"],
    }


class Counted(TorchDispatchMode):
    """Counts the operations inside that do more than look at a tensor otherwise."""

    many = 0

    def __torch_dispatch__(self, function, types, inputs=(), more=None):
        self.many += not function.is_view
        return function(*inputs, **(more or {}))


def _launches(task: Task, device: torch.device) -> dict:
    ours, one = Ours(task.federation([0], device), task), torch.zeros(1, device=device)
    if isinstance(ours.engine, Batched):
        ours.engine.graphs.able = False  # of a graph's steps two are called
    with Counted() as counted:
        ours.round(0)
    each = _best(lambda: [one.add_(1) for _ in range(1000)]) / 1000
    return {"launches": counted.many, "seconds_launches": counted.many * each}


def _best(function: Callable) -> float:
    times: Times = {}
    for _ in range(5):
        timed(times, ("", 0), function)
    return min(times["", 0])
