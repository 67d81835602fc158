"""FADE: its losses, its two players, who declines, what is sent; and what the engine has for it."""

import copy
import math
from dataclasses import replace
from functools import partial
from itertools import islice

import pytest
import torch
from cases import FALLING
from torch import nn

from lgfed_core import LocalTraining, Participation, run
from lgfed_core.engine.looped import Looped
from lgfed_core.methods import FADE, Batch, FedAvg, Local
from lgfed_core.methods.adversary import group_loss
from lgfed_core.methods.schedules import Annealing, rising
from lgfed_core.models import count
from lgfed_core.models.digits import DigitsNet, WeightNormalised
from lgfed_core.models.layout import Layout, joined, values
from lgfed_core.seeds import Purpose, coin, stream, visits
from toy import LANES, SGD, Small, alike, batches, grouped, models, named, prepared, reading, step

# Losses.


def test_group_loss_against_hand_computed_values():
    batch = Batch(torch.zeros(2, 1), torch.zeros(2), None, torch.tensor([[0], [1]]))
    logits = torch.tensor([[math.log(3.0)], [0.0]])  # P(group 1) = 3/4 and 1/2
    b = math.log(4), math.log(2)  # -log of 1/4 and of 1/2
    mean = sum(b) / 2
    assert group_loss(logits, batch).item() == pytest.approx(mean)
    assert group_loss(logits, batch, 2.0).item() == pytest.approx(mean**2 / 2)
    each = (b[0] ** 2 + b[1] ** 2) / 4
    assert group_loss(logits, batch, 2.0, per_sample=True).item() == pytest.approx(each)
    assert group_loss(logits, batch, 1.0, per_sample=True).item() == pytest.approx(mean)


def test_group_loss_of_many_groups_is_a_softmax():
    batch = Batch(torch.zeros(1, 1), torch.zeros(1), None, torch.tensor([[2]]))
    logits = torch.tensor([[0.0, 0.0, math.log(2.0)]])  # P(group 2) = 1/2
    assert group_loss(logits, batch, 3.0).item() == pytest.approx(math.log(2) ** 3 / 3)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_encoder_ascends_what_the_discriminator_descends(power):
    net, method = Small(), FADE(strength=0.3, power=power)
    batch = Batch(torch.randn(5, 8), torch.full((5,), -1), None, torch.ones(5, 1).long())
    local = Local(net, dict(net.named_parameters()), {})
    plain = group_loss(net(batch.x, watch=lambda z: z)[1], batch, power)
    names = [n for n, _ in net.named_parameters()]
    params = list(net.parameters())
    ours = torch.autograd.grad(method.loss(local, batch), params)  # no labels: no task
    true = torch.autograd.grad(plain, params, allow_unused=True, materialize_grads=True)
    for name, got, expected in zip(names, ours, true, strict=True):
        factor = 1.0 if name.startswith("discriminator") else -0.3
        assert torch.allclose(got, factor * expected, atol=1e-7), name


def test_unlabelled_rows_teach_no_task():
    net, method = Small(), FADE(opt_out=1.0)
    x, y = torch.randn(4, 8), torch.tensor([0, -1, 2, -1])
    local = Local(net, dict(net.named_parameters()), {})
    both = method.task(local, Batch(x, y))
    known = nn.functional.cross_entropy(net(x[[0, 2]]), y[[0, 2]])
    assert both.item() == pytest.approx(known.item() / 2)  # the mean is over all four rows


# The method among others.


@LANES
def test_without_the_game_it_is_fedavg_and_with_lambda_zero_it_learns_the_task_alike(lanes):
    quiet, alone, plain = (
        named(run(grouped(), method, SGD, 3, lanes=lanes, workers=1))
        for method in (FADE(strength=0.0, beta=1.0), FADE(opt_out=1.0, beta=1.0), FedAvg())
    )
    for name in plain:
        assert torch.equal(alone[name], plain[name])
        assert torch.equal(quiet[name], plain[name]) != name.startswith("discriminator"), name


@LANES
def test_each_run_may_have_a_method_of_its_own(lanes):
    settings = (dict(power=1.0), dict(power=2.0), dict(power=1.0, beta=0.3, strength=0.5))
    methods = [FADE(**(dict(beta=1.0, strength=1.0) | own)) for own in settings]
    who, how = Participation(0.75), dict(lanes=lanes, workers=1)
    several = run(grouped(seeds=(0, 0, 0), who=who), methods, SGD, 3, **how).tensors["shared"]
    for r, method in enumerate(methods):
        alone = run(grouped(who=who), method, SGD, 3, **how).tensors["shared"]
        assert torch.equal(several[r], alone[0])
    assert not torch.allclose(several[0], several[1], atol=1e-4)


def test_momentum_of_rounds_played_moves_who_declines_where_it_is_kept():
    federation = grouped(devices=1)
    federation.data.train.y.fill_(-1)
    game = FADE(beta=1.0, strength=1.0, opt_out=0.5)
    plays = [game.plays(coin(0, number, 0)) for number in range(9)]
    at = next(n for n in range(1, 9) if plays[n - 1] and not plays[n])

    def moved(method, keep):  # in round ``at``, which is declined by a device without labels
        training = LocalTraining(0.1, 4, 0.9, keep_momentum=keep)
        ends = [run(federation, method, training, n, workers=1) for n in (at, at + 1)]
        return (ends[1].tensors["shared"] - ends[0].tensors["shared"]).norm().item()

    assert moved(game, keep=True) > 0 and moved(game, keep=False) == 0
    assert moved(FADE(beta=1.0, opt_out=1.0), keep=True) == 0  # who never plays has none


def test_who_declines_returns_the_discriminator_as_it_came():
    federation, method = grouped(), FADE(opt_out=0.5, beta=1.0)
    assert method.plays(0.51) and method.declines(0.49)
    training = LocalTraining(0.1, 4, 0.9, weight_decay=0.1, keep_momentum=True)
    phase, played = prepared(federation, method, training), []
    engine = Looped(phase)
    for number in range(6):
        engine.train([(0, k) for k in range(4)], number, 0.1)
        sent = phase.layout.views(phase.tensors["uploads"], torch.empty(4, 0))
        net = federation.net
        moved, learnt = (
            (sent[name] != net.get_parameter(name)).flatten(1).any(1)
            for name in ("discriminator.weight", "encoder.0.weight")
        )
        played += moved.tolist()
        assert learnt.all()
    assert 4 < sum(played) < 20  # of 24


# What leaves a device.


def test_messages_hold_parameters_and_no_group_label():
    federation = grouped()
    sent = prepared(federation, FADE(beta=1.0)).tensors["uploads"]
    assert sent.shape == (4, sum(p.numel() for p in federation.net.parameters()))
    assert not sent.any()  # nothing is in a message that training has not put there

    def uploads(group: int, opt_out: float):
        """What device 0 sends, were it in ``group``."""
        labels = torch.full_like(federation.data.train.groups, group)
        lie = reading(federation, groups=labels)
        phase = prepared(lie, FADE(opt_out=opt_out, beta=1.0))
        Looped(phase).train([(0, 0)], 0, 0.1)
        return phase.tensors["uploads"][0]

    assert torch.equal(uploads(0, 1.0), uploads(1, 1.0))  # who declines, tells nothing of it
    assert not torch.equal(uploads(0, 0.0), uploads(1, 0.0))  # who plays, tells through gradients


# The engine's part.


def test_a_device_anneals_by_its_own_steps():
    federation = grouped(devices=2, who=Participation(0.5, torch.tensor([[0.4, 0.6]])))
    training = replace(FALLING, batches=2, annealing=Annealing(30))
    ours = run(federation, FADE(beta=1.0, opt_out=1.0), training, 6, workers=1)
    assert ours.tensors["taken"].sum() == 12 and (ours.tensors["taken"] > 0).all()

    net = copy.deepcopy(federation.net)
    parts = [*net.encoder.parameters(), *net.classifier.parameters()]
    held = [torch.optim.SGD(parts, 0.1, 0.9, weight_decay=1e-3, nesterov=True) for _ in range(2)]
    taken = [0, 0]
    for number in range(6):
        drawn = stream(0, Purpose.SELECT, number)
        (k,) = federation.participation.chosen(drawn, 2).tolist()
        for batch in islice(batches(federation, number, size=5, device=k), 2):
            held[k].param_groups[0]["lr"] = 0.1 * (1 + 10 * taken[k] / 30) ** -0.75
            net.zero_grad()
            step(net, held[k], *batch)
            taken[k] += 1
    assert taken == ours.tensors["taken"][0].int().tolist()
    assert torch.allclose(ours.tensors["shared"][0], joined(net), atol=1e-6)


def test_schedules_begin_and_end_where_they_should():
    assert rising(0, 100) == 0 and rising(-5, 100) == 0
    assert rising(100, 100) == pytest.approx(0.99990920)
    assert rising(10, 100) == pytest.approx((math.e - 1) / (math.e + 1))
    for rounds in (7, 100, 8600):  # as float32, in which it meets a gradient, to the last bit
        told = torch.arange(-1, rounds + 2)
        each = [rising(int(t), rounds) for t in told]
        assert torch.equal(rising(told, rounds).float(), torch.tensor(each))
    late, usual = FADE(rounds=10, start=7), FADE(rounds=10)
    assert [late.strength_at(7 + n) for n in range(4)] == [usual.strength_at(n) for n in range(4)]
    assert late.strength_at(7) == 0 < late.strength_at(8)
    assert Annealing(50).factor(0) == 1
    assert Annealing(50).factor(50) == pytest.approx(11**-0.75)


FULL = LocalTraining(0.1, 5, 0.9, batches=2)


@pytest.mark.parametrize("kind", [partial(FADE, opt_out=0.5), FedAvg])  # who declines passes once
@pytest.mark.parametrize("statistics", ["frozen", "local", "averaged"])
def test_running_statistics_go_where_the_setting_says(kind, statistics):
    federation = grouped(seeds=(0, 1), normalised=True)
    looped = alike(federation, kind(batch_norm=statistics), FULL, 3)
    mean = named(looped)["encoder.1.running_mean"]  # [R, K, 6]
    assert mean.any() == (statistics != "frozen")
    assert torch.equal(mean[:, 0], mean[:, 1]) == (statistics != "local")
    personal = looped.tensors["personal"].shape[-1]
    assert personal == (0 if statistics == "averaged" else 12)


def test_local_statistics_are_those_of_the_device():
    federation = grouped(devices=1, normalised=True)
    out = run(federation, FADE(batch_norm="local", beta=1.0), FULL, 1, workers=1)
    net, split = Small(True), federation.data.train
    net.load_state_dict(federation.net.state_dict())
    optimiser = torch.optim.SGD(net.parameters(), 0.1, 0.9)
    rows = federation.partitions[0].train.of(0)
    local = Local(net.train(), dict(net.named_parameters()), {})
    method = FADE(beta=1.0)
    for at in rows[torch.from_numpy(visits(0, 0, 0, len(rows), 1)[0])[:10]].split(5):
        optimiser.zero_grad()
        method.loss(local, Batch(split.x[at], split.y[at], None, split.groups[at])).backward()
        optimiser.step()
    assert torch.allclose(models(out)[0, 0], joined(net), atol=1e-6)


# The networks.


def test_digits_net_has_the_counts_of_the_paper():
    for channels, backbone in ((1, 25_570), (3, 26_570)):
        net = DigitsNet(channels)
        assert count(net.encoder[:4]) == backbone
        assert count(net.encoder) - backbone == 205_056 + 512
        assert count(net.classifier) == 2_580
        assert count(net.discriminator) == 13_891
    assert count(DigitsNet(conditional=True).discriminator) == 129_091
    assert DigitsNet(groups=3).discriminator[-1].out_features == 3


def test_conditional_discriminator_reads_classes_times_features():
    torch.manual_seed(0)
    net, x = DigitsNet(conditional=True).eval(), torch.randn(3, 1, 28, 28)
    z = net.encoder(x)
    p = net.classifier(z).softmax(-1)
    expected = torch.einsum("nc,nf->ncf", p, z).flatten(1)
    assert torch.allclose(net.seen(z, net.classifier(z)), expected)
    both = net(x, everything=True)
    assert torch.equal(both[:, :10], net(x))
    assert torch.equal(both[:, 10:], net(x, watch=lambda z: z)[1])


def test_weight_normalised_rows_have_length_g():
    torch.manual_seed(0)
    layer, x = WeightNormalised(4, 3), torch.randn(2, 4)
    plain = torch.nn.functional.linear(x, layer.v, layer.bias)
    assert torch.allclose(layer(x), plain, atol=1e-6)  # at first, g is |v|
    with torch.no_grad():
        layer.v *= 5
    assert torch.allclose(layer(x), plain, atol=1e-6)


def test_layout_holds_statistics_behind_the_parameters():
    net = Small(True)
    layout = Layout(net, ())
    assert list(layout.shapes)[-2:] == ["encoder.1.running_mean", "encoder.1.running_var"]
    assert len(joined(net)) == sum(v.numel() for _, v in values(net))
