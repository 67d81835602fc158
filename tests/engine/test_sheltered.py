"""A loss may look at the network with other weights: `Local.at` and `Local.gradients`."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from lgfed_core.engine import run
from lgfed_core.methods import FedAvg
from toy import LANES, SGD, Toy, alike, models, normed, toy_federation


@dataclass(frozen=True, kw_only=True)
class Sharpness(FedAvg):
    """SAM (Foret et al., 2021): the loss where it is steepest, ``rho`` away."""

    rho: float = 0.05

    def loss(self, local, batch):
        slope = {n: g.detach() for n, g in local.gradients(super().loss, batch).items()}
        length = sum(g.square().sum() for g in slope.values()).sqrt()
        there = {n: local.params[n] + self.rho * g / length for n, g in slope.items()}
        return super().loss(local.at(there), batch)


def by_hand(net, x, y, rho):
    """SAM's gradient, in the usual two passes of PyTorch."""
    params = [p for p in net.parameters() if p.requires_grad]
    first = torch.autograd.grad(nn.functional.cross_entropy(net(x), y), params)
    length = torch.cat([g.flatten() for g in first]).norm()
    with torch.no_grad():
        for p, g in zip(params, first, strict=True):
            p.add_(rho * g / length)
    second = torch.autograd.grad(nn.functional.cross_entropy(net(x), y), params)
    with torch.no_grad():
        for p, g in zip(params, first, strict=True):
            p.sub_(rho * g / length)
    return params, second


@LANES
@pytest.mark.parametrize("frozen", [False, True])
def test_sam_is_sam_written_out(lanes, frozen):
    """One device, one batch of all rows a round; what is frozen is no part of the ascent."""

    def make():
        net = Toy()
        net.below.requires_grad_(not frozen)
        return net

    fed = toy_federation(devices=1, net=make)
    training = replace(SGD, batch_size=100, momentum=0.0)
    found = run(fed, Sharpness(rho=0.5), training, 3, workers=1, lanes=lanes)
    net, rows = fed.net, fed.partitions[0].train.of(0)
    x, y = fed.data.train.x[rows], fed.data.train.y[rows]
    for _ in range(3):
        params, grads = by_hand(net, x, y, 0.5)
        with torch.no_grad():
            for p, g in zip(params, grads, strict=True):
                p.sub_(0.1 * g)
    expected = torch.cat([p.detach().flatten() for p in net.parameters()])
    torch.testing.assert_close(found.tensors["shared"][0], expected, rtol=1e-4, atol=1e-6)


def test_looking_elsewhere_is_the_same_in_both_lanes():
    alike(toy_federation(seeds=(0, 1), fraction=0.5), Sharpness())


@LANES
def test_running_statistics_move_with_the_loss_alone(lanes):
    """They are those of one pass a batch: `gradients` looks, and leaves them as they are."""

    @dataclass(frozen=True, kw_only=True)
    class Looks(FedAvg):
        def loss(self, local, batch):
            local.gradients(super().loss, batch)
            return super().loss(local, batch)

    fed, whole = toy_federation(net=normed), replace(SGD, batch_size=2, batches=1)
    one, other = (run(fed, kind(), whole, 2, workers=1, lanes=lanes) for kind in (FedAvg, Looks))
    torch.testing.assert_close(models(one), models(other))
