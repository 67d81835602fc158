"""FedProx (Li et al., 2020, eq. 2): FedAvg with a pull towards the received model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from .interface import Method, Step


@dataclass(frozen=True, kw_only=True)
class FedProx(Method):
    """Minimises task + mu/2 ||w - w_received||^2; mu = 0 is FedAvg."""

    mu: float = 0.01

    LEAST: ClassVar = {"mu": 0}

    def steps(self, net: nn.Module) -> Sequence[Step]:
        return (Step(self.loss, pull=self.mu),)
