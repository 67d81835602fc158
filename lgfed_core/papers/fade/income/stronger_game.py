"""FADE with a stronger pull and a better trained discriminator: what the sweep turns besides rates.

With ``top`` 1 and no steps of its own it is `methods.FADE`; with ``top`` 0 the discriminator looks
on, and the model learns the task alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from lgfed_core.methods.adversary import group_loss
from lgfed_core.methods.fade import DISCRIMINATOR, FADE
from lgfed_core.methods.interface import Batch, Local, Step


@dataclass(frozen=True, kw_only=True)
class Game(FADE):
    """FADE with lambda rising to ``top``; D takes ``own_steps`` more with each batch, first."""

    top: float = 1.0
    own_steps: int = 0

    def strength_at(self, round: int | Tensor) -> float | Tensor:
        return self.top * super().strength_at(round)

    def steps(self, net: nn.Module) -> Sequence[Step]:
        own = frozenset(n for n, _ in net.named_parameters() if n.startswith(DISCRIMINATOR))
        return (*[Step(self.guess, own)] * self.own_steps, *super().steps(net))

    def guess(self, local: Local, batch: Batch) -> Tensor:
        """L_adv for D alone."""
        return group_loss(local.net(batch.x, watch=Tensor.detach)[1], batch, self.power)
