"""The two players: signs and sizes of gradients, by hand and through the engine."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from cases import adult
from torch import Tensor

from lgfed_core import Federation, LocalTraining, run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import Batch, FairLGFedAvg, Local, Step, WatchedFedAvg
from lgfed_core.methods.adversary import adversary_loss, group_loss, reverse
from lgfed_core.methods.interface import cross_entropy
from lgfed_core.models.adult import AdultNet
from lgfed_core.models.layout import parts
from toy import LANES, models, named, reading

LAMBDA = 0.7


def toy(head=2, groups_seed=5) -> Federation:
    """Devices with two protected attributes that say nothing of the rows."""
    torch.manual_seed(3)
    fed, rng = adult(head), torch.Generator().manual_seed(groups_seed)
    return reading(fed, groups=torch.randint(0, 2, (len(fed.data.train), 2), generator=rng))


def gradients(net, loss: Tensor) -> dict[str, Tensor]:
    values = list(net.parameters())
    how = dict(retain_graph=True, allow_unused=True, materialize_grads=True)
    grads = torch.autograd.grad(loss, values, **how)
    return dict(zip([n for n, _ in net.named_parameters()], grads, strict=True))


def test_reverse_is_the_identity_forwards_and_scales_with_a_minus_backwards():
    h = torch.randn(50, requires_grad=True)
    weights = torch.randn(50)
    for strength in (0.0, 0.03, 7.0):
        out = reverse(h, strength)
        assert torch.equal(out, h)
        (grad,) = torch.autograd.grad((weights * out).sum(), h)
        assert torch.allclose(grad, -strength * weights)


def test_losses_by_hand():
    """Of each attribute the mean over rows, and powers of that mean, not of each row."""
    logits = torch.tensor([[0.0, 2.0], [math.log(3), -2.0]])
    batch = Batch(torch.zeros(2, 1), torch.zeros(2), None, torch.tensor([[1, 1], [0, 0]]))
    race, sex = 1.5 * math.log(2), math.log1p(math.exp(-2))  # ln 2 and ln 4 are 1.5 ln 2
    for power in (1, 2, 3):
        due = (race**power + sex**power) / power / 2
        assert adversary_loss(logits, batch, power) == pytest.approx(due)
    padded = Batch(
        *(torch.cat([part, part[:1]]) for part in (batch.x, batch.y)),
        torch.tensor([0.5, 0.5, 0]),
        torch.cat([batch.groups, batch.groups[1:]]),
    )
    more = torch.cat([logits, torch.full((1, 2), 9.0)])
    assert adversary_loss(more, padded, 2.0) == pytest.approx((race**2 + sex**2) / 4)


@pytest.mark.parametrize("loss", [adversary_loss, group_loss])
def test_what_cannot_be_played_is_refused(loss):
    batch = Batch(torch.zeros(2, 1), torch.zeros(2))
    with pytest.raises(SettingsError, match="no groups"):
        loss(torch.zeros(2, 2), batch)
    with pytest.raises(SettingsError, match="power.*at least 1"):
        loss(torch.zeros(2, 2), replace(batch, groups=torch.ones(2, 2)), 0.5)


@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("play", ["alternating", "reversal"])
@pytest.mark.parametrize("top", ["own", "head"])
def test_the_push_reaches_the_local_model_and_the_adversary_never_sees_its_sign(play, top, power):
    fed = toy()
    net, rows = fed.net, fed.data.train.take(torch.arange(20))
    batch = Batch(rows.x, rows.y, None, rows.groups)
    method = FairLGFedAvg(lambda_local=LAMBDA, lambda_global=LAMBDA, play=play, power=power)
    local = Local(net, dict(net.named_parameters()), {})
    moved = {}
    for loss, moves, *_ in method._game(net, top, LAMBDA):
        moved |= {n: g for n, g in gradients(net, loss(local, batch)).items() if n in moves}
    income, protected = net(rows.x, own=top == "own", watch=lambda h: h)
    task = gradients(net, cross_entropy(income, batch))
    push = gradients(net, adversary_loss(protected, batch, power))
    for name, grad in moved.items():
        due = {"local": task[name] - LAMBDA * push[name], "adversary": push[name], top: task[name]}
        assert torch.allclose(grad, due[name.split(".")[0]], atol=1e-7), name
    assert {n.split(".")[0] for n in moved} == {"local", "adversary", top}
    reached = torch.cat([(moved[n] - task[n]).flatten() for n in parts(net, "local")])
    pushed = torch.cat([push[n].flatten() for n in parts(net, "local")])
    assert reached.norm() == pytest.approx(LAMBDA * float(pushed.norm()), rel=1e-4)
    assert F.cosine_similarity(reached, pushed, dim=0) < -0.999


class Unwatched(FairLGFedAvg):
    """The same games without an adversary."""

    def _game(self, net, top, strength):
        own = top == "own"
        if self.play == "reversal":
            return (Step(partial(self.task, own=own), parts(net, "local", top)),)
        task = partial(self.task, own=own)
        return Step(task, parts(net, "local")), Step(task, parts(net, top))


@pytest.mark.slow
@LANES
@pytest.mark.parametrize(("play", "dropout"), [("alternating", 0.0), ("reversal", 0.2)])
def test_lambda_zero_is_the_run_without_an_adversary_bit_for_bit(lanes, play, dropout):
    fed = replace(toy(), net=AdultNet(2, dropout, 0.0, inputs=8))
    training = LocalTraining(0.1, 4, 0.5)
    strong = FairLGFedAvg(play=play, lambda_local=1.0, lambda_global=1.0)
    watched, unwatched, hiding = (
        run(fed, method, training, 3, lanes=lanes, workers=1)
        for method in (FairLGFedAvg(play=play), Unwatched(play=play), strong)
    )
    assert torch.equal(watched.tensors["shared"], unwatched.tensors["shared"])
    a, b = named(watched), named(unwatched)
    assert all(torch.equal(a[n], b[n]) for n in parts(fed.net, "local", "own", "head"))
    assert not torch.equal(watched.tensors["shared"], hiding.tensors["shared"])


@pytest.mark.parametrize("method", [FairLGFedAvg(), WatchedFedAvg()])
def test_groups_are_not_in_what_is_sent(method):
    """Other people's race and sex change no bit of the model that is sent."""
    head = 2 if isinstance(method, FairLGFedAvg) else 0
    one, other = (
        run(toy(head, seed), method, LocalTraining(0.1, 4, 0.5), 3, workers=1) for seed in (5, 6)
    )
    sent = {n.split(".")[0] for n in one.layout.shared}
    a, b = named(one), named(other)
    adversary = parts(toy(head).net, "adversary")
    assert any(not torch.equal(a[n], b[n]) for n in adversary), "the adversary does learn of them"
    if isinstance(method, FairLGFedAvg):
        assert sent == {"head"}
    assert all(torch.equal(a[n], b[n]) for n in one.layout.shared if n not in adversary)


def test_pretraining_hands_each_device_its_own_start_and_leaves_the_shared_head_alone():
    fed = toy()
    before = run(fed, FairLGFedAvg(pretraining=True), LocalTraining(0.1, 4), 2, workers=1)
    assert before.layout.size_shared == 0
    now = named(before)
    moved = {n.split(".")[0] for n, p in fed.net.named_parameters() if (now[n] != p).any()}
    assert moved == {"local", "own", "adversary"}
    own = models(before)
    after = run(fed, FairLGFedAvg(), LocalTraining(0.0, 4), 1, own, workers=1)
    assert torch.allclose(own, models(after), atol=1e-6), "a rate of zero moves nothing"
