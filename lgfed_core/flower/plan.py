"""What a federation trains, which server and nodes must know alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lgfed_core import require
from lgfed_core.engine import LocalTraining, Participation
from lgfed_core.engine.phase import Phase
from lgfed_core.engine.prepare import averaged
from lgfed_core.engine.rounds import moved, participants
from lgfed_core.errors import SettingsError
from lgfed_core.methods import Arrived, Method
from lgfed_core.models.layout import Layout, joined
from lgfed_core.seeds import Purpose, stream

MOST = 10**6  # rounds, and clients
# the files that a server leaves
SHARED, HISTORY, WIRE, TESTED = "shared.safetensors", "history.csv", "wire.csv", "tested.csv"


@dataclass(frozen=True)
class Plan:
    """A run of one seed, as `engine.run` would have it: the network with its first parameters, the
    method, how a device trains, how many clients there are, who takes part in a round.

    Raises SettingsError for a method that needs more than shared parameters to cross the wire.
    """

    net: nn.Module
    method: Method
    training: LocalTraining
    rounds: int
    clients: int
    seed: int = 0
    participation: Participation = field(default_factory=Participation)

    def __post_init__(self):
        require.whole(rounds=self.rounds, clients=self.clients, seed=self.seed)
        require.at_least(1, rounds=self.rounds, clients=self.clients)
        require.at_most(MOST, rounds=self.rounds, clients=self.clients)
        there = self.participation.availability
        if there is not None and tuple(there.shape) != (1, self.clients):
            raise SettingsError(
                f"availability is {list(there.shape)}; a federation of one run needs "
                f"[1, {self.clients}]"
            )
        _ = self.layout  # which names layers that the network does not have
        needs = {
            "the other clients' models (needs_peers)": self.method.needs_peers,
            "each client's weight as it ends a round (finish)": self.method.finish,
            "what the server's model says before a round (relabel)": self.method.relabel,
        }
        if why := [what for what, needed in needs.items() if needed]:
            raise SettingsError(
                f"{type(self.method).__name__} needs {', '.join(why)}, which no node is sent; "
                "train it by engine.run, on one machine"
            )

    @property
    def layout(self) -> Layout:
        """Which parameters are shared, which stay on their node."""
        return Layout(self.net, averaged(self.method, self.net))

    def chosen(self, t: int) -> list[int]:
        """Who takes part in round ``t``, from 0: the clients that the engine would draw."""
        rng = stream(self.seed, Purpose.SELECT, t)
        return self.participation.chosen(rng, self.clients).tolist()

    def merged(
        self, t: int, shared: Tensor, updates: Mapping[int, tuple[Tensor, int]], memory: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The shared vector [P_s] and the server's memory [M, P_s] after round ``t``, from 0, that
        began with ``shared`` and ``memory``, as the engine has them.

        updates: what each client has sent, [P_s], and how many rows it has trained on. They are
        taken in the order of the clients, not of arrival.
        """
        who = sorted(updates)
        size = torch.tensor([updates[k][1] for k in who])
        uploads = torch.stack([updates[k][0] for k in who])  # [m, P_s]
        layout, lr = self.layout, self.training.rate(t)
        there = participants(self.method, self.training, size, self.clients, lr, uploads)
        now = Arrived(before=shared, uploads=uploads, memory=memory.clone(), **there)
        after, memory = moved(self.method, now)
        tensors = {"shared": after[None], "personal": torch.zeros(1, 1, layout.size_personal)}
        phase = Phase(self.net, layout, [self.method], self.training, [self.seed], {}, tensors)
        phase.rest(shared[None])
        return tensors["shared"][0], memory

    def first(self) -> Tensor:
        """The shared vector [P_s] before the first round."""
        return self.layout.split(joined(self.net))[0]
