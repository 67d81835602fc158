"""pfl-research as a contender: its FederatedAveraging and SimulatedBackend, in several processes.

Its own loop over rounds; devices, and the rows in the order of their visits, are handed to it. It
sums over processes as under torchrun. Needs the package ``pfl``.
"""

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDatasetBase
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.internal.ops.pytorch_ops import distributed
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn

from lgfed_core.models.layout import joined

from .apart import read
from .plain import Given

NEVER = 2**31  # rounds until an evaluation, and in all: whoever gives the orders ends them


class Judged(nn.Module):
    """A network with the loss that pfl asks of it."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.net(x), y)

    def metrics(self, x: Tensor, y: Tensor) -> dict:
        """Asked before the first round alone, which is not timed."""
        return {"loss": Weighted(self.loss(x, y).item() * len(y), len(y))}


class Rounds(FederatedDatasetBase, TrainingProcessCallback):
    """The devices of each round, this process's share of them; and when the round is over."""

    def __init__(self, given: Given, orders: Iterator[int]):
        super().__init__()
        self.given, self.orders = given, orders
        self.number = next(orders, None)

    def get_cohort(self, cohort_size: int) -> Iterator[tuple[PyTorchTensorDataset, int]]:
        mine = self.given.chosen(self.number)[distributed.global_rank :: distributed.world_size]
        for k in mine:
            rows = self.given.visited(k, self.number)
            yield PyTorchTensorDataset((self.given.x[rows], self.given.y[rows]), user_id=k), 0

    def __next__(self):
        raise NotImplementedError("a cohort at a time")

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration: int):
        self.number = next(self.orders, None)
        return self.number is None, Metrics()


def play(path: str, workers: int, orders) -> None:
    """A round for each order, by pfl."""
    given = read(path)
    net, cfg = Judged(given.net), given.training
    local = partial(torch.optim.SGD, momentum=cfg.momentum)
    model = PyTorchModel(net, local, torch.optim.SGD(net.parameters(), 1.0))
    rounds = Rounds(given, orders(lambda: joined(net.net)))
    cohort = given.participation.cohort(len(given.rows))
    backend = SimulatedBackend(rounds, rounds, [WeightByDatapoints()])
    how = NNAlgorithmParams(NEVER, NEVER, cohort, None)
    each = NNTrainHyperParams(
        local_batch_size=cfg.batch_size, local_num_epochs=1, local_learning_rate=cfg.lr
    )
    if rounds.number is not None:
        FederatedAveraging().run(how, backend, model, each, callbacks=[rounds])
