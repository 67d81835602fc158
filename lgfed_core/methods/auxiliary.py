"""LG-FedAvg with an auxiliary network: what else a local representation is learned from.

Liang et al. (2019, v1 section 2.1; 2020, v2 Figure 1 and appendix B.1): a device has a local model
f: x -> h, a copy of the shared head g: h -> y, and an auxiliary network a: h -> z that stays on the
device. With each batch it takes one step, end to end as the papers do "in practice", on

    L_g(g(f(x)), y)  +  weight * L_a(a(f(x)), z),

===============  ==================  ===========================================================
class            z                   panel of v2's Figure 1
===============  ==================  ===========================================================
`Auxiliary`      -                   (a) supervised, by g alone: LG-FedAvg
`OwnHead`        the label           supervised by a head of the device's own, as in v1
`Autoencoder`    the row itself      (b) unsupervised
`pretext`'s      a label made up     (c) self-supervised
`Hiding`         an attribute        (d) adversarial: a descends its loss, f ascends it
===============  ==================  ===========================================================

Rows without a label (-1) have a say in L_a alone. Version 1 with a step for each loss is
`lgfedavg_v1.LGFedAvgV1`. The network is `models.auxiliary.AuxiliaryMLP`, or takes ``own`` and
``watch`` as that does and says in ``outputs`` how many numbers a gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core.errors import SettingsError

from .adversary import adversary_loss, reverse, unchanged
from .interface import Batch, Local, Step
from .lgfedavg import LGFedAvg


@dataclass(frozen=True, kw_only=True)
class Auxiliary(LGFedAvg):
    """Averages ``layers``; of itself it has no auxiliary loss, and ``weight`` no say."""

    weight: float = 1.0

    LEAST: ClassVar = {"weight": 0}
    unlabelled: ClassVar[bool] = True

    def steps(self, net: nn.Module) -> Sequence[Step]:
        if not isinstance(getattr(net, "outputs", None), Integral):
            raise SettingsError(
                f"{type(net).__name__} has no auxiliary network for {type(self).__name__}; use "
                "models.auxiliary.AuxiliaryMLP, or a network with `outputs`, `own` and `watch`"
            )
        return super().steps(net)

    def loss(self, local: Local, batch: Batch) -> Tensor:
        return labelled(local.net(batch.x), batch)


@dataclass(frozen=True, kw_only=True)
class OwnHead(Auxiliary):
    """a says the label, too."""

    def loss(self, local: Local, batch: Batch) -> Tensor:
        outputs, own = local.net(batch.x, watch=unchanged)
        return labelled(outputs, batch) + self.weight * labelled(own, batch)


@dataclass(frozen=True, kw_only=True)
class Autoencoder(Auxiliary):
    """a gives the row back: mean squared error over rows and their numbers."""

    def loss(self, local: Local, batch: Batch) -> Tensor:
        outputs, back = local.net(batch.x, watch=unchanged)
        rows = batch.x.flatten(1)  # [b, d]
        if back.shape != rows.shape:
            raise SettingsError(
                f"the decoder gives {back.shape[1]} numbers for rows of {rows.shape[1]}; build the "
                f"network with outputs={rows.shape[1]}"
            )
        errors = (back - rows).square().mean(1)  # [b]
        return labelled(outputs, batch) + self.weight * batch.mean(errors)


@dataclass(frozen=True, kw_only=True)
class Hiding(Auxiliary):
    """a reads the batch's protected attributes off h, and f would rather it could not.

    Both move at once, through `adversary.reverse`: a descends its own loss at full strength, f
    descends L_g - weight * L_a. With weight 0 the adversary merely looks on.
    """

    def loss(self, local: Local, batch: Batch) -> Tensor:
        outputs, read = local.net(batch.x, watch=partial(reverse, strength=self.weight))
        return labelled(outputs, batch) + adversary_loss(read, batch)


def labelled(outputs: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy of outputs [b, C], the mean over those rows of a batch that have a label.

    Zero where none has (-1 stands for none).

    >>> import torch
    >>> outputs, y = torch.tensor([[2.0, 0.0], [0.0, 2.0]]), torch.tensor([0, -1])
    >>> labelled(outputs, Batch(outputs, y))  # log(1 + exp(-2))
    tensor(0.1269)
    """
    known = (batch.y >= 0).to(outputs.dtype)  # [b]
    known = known if batch.weight is None else known * batch.weight
    each = F.cross_entropy(outputs, batch.y.clamp(min=0), reduction="none")  # [b]
    return (each * known).sum() / known.sum().clamp(min=1e-6)
