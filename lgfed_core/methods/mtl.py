"""Mean-regularised multi-task learning, LG-FedAvg's baseline (Liang et al., 2020, C.2.4).

With W = [w_1 ... w_m], the models of m devices side by side, the text adds to the task's loss

    scale (tr(W Omega W') + ||W||_F^2),   Omega = (I - 11'/m)^2,

which pulls each model towards their mean. Nothing is averaged. The released code builds Omega
from ones((m, m)) where the identity is meant and squares element by element: 0.81 in every
entry (m = 10), so that tr(W Omega W') is 0.81 ||w_1 + ... + w_m||^2 and pulls their sum to zero.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from .interface import Batch, Local, Method


@dataclass(frozen=True, kw_only=True)
class MTL(Method):
    """The text's regulariser, up to terms that are constant for the device that trains.

    Omega is idempotent, and ||w - mean||^2 summed over the devices is, as a function of one w,
    (1 - 1/m) ||w - mean of the others||^2. The paper names no strength; `scale` multiplies both
    terms, as in its code, where it is 1e-6 for CIFAR-10 and 1e-7 for MNIST.
    """

    scale: float = 1e-6

    LEAST: ClassVar = {"scale": 0}
    needs_peers: ClassVar[bool] = True

    def shared(self, net: nn.Module) -> frozenset[str]:
        return frozenset()

    def loss(self, local: Local, batch: Batch) -> Tensor:
        others = {name: local.others[name] for name in local.params}  # no running statistics
        w, others = _flat(local.params), _flat(others)  # [P] each
        pull = self.pull(w, others, local.participants) + w.square().sum()
        return super().loss(local, batch) + self.scale * pull

    def pull(self, w: Tensor, others: Tensor, m: int | Tensor) -> Tensor:
        """tr(W Omega W') as a function of one device's w [P] and the mean of the others' [P]."""
        return (1 - 1 / m) * (w - others).square().sum()


@dataclass(frozen=True, kw_only=True)
class ReleasedMTL(MTL):
    """Omega as released: (1 - 1/m)^2 in every entry.

    The released code cuts W in blocks of 4,000 rows and leaves out the incomplete last one (102
    of 64,102 rows); here all rows count.
    """

    def pull(self, w: Tensor, others: Tensor, m: int | Tensor) -> Tensor:
        return (1 - 1 / m) ** 2 * (w + (m - 1) * others).square().sum()


def _flat(params: dict[str, Tensor]) -> Tensor:
    return torch.cat([p.flatten() for p in params.values()])
