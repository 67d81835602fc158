"""The classifiers of the CGAU paper: gated with clients, and the ReLU baseline, with their counts.

=========  ==================  ==========  =========  =================
network    inputs, units       outputs     baseline   CGAU, 10 clients
=========  ==================  ==========  =========  =================
audio      1,024; 2 x 64       1           69,825     142,412
CIFAR-10   2,048; 2 x 128      10          280,074    564,600
released   1,664; 2 x 64       10          111,370    225,016
=========  ==================  ==========  =========  =================

Source: Rieger et al. (2020), Sections 4.1 and 4.2; the last line is their released CIFAR-10 code.
The counts are those of the released form: each client term has a bias of its own, and there is
one at the output as well.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lgfed_core.errors import SettingsError

from .gated_unit import CGAU, glorot, shifted, silent


class Baseline(nn.Module):
    """Two ReLU layers of ``units`` and an output layer, for all clients alike."""

    def __init__(
        self,
        inputs: int,
        units: int,
        outputs: int,
        dropout: float = 0.5,
        dropout_inputs: bool = False,
    ):
        super().__init__()
        self.drop_inputs = nn.Dropout(dropout if dropout_inputs else 0.0)
        self.drop = nn.Dropout(dropout)
        self.fc1 = glorot(nn.Linear(inputs, units))
        self.fc2 = glorot(nn.Linear(units, units))
        self.out = glorot(nn.Linear(units, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """x [n, inputs] -> logits [n, outputs]; one output stands for the positive class."""
        z = self.fc1(self.drop_inputs(x)).relu()  # [n, units]
        z = self.fc2(self.drop(z)).relu()  # [n, units]
        return self.out(z)


class GatedMLP(nn.Module):
    """Two layers of CGAUs and an output layer.

    ``released``: each client term has a bias of its own, and the client adds to the output as well,
    as in the authors' code; without it, equation (1) and no more.

    ``clients=1`` is a device's own network: its client rows are parameters that only it has (see
    `client_rows`), and it needs no h. `joined_clients` makes the network for all of them.
    """

    def __init__(
        self,
        inputs: int,
        units: int,
        outputs: int,
        clients: int = 1,
        dropout: float = 0.5,
        dropout_inputs: bool = False,
        released: bool = True,
    ):
        super().__init__()
        self.clients, self.released = clients, released
        self.drop_inputs = nn.Dropout(dropout if dropout_inputs else 0.0)
        self.drop = nn.Dropout(dropout)
        self.cgau1 = CGAU(inputs, units, clients, client_bias=released)
        self.cgau2 = CGAU(units, units, clients, client_bias=released)
        self.out = glorot(nn.Linear(units, outputs))
        if released:
            self.client_out = silent(nn.Linear(clients, outputs))

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        """x [n, inputs], h [n, clients] one-hot -> logits [n, outputs].

        Without h a device's own network is meant; of a network for several clients, one that
        belongs to none of them (a zero row).
        """
        if h is None and self.clients == 1:
            h = x.new_ones(*x.shape[:-1], 1)
        z = self.cgau1(self.drop_inputs(x), h)  # [n, units]
        z = self.out(self.cgau2(self.drop(z), h))  # [n, outputs]
        if not self.released:
            return z
        return shifted(z, self.client_out, h)


def client_rows(net: nn.Module) -> frozenset[str]:
    """Names of the parameters that belong to clients: one column for each of them.

    >>> sorted(client_rows(GatedMLP(4, 2, 1)))[:2]
    ['cgau1.expression.weight', 'cgau1.modulation.weight']
    """
    layers = [n for n, m in net.named_modules() if isinstance(m, CGAU)]
    names = [f"{n}.{part}.weight" for n in layers for part in ("modulation", "expression")]
    if hasattr(net, "client_out"):
        names.append("client_out.weight")
    return frozenset(names)


def joined_clients(nets: Sequence[GatedMLP]) -> GatedMLP:
    """One network for K clients out of K devices' own networks, which must share all else.

    Its forward pass with client k's one-hot row is that of ``nets[k]``.
    """
    if not nets or any(net.clients != 1 for net in nets):
        raise SettingsError("give devices' own networks, one at least, each with clients=1")
    states = [net.state_dict() for net in nets]
    rows = client_rows(nets[0])
    for name, value in states[0].items():
        if name not in rows and any(not torch.equal(value, s[name]) for s in states):
            raise SettingsError(f"the networks differ in {name}, which is no client row")
    units, inputs = nets[0].cgau1.filter.weight.shape
    together = GatedMLP(
        inputs,
        units,
        nets[0].out.out_features,
        len(nets),
        nets[0].drop.p,
        nets[0].drop_inputs.p > 0,
        nets[0].released,
    )
    together.to(nets[0].out.weight)
    together.load_state_dict(
        {n: torch.cat([s[n] for s in states], 1) if n in rows else v for n, v in states[0].items()}
    )
    return together.train(nets[0].training)
