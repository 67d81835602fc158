"""FADE, federated adversarial debiasing (Hong et al., KDD 2021), Algorithms 1 and 2.

Every device belongs to one group, which nobody else needs to know. It sends encoder G, classifier f
and discriminator D; on a batch of its own all three take one step (eqs 1 to 3):

    f descends  L_task,    D descends  L_adv,    G descends  L_task - lambda_t L_adv,

where L_adv is how badly D guesses the device's own group (`adversary.group_loss`: vanilla, or
squared, eq. 6) and lambda_t rises from 0 to 1. A device may decline the game in any round: then it
learns the task alone, and returns D as it came. Where it keeps its momentum, that of rounds which
it played still moves its encoder, and so does weight decay, labels or none. The server moves by
beta towards the average.

A network for FADE has a part called ``discriminator``, and forward(x, watch) -> (outputs, logits of
D on watch(features)), as `models.digits.DigitsNet`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core.errors import SettingsError

from .adversary import group_loss, reverse
from .interface import Batch, Local, Method, Step, partway
from .schedules import rising

DISCRIMINATOR = "discriminator."  # how the names of its parameters begin


@dataclass(frozen=True, kw_only=True)
class FADE(Method):
    """FADE; with ``opt_out=1`` nobody plays, and it is FedAvg with a server that moves by beta.

    rounds: T of the schedule of lambda, which begins with round ``start``.
    strength: a constant lambda instead.
    power: q of the adversarial loss, 1 vanilla and 2 squared; ``per_sample`` takes the power of
        each row's loss (eq. 7 as printed) and not of the batch's mean (as released).
    opt_out: how probable it is that a device declines the game in a round.
    batch_norm: "frozen", as appendix B.2 has it of ResNet's statistics, which are ImageNet's.
    """

    rounds: int = 1
    start: int = 0
    strength: float | None = None
    power: float = 1.0
    per_sample: bool = False
    beta: float = 0.5
    opt_out: float = 0.0
    batch_norm: str = "frozen"

    LEAST: ClassVar = {"power": 1, "strength": 0, "rounds": 1}
    round_as_tensor: ClassVar[bool] = True
    unlabelled: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        if not (0 < self.beta <= 1 and 0 <= self.opt_out <= 1):
            raise SettingsError(
                f"beta is {self.beta}, opt_out {self.opt_out}; they must lie in (0, 1], in [0, 1]"
            )

    def steps(self, net: nn.Module) -> Sequence[Step]:
        others = frozenset(n for n, _ in net.named_parameters() if not n.startswith(DISCRIMINATOR))
        if self.opt_out == 0:
            return (Step(self.loss),)
        if self.opt_out == 1:
            return (Step(self.task, others),)
        return Step(self.loss, None, self.plays), Step(self.task, others, self.declines)

    def plays(self, chance: float) -> bool:
        """Whether a device that drew ``chance`` takes part in the game this round."""
        return chance >= self.opt_out

    def declines(self, chance: float) -> bool:
        return not self.plays(chance)

    def strength_at(self, round: int | Tensor) -> float | Tensor:
        """lambda_t."""
        return rising(round - self.start, self.rounds) if self.strength is None else self.strength

    def loss(self, local: Local, batch: Batch) -> Tensor:
        """What all three descend together, the sign turned between D and G."""
        watch = partial(reverse, strength=self.strength_at(local.round))
        outputs, logits = local.net(batch.x, watch=watch)
        return known(outputs, batch) + group_loss(logits, batch, self.power, self.per_sample)

    def task(self, local: Local, batch: Batch) -> Tensor:
        """L_task alone."""
        return known(local.net(batch.x), batch)

    def server_update(self, before: Tensor, average: Tensor) -> Tensor:
        return partway(before, average, self.beta)


def known(outputs: Tensor, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """Cross-entropy of outputs [b, C] with (1 - s) y + s/C; rows without a label (-1) count 0.

    >>> import torch
    >>> outputs, y = torch.tensor([[2.0, 0.0], [0.0, 2.0]]), torch.tensor([0, -1])
    >>> known(outputs, Batch(outputs, y))  # log(1 + exp(-2)) / 2
    tensor(0.0635)
    """
    each = F.cross_entropy(
        outputs, batch.y.clamp(min=0), reduction="none", label_smoothing=smoothing
    )  # [b]
    return batch.mean(each * (batch.y >= 0))
