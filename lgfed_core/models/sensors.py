"""FADE's network for in-home sensors: two layers of LSTM 100, one linear layer each for f and D.

Hong et al. (2021), Figure 5 and appendix B.3. The cells are written out, step by step, as vmap
knows no LSTM; the tests hold them against PyTorch's.
"""

import torch
from torch import Tensor, nn

from .digits import Watch

HIDDEN = 100


class LSTM(nn.Module):
    """One layer (Hochreiter & Schmidhuber 1997), PyTorch's order of gates: in, forget, new, out."""

    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.x, self.h = nn.Linear(inputs, 4 * hidden), nn.Linear(hidden, 4 * hidden)
        for p in self.parameters():
            nn.init.uniform_(p, -(hidden**-0.5), hidden**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """x [n, t, inputs] -> the state after every step, [n, t, hidden]."""
        each, states = self.x(x), []  # [n, t, 4 hidden]
        h = c = torch.zeros_like(each[:, 0, : self.h.in_features])  # [n, hidden]
        for step in range(x.shape[1]):
            take, keep, new, show = (each[:, step] + self.h(h)).chunk(4, -1)
            c = keep.sigmoid() * c + take.sigmoid() * new.tanh()
            h = show.sigmoid() * c.tanh()
            states.append(h)
        return torch.stack(states, 1)


class SensorNet(nn.Module):
    """Windows of days -> two classes, and D, which guesses the group from the last state."""

    def __init__(self, inputs: int, hidden: int = HIDDEN):
        super().__init__()
        self.encoder = nn.Sequential(LSTM(inputs, hidden), LSTM(hidden, hidden))
        self.classifier = nn.Linear(hidden, 2)
        self.discriminator = nn.Linear(hidden, 1)

    def forward(self, x: Tensor, watch: Watch | None = None) -> Tensor | tuple[Tensor, Tensor]:
        """x [n, days, inputs] -> logits [n, 2]; with ``watch``, a function of the features
        [n, hidden], also what D makes of watch(z): logits [n, 1] of group 1."""
        z = self.encoder(x)[:, -1]  # [n, hidden]
        outputs = self.classifier(z)  # [n, 2]
        return outputs if watch is None else (outputs, self.discriminator(watch(z)))
