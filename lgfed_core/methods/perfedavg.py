"""Per-FedAvg (Fallah et al., NeurIPS 2020, Algorithm 1): a model one step from which is good.

A device minimises f_i(w - alpha grad f_i(w)). With each batch it takes the inner gradient on one
half of the rows, and that of the model one step ahead on the other. It then fine-tunes what it
receives, by `LocalOnly` in a second run.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from .interface import Batch, Local, Method


@dataclass(frozen=True, kw_only=True)
class PerFedAvg(Method):
    """FedAvg of the loss one step ahead.

    alpha: the size of that step. exact: with the second derivatives of equation (7); without, the
        paper's first-order version (FO).
    """

    alpha: float = 0.01
    exact: bool = False

    LEAST: ClassVar = {"alpha": 0}
    round_as_tensor: ClassVar[bool] = True

    def loss(self, local: Local, batch: Batch) -> Tensor:
        ahead = {}
        for name, slope in local.gradients(super().loss, half(batch, 0)).items():
            slope = slope if self.exact else slope.detach()
            ahead[name] = local.params[name] - self.alpha * slope
        return super().loss(local.at(ahead), half(batch, 1))


def half(batch: Batch, odd: int) -> Batch:
    """Every other row of a batch, by weights; all of one that has no other row."""
    b = len(batch.x)
    weight = batch.weight  # [b]
    if weight is None:
        weight = torch.full((b,), 1 / b, device=batch.x.device)
    some = weight * (torch.arange(b, device=weight.device) % 2 == odd)
    share = some.sum()
    found = torch.where(share > 0, some / share.clamp(min=1e-12), weight)
    return replace(batch, weight=found)
