"""One small network for all methods: below what a device keeps in LG-FedAvg, above what it shares.

==============  =======================================  =============================
part            layers (64 units)                        who has it
==============  =======================================  =============================
``local``       linear, ReLU; or a CGAU                  everybody: x -> h
``head``        linear, ReLU, linear; or a CGAU, linear  everybody: h -> logits
``own``         linear                                   fair LG-FedAvg: a second head
``watcher``     64-32-1 with ReLU                        who plays against an adversary
==============  =======================================  =============================

The watcher guesses a group from h, and has the name under which a method looks for it: FADE's is
called ``discriminator``, fair LG-FedAvg's ``adversary``. Parts that methods have in common begin
with the same values for the same seed; gated layers are others, and have the last one drawn anew.
"""

from collections.abc import Callable

from torch import Tensor, nn

from lgfed_core.errors import SettingsError
from lgfed_core.models.gated_unit import CGAU

UNITS = 64


class Own(CGAU):
    """A CGAU with the row of one client, for a device's own network."""

    def __init__(self, inputs: int, units: int):
        super().__init__(inputs, units, clients=1)

    def forward(self, x: Tensor) -> Tensor:
        """x [n, inputs] -> [n, units]."""
        return super().forward(x, x.new_ones(*x.shape[:-1], 1))


class SmallNet(nn.Module):
    """The network of one device, of inputs [n, inputs] and ``classes``.

    gated: layers are CGAUs; watcher: "adversary", "discriminator" or ""; own: whether there is a
    second head.
    """

    def __init__(
        self, inputs: int, classes: int, gated: bool = False, watcher: str = "", own: bool = False
    ):
        super().__init__()
        self.watcher = watcher
        if gated:
            self.local: nn.Module = Own(inputs, UNITS)
            self.head = nn.Sequential(Own(UNITS, UNITS), nn.Linear(UNITS, classes))
        else:
            self.local = nn.Sequential(nn.Linear(inputs, UNITS), nn.ReLU())
            middle = (nn.Linear(UNITS, UNITS), nn.ReLU())
            self.head = nn.Sequential(*middle, nn.Linear(UNITS, classes))
        if own:
            self.own = nn.Linear(UNITS, classes)
        if watcher:
            sees = nn.Sequential(nn.Linear(UNITS, 32), nn.ReLU(), nn.Linear(32, 1))
            self.add_module(watcher, sees)

    def forward(
        self,
        x: Tensor,
        own: bool = False,
        watch: Callable[[Tensor], Tensor] | None = None,
        features: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """x [n, inputs] -> logits [n, classes], by the shared head or the device's ``own``.

        watch: a function of h [n, 64]; then also what the watcher makes of watch(h): logits [n, 1].
        features: h alone.
        """
        if watch is not None and not self.watcher:
            raise SettingsError(
                "this network has no part that guesses the group; make it "
                'SmallNet(inputs, classes, watcher="discriminator")'
            )
        h = self.local(x)  # [n, 64]
        if features:
            return h
        logits = (self.own if own else self.head)(h)  # [n, classes]
        return logits if watch is None else (logits, self.get_submodule(self.watcher)(watch(h)))


def base(net: nn.Module) -> frozenset[str]:
    """Names of what FedPer shares: all below the head."""
    return frozenset(name for name, _ in net.named_parameters() if name.startswith("local."))


def head(net: nn.Module) -> frozenset[str]:
    """Names of what LG-FedAvg shares: the head, but for rows that belong to one client."""
    rows = ("modulation.weight", "expression.weight")
    names = (name for name, _ in net.named_parameters() if name.startswith("head."))
    return frozenset(name for name in names if not name.endswith(rows))
