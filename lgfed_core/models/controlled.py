"""A model with control variates: what its gradients are on a device, and on all of them."""

from copy import deepcopy

import torch
from torch import Tensor, nn


class Controlled(nn.Module):
    """``model`` is ``net``, which predicts; ``control`` and ``own`` are like it, at first zeros."""

    PREDICTS = "model"

    def __init__(self, net: nn.Module):
        super().__init__()
        self.model, self.control, self.own = net, deepcopy(net), deepcopy(net)
        with torch.no_grad():
            for part in (self.control, self.own):
                for p in part.parameters():
                    p.zero_()

    def forward(self, x: Tensor, **more) -> Tensor:
        """x [n, ...] -> what ``net`` gives; more: its other arguments."""
        return self.model(x, **more)
