"""The loss of one lane, lifted by `torch.func.vmap`: that of each lane, all at once."""

from collections.abc import Callable
from functools import partial

from torch import Tensor
from torch.func import vmap

from lgfed_core.methods import Batch, Local

from .phase import Phase, trainee
from .sheltered import Elsewhere


class Losses:
    """Of the lanes of ``phase``; ``statistics`` names what of its network is no parameter."""

    def __init__(self, phase: Phase):
        self.phase, self.net = phase, trainee(phase)
        known = dict(phase.net.named_parameters())
        self.statistics = [name for name in phase.layout.shapes if name not in known]
        self.asked = False  # whether a loss has asked for the number of its round

    def of(
        self,
        loss: Callable,
        round: int | Tensor,
        leaves: dict[str, Tensor],
        received: dict[str, Tensor],
        rows: tuple[Tensor, ...],
        peers: tuple,
    ) -> Tensor:
        """``loss`` of each lane -> [L].

        loss: of a `Local` and a `Batch`, as a method's. leaves, received: by name, [L, ...]; rows:
        [L, B, ...] each, what makes a `Batch`; peers: the rest of a `Local` ({}, 1 without any).
        """
        axes = (0, 0, 0, 0 if self.phase.method.needs_peers else None)
        lane = partial(self._lane, loss, round)
        return vmap(lane, axes, randomness="different")(leaves, received, rows, peers)

    def _lane(
        self, loss, round: int | Tensor, leaves: dict, received: dict, rows: tuple, peers: tuple
    ):
        params = {n: v for n, v in leaves.items() if n not in self.statistics}
        there = Elsewhere(self.net, {n: leaves[n] for n in self.statistics})
        others, participants = peers
        net = there.net(params)
        local = Heard(net, params, received, others, participants, round, there)
        found = loss(local, Batch(*rows))
        self.asked |= local.heard
        return found


class Heard(Local):
    """A device that hears when it is asked for the number of the round."""

    heard = False

    def __getattribute__(self, name: str):
        if name == "round":
            object.__setattr__(self, "heard", True)
        return super().__getattribute__(name)
