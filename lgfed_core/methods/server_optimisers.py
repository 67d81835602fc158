"""Servers that take the average update for a gradient (Reddi et al., ICLR 2021, Algorithm 2).

With Delta, the average of what devices have moved by, the server keeps

    m = beta1 m + (1 - beta1) Delta,   v = beta2 v + (1 - beta2) Delta^2   (FedAdam)

and moves by rate m / (sqrt(v) + tau). FedAvgM (Hsu et al., 2019) keeps m = beta m + Delta alone and
moves by rate m.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from .interface import Method


@dataclass(frozen=True, kw_only=True)
class FedAvgM(Method):
    """FedAvg with momentum ``beta`` at the server; beta = 0 and rate = 1 are FedAvg."""

    beta: float = 0.9
    rate: float = 1.0

    LEAST: ClassVar = {"rate": 0}
    BELOW_ONE: ClassVar = ("beta",)
    server_memory: ClassVar[int] = 1

    def server_step(self, before: Tensor, average: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        momentum = self.beta * memory + (average - before)  # [1, P_s]
        return before + self.rate * momentum[0], momentum


@dataclass(frozen=True, kw_only=True)
class FedAdam(Method):
    """Adam at the server, without a correction of its bias, as in the paper.

    rate: the server's, eta. tau: how adaptive it is; all as in the paper's experiments.
    """

    beta1: float = 0.9
    beta2: float = 0.99
    rate: float = 0.01
    tau: float = 1e-3

    LEAST: ClassVar = {"rate": 0, "tau": 1e-12}
    BELOW_ONE: ClassVar = ("beta1", "beta2")
    server_memory: ClassVar[int] = 2

    def server_step(self, before: Tensor, average: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        delta, (m, v) = average - before, memory  # [P_s] each
        m = self.beta1 * m + (1 - self.beta1) * delta
        v = self.second(v, delta.square())
        return before + self.rate * m / (v.sqrt() + self.tau), torch.stack([m, v])

    def second(self, v: Tensor, squares: Tensor) -> Tensor:
        """The second moment [P_s] after squared updates [P_s]."""
        return self.beta2 * v + (1 - self.beta2) * squares


@dataclass(frozen=True, kw_only=True)
class FedYogi(FedAdam):
    """FedAdam whose second moment grows and falls by steps that do not depend on its size."""

    def second(self, v: Tensor, squares: Tensor) -> Tensor:
        return v - (1 - self.beta2) * squares * (v - squares).sign()
