"""pFedMe (Dinh et al., NeurIPS 2020, Algorithm 1): a device's model as the proximal point of w.

With each batch a device approaches theta(w), which minimises its loss and lambda/2 ||theta - w||^2,
in ``inner`` gradient steps, and then moves its copy of w by lambda (w - theta). Predictions are of
theta.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from lgfed_core.models.layout import parts
from lgfed_core.models.twins import squared_distance

from .interface import Batch, Local, Method, Step, cross_entropy, partway


@dataclass(frozen=True, kw_only=True)
class PFedMe(Method):
    """For a network of `models.twins.Twins`: ``own`` is theta, ``shared`` is w.

    pull: the paper's lambda. inner: K, gradient steps on theta a batch. rate: the learning rate of
        w in that of theta, eta / lr. beta: how far the server moves towards the average, in (0, 1].
    """

    pull: float = 15.0
    inner: int = 5
    rate: float = 1.0
    beta: float = 1.0
    weighted: bool = False

    LEAST: ClassVar = {"pull": 0, "rate": 0, "inner": 1}
    SHARES: ClassVar = ("beta",)

    def shared(self, net: nn.Module) -> frozenset[str]:
        return parts(net, "shared")

    def steps(self, net: nn.Module) -> Sequence[Step]:
        towards = Step(self.loss, parts(net, "own"))
        return *[towards] * self.inner, Step(self.shared_loss, self.shared(net))

    def loss(self, local: Local, batch: Batch) -> Tensor:
        """Of theta, equation (3)."""
        task = cross_entropy(local.net(batch.x), batch)
        return task + self.pull / 2 * squared_distance(local.params, local.params)

    def shared_loss(self, local: Local, batch: Batch) -> Tensor:
        """Its gradient by w is rate lambda (w - theta), equation (4)."""
        return self.rate * self.pull / 2 * squared_distance(local.params, local.params)

    def server_update(self, before: Tensor, average: Tensor) -> Tensor:
        return partway(before, average, self.beta)
