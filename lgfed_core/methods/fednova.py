"""FedNova (Wang et al., NeurIPS 2020): who trains longer does not pull the model harder.

FedAvg counts a device's update by its rows and by how many steps it has taken. FedNova divides
the update by the steps (with momentum by what they amount to, ||a_i||_1), and moves the server by

    x + tau_eff sum_i p_i (y_i - x) / ||a_i||_1,   tau_eff = sum_i p_i ||a_i||_1
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .interface import Method
from .participants import Arrived


@dataclass(frozen=True, kw_only=True)
class FedNova(Method):
    """FedAvg where all devices take as many steps. For SGD: see `Arrived.reach` for what is
    refused."""

    def merge(self, arrived: Arrived) -> tuple[Tensor, Tensor]:
        x, far = arrived.before, arrived.reach  # [P_s], [m]
        each = (arrived.uploads - x) / far[:, None]  # [m, P_s], (y_i - x) / (eta ||a_i||_1)
        each = torch.where(far[:, None] > 0, each, 0)  # at a rate of 0
        p = torch.full_like(far, 1 / len(far)) if arrived.weights is None else arrived.weights.to(x)
        return x + (p @ far) * (p @ each), arrived.memory
