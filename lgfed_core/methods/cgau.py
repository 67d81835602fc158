"""CGAU's federated learning (Rieger et al., 2020): client rows in two ways.

* `ClientRowsKept`: client k's rows of V_f and V_g stay on the device, as the text says they may.
* `ClientRowsAveraged`: they are averaged with everything else, as in the released code. Row k
  changes on device k alone, so the average moves it by w_k = n_k / n of what the device learnt:
  with ten clients, about a tenth of the step. The text makes no difference between them.

In both, a device carries its own row and nobody else's; that gives, to rounding, the numbers of a
network that carries all rows as one matrix (a test says so).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core.errors import SettingsError
from lgfed_core.models.cgau import client_rows

from .interface import Batch, Local, Method, cross_entropy
from .participants import Trained


@dataclass(frozen=True, kw_only=True)
class ClientBaseline(Method):
    """FedAvg with the losses of both experiments.

    A network with one output is trained by binary cross-entropy, in which a positive row counts
    ``positive`` times (50 in the released audio code); others by cross-entropy.

    cap: rows that a client can visit in a round; a client's weight is what it visits. None: n_k.
    per: weights count rows (1), or batches of so many: the released baseline's slip.
    """

    positive: float = 1.0
    cap: int | None = None
    per: int = 1

    LEAST: ClassVar = {"positive": 0, "cap": 1, "per": 1}

    def loss(self, local: Local, batch: Batch) -> Tensor:
        outputs = local.net(batch.x)  # [b, 1] or [b, classes]
        if outputs.shape[-1] > 1:
            return cross_entropy(outputs, batch)
        y = batch.y.to(outputs.dtype)  # [b]
        each = F.binary_cross_entropy_with_logits(outputs[:, 0], y, reduction="none")
        return batch.mean(each * (1 + (self.positive - 1) * y))

    def weights(self, rows: Tensor) -> Tensor | None:
        if not self.weighted:
            return None
        seen = rows if self.cap is None else rows.clamp(max=self.cap)
        seen = -(-seen // self.per)
        return seen / seen.sum()


@dataclass(frozen=True, kw_only=True)
class ClientRowsKept(ClientBaseline):
    """CGAU with client rows that never leave their device."""

    def shared(self, net: nn.Module) -> frozenset[str]:
        rows = client_rows(net)
        if not rows or getattr(net, "clients", 1) != 1:
            raise SettingsError(
                f"{type(net).__name__} is no device's own network; use GatedMLP with clients=1"
            )
        return super().shared(net) - rows


@dataclass(frozen=True, kw_only=True)
class ClientRowsAveraged(ClientRowsKept):
    """CGAU with client rows averaged as released: a row moves by its client's share of the step."""

    def finish(self, trained: Trained) -> tuple[Tensor, Tensor]:
        own, weights = trained.own, trained.weights
        each = 1 / len(own) if weights is None else weights.to(own)[:, None]  # [m, 1]
        return trained.shared, trained.before + each * (own - trained.before)
