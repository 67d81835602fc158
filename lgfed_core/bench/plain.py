"""What one would write first: a loop over devices, and the same loop over several processes."""

import copy
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from lgfed_core.engine import Federation, LocalTraining, Participation
from lgfed_core.models.layout import joined
from lgfed_core.partition import ClientIndices
from lgfed_core.seeds import Purpose, stream, visits

from .task import Task


@dataclass
class Given:
    """What every contender is given: rows `x` [n, ...] and `y` [n], whose they are, a network, how
    it is trained, and the random numbers of one seed."""

    x: Tensor
    y: Tensor
    net: nn.Module
    rows: ClientIndices
    training: LocalTraining
    participation: Participation
    seed: int

    @classmethod
    def of(cls, fed: Federation, task: Task) -> "Given":
        """The first run of ``fed``."""
        split, net = fed.rows()["train"][0], copy.deepcopy(fed.net).to(fed.device)
        who = fed.participation
        return cls(split.x, split.y, net, fed.partitions[0].train, task.training, who, fed.seeds[0])

    def chosen(self, number: int) -> list[int]:
        """The devices of round ``number``."""
        rng = stream(self.seed, Purpose.SELECT, number)
        return self.participation.chosen(rng, len(self.rows)).tolist()

    def train(self, model: nn.Module, k: int, number: int) -> int:
        """Train ``model`` on the rows of device ``k`` in the order in which it visits them in round
        ``number``, by torch.optim.SGD, in place; how many visits these are."""
        rows, cfg = self.visited(k, number), self.training
        optimiser = torch.optim.SGD(model.parameters(), cfg.lr, cfg.momentum)
        for at in rows.split(cfg.batch_size):
            loss = F.cross_entropy(model(self.x[at]), self.y[at])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return len(rows)

    def visited(self, k: int, number: int) -> Tensor:
        """Row numbers of device ``k`` as it visits them in round ``number``: [epochs * n_k]."""
        mine = self.rows.of(k)
        order = visits(self.seed, number, k, len(mine), self.training.epochs)
        return mine[torch.from_numpy(order.reshape(-1))].to(self.x.device)


@torch.no_grad()
def tested(federation: Federation, models: Tensor) -> Tensor:
    """Share of right answers of each device's own model [K, P] on its own test rows -> [K]."""
    net, split = copy.deepcopy(federation.net).eval(), federation.data.test
    found = []
    for k, vector in enumerate(models):
        vector_to_parameters(vector, net.parameters())
        rows = federation.partitions[0].test.of(k)
        found.append((net(split.x[rows]).argmax(1) == split.y[rows]).float().mean())
    return torch.stack(found)


class Plain:
    """A loop over devices: deep copies, torch.optim.SGD, averaging."""

    def __init__(self, federation: Federation, task: Task):
        self.given = Given.of(federation, task)
        self.model = self.given.net

    def round(self, number: int) -> None:
        chosen = self.given.chosen(number)
        models = self.trained(chosen, number)
        sizes = self.given.rows.size[chosen]
        with torch.no_grad():
            parts = [dict(model.named_parameters()) for model in models]
            for name, p in self.model.named_parameters():
                p.copy_(sum(w * m[name] for w, m in zip(sizes / sizes.sum(), parts, strict=True)))

    def trained(self, chosen: list[int], number: int) -> list[nn.Module]:
        """A model for each of the ``chosen``, trained from the server's."""
        models = [copy.deepcopy(self.model) for _ in chosen]
        for model, k in zip(models, chosen, strict=True):
            self.given.train(model, k, number)
        return models

    def parameters(self) -> Tensor:
        """What the server has now: [P]."""
        return joined(self.model)

    def close(self) -> None:
        """Nothing to end."""


class Spread(Plain):
    """The same loop over ``workers`` forked processes, which share the models' memory.

    What our lanes owe to the second core alone, this has too.
    """

    def __init__(self, federation: Federation, task: Task, workers: int):
        super().__init__(federation, task)
        cohort = federation.participation.cohort(federation.clients)
        start = parameters_to_vector(self.model.parameters()).detach()
        memory = start.repeat(1 + cohort, 1).share_memory_()  # [1 + m, P]
        self.models = [copy.deepcopy(self.model) for _ in range(cohort)]
        for model, vector in zip([self.model, *self.models], memory, strict=True):
            vector_to_parameters(vector, model.parameters())  # which lie in it from now on
        # The arguments of an initializer are inherited by a fork, not pickled.
        self.pool = ProcessPoolExecutor(workers, get_context("fork"), _adopt, (self,))

    def trained(self, chosen: list[int], number: int) -> list[nn.Module]:
        jobs = [self.pool.submit(_work, slot, k, number) for slot, k in enumerate(chosen)]
        for job in jobs:
            job.result()
        return self.models[: len(chosen)]

    def close(self) -> None:
        """End the processes."""
        self.pool.shutdown()


_own: Spread  # in a worker


def _adopt(loop: Spread) -> None:
    global _own
    _own = loop
    torch.set_num_threads(1)


def _work(slot: int, k: int, number: int) -> None:
    model = _own.models[slot]
    model.load_state_dict(_own.model.state_dict())
    _own.given.train(model, k, number)
