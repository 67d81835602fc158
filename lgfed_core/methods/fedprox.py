"""FedProx (Li et al., 2020, eq. 2): FedAvg with a pull towards the received model."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from lgfed_core.errors import at_least

from .interface import Method, Step


@dataclass(frozen=True, kw_only=True)
class FedProx(Method):
    """Minimises task + mu/2 ||w - w_received||^2; mu = 0 is FedAvg."""

    mu: float = 0.01

    def __post_init__(self):
        super().__post_init__()
        at_least(0, mu=self.mu)

    def steps(self, net: nn.Module) -> Sequence[Step]:
        return (Step(self.loss, pull=self.mu),)
