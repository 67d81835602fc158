"""LG-FedAvg's networks for UCI Adult: local model, own head, shared head, adversary, in one module.

========================  ===========================  ==========  ===================
part                      layers (with ReLU between)   parameters  who keeps it
========================  ===========================  ==========  ===================
``local``, f: x -> h      93-32-32-32                       5,120  the device
``own``, a: h -> y        ReLU, 32-1                           33  the device
``head``, g: h -> y       32-32-32-32-1 (text)              3,201  shared
..                        32-32-32-1 (released)             2,145  shared
``adversary``, r: h -> p  32-32-32-32-2                     3,234  the device
========================  ===========================  ==========  ===================

Source: Liang et al., v1 Table 8 and v2 Table 11, and the released code at af89a47, from which comes
where h is taken: after the third linear layer, before its ReLU. The tables give the global model 93
inputs and 2 outputs; on h it has 32, and income is one logit. Dropout 0.2 follows each hidden
layer; the released adversary has none. FedAvg's global model is f with a on top, and no other head.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

INPUTS, WIDTH, ATTRIBUTES = 93, 32, 2


class Dropout(nn.Dropout):
    """Dropout with a quarter of the random numbers: 16 bits decide on a unit, not 64.

    Drawing them is most of what a step of networks this small costs. p is rounded to 1/65536.
    """

    def forward(self, x: Tensor) -> Tensor:
        """x [..., 32] -> the same shape; a unit is zero with probability p, in training alone."""
        if not self.training or self.p == 0:
            return x
        dropped = round(self.p * 65_536)
        if dropped == 65_536:
            return torch.zeros_like(x)
        bits = torch.randint(-(2**63), 2**63 - 1, (-(-x.numel() // 4),), device=x.device)
        kept = bits.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - 32_768
        return x * kept * (1 / (1 - dropped / 65_536))


class AdultNet(nn.Module):
    """The four networks of one device; without ``head_layers`` the three of FedAvg.

    head_layers: hidden layers of the shared head g; 0 for none, so that a alone predicts.
    """

    def __init__(
        self,
        head_layers: int = 3,
        dropout: float = 0.2,
        adversary_dropout: float = 0.2,
        inputs: int = INPUTS,
        adversary_width: int = WIDTH,
    ):
        super().__init__()
        self.dropout, self.adversary_dropout = dropout, adversary_dropout
        self.local = nn.Sequential(*_hidden(inputs, 2, dropout), nn.Linear(WIDTH, WIDTH))
        self.own = nn.Sequential(nn.ReLU(), Dropout(dropout), nn.Linear(WIDTH, 1))
        hidden = _hidden(WIDTH, head_layers, dropout)
        self.head = nn.Sequential(*hidden, nn.Linear(WIDTH, 1)) if head_layers else None
        hidden = _hidden(WIDTH, 3, adversary_dropout, adversary_width)
        self.adversary = nn.Sequential(*hidden, nn.Linear(adversary_width, ATTRIBUTES))

    def forward(
        self, x: Tensor, own: bool = False, watch: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        """x [n, 93] -> logits [n, 2] of low and high income, by the shared head or the ``own``.

        The first logit is always zero: a softmax of both is the sigmoid of the second. With
        ``watch``, a function of h [n, 32], also what the adversary makes of watch(h): logits [n, 2]
        of race and sex.
        """
        h = self.local(x)  # [n, 32]
        top = self.own if own or self.head is None else self.head
        high = top(h)  # [n, 1]
        income = torch.cat([torch.zeros_like(high), high], -1)  # [n, 2]
        return income if watch is None else (income, self.adversary(watch(h)))


def _hidden(inputs: int, layers: int, dropout: float, width: int = WIDTH) -> list[nn.Module]:
    """So many layers of ``width`` units, each with ReLU and, unless it is 0, dropout."""
    out: list[nn.Module] = []
    for n in range(layers):
        out += [nn.Linear(width if n else inputs, width), nn.ReLU()]
        out += [Dropout(dropout)] if dropout else []
    return out
