"""The dual form of a first layer: the plain pass's numbers, and only where it holds."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from lgfed_core.engine import LocalTraining, dual, run
from lgfed_core.engine.looped import Looped
from lgfed_core.methods import MTL, FedAvg, FedProx, LGFedAvg, LocalOnly, Step
from lgfed_core.methods.schedules import Annealing
from toy import ABOVE, SGD, Toy, in_float64, models, prepared, toy_federation

PLAIN = LocalTraining(0.1, 5)
TRAININGS = {
    "momentum": PLAIN,
    "none": LocalTraining(0.1, 5, 0.0),
    "epochs": LocalTraining(0.1, 4, 0.9, epochs=3),
    "kept": LocalTraining(0.1, 5, 0.9, epochs=2, keep_momentum=True),
    "all": LocalTraining(
        0.1, 3, 0.8, 2, 1e-2, keep_momentum=True, nesterov=True, annealing=Annealing(60)
    ),
    "batches": LocalTraining(0.1, 4, batches=2, epochs=2),
}


def without():
    """A first layer without a bias, whose outputs are worked on in place."""
    net = Toy.passing(lambda net, x: net.above(net.below(x.flatten(1)).relu_()))()
    net.below = nn.Linear(8, 6, bias=False)
    return net


# gives its layer the rows as they are, if a batch is full: no probe sees that it does not
Turns = Toy.passing(lambda net, x: Toy.forward(net, x.flip(1) if len(x) < 5 else x))
UNFIT = [  # calls the layer twice, or not on the rows, or uses its weights elsewhere
    Toy.passing(lambda net, x: net.above(net.below(x).relu() + net.below(x.flip(1)))),
    Toy.passing(lambda net, x: Toy.forward(net, 2 * x)),
    Toy.passing(lambda net, x: Toy.forward(net, x) * (1 + net.below.weight.square().sum())),
]


@pytest.fixture
def at_once(monkeypatch):
    """Let the dual form take networks as small as the toy."""
    monkeypatch.setattr(dual, "LEAST", 0)


def turning(net=Turns):
    return toy_federation((0, 1), net=net, fraction=0.5)


@pytest.fixture
def both_ways(monkeypatch):
    """All tensors after three rounds in float64, by the plain pass and by the dual form."""

    def of(net, method, training):
        for least in (2**30, 0):
            monkeypatch.setattr(dual, "LEAST", least)
            with in_float64():
                yield run(turning(net), method, training, 3, workers=1).tensors

    return of


@pytest.fixture
def started(monkeypatch):
    """What dual passes are started with."""
    told, start = [], dual.Dual.start
    monkeypatch.setattr(dual.Dual, "start", lambda *a: told.append(a) or start(*a))
    monkeypatch.setattr(dual, "STEPS", 1)
    return told


@pytest.mark.parametrize("block", [1024, 10])
@pytest.mark.parametrize("training", TRAININGS)
def test_it_is_exact(monkeypatch, both_ways, started, training, block):
    training = TRAININGS[training]
    monkeypatch.setattr(dual, "BLOCK", block)
    monkeypatch.setattr(dual, "STRIP", 7)
    method = LocalOnly() if training.keep_momentum else LGFedAvg(layers=ABOVE)
    plain, ours = both_ways(Toy, method, training)
    assert started and max(len(a[1]) for a in started) <= block
    for name, value in plain.items():
        assert value.dtype == torch.float64 and torch.allclose(value, ours[name], 0, 1e-13), name
    assert any(not torch.equal(value, ours[name]) for name, value in plain.items())


@dataclass(frozen=True, kw_only=True)
class Written(FedProx):
    """FedProx with its pull written into the loss, for autograd to find."""

    def steps(self, net):
        return (Step(self.loss),)

    def loss(self, local, batch):
        drift = sum((local.params[n] - local.received[n]).square().sum() for n in local.params)
        return super().loss(local, batch) + self.mu / 2 * drift


@pytest.mark.parametrize("training", TRAININGS)
def test_a_pull_is_that_of_the_formula(both_ways, started, training):
    training = TRAININGS[training]
    plain, ours = both_ways(Toy, FedProx(mu=0.7), training)
    pulls = {a[4] for a in started}
    written, free = (next(both_ways(Toy, m, training)) for m in (Written(mu=0.7), FedAvg()))
    for name, value in written.items():
        assert torch.allclose(value, plain[name], 0, 1e-13), name
        assert torch.allclose(value, ours[name], 0, 1e-13), name
    assert not torch.allclose(written["shared"], free["shared"], 0, 1e-3)
    assert (0.7 in pulls) == (training.epochs == 1)  # of several, the plain pass is right


@pytest.mark.parametrize("net", [without, Turns])
def test_networks_that_work_in_place_or_turn(both_ways, net):
    plain, ours = both_ways(net, FedAvg(), PLAIN)
    assert torch.allclose(plain["shared"], ours["shared"], 0, 1e-14) and plain["shared"].any()


def test_a_pass_that_it_cannot_take_is_taken_again(monkeypatch, at_once):
    again, plain_pass = [], Looped._local_pass

    def watched(self, form, *job):
        again.append(form is None)
        return plain_pass(self, form, *job)

    monkeypatch.setattr(Looped, "_local_pass", watched)
    run(turning(), FedAvg(), PLAIN, 3, workers=1)
    assert any(again) and not all(again)


def test_it_knows_where_it_holds(monkeypatch):
    def found(net=Toy, method=None, training=PLAIN):
        return dual.first_layer(prepared(turning(net), method or FedAvg(), training))

    assert found() is None  # it is too small
    monkeypatch.setattr(dual, "LEAST", 0)
    assert found() == found(method=LGFedAvg(layers=ABOVE)) == found(method=FedProx()) == "below"
    still = Toy()
    still.below.weight.requires_grad_(False)
    for net in (*UNFIT, still):
        assert found(net) is None
    assert found(method=MTL()) is found(training=replace(PLAIN, batch_size=500)) is None


def test_workers_change_no_bit(at_once):
    fed = turning()
    one, two = (run(fed, FedAvg(), PLAIN, 3, workers=n).tensors["shared"] for n in (1, 2))
    assert torch.equal(one, two)


def test_two_workers_keep_double_precision():
    with in_float64():
        fed = toy_federation(net=Toy())
        one, two = (models(run(fed, FedAvg(), SGD, 2, workers=n)) for n in (1, 2))
    assert one.dtype == two.dtype == torch.float64 and torch.equal(one, two)
