"""A small network in three parts for pictures of digits: local model, shared head, auxiliary.

=======================  ======================  ==========  ===========
part                     layers (ReLU between)   parameters  who keeps it
=======================  ======================  ==========  ===========
f: x -> h                784-200-64                 169,864  the device
g: h -> y                64-32-10                     2,410  shared
a: h -> z                64-200-``outputs``          varies  the device
=======================  ======================  ==========  ===========

Of our own: the papers describe an auxiliary network and none of its sizes (Liang et al. 2019,
section 2.1). With 784 outputs, a and f are an autoencoder with the same layers on either side.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from .digits import Watch
from .images import last_layers
from .layout import parts

WIDE, NARROW = 200, 64  # NARROW: numbers in h


class AuxiliaryMLP(nn.Module):
    """f, g and a of one device; ``outputs`` is how many numbers a gives."""

    layers: tuple[str, ...] = ("fc1", "fc2", "fc3", "fc4")  # f and g, input to output

    def __init__(self, outputs: int, pixels: int = 784, classes: int = 10):
        super().__init__()
        self.outputs = outputs
        self.fc1 = nn.Linear(pixels, WIDE)
        self.fc2 = nn.Linear(WIDE, NARROW)
        self.fc3 = nn.Linear(NARROW, 32)
        self.fc4 = nn.Linear(32, classes)
        self.own1 = nn.Linear(NARROW, WIDE)  # after f and g, whose weights do not depend on it
        self.own2 = nn.Linear(WIDE, outputs)

    def forward(
        self, x: Tensor, own: bool = False, watch: Watch | None = None, features: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """x [n, 784] or [n, 28, 28] -> logits [n, 10] of g; a's numbers [n, outputs] if ``own``.

        With ``watch``, a function of h, both: what g makes of h and a of watch(h). With
        ``features``, h itself [n, 64].
        """
        h = F.relu(self.fc2(F.relu(self.fc1(x.flatten(1)))))  # [n, 64]
        if features:
            return h
        if own:
            return self._auxiliary(h)
        logits = self.fc4(F.relu(self.fc3(h)))  # [n, 10]
        return logits if watch is None else (logits, self._auxiliary(watch(h)))

    def _auxiliary(self, h: Tensor) -> Tensor:
        return self.own2(F.relu(self.own1(h)))  # [n, outputs]


def head(net: nn.Module) -> frozenset[str]:
    """Names of g's parameters, which LG-FedAvg shares."""
    return last_layers(net, 2)


def auxiliary(net: nn.Module) -> frozenset[str]:
    """Names of a's parameters, which no method shares."""
    return parts(net, "own1", "own2")
