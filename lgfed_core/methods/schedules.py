"""Schedules of adversarial training: Ganin & Lempitsky (2015), as FADE has them (appendix B.1)."""

import math
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from lgfed_core import require

Steps = TypeVar("Steps", float, Tensor)


@dataclass(frozen=True)
class Annealing:
    """A learning rate that falls with a device's *own* steps: lr / (1 + 10 n / N)^0.75.

    n: steps that this device has taken in all rounds so far, so that a device which rarely takes
        part keeps a high rate for long ("scheduled locally").
    steps: N = T K, rounds times steps a round. FADE's formula lacks the base rate lr.
    """

    steps: int

    def __post_init__(self):
        require.whole(steps=self.steps)
        require.at_least(1, steps=self.steps)

    def factor(self, n: Steps) -> Steps:
        """What the learning rate is multiplied by after ``n`` steps [...]."""
        return (1 + 10 * n / self.steps) ** -0.75


def rising(round: int | Tensor, rounds: int) -> float | Tensor:
    """lambda = 2 / (1 + exp(-10 t / T)) - 1: from 0 to 1, the same for all devices."""
    if isinstance(round, Tensor):
        rise = 2 / (1 + (-10 * round.double().clamp(min=0) / rounds).exp()) - 1
        return rise.to(torch.get_default_dtype())
    return 2 / (1 + math.exp(-10 * max(0, round) / rounds)) - 1
