"""FedProx (Li et al., 2020, eq. 2): FedAvg with a pull towards the received model."""

from dataclasses import dataclass

from torch import Tensor

from lgfed_core.errors import at_least

from .interface import Batch, Local, Method


@dataclass(frozen=True, kw_only=True)
class FedProx(Method):
    """Minimises task + mu/2 ||w - w_received||^2; mu = 0 is FedAvg."""

    mu: float = 0.01

    def __post_init__(self):
        super().__post_init__()
        at_least(0, mu=self.mu)

    def loss(self, local: Local, batch: Batch) -> Tensor:
        drift = sum((local.params[n] - local.received[n]).square().sum() for n in local.params)
        return super().loss(local, batch) + self.mu / 2 * drift
