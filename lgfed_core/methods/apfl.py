"""APFL (Deng et al., 2020, Algorithm 1): each device mixes a model of its own into the shared one.

A device predicts with alpha v + (1 - alpha) w. The shared w minimises its own loss, as in FedAvg;
v minimises the mixture's, and so does alpha. The paper moves alpha once a round; here it moves with
every batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from lgfed_core.models.layout import parts

from .interface import Batch, Local, Method, Step, cross_entropy


@dataclass(frozen=True, kw_only=True)
class APFL(Method):
    """For a network of `models.twins.Mixture`; adaptive: whether alpha moves, or stays a half."""

    adaptive: bool = True

    def shared(self, net: nn.Module) -> frozenset[str]:
        return parts(net, "shared")

    def steps(self, net: nn.Module) -> Sequence[Step]:
        own = parts(net, "own") | ({"alpha"} if self.adaptive else set())
        return Step(self.loss, self.shared(net)), Step(self.mixed_loss, own)

    def loss(self, local: Local, batch: Batch) -> Tensor:
        """The shared model's."""
        return cross_entropy(local.net(batch.x, shared=True), batch)

    def mixed_loss(self, local: Local, batch: Batch) -> Tensor:
        """The mixture's, equation (4)."""
        return cross_entropy(local.net(batch.x), batch)
