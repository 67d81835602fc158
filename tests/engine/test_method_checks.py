"""A method's answers that mean nothing, or cannot be lifted over lanes, are refused by name."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from lgfed_core.engine import run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FADE, MTL, FedAvg, LGFedAvg, Step
from lgfed_core.methods.privacy import Privacy
from lgfed_core.methods.shot import SHOT
from lgfed_core.models.layout import joined
from toy import ABOVE, LANES, SGD, Toy, answering, grouped, models, toy_federation


def refused(method, said, lanes="looped", rounds=0):
    """Before anything trains, where there are no rounds."""
    with pytest.raises(SettingsError, match=said):
        run(toy_federation(), method, SGD, rounds, lanes=lanes)


def keeping(keep):
    return answering(LGFedAvg, keep=keep)(layers=ABOVE)


def treating(privatise):
    return FedAvg(upload=[type("Mine", (), {"privatise": privatise})()])


def sharing(names):
    return answering(shared=lambda self, net: names)()


def stepping(make):
    return answering(steps=lambda self, net: make(self))()


@LANES
@pytest.mark.parametrize(
    ("method", "said"),
    [
        (
            keeping(lambda self, before, trained, weights: trained[:1]),
            r"Mine.keep gives shape \[1, 54\], torch.float32; .* shape \[10, 54\]",
        ),
        (
            keeping(lambda self, before, trained, weights: None),
            r"Mine.keep gives NoneType; .* shape \[10, 54\]",
        ),
        (
            treating(lambda self, before, upload, rng: upload.norm()),
            r"Mine.privatise gives shape \[\], .* shape \[75\]",
        ),
        (
            answering(aggregate=lambda self, uploads, weights: uploads.mean(0).round().long())(),
            r"Mine.aggregate gives shape \[75\], torch.int64; .*torch.float32",
        ),
        (treating(lambda self, before, upload, rng: None), "Mine.privatise gives NoneType"),
    ],
)
def test_what_would_be_spread_over_devices_is_refused(method, said, lanes):
    refused(method, said, lanes, rounds=1)


@pytest.mark.parametrize(
    ("upload", "said"),
    [
        ([lambda upload: upload], "FedAvg lists <function .* in upload; .*privatise"),
        ([Privacy], "FedAvg lists <class .*Privacy"),
        (treating(lambda self, upload: upload).upload, "FedAvg lists .*Mine.* in upload"),
        ("clip", "FedAvg has upload 'clip'; list"),
        (Privacy(1.0, 0.5), r"FedAvg has upload Privacy\(.*; list"),
        (None, "FedAvg has upload None; list"),
    ],
)
def test_what_treats_no_upload_is_refused(upload, said):
    refused(FedAvg(upload=upload), said)


@pytest.mark.parametrize("names", [["above.weight"], ("above.weight",), {"above.weight"}])
def test_names_that_are_shared_may_come_as_any_list_or_set(names):
    found = run(toy_federation(), sharing(names), SGD, 1)
    assert found.layout.shared == ("above.weight",)


@pytest.mark.parametrize("names", ["above.weight", None, [1], (n for n in ABOVE)])
def test_what_shares_no_names_is_refused(names):
    refused(sharing(names), "Mine.shared gives .*; it has to give the names of parameters")


@LANES
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda m: Step(m.loss), "Mine.steps gives Step.*; it has to give a list of Steps"),
        (lambda m: [m.loss], "Mine.steps gives .*list of Steps"),
        (lambda m: [], r"Mine.steps gives \[\]; .*at least one"),
        (lambda m: None, "Mine.steps gives None"),
        (lambda m: (Step(m.loss) for _ in "a"), "Mine.steps gives <generator"),
        (lambda m: [Step(3)], "a Step with loss 3; it is a function"),
        (lambda m: [Step(lambda batch: 0)], "with loss <function .*; it is a function of local"),
        (lambda m: [Step(m.loss, None, lambda: True)], "with when <function .*of a chance"),
        (lambda m: [Step(m.loss, None, lambda chance: None)], "with when <function .*of a chance"),
        (lambda m: [Step(m.loss, (n for n in ABOVE))], "with params <generator .*; it is a set"),
        (lambda m: [Step(m.loss, "above.weight")], "with params 'above.weight'; it is a set"),
        (lambda m: [Step(m.loss, None, 0.5)], "with when 0.5; it is a function of a chance"),
        (lambda m: [Step(m.loss, pull="3")], "with pull '3'; it is a number from 0"),
        (lambda m: [Step(m.loss, pull=-3)], "with pull -3; it is a number from 0"),
        (lambda m: [Step(m.loss, pull=float("nan"))], "with pull nan"),
    ],
)
def test_steps_that_no_device_can_take_are_refused(make, said, lanes):
    refused(stepping(make), said, lanes)


class Detached(FedAvg):
    def loss(self, local, batch):
        return super().loss(local, batch).detach()


@LANES
def test_a_loss_that_trains_nothing_is_refused(lanes):
    refused(Detached(), "Detached has a loss that depends on no parameter of Toy", lanes)
    pulls = stepping(lambda m: [Step(lambda local, batch: batch.x.new_zeros(()), pull=0.1)])
    run(toy_federation(), pulls, SGD, 0, lanes=lanes)
    one = stepping(lambda m: [Step(Detached().loss), Step(m.loss)])  # the other learns
    run(toy_federation(), one, SGD, 0, lanes=lanes)


@pytest.mark.parametrize(
    ("name", "answer", "given"),
    [
        ("shared", lambda self: frozenset(), "net"),
        ("steps", lambda self: [], "net"),
        ("loss", lambda self, batch: 0, "local, batch"),
        ("weights", lambda self, rows, clients: rows, "rows"),
        ("aggregate", lambda self, uploads: uploads.mean(0), "uploads, weights"),
        ("server_update", lambda before, average: average, "before, average"),
        ("keep", lambda self, trained: trained, "before, trained, weights"),
        ("relabel", lambda self: None, "round"),
        ("relabel", 3, "round"),
    ],
)
def test_an_answer_that_cannot_be_called_is_refused(name, answer, given):
    mine = answering(LGFedAvg, **{name: answer})(layers=ABOVE)
    refused(mine, rf"Mine.{name} is .* called as {name}\({given}\); define it as `def {name}")


def test_an_answer_may_take_more_than_it_is_given():
    def aggregate(self, uploads, weights, trim=0.1, *more, **others):
        return uploads.median(0).values

    run(toy_federation(), answering(aggregate=aggregate)(), SGD, 1)


class Branching(Toy):
    def forward(self, x):
        return super().forward(x) * (2 if x.mean() > 0.5 else 1)


class OnlyInTraining(Toy):
    def forward(self, x):
        return super().forward(x + x.mean().item() if self.training else x)


def by_item(self, local, batch):
    value = FedAvg.loss(self, local, batch)
    return value * (2.0 if value.item() > 1 else 1.0)


BY_ITEM = answering(loss=by_item)()
SECOND = answering(steps=lambda self, net: (Step(self.loss), Step(BY_ITEM.loss)))()


@pytest.mark.parametrize(
    ("method", "net", "said"),
    [
        (FedAvg(), Branching(), "loss of FedAvg, with Branching, .*torch.where.*looped.*control"),
        (FedAvg(), OnlyInTraining(), "with OnlyInTraining, .*torch.where.*looped.*item"),
        (BY_ITEM, Toy(), "loss of Mine, with Toy, .*item"),
        (SECOND, Toy(), "loss of Mine, with Toy, .*item"),
    ],
)
def test_what_numbers_decide_is_refused_in_batched_lanes_alone(method, net, said):
    fed = toy_federation(net=net)
    assert models(run(fed, method, SGD, 1, lanes="looped")).isfinite().all()
    with pytest.raises(SettingsError, match=said):
        run(fed, method, SGD, 0, lanes="batched")


def test_the_method_of_each_run_is_tried():
    def loss(self, local, batch):
        return (BY_ITEM if self.late else FedAvg()).loss(local, batch)

    kind = answering(loss=loss, late=False)
    late = kind()
    object.__setattr__(late, "late", True)
    with pytest.raises(SettingsError, match="loss of Mine, with Toy"):
        run(toy_federation((0, 1)), [kind(), late], SGD, 0, lanes="batched")


def noisy() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 3))


@pytest.mark.parametrize(
    ("made", "method"),
    [
        (lambda: toy_federation(net=noisy()), FedAvg()),
        (lambda: toy_federation(net=noisy()), MTL(scale=0.1)),
        (grouped, FADE(opt_out=0.5)),
        (grouped, SHOT()),
    ],
)
def test_to_try_draws_nothing_and_changes_nothing(made, method):
    fed = made()
    was, before = torch.get_rng_state(), joined(fed.net)
    found = run(fed, method, replace(SGD, batch_size=2, batches=1), 0, lanes="batched")
    assert torch.equal(torch.get_rng_state(), was) and torch.equal(joined(fed.net), before)
    assert torch.equal(before, models(found)[0, 0])
