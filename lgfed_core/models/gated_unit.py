"""The conditional gated activation unit (Rieger et al., 2020, Section 3.2): a layer for any model.

    z = tanh(W_f x + V_f h) * sigmoid(W_g x + V_g h)                                        (1)

x is what a layer receives, h says which client it comes from. The filter says what a feature is,
the gate whether it is active; the client shifts both: V_f h is the *modulation*, V_g h the
*expression*. Without a client (h = 0, or h left out) it is a gated unit like any other.
"""

from torch import Tensor, nn

from lgfed_core.errors import SettingsError

SWITCHES = ("modulation", "expression")


class CGAU(nn.Module):
    """``units`` conditional gated units for one of ``clients`` clients; drops into any model.

    >>> import torch
    >>> from torch import nn
    >>> layer = CGAU(inputs=16, units=4, clients=3)
    >>> x = torch.randn(5, 16)                                  # five rows of one client, ...
    >>> h = torch.eye(3)[torch.tensor([0, 2, 2, 1, 0])]         # or of several: one-hot rows
    >>> layer(x, h).shape
    torch.Size([5, 4])
    >>> bool((layer(x) == layer(x, torch.zeros(5, 3))).all())   # no client: no shift
    True

    A device that keeps its client row to itself needs ``clients=1``: the row is then its own
    parameter, and h is 1 for all its rows.

    Parameters (one matrix each, as `nn.Linear`): ``filter`` W_f [units, inputs] and ``gate`` W_g,
    each with a bias, and ``modulation`` V_f [units, clients] and ``expression`` V_g. With
    ``client_bias`` these two have biases as well, as in the released code. Client rows start at
    zero, W with Glorot's uniform distribution.
    """

    def __init__(self, inputs: int, units: int, clients: int, client_bias: bool = False):
        super().__init__()
        if clients < 1:
            raise SettingsError(f"a CGAU for {clients} clients; at least 1")
        self.filter = glorot(nn.Linear(inputs, units))
        self.gate = glorot(nn.Linear(inputs, units))
        self.modulation = silent(nn.Linear(clients, units, bias=client_bias))
        self.expression = silent(nn.Linear(clients, units, bias=client_bias))

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        """x [..., inputs], h [..., clients] or None -> z [..., units], each in (-1, 1)."""
        f, g = self.parts(x, h)
        return f * g

    def parts(self, x: Tensor, h: Tensor | None = None, off: tuple[str, ...] = ()):
        """Filter and gate activation, each [..., units]: the two factors of equation (1).

        ``off`` switches off "modulation", "expression" or both, as Figure 3 does. Raises
        SettingsError for anything else, and unless h, if any, has a row for each of x.
        """
        if unknown := set(off) - set(SWITCHES):
            raise SettingsError(f"{sorted(unknown)} cannot be switched off; {SWITCHES} can")
        clients = self.modulation.in_features
        if h is not None and h.shape != (*x.shape[:-1], clients):
            raise SettingsError(
                f"h is {list(h.shape)}; it must be {[*x.shape[:-1], clients]}, a one-hot row for "
                f"each of x, which is {list(x.shape)}"
            )
        f, g = self.filter(x), self.gate(x)
        if "modulation" not in off:
            f = shifted(f, self.modulation, h)
        if "expression" not in off:
            g = shifted(g, self.expression, h)
        return f.tanh(), g.sigmoid()


def glorot(layer: nn.Linear) -> nn.Linear:
    """``layer`` with weights after Glorot and Bengio (2010), uniform, and biases of zero."""
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def silent(layer: nn.Linear) -> nn.Linear:
    """``layer`` that says nothing yet: all zero."""
    for p in layer.parameters():
        nn.init.zeros_(p)
    return layer


def shifted(z: Tensor, layer: nn.Linear, h: Tensor | None) -> Tensor:
    """z and what a client layer adds to it; for no client (None) its bias alone."""
    if h is not None:
        return z + layer(h.to(z.dtype))
    return z if layer.bias is None else z + layer.bias
