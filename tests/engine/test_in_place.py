"""Whatever a network or a loss does to what it is given: nobody else's numbers change."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from torch import nn

from lgfed_core.engine import LocalTraining, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.methods import MTL, FedAvg, FedProx, Method, Step
from toy import ABOVE, BELOW, SGD, Toy, models, prepared, reading, toy_federation

WAYS = [("looped", 1), pytest.param("looped", 2, marks=pytest.mark.slow), ("batched", 1)]


class Centred(Toy):
    def __init__(self, in_place: bool):
        super().__init__()
        self.in_place = in_place

    def forward(self, x):
        if self.in_place:
            x -= 0.5
            x *= 2.0
        else:
            x = (x - 0.5) * 2.0
        return super().forward(x)


def rectified(in_place: bool) -> nn.Module:
    return nn.Sequential(nn.ReLU(inplace=in_place), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))


def federation_of(net):
    """Two runs of ``net`` on data with groups."""
    torch.manual_seed(0)
    fed = toy_federation((0, 1), net=net())
    y = fed.data.train.y
    return reading(fed, groups=torch.stack([y % 2, 1 - y % 2], 1))


def held(fed) -> list[torch.Tensor]:
    """Every tensor that belongs to the caller."""
    kinds = [k for p in fed.partitions for k in (p.train, p.validation, p.test)]
    data = [fed.data.train.x, fed.data.train.y, fed.data.train.groups]
    data += [fed.data.test.x, fed.data.test.y, *fed.net.parameters(), *fed.net.buffers()]
    return data + [tensor for kind in kinds for tensor in (kind.index, kind.size)]


@dataclass(frozen=True, kw_only=True)
class Twice(FedProx):
    """Two steps on each batch, in each of which the network sees the rows twice."""

    mu: float = 0.5

    def steps(self, net):
        return Step(self.loss, pull=self.mu), Step(self.loss, pull=self.mu)

    def loss(self, local, batch):
        again = batch.mean(local.net(batch.x).square().sum(-1))
        return super().loss(local, batch) + 0.1 * again + batch.x.mean()


@pytest.mark.parametrize(("lanes", "workers"), WAYS)
@pytest.mark.parametrize("method", [FedAvg(), Twice(), MTL()])
@pytest.mark.parametrize("kind", [Centred, rectified])
def test_a_network_may_work_in_place(lanes, workers, method, kind):
    found = []
    for in_place in (False, True, True):
        fed = federation_of(lambda in_place=in_place: kind(in_place))
        before = [tensor.clone() for tensor in held(fed)]
        how = dict(tracker=AveragedBest(), lanes=lanes, workers=workers)
        found.append(run(fed, method, SGD, 2, **how))
        assert all(map(torch.equal, before, held(fed)))
    for other in found[1:]:
        assert torch.equal(models(found[0]), models(other))
        assert found[0].history.equals(other.history) and found[0].final.equals(other.final)


@pytest.mark.parametrize("engine", [lambda w: Looped(w), lambda w: Looped(w, 2), Batched])
@pytest.mark.parametrize("kind", [Centred, rectified])
def test_every_way_to_test_leaves_the_rows(engine, kind):
    answers = []
    for in_place in (False, True):
        fed = federation_of(lambda in_place=in_place: kind(in_place))
        before = [tensor.clone() for tensor in held(fed)]
        lanes = engine(prepared(fed, FedAvg(), forked=True))
        try:
            for _ in range(2):
                found = [lanes.correct("shared", "personal", rows) for rows in ("test", "pool")]
                found.append(lanes.correct("shared", "personal", "train", [(1, 3), (0, 2)]))
                found += [lanes.own_outputs("shared", "personal", r) for r in ("train", "pool")]
                found += [lanes.mean_outputs("shared", "personal", s) for s in ("train", "test")]
                answers.append(found)
        finally:
            lanes.close()
        assert all(map(torch.equal, before, held(fed)))
    for other in answers[1:]:
        assert all(map(torch.equal, answers[0], other))


def own(given):
    """A copy of a `Local` or a `Batch`, but for the parameters that move."""

    def copied(value):
        if isinstance(value, dict):
            return {name: copied(v) for name, v in value.items()}
        return value.clone() if isinstance(value, torch.Tensor) else value

    return replace(given, **{n: copied(v) for n, v in vars(given).items() if n != "params"})


def spoil(local, batch) -> None:
    """Write on everything that a loss is given."""
    with torch.no_grad():
        batch.x.fill_(7.0)
        batch.y.fill_(0)
        batch.groups.fill_(0)
        if batch.weight is not None:
            batch.weight.fill_(0.0)
        for values in (local.received, local.others or {}):
            for value in values.values():
                value.fill_(3.0)
        if isinstance(local.participants, torch.Tensor):
            local.participants.fill_(0)


@dataclass(frozen=True, kw_only=True)
class Reader(Method):
    """Reads everything that there is to read, in two steps, and spoils it where told to."""

    spoils: bool = False
    needs_peers: ClassVar[bool] = True

    def steps(self, net):
        return Step(self.loss, ABOVE), Step(self.loss, BELOW)

    def loss(self, local, batch):
        given = local, batch
        local, batch = own(local), own(batch)
        if self.spoils:
            spoil(*given)
        error = nn.functional.cross_entropy(local.net(batch.x), batch.y, reduction="none")
        value = batch.mean(error * (1 + batch.groups[:, 0]))
        for name, param in local.params.items():
            value = value + 0.1 * ((param - local.received[name]) ** 2).sum()
            value = value + 0.1 * ((param - local.others[name]) ** 2).sum()
        return value / local.participants


@pytest.mark.parametrize(("lanes", "workers"), WAYS)
def test_a_loss_may_write_on_all_that_it_is_given(lanes, workers):
    found = []
    for spoils in (False, True, True):
        fed = federation_of(Toy)
        before = [tensor.clone() for tensor in held(fed)]
        training = LocalTraining(0.1, 4, epochs=2, keep_momentum=True)
        method = Reader(spoils=spoils)
        found.append(run(fed, method, training, 2, lanes=lanes, workers=workers))
        assert all(map(torch.equal, before, held(fed)))
    for other in found[1:]:
        assert torch.equal(models(found[0]), models(other))
        assert torch.equal(found[0].tensors["velocity"], other.tensors["velocity"])
