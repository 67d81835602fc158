"""One small network that has every part which any of our methods names."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core.models.gated_unit import CGAU

FOUR = 4  # inputs (a picture of 2 x 2), classes, attributes, answers of a pretext task


class Everything(nn.Module):
    """A gated unit with client rows, heads, and all who look at h: each part that a method names.

    4 inputs, 4 classes, 4 attributes. tanh and no ReLU, so that every parameter moves.
    """

    layers = ("local", "head", "classifier")
    clients, outputs = 1, FOUR

    def __init__(self):
        super().__init__()
        self.local = CGAU(FOUR, 6, 1)
        self.head, self.classifier = nn.Linear(6, 5), nn.Linear(5, FOUR)
        self.own, self.adversary, self.discriminator = (nn.Linear(6, FOUR) for _ in range(3))

    def forward(
        self,
        x: Tensor,
        own: bool = False,
        watch: Callable[[Tensor], Tensor] | None = None,
        with_features: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """x [b, 4] -> logits [b, 4], by the head or the device's ``own``.

        watch: a function of h [b, 6]; then also what all who look on say of watch(h), [b, 4].
        with_features: logits and h, padded to be as wide as SHOT's, [b, 4 + 256].
        """
        h = self.local(x, x.new_ones(*x.shape[:-1], 1))  # [b, 6]
        outputs = self.own(h) if own else self.classifier(self.head(h).tanh())
        if with_features:
            return torch.cat([outputs, F.pad(h, (0, 250))], -1)
        if watch is None:
            return outputs
        seen = watch(h)
        return outputs, self.own(seen) + self.adversary(seen) + self.discriminator(seen)


def everything(seed: int = 0) -> Everything:
    """An `Everything` of which no parameter is zero, or like another."""
    with torch.random.fork_rng(devices=[]):
        net = Everything()
    rng = torch.Generator().manual_seed(seed)
    for p in net.parameters():
        p.data = 0.5 * torch.randn(p.shape, generator=rng)
    return net
