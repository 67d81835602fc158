"""FADE's network for digits: encoder G, classifier f, discriminator D, with exact counts.

==================  ==============================================  ==================
part                layers                                          parameters
==================  ==============================================  ==================
``encoder``, G      conv 5x5 (c, 20), max-pool, ReLU,               25,570 (c = 1)
..                  conv 5x5 (20, 50), dropout, max-pool, ReLU,     26,570 (c = 3)
..                  linear (800, 256), batch norm., dropout         205,568
``classifier``, f   linear (256, 10) with weight normalisation      2,580
``discriminator``   256-50-20-1 with ReLU                           13,891
..                  2,560-50-20-1, on classes times features        129,091
==================  ==============================================  ==================

Source: Hong et al. (2021), Figure 4 and section 5; the widths that the figure leaves open are those
of the released code ("lenet5c"). With E > 2 groups D has E outputs.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FEATURES = 256
Watch = Callable[[Tensor], Tensor]


def conditioned(z: Tensor, outputs: Tensor) -> Tensor:
    """What CDAN's D reads: every product of a class's probability and a feature.

    z [b, d], outputs (logits) [b, C] -> [b, C d]; no gradient passes through the probabilities.
    Source: Long et al. (2018), eq. 5, the multilinear map.

    >>> conditioned(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 0.0]]))
    tensor([[0.5000, 1.0000, 0.5000, 1.0000]])
    """
    p = outputs.detach().softmax(-1)  # [b, C]
    return (p[..., :, None] * z[..., None, :]).flatten(-2)


class WeightNormalised(nn.Module):
    """A linear layer whose rows are g v / |v| (Salimans & Kingma 2016): length apart from aim."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        linear = nn.Linear(inputs, outputs)
        self.v = nn.Parameter(linear.weight.detach().clone())  # [outputs, inputs]
        self.g = nn.Parameter(self.v.detach().norm(dim=1))  # [outputs]
        self.bias = nn.Parameter(linear.bias.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        """x [n, inputs] -> [n, outputs]."""
        weight = self.v * (self.g / self.v.norm(dim=1))[:, None]
        return F.linear(x, weight, self.bias)


class DropChannels(nn.Module):
    """Dropout of whole channels; `torch.nn.Dropout2d` in operations that vmap knows."""

    def __init__(self, p: float):
        super().__init__()
        self.drop = nn.Dropout(p)

    def forward(self, x: Tensor) -> Tensor:
        """x [n, c, h, w] -> the same shape."""
        return x * self.drop(x.new_ones(*x.shape[:2], 1, 1)) if self.training else x


class DigitsNet(nn.Module):
    """LeNet with a bottleneck, a classifier and a discriminator of groups.

    conditional: D reads every product of a class's probability and a feature (CDAN, Long et al.
        2018), so that it compares groups class by class.
    """

    def __init__(
        self,
        channels: int = 1,
        conditional: bool = False,
        groups: int = 2,
        classes: int = 10,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.conditional = conditional
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, 20, 5),
            nn.MaxPool2d(2),
            nn.ReLU(),  # [n, 20, 12, 12]
            nn.Conv2d(20, 50, 5),
            DropChannels(dropout),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(800, FEATURES),
            nn.BatchNorm1d(FEATURES),
            nn.Dropout(dropout),
        )
        self.classifier = WeightNormalised(FEATURES, classes)
        seen = FEATURES * classes if conditional else FEATURES
        self.discriminator = nn.Sequential(
            nn.Linear(seen, 50),
            nn.ReLU(),
            nn.Linear(50, 20),
            nn.ReLU(),
            nn.Linear(20, 1 if groups == 2 else groups),
        )

    def forward(
        self, x: Tensor, watch: Watch | None = None, everything: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """x [n, c, 28, 28] -> logits [n, classes].

        watch: a function of the features [n, 256]; then also what D makes of watch(z): logits
            [n, 1] of group 1, or [n, E]. everything: logits of both side by side,
            [n, classes + 1] or [n, classes + E].
        """
        z = self.encoder(x)  # [n, 256]
        outputs = self.classifier(z)  # [n, classes]
        if everything:
            return torch.cat([outputs, self.discriminator(self.seen(z, outputs))], -1)
        if watch is None:
            return outputs
        return outputs, self.discriminator(self.seen(watch(z), outputs))

    def seen(self, z: Tensor, outputs: Tensor) -> Tensor:
        """What D reads: z [n, 256], or p(class) z [n, classes * 256], no gradient through p."""
        return conditioned(z, outputs) if self.conditional else z
