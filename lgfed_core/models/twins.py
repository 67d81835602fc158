"""Two models on each device: one that it shares and one of its own."""

from collections.abc import Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.func import functional_call

from .layout import values_of


class Twins(nn.Module):
    """``shared`` and ``own``, two copies of ``net`` with the same first values.

    Predictions are of ``own``; with shared=True they are of the other.
    """

    PREDICTS = "own"

    def __init__(self, net: nn.Module):
        super().__init__()
        self.shared, self.own = net, deepcopy(net)

    def forward(self, x: Tensor, shared: bool = False, **more) -> Tensor:
        """x [n, ...] -> what ``net`` gives; more: its other arguments."""
        return (self.shared if shared else self.own)(x, **more)


class Mixture(Twins):
    """Predictions are of alpha ``own`` + (1 - alpha) ``shared``, parameter by parameter.

    alpha: a number of the device's own, from 0 to 1, that begins at a half. Its gradient passes
    the bounds, so that it can come back from them.
    """

    def __init__(self, net: nn.Module):
        super().__init__(net)
        self.alpha = nn.Parameter(torch.tensor([0.5]))  # [1]

    def forward(self, x: Tensor, shared: bool = False, **more) -> Tensor:
        """x [n, ...] -> what ``net`` gives; more: its other arguments."""
        if shared:
            return self.shared(x, **more)
        alpha = self.alpha + (self.alpha.clamp(0, 1) - self.alpha).detach()
        ours = dict(self.shared.named_parameters())
        mixed = {  # the server's model is constant here
            name: alpha * own + (1 - alpha) * ours[name].detach()
            for name, own in self.own.named_parameters()
        }
        return functional_call(self.own, mixed, (x,), more)


def squared_distance(own: Mapping[str, Tensor], shared: Mapping[str, Tensor]) -> Tensor:
    """||v - w||^2 of v, the parts called ``own.`` among some parameters by name, and w, their twins
    ``shared.`` among others; a number."""
    v, w = values_of(own, "own"), values_of(shared, "shared")
    return torch.stack([(v[name] - w[name]).square().sum() for name in v]).sum()
