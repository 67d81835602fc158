"""Who took part in a round: what they have become, and what has arrived of them."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Participants:
    """Who took part in one round: m devices, all those with rows.

    Vectors have the order of ``net.named_parameters()``, of the shared ones and of a device's own.
    """

    weights: Tensor | None  #: [m], of `Method.weights`
    devices: int  #: how many there are, whether they take part or not
    _reach: Callable[[], Tensor]

    @property
    def reach(self) -> Tensor:
        """How far each has gone per unit of a gradient that stays, [m]: the learning rate times the
        number of its batches, and more with momentum.

        For parameters that move with every batch. Raises SettingsError for Adam, a momentum that
        outlasts the round, and a rate that falls with each step.
        """
        return self._reach()


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained(Participants):
    """What they have become, on the devices."""

    received: Tensor  #: [P_s], shared parameters at the start of the round
    shared: Tensor  #: [m, P_s], what they have become on each device
    before: Tensor  #: [m, P_p], its own parameters at the start,
    own: Tensor  #: [m, P_p], and now


@dataclass(frozen=True, eq=False, kw_only=True)
class Arrived(Participants):
    """What they have sent, at the server."""

    before: Tensor  #: [P_s], shared parameters at the start of the round
    uploads: Tensor  #: [m, P_s]
    memory: Tensor  #: [server_memory, P_s], zeros before the first round
