"""SCAFFOLD (Karimireddy et al., ICML 2020, Algorithm 1): devices correct for where they drift.

Each device keeps c_i, about its own gradient, the server c, about everybody's, and a step follows
g - c_i + c in the place of the gradient g.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from lgfed_core.models.layout import parts, values_of

from .interface import Batch, Local, Method, Step, cross_entropy, partway
from .participants import Trained


@dataclass(frozen=True, kw_only=True)
class Scaffold(Method):
    """For a network of `models.controlled.Controlled`: ``model`` is x, ``control`` c, ``own`` c_i.

    rate: how far the server moves towards the average, the paper's global step eta_g. Devices count
    alike, as in the paper.
    """

    weighted: bool = False
    rate: float = 1.0

    SHARES: ClassVar = ("rate",)

    def shared(self, net: nn.Module) -> frozenset[str]:
        return parts(net, "model", "control")

    def steps(self, net: nn.Module) -> Sequence[Step]:
        return (Step(self.loss, parts(net, "model")),)

    def loss(self, local: Local, batch: Batch) -> Tensor:
        """Its gradient is g - c_i + c."""
        model, c, own = (values_of(local.params, part) for part in ("model", "control", "own"))
        drifts = [(c[name] - own[name]) * model[name] for name in model]
        task = cross_entropy(local.net(batch.x), batch)
        return task + torch.stack([drift.sum() for drift in drifts]).sum()

    def finish(self, trained: Trained) -> tuple[Tensor, Tensor]:
        """c_i by option II; c moves by the sum of these devices' changes over all N."""
        x, c = trained.received.chunk(2)  # [P]
        y, _ = trained.shared.chunk(2, -1)  # [m, P]
        far = trained.reach[:, None]  # K eta_l, [m, 1]
        own = trained.before - c + (x - y) / far  # [m, P]
        own = torch.where(far > 0, own, trained.before)  # at a rate of 0
        share = len(own) / trained.devices
        return torch.cat([y, c + share * (own - trained.before)], -1), own

    def server_update(self, before: Tensor, average: Tensor) -> Tensor:
        """A step of ``rate`` towards the average model; c is as the devices sent it."""
        (x, _), (y, c) = before.chunk(2), average.chunk(2)  # [P]
        return torch.cat([partway(x, y, self.rate), c])
