"""Ditto (Li et al., ICML 2021, Algorithm 1): a model of one's own, pulled towards the server's.

The server's model is FedAvg's, to the bit. Beside it each device has a model v of its own, which
minimises its loss and lambda/2 ||v - w||^2, where w is what it has received.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from lgfed_core.models.layout import parts
from lgfed_core.models.twins import squared_distance

from .interface import Batch, Local, Method, Step, cross_entropy


@dataclass(frozen=True, kw_only=True)
class Ditto(Method):
    """For a network of `models.twins.Twins`; ``pull`` is the paper's lambda."""

    pull: float = 1.0

    LEAST: ClassVar = {"pull": 0}

    def shared(self, net: nn.Module) -> frozenset[str]:
        return parts(net, "shared")

    def steps(self, net: nn.Module) -> Sequence[Step]:
        return Step(self.loss, self.shared(net)), Step(self.own_loss, parts(net, "own"))

    def loss(self, local: Local, batch: Batch) -> Tensor:
        """The server's model: FedAvg's loss."""
        return cross_entropy(local.net(batch.x, shared=True), batch)

    def own_loss(self, local: Local, batch: Batch) -> Tensor:
        """Equation (2), for the device's own model."""
        task = cross_entropy(local.net(batch.x), batch)
        return task + self.pull / 2 * squared_distance(local.params, local.received)
