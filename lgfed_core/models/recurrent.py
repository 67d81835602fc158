"""A long short-term memory in plain tensor operations, which both kinds of lanes can take.

`torch.nn.LSTM` is one kernel that vmap does not know, so that batched lanes refuse it. This one has
its parameters' names, shapes, order and first values: a state of either loads into the other, and
both give the same numbers (Hochreiter & Schmidhuber 1997; gates in PyTorch's order: in, forget,
new, out).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lgfed_core import require


class LSTM(nn.Module):
    """``layers`` layers of ``hidden`` units, each reading the sequence forwards, or both ways.

    >>> net = LSTM(inputs=8, hidden=16, bidirectional=True)
    >>> outputs, last = net(torch.zeros(5, 7, 8), torch.tensor([7, 2, 1, 4, 7]))
    >>> outputs.shape, last.shape
    (torch.Size([5, 7, 32]), torch.Size([5, 32]))
    """

    def __init__(self, inputs: int, hidden: int, layers: int = 1, bidirectional: bool = False):
        super().__init__()
        require.at_least(1, inputs=inputs, hidden=hidden, layers=layers)
        self.hidden, self.layers, self.bidirectional = hidden, layers, bidirectional
        self.directions = ("", "_reverse") if bidirectional else ("",)
        for layer in range(layers):
            width = hidden * len(self.directions) if layer else inputs
            shapes = {"weight_ih": [width], "weight_hh": [hidden], "bias_ih": [], "bias_hh": []}
            for way in self.directions:
                for kind, shape in shapes.items():
                    value = nn.Parameter(torch.empty(4 * hidden, *shape))
                    self.register_parameter(f"{kind}_l{layer}{way}", value)
        for p in self.parameters():
            nn.init.uniform_(p, -(hidden**-0.5), hidden**-0.5)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x [n, t, inputs] -> the last layer's states [n, t, D H], and the final ones [n, D H].

        D is 2 if it reads both ways (forwards first), else 1; the final state of reading backwards
        is the one at the first step. lengths: of the sequences, int [n]; what lies behind them
        changes nothing, and has the state zero.
        """
        outputs, finals = self._run(x, lengths)
        return outputs, finals[-1][0]

    def final(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x [n, t, inputs] -> every layer's final state and cell, in order, [n, 2 layers D H]."""
        _, finals = self._run(x, lengths)
        return torch.cat([value for pair in finals for value in pair], -1)

    def _run(self, x: Tensor, lengths: Tensor | None) -> tuple[Tensor, list[tuple]]:
        """The last layer's states, and each layer's final state and cell, [n, D H] both."""
        there = None
        if lengths is not None:
            steps = torch.arange(x.shape[1], device=x.device)  # [t]
            there = (steps < lengths[:, None])[..., None]  # [n, t, 1]
        finals = []
        for layer in range(self.layers):
            x, *final = self._layer(layer, x, there)
            finals.append(tuple(final))
        return x, finals

    def _layer(self, layer: int, x: Tensor, there: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Both directions at once: step s is number s from the start for one, from the end for the
        other. D, n, t, H as in `forward`."""
        each, keep = [], []
        for way in self.directions:
            weight, hh, bias, bias_hh = (
                getattr(self, f"{kind}_l{layer}{way}")
                for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            each.append(F.linear(x, weight, bias + bias_hh))  # [n, t, 4 H]
            keep.append(hh.t())  # [H, 4 H]
        inputs = _turned(torch.stack(each)).unbind(2)  # t of [D, n, 4 H]
        real = None if there is None else _turned(torch.stack([there] * len(each))).unbind(2)
        weights = torch.stack(keep)  # [D, H, 4 H]
        h = c = torch.zeros_like(inputs[0][..., : self.hidden])  # [D, n, H]
        states = []
        for step, now in enumerate(inputs):
            take, forget, new, show = (now + h @ weights).chunk(4, -1)
            c_next = forget.sigmoid() * c + take.sigmoid() * new.tanh()
            h_next = show.sigmoid() * c_next.tanh()
            if real is not None:
                c_next, h_next = (
                    torch.where(real[step], a, b) for a, b in ((c_next, c), (h_next, h))
                )
            h, c = h_next, c_next
            states.append(h)
        outputs = _turned(torch.stack(states, 2))  # [D, n, t, H]
        if there is not None:
            outputs = outputs * there
        outputs, h, c = (torch.cat(value.unbind(0), -1) for value in (outputs, h, c))
        return outputs, h, c


def _turned(x: Tensor) -> Tensor:
    """x [D, n, t, ...] with the second direction, if there is one, from the end to the start."""
    return torch.cat([x[:1], x[1:].flip(2)]) if len(x) > 1 else x
