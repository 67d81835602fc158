"""CDAN (Long et al., NeurIPS 2018): a discriminator that sees which class a row seems to have.

D reads the outer product of probabilities p and features z (`models.digits.conditioned`, [b, C d],
or `models.objects.mixed` at random, which Long et al. take where C d is above 4,096: the network
says which), and rows of which f is sure count more (CDAN+E):

    B = sum_i w_i B_i / sum_i w_i,    w_i = 1 + exp(-H(p_i)),    B_i = -log D_g(p_i (x) z_i).

The released code of FADE averages the B_i *before* it weighs, and divides by the sum of the same
weights: they cancel (`entropy="cancels"`). B is then the plain mean, and what is left is a gradient
through H, with its sign reversed.

>>> import torch
>>> outputs = torch.tensor([[9.0, 0.0], [0.0, 0.0]])  # sure, and as unsure as can be
>>> certainty(outputs)
tensor([1.9988, 1.5000])
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from .adversary import reverse
from .dann import DANN
from .interface import Batch

SMALL = 1e-12  # a lane that waits for the others has a batch without weight
ENTROPY = ("weighs", "cancels", "none")


@dataclass(frozen=True, kw_only=True)
class CDAN(DANN):
    """DANN with certain rows in front, for a network whose D is `conditioned`.

    entropy: "weighs" as in CDAN+E, "cancels" as released with FADE, "none" for plain CDAN.
    """

    entropy: str = "weighs"

    CHOICES: ClassVar = {"entropy": ENTROPY}

    def game(
        self, outputs: Tensor, logits: Tensor, batch: Batch, strength: float | Tensor
    ) -> Tensor:
        if self.entropy == "weighs":
            w = certainty(outputs.detach())  # [b]
            w = w if batch.weight is None else w * batch.weight
            batch = replace(batch, weight=w / w.sum().clamp(min=SMALL))
        loss = super().game(outputs, logits, batch, strength)
        if self.entropy == "cancels":
            w = batch.mean(certainty(outputs, strength))
            loss = loss * w / w.detach().clamp(min=SMALL)
        return loss


def certainty(outputs: Tensor, strength: float | Tensor | None = None) -> Tensor:
    """w = 1 + exp(-H) of outputs [b, C] -> [b]; between 1 + 1/C and 2.

    strength: reverses the gradient through H, see `adversary.reverse`.
    """
    h = entropy(outputs)
    return 1 + (-(h if strength is None else reverse(h, strength))).exp()


def entropy(outputs: Tensor) -> Tensor:
    """H of the probabilities of outputs (logits) [..., C], in nats -> [...]."""
    log_p = outputs.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1)
