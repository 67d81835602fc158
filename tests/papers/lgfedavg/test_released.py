"""The released evaluation against a plain reading of it: lists of whole models, no engine."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from lgfed_core.engine import LocalTraining, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.trackers import Personal
from lgfed_core.methods import LGFedAvg, LocalOnly
from lgfed_core.seeds import Purpose, stream, visits
from toy import ABOVE, toy_federation

SGD = LocalTraining(lr=0.3, batch_size=4, momentum=0.5)
ROUNDS = 25


def train(net, fed, device, round, optimiser=None):
    split, rows = fed.data.train, fed.partitions[0].train.of(device)
    optimiser = optimiser or torch.optim.SGD(net.parameters(), SGD.lr, SGD.momentum)
    for at in torch.from_numpy(visits(3, round, device, len(rows), 1)[0]).split(SGD.batch_size):
        optimiser.zero_grad()
        F.cross_entropy(net(split.x[rows[at]]), split.y[rows[at]]).backward()
        optimiser.step()
    return optimiser


@torch.no_grad()
def accuracy(net, fed, rows):
    return (net(fed.data.test.x[rows]).argmax(1) == fed.data.test.y[rows]).float().mean().item()


def own(net, fed, k):
    return accuracy(net, fed, fed.partitions[0].test.of(k))


def everything(net, fed):
    return accuracy(net, fed, torch.arange(len(fed.data.test.y)))


@torch.no_grad()
def averaged(nets):
    out = copy.deepcopy(nets[0])
    vector_to_parameters(
        torch.stack([parameters_to_vector(n.parameters()) for n in nets]).mean(0), out.parameters()
    )
    return out


@torch.no_grad()
def give(net, source, names):
    for name, p in net.named_parameters():
        if name in names:
            p.copy_(dict(source.named_parameters())[name])


def test_lg_fedavg_as_released():
    fed = toy_federation(seeds=(3,), fraction=0.3)
    method = LGFedAvg(layers=ABOVE, weighted=False)
    ours = run(fed, method, SGD, ROUNDS, tracker=AveragedBest(), workers=1)

    nets = [copy.deepcopy(fed.net) for _ in range(10)]
    best, reached = copy.deepcopy(nets), [own(n, fed, k) for k, n in enumerate(nets)]
    improved_by_start, peak, looks = list(reached), -1.0, 0
    for t in range(ROUNDS):
        chosen = fed.participation.chosen(stream(3, Purpose.SELECT, t), 10).tolist()
        for k in chosen:
            train(nets[k], fed, k, t)
        server = averaged([nets[k] for k in chosen])
        for k, net in enumerate(nets):
            give(net, server, ABOVE)
            if own(net, fed, k) >= reached[k]:
                best[k], reached[k] = copy.deepcopy(net), own(net, fed, k)
        mean, served = averaged(best), copy.deepcopy(best)
        for net in served:
            give(net, mean, ABOVE)
        line = ours.history.iloc[t]
        local = sum(own(n, fed, k) for k, n in enumerate(served)) / 10
        assert line["averaged_local_test_acc"] == pytest.approx(local, abs=1e-6)
        if (local := line["averaged_local_test_acc"]) > peak:  # looked at there alone
            assert line["averaged_new_test_acc"] == pytest.approx(everything(mean, fed), abs=1e-6)
            peak, looks = local, looks + 1
        else:
            assert math.isnan(line["averaged_new_test_acc"])
    assert 1 < looks < ROUNDS
    assert ours.tensors["best_accuracy"][0].tolist() == pytest.approx(reached)
    assert reached != improved_by_start
    final = ours.final.iloc[0]
    assert final["best_new_test_acc_weights"] == pytest.approx(everything(mean, fed))
    assert final["last_new_test_acc_weights"] == pytest.approx(everything(averaged(nets), fed))


def test_local_only_as_released():
    fed = toy_federation(seeds=(3,))
    stop = (0.6, 11)
    tracker = Personal("test", ties="first", stop_at=stop)
    training = LocalTraining(SGD.lr, SGD.batch_size, keep_momentum=True)
    ours = run(fed, LocalOnly(), training, ROUNDS, tracker=tracker, workers=1)

    kept, reached, epochs = [], [], []
    for k in range(10):
        net, optimiser, best, model = copy.deepcopy(fed.net), None, -1.0, None
        for epoch in range(ROUNDS):
            optimiser = train(net, fed, k, epoch, optimiser)
            now = own(net, fed, k)
            if now > best:
                best, model = now, copy.deepcopy(net)
            if epoch > stop[1] - 1 and now >= stop[0]:  # epoch counts from 0
                break
        kept, reached, epochs = [*kept, model], [*reached, best], [*epochs, epoch + 1]
    assert ours.tensors["best_accuracy"][0].tolist() == pytest.approx(reached)
    theirs = torch.stack([parameters_to_vector(n.parameters()) for n in kept])
    assert torch.allclose(ours.tensors["best_personal"][0], theirs, atol=1e-4)
    assert 12 in epochs and len(set(epochs)) > 1  # some stop as early as they may, others do not
    final = ours.final.iloc[0]
    assert final["best_local_test_acc"] == pytest.approx(sum(reached) / 10)
    assert final["best_new_test_acc_weights"] == pytest.approx(everything(averaged(kept), fed))
    with torch.no_grad():
        outputs = torch.stack([n(fed.data.test.x) for n in kept]).mean(0)
    together = (outputs.argmax(1) == fed.data.test.y).float().mean().item()
    assert final["best_new_test_acc_outputs"] == pytest.approx(together)
