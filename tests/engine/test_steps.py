"""What a device does with a batch: several steps, groups, noise, changing pictures and rates."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from cases import OWN, TwoHeads
from torch import nn

from lgfed_core import LocalTraining, Personal, Split, run
from lgfed_core.data.augment import CropFlip
from lgfed_core.engine.batched import Batched
from lgfed_core.engine.looped import Looped
from lgfed_core.engine.optimiser import AdamTraining
from lgfed_core.methods import MTL, FedAvg, LGFedAvgV1, Method, ReleasedMTL, Step
from lgfed_core.methods.mtl import _flat
from lgfed_core.models.layout import Layout, joined
from lgfed_core.seeds import Purpose, stream
from toy import ABOVE, LANES, SGD, Toy, alike, batches, models, prepared, step, toy_federation


class InTurn(Method):
    """First the upper layer learns, then the lower one, from the same batch."""

    def steps(self, net):
        return Step(self.loss, ABOVE), Step(self.loss, self.shared(net) - ABOVE)


ADAM = AdamTraining(0.01, 4, epochs=2, weight_decay=0.01)


@pytest.mark.parametrize(
    ("training", "optimiser"),
    [
        (LocalTraining(0.1, 4, 0.0), partial(torch.optim.SGD, lr=0.1)),
        (SGD, partial(torch.optim.SGD, lr=0.1, momentum=0.5)),
        (ADAM, partial(torch.optim.Adam, lr=0.01, weight_decay=0.01)),
    ],
)
def test_steps_in_turn_are_two_optimisers_in_turn(training, optimiser):
    federation = toy_federation(devices=1)
    ours = run(federation, InTurn(), training, 2, workers=1)
    net = copy.deepcopy(federation.net)
    for number in range(2):
        parts = [optimiser(layer.parameters()) for layer in (net.above, net.below)]
        for batch in batches(federation, number, training.epochs):
            for part in parts:
                step(net, part, *batch)
    assert torch.allclose(ours.tensors["shared"][0], joined(net), atol=1e-6)


class Sometimes(InTurn):
    """The lower layer learns in some rounds only, on some devices."""

    def steps(self, net):
        above, below = super().steps(net)
        return above, below._replace(when=lambda chance: chance < 0.5)


def test_steps_in_batched_lanes_equal_looped_lanes():
    alike(toy_federation((0, 1), fraction=0.5), InTurn(), SGD, 3)
    alike(toy_federation((0, 1)), Sometimes(), ADAM, 3)


def noisy():
    return nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 3))


def quietly(net, x):
    """With dropout that no module tells of."""
    return net.above(nn.functional.dropout(net.below(x).relu(), 0.5, net.training))


@LANES
@pytest.mark.parametrize("kind", [noisy, Toy.passing(quietly)])
def test_noise_belongs_to_the_seed_wherever_it_comes_from(lanes, kind):
    def go(**more):
        fed = toy_federation(**dict(seeds=(0, 1), net=kind) | more)
        return models(run(fed, FedAvg(), SGD, 3, **how))

    before, how = torch.random.get_rng_state(), dict(lanes=lanes, workers=1)
    first, again, alone = go(), go(), go(seeds=(1,))
    assert torch.equal(first, again)
    assert torch.equal(before, torch.random.get_rng_state())
    assert not torch.allclose(first, go(net=Toy), atol=1e-3)
    if lanes == "looped":  # whatever the order, and whoever else is there
        assert torch.equal(first[1], alone[0])
        how["workers"] = 2
        assert torch.equal(first, go())


class Shift:
    """An augmentation that adds a drawn number to each row."""

    def draw(self, rng, *shape):
        return rng.normal(size=(*shape, 1)).astype(np.float32)

    def apply(self, x, drawn):
        return x + torch.as_tensor(drawn)


def test_augmentation_is_the_same_in_both_lanes_and_drawn_by_place():
    shifting = replace(SGD, augment=Shift())
    alike(toy_federation((0, 1), fraction=0.4), FedAvg(), replace(shifting, epochs=2))

    federation = toy_federation(devices=1)
    ours = run(federation, FedAvg(), shifting, 1, workers=1)
    net, rows = copy.deepcopy(federation.net), int(federation.partitions[0].train.size[0])
    optimiser = torch.optim.SGD(net.parameters(), SGD.lr, SGD.momentum)
    drawn = torch.from_numpy(Shift().draw(stream(0, Purpose.AUGMENT, 0, 0), 1, rows)[0])
    for (x, y), more in zip(batches(federation), drawn.split(4), strict=True):
        step(net, optimiser, x + more, y)
    assert torch.allclose(ours.tensors["shared"][0], joined(net), atol=1e-6)


@LANES
def test_the_rate_decays_by_rounds_of_the_phase(lanes):
    decaying = LocalTraining(0.1, 4, decay=1.0)
    assert [decaying.rate(t) for t in (0, 1, 3)] == [0.1, 0.05, 0.025]
    assert replace(decaying, before=3).rate(1) == 0.02
    go = partial(run, toy_federation(devices=1), FedAvg(), lanes=lanes, workers=1)
    ours = go(decaying, 2, first_round=7)
    first = go(LocalTraining(0.1, 4), 1, first_round=7).tensors["shared"]
    second = go(LocalTraining(0.05, 4), 1, first, first_round=8)
    assert torch.equal(models(ours), models(second))


def omega(m: int, released: bool) -> torch.Tensor:
    """The matrix of C.2.4 as printed, and as the released code builds it."""
    identity = torch.ones(m, m) if released else torch.eye(m)
    inner = identity - torch.ones(m, m) / m
    return inner**2 if released else inner @ inner


@pytest.mark.parametrize("method", [MTL(scale=1.0), ReleasedMTL(scale=1.0)])
def test_mtl_has_the_gradient_of_its_formula(method):
    m, p = 5, 7
    models_ = torch.randn(m, p, dtype=torch.float64)
    w = models_[2].clone().requires_grad_()
    others = models_[[0, 1, 3, 4]].mean(0)
    (ours,) = torch.autograd.grad(method.pull(w, others, m), w)
    side_by_side = torch.stack([w if i == 2 else models_[i] for i in range(m)], 1)  # [P, m]
    matrix = omega(m, isinstance(method, ReleasedMTL)).double()
    (formula,) = torch.autograd.grad(torch.trace(side_by_side @ matrix @ side_by_side.T), w)
    assert torch.allclose(ours, formula)


def test_mtl_sees_the_others_as_they_were():
    federation, seen = toy_federation(fraction=0.3), []

    class Watch(MTL):
        def loss(self, local, batch):
            seen.append(_flat(local.others).clone())
            return super().loss(local, batch)

    run(federation, Watch(), SGD, 1, workers=1)
    start = Layout(federation.net, ()).split(joined(federation.net))[1]
    assert seen and all(torch.allclose(vector, start) for vector in seen)


@pytest.mark.parametrize("lanes", [Looped, Batched])
def test_dropout_is_off_in_tests(lanes):
    federation = toy_federation(net=noisy)
    engine, x = lanes(prepared(federation, FedAvg())), federation.data.test.x
    expected = copy.deepcopy(federation.net).eval()(x).detach()
    found = engine.mean_outputs("shared", "personal", "test")[0, 0]
    assert torch.allclose(found, expected, atol=1e-6)


def test_version_1_takes_algorithm_1s_steps():
    federation = toy_federation((0, 1), net=TwoHeads, fraction=0.5)
    device = int(federation.participation.chosen(stream(0, Purpose.SELECT, 0), 10)[0])
    method = LGFedAvgV1(layers=ABOVE, auxiliary=OWN)
    ours = run(federation, method, replace(SGD, momentum=0.0), 1, workers=1)
    net = copy.deepcopy(federation.net)
    for x, y in batches(federation, device=device):
        for own, head in ((True, net.own), (False, net.above)):  # lines 16-17, then 18-19
            params = [*net.below.parameters(), *head.parameters()]
            loss = nn.functional.cross_entropy(net(x, own=own), y)
            for p, grad in zip(params, torch.autograd.grad(loss, params), strict=True):
                p.data -= 0.1 * grad
    _, personal = ours.layout.split(joined(net))
    assert torch.allclose(ours.tensors["personal"][0, device], personal, atol=1e-6)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_pictures_in_any_memory_order_with_crops_and_flips(layout):
    """Gradients of convolutions then have strides of their own, which an update must respect."""
    pictures = [
        Split(torch.randn(n, 3, 8, 8).contiguous(memory_format=layout), torch.arange(n) % 3)
        for n in (150, 60)
    ]
    layers = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(4, 3)
    federation = toy_federation((0, 1), net=nn.Sequential(*layers))
    data = replace(federation.data, train=pictures[0], test=pictures[1])
    training = replace(SGD, augment=CropFlip((0.0, 1.0, 2.0), padding=2))
    found = alike(replace(federation, data=data), FedAvg(), training, 4, tracker=Personal())
    assert not torch.allclose(models(found)[0, 0], joined(federation.net), atol=1e-2)
