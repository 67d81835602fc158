"""Seconds a round, contender by contender, in turn."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from lgfed_core.errors import LgfedError

from .task import Task

Times = dict[tuple[str, int], list[float]]  # (who, seeds trained at once) -> seconds a round


def timed(times: Times, who: tuple[str, int], function: Callable, *args):
    """Call ``function`` and note the seconds that it took under ``who``; what it returned."""
    began = time.perf_counter()
    found = function(*args)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    times.setdefault(who, []).append(time.perf_counter() - began)
    return found


def lines_of(task: Task, times: Times) -> list[dict]:
    """One line per contender; its first time was the warm-up."""
    return [
        {
            "task": task.name,
            "who": who,
            "seeds": seeds,
            "median_s": statistics.median(s[1:]),
            "min_s": min(s[1:]),
            "max_s": max(s[1:]),
            "rounds_per_s": 1 / statistics.median(s[1:]),
        }
        for (who, seeds), s in times.items()
    ]


def same(expected: Tensor, found: Tensor, where: str) -> None:
    """Raise unless both are equal up to rounding; later rounds amplify the rounding of float32."""
    gap = (expected.detach() - found.detach()).abs().max().item()
    if not gap < 1e-3:
        raise LgfedError(f"{where}: parameters differ by {gap:.1e}; all contenders must agree")
