"""LG-FedAvg, version 1 (Liang et al., 2019, Algorithm 1): auxiliary heads, separate local steps.

Each device has layers f and a head a of its own, and a copy of the server's head g. With each
batch it first lowers the local loss of a(f(x)) by f and a (lines 16 and 17), and then the global
loss of g(f(x)) by f and g (lines 18 and 19). Only g is averaged. Predictions are g(f(x)).

Line 17 follows from line 16's forward pass, so that f and a move together; lines 18 and 19
likewise. f has one momentum, to which both losses add; the paper does not say.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from lgfed_core.errors import SettingsError

from .interface import Batch, Local, Step, cross_entropy
from .lgfedavg import LGFedAvg


@dataclass(frozen=True, kw_only=True)
class LGFedAvgV1(LGFedAvg):
    """Averages ``layers``, the global head g; ``auxiliary`` names the parameters of the heads a.

    The network takes ``own=True`` for the device's own head, as `models.MnistTwoHeads` does.
    """

    auxiliary: frozenset[str]

    def __post_init__(self):
        super().__post_init__()
        self._as_set("auxiliary")

    def steps(self, net: nn.Module) -> Sequence[Step]:
        names = frozenset(name for name, _ in net.named_parameters())
        if unknown := self.auxiliary - names:
            raise SettingsError(f"no parameter called {sorted(unknown)} in {type(net).__name__}")
        local = Step(self.local_loss, names - self.layers)  # f and a
        return local, Step(self.loss, names - self.auxiliary)  # f and g

    def local_loss(self, local: Local, batch: Batch) -> Tensor:
        """Equation (1): cross-entropy of the device's own head."""
        return cross_entropy(local.net(batch.x, own=True), batch)
