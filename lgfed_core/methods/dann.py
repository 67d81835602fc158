"""DANN (Ganin & Lempitsky, 2015): domains made alike by an adversary; federated, it is FADE-DANN.

With labels y on the source, the domain g of every row, and lambda_t rising from 0 to 1,

    f, G descend  CE(f(G(x)), y) - lambda_t w B,     D descends  w B,     B = mean -log D_g(G(x)),

which is `fade.FADE` with three things of the object experiments: smoothed labels, the weight w of
the game, and hooks for what CDAN and SHOT change. A device without labels (-1) has no task.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import Tensor

from .adversary import group_loss, reverse
from .fade import FADE, known
from .interface import Batch, Local


@dataclass(frozen=True, kw_only=True)
class DANN(FADE):
    """FADE for unsupervised domain adaptation.

    smoothing: of the labels (released: "sxent", 0.1). weight: of the adversarial loss (released:
    ``adv_lambda``, 1 unless chosen on the target's labels); 0 plays no game at all.
    """

    smoothing: float = 0.1
    weight: float = 1.0

    LEAST: ClassVar = {"weight": 0}
    BELOW_ONE: ClassVar = ("smoothing",)

    def loss(self, local: Local, batch: Batch) -> Tensor:
        strength = self.strength_at(local.round)
        outputs, logits = local.net(batch.x, watch=partial(reverse, strength=strength))
        return self.learnt(outputs, batch) + self.weight * self.game(
            outputs, logits, batch, strength
        )

    def task(self, local: Local, batch: Batch) -> Tensor:
        return self.learnt(local.net(batch.x), batch)

    def learnt(self, outputs: Tensor, batch: Batch) -> Tensor:
        """What outputs [b, C] are trained to say."""
        return known(outputs, batch, self.smoothing)

    def game(
        self, outputs: Tensor, logits: Tensor, batch: Batch, strength: float | Tensor
    ) -> Tensor:
        """The loss of D's logits [b, 1]."""
        return group_loss(logits, batch, self.power, self.per_sample)
