"""What one would write first: a loop over devices, and the same loop over several processes."""

import copy
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from lgfed_core.engine import Federation, LocalTraining
from lgfed_core.models.layout import joined
from lgfed_core.seeds import Purpose, stream, visits

from .task import Task


def train(model: nn.Module, x: Tensor, y: Tensor, rows: Tensor, cfg: LocalTraining) -> None:
    """A device's pass over ``rows`` in their order, by torch.optim.SGD, in place."""
    optimiser = torch.optim.SGD(model.parameters(), cfg.lr, cfg.momentum)
    for at in rows.split(cfg.batch_size):
        loss = F.cross_entropy(model(x[at]), y[at])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


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
        self.federation, self.task = federation, task
        self.model = copy.deepcopy(federation.net).to(federation.device)
        self.split = federation.rows()["train"][0]
        self.rows = federation.partitions[0].train

    def round(self, number: int) -> None:
        seed, devices = self.federation.seeds[0], self.federation.clients
        rng = stream(seed, Purpose.SELECT, number)
        chosen = self.federation.participation.chosen(rng, devices).tolist()
        models = self.trained(chosen, number)
        sizes = self.rows.size[chosen]
        with torch.no_grad():
            parts = [dict(model.named_parameters()) for model in models]
            for name, p in self.model.named_parameters():
                p.copy_(sum(w * m[name] for w, m in zip(sizes / sizes.sum(), parts, strict=True)))

    def trained(self, chosen: list[int], number: int) -> list[nn.Module]:
        """A model for each of the ``chosen``, trained from the server's."""
        models = [copy.deepcopy(self.model) for _ in chosen]
        for model, k in zip(models, chosen, strict=True):
            self.train(model, k, number)
        return models

    def train(self, model: nn.Module, k: int, number: int) -> None:
        """Train ``model`` on the rows of device ``k``, as it visits them in round ``number``."""
        mine, split = self.rows.of(k), self.split
        epochs = self.task.training.epochs
        order = visits(self.federation.seeds[0], number, k, len(mine), epochs)
        visited = mine[torch.from_numpy(order.reshape(-1))].to(split.x.device)
        train(model, split.x, split.y, visited, self.task.training)

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
        self.model, *self.models = (_in(vector, self.model) for vector in memory)
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


def _in(vector: Tensor, model: nn.Module) -> nn.Module:
    """A copy of ``model`` whose parameters lie in ``vector`` [P]."""
    model = copy.deepcopy(model)
    vector_to_parameters(vector, model.parameters())
    return model


_own: Spread  # in a worker


def _adopt(loop: Spread) -> None:
    global _own
    _own = loop
    torch.set_num_threads(1)


def _work(slot: int, k: int, number: int) -> None:
    model = _own.models[slot]
    model.load_state_dict(_own.model.state_dict())
    _own.train(model, k, number)
