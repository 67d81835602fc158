"""What came after LG-FedAvg: at its limits each is a method that was there before, and each keeps
the promise that its paper makes."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from lgfed_core import methods as m
from lgfed_core.engine import run
from lgfed_core.engine.optimiser import AdamTraining
from lgfed_core.errors import SettingsError
from lgfed_core.methods import QFFL, Batch, Local, cross_entropy
from lgfed_core.methods.perfedavg import half
from lgfed_core.models.controlled import Controlled
from lgfed_core.models.layout import joined, values_of
from lgfed_core.models.twins import Mixture, Twins
from lgfed_core.seeds import Purpose, stream
from toy import (
    ABOVE,
    BELOW,
    LANES,
    SGD,
    Toy,
    answering,
    batches,
    holding,
    models,
    named,
    toy_federation,
)

NEAR = dict(rtol=1e-4, atol=1e-6)


def federation(kind=None, **more):
    return toy_federation(net=(lambda: kind(Toy())) if kind else Toy, **more)


START = joined(federation().net)


def went(method, kind=None, rounds=3, training=SGD, **more):
    return run(federation(kind), method, training, rounds, workers=1, **more)


def parts(outcome):
    """The shared model and each device's own, by name, of a network of twins; [K, ...] each."""
    values = {name: value[0] for name, value in named(outcome).items()}
    return values_of(values, "shared"), values_of(values, "own")


@LANES
def test_fedrep_fits_the_head_first_and_the_representation_after_it(lanes):
    two_epochs = replace(SGD, epochs=2, momentum=0.0)
    rep = went(m.FedRep(layers=BELOW, head=0.5), rounds=1, training=two_epochs, lanes=lanes)

    half = answering(m.FedPer, steps=lambda self, net: (m.Step(self.loss, ABOVE, part=(0, 0.5)),))
    head = went(half(layers=BELOW), rounds=1, training=two_epochs, lanes=lanes)
    assert torch.equal(rep.tensors["personal"], head.tensors["personal"])  # the body disturbs not
    assert not torch.equal(rep.tensors["shared"], head.tensors["shared"])
    begun = head.layout.split(START)[0]
    torch.testing.assert_close(head.tensors["shared"][0], begun)  # an average rounds


def test_parts_of_a_round_are_the_same_batches_in_both_lanes():
    for head in (0.1, 1 / 3, 10 / 11):
        rep, long = m.FedRep(layers=BELOW, head=head), replace(SGD, epochs=3)
        found = (models(went(rep, training=long, lanes=kind)) for kind in ("looped", "batched"))
        torch.testing.assert_close(*found, rtol=0, atol=1e-5)


def test_a_part_is_so_many_batches_of_a_device():
    step = m.Step(None, part=(0.25, 0.75))
    assert [step.now(i, 8) for i in range(8)] == [False] * 2 + [True] * 4 + [False] * 2
    whole = [m.Step(None, part=part) for part in ((0, 10 / 11), (10 / 11, 1))]
    for n in range(1, 60):  # each batch belongs to one of the two; the last moves the body anyway
        assert all(whole[0].now(i, n) != whole[1].now(i, n) for i in range(n - 1))
        assert whole[1].now(n - 1, n) and whole[0].now(0, n)


def test_fedbabu_never_moves_the_head_and_is_fine_tuned_after():
    found = went(m.FedBABU(layers=BELOW))
    shared, personal = found.layout.split(START)
    assert (found.tensors["personal"][0] == personal).all()
    assert not torch.allclose(found.tensors["shared"][0], shared)
    after = run(federation(), m.LocalOnly(), SGD, 1, models(found)[:, 0], first_round=3)
    assert not torch.equal(models(after)[0, 0], models(after)[0, 1])


@pytest.mark.parametrize("pull", [0.0, 2.0])
def test_dittos_server_is_fedavgs_to_the_bit(pull):
    ditto, fedavg = went(m.Ditto(pull=pull), Twins), went(m.FedAvg())
    assert torch.equal(ditto.tensors["shared"], fedavg.tensors["shared"])


def test_ditto_without_a_pull_trains_alone_and_with_a_great_one_stays_with_the_server():
    alone = models(went(m.LocalOnly()))[0]
    free = went(m.Ditto(pull=0.0), Twins).tensors["personal"][0]
    torch.testing.assert_close(free, alone, **NEAR)
    slow = replace(SGD, lr=0.001, momentum=0.0)
    distances = []
    for pull in (0.0, 500.0):
        shared, own = parts(went(m.Ditto(pull=pull), Twins, training=slow))
        distances.append(sum((own[n] - shared[n]).square().sum() for n in own))
    assert distances[1] < 0.2 * distances[0]


def test_apfl_that_never_mixes_is_local_training_beside_fedavg():
    """At alpha = 1 the device's own model alone predicts; at 0 the server's does."""
    fed = federation(Mixture)
    with torch.no_grad():
        fed.net.alpha.fill_(1.0)
    start = joined(fed.net)[None]
    found = run(fed, m.APFL(adaptive=False), SGD, 3, start, workers=1)
    assert torch.equal(found.tensors["shared"], went(m.FedAvg()).tensors["shared"])
    _, own = parts(found)
    alone = models(went(m.LocalOnly()))[0]
    mine = torch.cat([v.flatten(1) for v in own.values()], 1)
    torch.testing.assert_close(mine, alone, **NEAR)
    x = fed.data.test.x
    with torch.no_grad():
        for alpha, part in ((1.0, fed.net.own), (0.0, fed.net.shared)):
            fed.net.alpha.fill_(alpha)
            part.above.bias.add_(1.0)
            torch.testing.assert_close(fed.net(x), part(x))


def test_apfl_learns_how_much_to_mix_and_never_lets_the_server_see_it():
    found = went(m.APFL(), Mixture)
    assert "alpha" in found.layout.personal
    alpha = named(found)["alpha"]
    assert (alpha != 0.5).all() and alpha.unique().numel() > 1


def test_pfedme_s_shared_model_moves_by_lambda_times_the_distance():
    """One batch, one inner step: theta = w0 - lr g, and w = w0 - lr rate lambda (w0 - theta)."""
    training = replace(SGD, batch_size=20, momentum=0.0)
    found = went(m.PFedMe(pull=3.0, inner=1, rate=0.5), Twins, rounds=1, training=training)
    theta = models(went(m.LocalOnly(), rounds=1, training=training))[0]
    start = START
    expected = (start - 0.1 * 0.5 * 3.0 * (start - theta)).mean(0)
    torch.testing.assert_close(found.tensors["personal"][0], theta, **NEAR)
    torch.testing.assert_close(found.tensors["shared"][0], expected, **NEAR)


def gradient(model, batch):
    """Of Toy's loss of (x, y), at the parameters ``model`` [P]."""
    net = Toy()
    torch.nn.utils.vector_to_parameters(model, net.parameters())
    loss = torch.nn.functional.cross_entropy(net(batch[0]), batch[1])
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, [*net.parameters()])])


def by_sgd(x, seen, momentum, nesterov, drift=0.0):
    """Where steps from ``x`` [P] along gradients plus ``drift`` end, and how far along one that
    stays: ||a_i||_1 of FedNova."""
    y, v, gone, far = x.clone(), torch.zeros_like(x), 0.0, 0.0
    for batch in seen:
        g = gradient(y, batch) + drift
        v, gone = momentum * v + g, momentum * gone + 1
        y -= 0.1 * (g + momentum * v if nesterov else v)
        far += 1 + momentum * gone if nesterov else gone
    return y, far


MOMENTA = pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, None), (0.5, None), (0.5, True)])


@LANES
@MOMENTA
def test_scaffold_is_the_papers_algorithm(lanes, momentum, nesterov):
    """Three rounds of half the devices, beside Algorithm 1 written out."""
    training = replace(SGD, momentum=momentum, epochs=2, batch_size=3, nesterov=nesterov)
    fed = federation(Controlled, fraction=0.5)
    found = run(fed, m.Scaffold(rate=0.7), training, 3, lanes=lanes, workers=1)

    plan = [fed.participation.chosen(stream(0, Purpose.SELECT, t), fed.clients) for t in range(3)]
    x, c = START.clone(), torch.zeros_like(START)
    own = torch.zeros(fed.clients, len(START))
    for t, who in enumerate(plan):
        models, changes = [], []
        for k in who.tolist():
            seen = batches(fed, size=3, device=k, round=t, epochs=2)
            y, far = by_sgd(x, seen, momentum, nesterov, c - own[k])
            change = -c + (x - y) / (0.1 * far)  # c_i+ - c_i
            own[k] += change
            models.append(y)
            changes.append(change)
        x = x + 0.7 * (torch.stack(models).mean(0) - x)
        c = c + torch.stack(changes).sum(0) / fed.clients
    torch.testing.assert_close(found.tensors["shared"][0], torch.cat([x, c]), **NEAR)
    torch.testing.assert_close(found.tensors["personal"][0], own, rtol=1e-3, atol=1e-5)


@LANES
@MOMENTA
def test_fednova_is_the_papers_update(lanes, momentum, nesterov):
    """Two rounds of some devices, beside the paper's update written out; sizes are unlike."""
    training = replace(SGD, momentum=momentum, batch_size=2, nesterov=nesterov)
    rows = [[*range(k * (k + 1) // 2, (k + 1) * (k + 2) // 2)] for k in range(5)]  # 1 to 5 of them
    fed = holding(toy_federation(devices=5, fraction=0.6), train=rows, validation=None)
    found = run(fed, m.FedNova(), training, 2, lanes=lanes, workers=1)

    x = START.clone()
    for t in range(2):
        moves, far, sizes = [], [], []
        for k in fed.participation.chosen(stream(0, Purpose.SELECT, t), 5).tolist():
            y, a = by_sgd(x, batches(fed, size=2, device=k, round=t), momentum, nesterov)
            moves.append((x - y) / (0.1 * a))  # d_i
            far.append(a)
            sizes.append(len(rows[k]))
        p = torch.tensor(sizes) / sum(sizes)
        assert len(set(far)) > 1
        x = x - p @ torch.tensor(far) * 0.1 * (p @ torch.stack(moves))
    torch.testing.assert_close(found.tensors["shared"][0], x, **NEAR)


def test_fednova_is_fedavg_where_all_take_as_many_steps():
    short = replace(SGD, batches=1, epochs=3)
    nova, plain = (models(went(one, training=short)) for one in (m.FedNova(), m.FedAvg()))
    torch.testing.assert_close(nova, plain, **NEAR)


@LANES
@pytest.mark.parametrize(
    "training", [AdamTraining(0.1, 4), replace(SGD, keep_momentum=True)], ids=["Adam", "kept"]
)
@pytest.mark.parametrize(("method", "kind"), [(m.Scaffold(), Controlled), (m.FedNova(), None)])
def test_how_far_devices_went_is_refused_where_it_is_unknown(lanes, training, method, kind):
    with pytest.raises(SettingsError, match="how far devices go per gradient is unknown with Adam"):
        went(method, kind, training=training, lanes=lanes)


def ahead_of(model, batch, alpha, exact):
    """The gradient of Toy's loss on every other row, one step on the rest ahead of ``model``."""

    def loss(w, rows):
        a, b, c, d = w.split([48, 6, 18, 3])
        hidden = (rows[0] @ a.view(6, 8).T + b).relu()
        return torch.nn.functional.cross_entropy(hidden @ c.view(3, 6).T + d, rows[1])

    first, second = (tuple(part[odd::2] for part in batch) for odd in (0, 1))
    second = second if len(second[1]) else first
    there = model - alpha * gradient(model, first)
    slope = gradient(there, second)
    if not exact:
        return slope
    hessian = torch.autograd.functional.hessian(lambda w: loss(w, first), model)
    return slope - alpha * hessian @ slope


@LANES
@pytest.mark.parametrize("exact", [False, True])
def test_per_fedavg_steps_where_a_step_leads(lanes, exact):
    """Two rounds beside Algorithm 1 written out; the last batch of some devices is a single row."""
    training = replace(SGD, batch_size=3, momentum=0.0)
    fed, w = federation(), START
    found = run(fed, m.PerFedAvg(alpha=0.3, exact=exact), training, 2, workers=1, lanes=lanes)
    for round in range(2):
        ends, rows = [], []
        for device in range(10):
            own = w
            for batch in batches(fed, round, size=3, device=device):
                own = own - training.lr * ahead_of(own, batch, 0.3, exact)
            ends.append(own)
            rows.append(fed.partitions[0].train.size[device])
        w = torch.tensor(rows).float() / sum(rows) @ torch.stack(ends)
    torch.testing.assert_close(found.tensors["shared"][0], w, **NEAR)


def test_half_of_a_batch_is_of_weights_whatever_rows_are():
    rows = Batch(torch.tensor([[7], [8], [9]]), torch.tensor([0, 1, 2]))  # such as words
    first, second = half(rows, 0), half(rows, 1)
    assert first.weight.tolist() == [0.5, 0, 0.5] and second.weight.tolist() == [0, 1, 0]
    padded = replace(rows, weight=torch.tensor([1.0, 0, 0]))  # a device with a single row
    assert half(padded, 1).weight.tolist() == [1, 0, 0]


def test_pfedme_inner_steps_approach_the_proximal_point():
    torch.manual_seed(0)
    begun = Toy.passing(lambda net, x: net.above(net.below(x).tanh()))()
    training = replace(SGD, batch_size=20, momentum=0.0, lr=0.05)
    shared, own = {}, {}
    for inner in (1, 150):
        fed = toy_federation(net=Twins(deepcopy(begun)))
        found = run(fed, m.PFedMe(pull=5.0, inner=inner, rate=0.0), training, 1, workers=1)
        shared[inner], own[inner] = parts(found)
    for name, value in begun.state_dict().items():  # w stays
        torch.testing.assert_close(shared[1][name][0], value)
    for name, param in begun.named_parameters():
        param.data = own[150][name][4].clone()
    ((x, y),) = batches(fed, size=20, device=4)
    torch.nn.functional.cross_entropy(begun(x), y).backward()
    for name, param in begun.named_parameters():  # the gradient of what theta minimises is zero
        assert (param.grad + 5.0 * (param - shared[150][name][4])).abs().max() < 1e-3


def test_fedbn_keeps_normalisation_and_says_what_it_needs():
    layers = torch.nn.Linear(8, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 3)
    fed = toy_federation(net=torch.nn.Sequential(*layers))
    found = run(fed, m.FedBN(), replace(SGD, batch_size=2, batches=1), 2, workers=1)
    assert {"1.weight", "1.bias", "1.running_mean"} <= set(found.layout.personal)
    assert {"0.weight", "2.bias"} <= set(found.layout.shared)


def test_servers_without_momentum_are_fedavg():
    fedavg = went(m.FedAvg())
    torch.testing.assert_close(models(went(m.FedAvgM(beta=0.0))), models(fedavg), **NEAR)
    standing = went(m.FedAdam(rate=0.0))
    assert (models(standing)[0] == START).all()


@LANES
def test_a_server_s_momentum_is_that_of_sgd_on_updates(lanes):
    moves, momentum = [], 0

    def server_step(self, before, average, memory):
        after, kept = m.FedAvgM.server_step(self, before, average, memory)
        moves.append((average - before, after - before))
        return after, kept

    went(answering(m.FedAvgM, server_step=server_step)(beta=0.5, rate=0.7), lanes=lanes)
    for delta, step in moves:
        momentum = 0.5 * momentum + delta
        torch.testing.assert_close(step, 0.7 * momentum)


def test_adam_and_yogi_follow_their_equations():
    one, other = m.FedAdam(rate=0.1), m.FedYogi(rate=0.1)
    before, average = torch.zeros(3), torch.tensor([1.0, -2.0, 0.0])
    memory = torch.zeros(2, 3)
    for method, v in ((one, 0.01 * average**2), (other, 0.01 * average**2)):
        after, kept = method.server_step(before, average, memory)
        torch.testing.assert_close(kept, torch.stack([0.1 * average, v]))
        torch.testing.assert_close(after, 0.1 * 0.1 * average / (v.sqrt() + 1e-3))
    large = torch.stack([torch.zeros(3), torch.full((3,), 9.0)])
    _, adam = one.server_step(before, average, large)
    _, yogi = other.server_step(before, average, large)
    torch.testing.assert_close(adam[1], 0.99 * large[1] + 0.01 * average**2)
    torch.testing.assert_close(yogi[1], large[1] - 0.01 * average**2)


def test_its_gradient_is_that_of_the_loss_times_the_loss_to_the_q():
    torch.manual_seed(0)
    net, batch = torch.nn.Linear(4, 3), Batch(torch.randn(5, 4), torch.randint(3, (5,)))
    local = Local(net, {}, {})
    plain = cross_entropy(net(batch.x), batch)
    slope = torch.autograd.grad(plain, net.weight)[0]
    for q, unit in ((0.0, 1.0), (2.0, 1.0), (2.0, 0.5)):
        method = QFFL(q=q, unit=unit)
        found = torch.autograd.grad(method.loss(local, batch), net.weight)[0]
        assert torch.allclose(found, slope * (plain.detach() / unit) ** q, rtol=1e-5)
