"""Adam (Kingma & Ba 2015) at its defaults, for one lane or a stack of lanes."""

from collections.abc import Hashable, Mapping
from typing import Any

import torch
from torch import Tensor

MEAN, SQUARE, LEAST = 0.9, 0.999, 1e-8


class Adam:
    """Moments of each parameter, from zero; a parameter counts the steps that it takes itself.

    values: parameters by any key, [L, ...] with ``lanes``, else of one lane. `change` is what a
    parameter is moved by, against the gradient, at a learning rate of one.
    """

    def __init__(self, values: Mapping[Any, Tensor], lanes: int | None = None):
        self.moments = {n: (torch.zeros_like(v), torch.zeros_like(v)) for n, v in values.items()}
        shape = () if lanes is None else (lanes,)
        self.taken = {n: torch.zeros(shape, device=v.device) for n, v in values.items()}

    def forget(self) -> None:
        """Start from zero again, in the same tensors."""
        for name, moments in self.moments.items():
            for tensor in (*moments, self.taken[name]):
                tensor.zero_()

    def change(self, name: Hashable, grad: Tensor, on: Tensor | None = None) -> Tensor:
        """Of one step; lanes that are not ``on`` [L] do not move, and keep their moments."""
        mean, square = self.moments[name]
        on = torch.ones_like(self.taken[name], dtype=torch.bool) if on is None else on
        self.taken[name] += on
        wide = on.view(*on.shape, *[1] * (grad.dim() - on.dim()))
        mean.copy_(torch.where(wide, MEAN * mean + (1 - MEAN) * grad, mean))
        square.copy_(torch.where(wide, SQUARE * square + (1 - SQUARE) * grad**2, square))
        taken = self.taken[name].clamp(min=1).view(wide.shape)
        size = (square / (1 - SQUARE**taken)).sqrt() + LEAST
        return torch.where(wide, mean, 0) / (1 - MEAN**taken) / size
