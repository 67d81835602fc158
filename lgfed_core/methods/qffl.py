"""q-FFL (Li et al., ICLR 2020): devices that do badly count for more.

A device minimises F^(q+1) / (q+1), F its mean loss on a batch, so that its step is F^q times as
long as in FedAvg; ``unit`` is the loss at which both are alike. q = 0 is FedAvg, and with a large q
the worst device alone counts, as in AFL (Mohri et al. 2019). The server takes the plain average:
the step that Li et al. estimate from the losses is the learning rate here.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from .interface import Batch, Local, Method, partway


@dataclass(frozen=True, kw_only=True)
class QFFL(Method):
    """FedAvg of devices that minimise F (F / unit)^q / (q + 1); q at least 0, unit above 0."""

    q: float = 1.0
    unit: float = 1.0
    beta: float = 1.0
    weighted: bool = False

    LEAST: ClassVar = {"q": 0, "unit": 1e-9}
    SHARES: ClassVar = ("beta",)

    def loss(self, local: Local, batch: Batch) -> Tensor:
        task = super().loss(local, batch)
        least = torch.finfo(task.dtype).tiny  # 0^q has no slope where q is below 1
        return task * (task / self.unit).clamp(min=least) ** self.q / (self.q + 1)

    def server_update(self, before: Tensor, average: Tensor) -> Tensor:
        """A step of ``beta`` towards the average."""
        return partway(before, average, self.beta)
