"""Whatever a network or a loss does: nobody else's numbers change, and frozen parameters stay."""

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import pytest
import torch
from torch import nn

from lgfed_core.engine import LocalTraining, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.methods import MTL, FedAvg, FedProx, Method, Step
from lgfed_core.methods.privacy import Privacy
from lgfed_core.models.layout import joined
from toy import ABOVE, BELOW, LANES, SGD, Toy, answering, models, prepared, reading, toy_federation

WAYS = [("looped", 1), pytest.param("looped", 2, marks=pytest.mark.slow), ("batched", 1)]


def centred(in_place: bool) -> nn.Module:
    def forward(net, x):
        if in_place:
            x -= 0.5
            x *= 2.0
        else:
            x = (x - 0.5) * 2.0
        return Toy.forward(net, x)

    return Toy.passing(forward)()


def rectified(in_place: bool) -> nn.Module:
    return nn.Sequential(nn.ReLU(inplace=in_place), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))


def thrice(make):
    """Two runs of a network on data with groups: as usual, and twice in place or spoilt.

    Whatever is done with them, every tensor of the caller's stays as it is.
    """
    for other in (False, True, True):
        fed = toy_federation((0, 1), net=partial(make, other))
        y = fed.data.train.y
        fed = reading(fed, groups=torch.stack([y % 2, 1 - y % 2], 1))
        before = [tensor.clone() for tensor in held(fed)]
        yield fed, other
        assert all(map(torch.equal, before, held(fed)))


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
@pytest.mark.parametrize("kind", [centred, rectified])
def test_a_network_may_work_in_place(lanes, workers, method, kind):
    how = dict(tracker=AveragedBest(), lanes=lanes, workers=workers)
    first, *others = (run(fed, method, SGD, 2, **how) for fed, _ in thrice(kind))
    for other in others:
        assert torch.equal(models(first), models(other))
        assert first.history.equals(other.history) and first.final.equals(other.final)


@pytest.mark.parametrize("engine", [Looped, partial(Looped, workers=2), Batched])
@pytest.mark.parametrize("kind", [centred, rectified])
def test_every_way_to_test_leaves_the_rows(engine, kind):
    def answers(fed):
        lanes = engine(prepared(fed, FedAvg(), forked=True))
        with closing(lanes):
            found = [lanes.correct("shared", "personal", rows) for rows in ("test", "pool")]
            found.append(lanes.correct("shared", "personal", "train", [(1, 3), (0, 2)]))
            found += [lanes.own_outputs("shared", "personal", r) for r in ("train", "pool")]
            return found + [lanes.mean_outputs("shared", "personal", s) for s in ("train", "test")]

    first, *others = (answers(fed) for fed, _ in thrice(kind))
    for other in others:
        assert all(map(torch.equal, first, other))


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
    training = LocalTraining(0.1, 4, epochs=2, keep_momentum=True)
    first, *others = (
        run(fed, Reader(spoils=spoils), training, 2, lanes=lanes, workers=workers)
        for fed, spoils in thrice(lambda _: Toy())
    )
    for other in others:
        assert torch.equal(models(first), models(other))
        assert torch.equal(first.tensors["velocity"], other.tensors["velocity"])


HARD = LocalTraining(0.1, 4, epochs=2, weight_decay=0.1, keep_momentum=True)


def frozen(*names, seeds=(0,)):
    fed = toy_federation(seeds)
    for name in names:
        fed.net.get_parameter(name).requires_grad_(False)
    return fed


# one of the steps has nothing left to move where ``below`` is frozen
InTurn = answering(steps=lambda self, net: (Step(self.loss, ABOVE), Step(self.loss, BELOW)))
# an objective of the lower layer alone
Shrink = answering(loss=lambda self, local, batch: local.params["below.weight"].square().sum())


@LANES
@pytest.mark.parametrize("method", [InTurn(), FedAvg(upload=(Privacy(1.0, 0.5),))])
def test_frozen_parameters_stay(method, lanes):
    """As the contract tries with every method."""
    fed = frozen(*BELOW, "above.bias", seeds=(0, 1))
    t = run(fed, method, HARD, 3, lanes=lanes, workers=1).tensors["shared"]
    (free,) = (p for p in fed.net.parameters() if p.requires_grad)
    moved = (t[0] != joined(fed.net)).nonzero().flatten()
    assert moved.tolist() == list(range(54, 54 + free.numel()))


@LANES
@pytest.mark.parametrize(
    ("method", "names"), [(FedAvg(), ABOVE | BELOW), (Shrink(), BELOW | {"above.bias"})]
)
def test_nothing_left_to_learn_is_no_error(method, names, lanes):
    """All is frozen, or all that the objective depends on."""
    fed = frozen(*names)
    outcome = run(fed, method, LocalTraining(0.1, 4), 2, lanes=lanes, workers=1)
    assert torch.equal(outcome.tensors["shared"][0, :48], joined(fed.net)[:48])
