"""A method's answers that mean nothing, or cannot be lifted over lanes, are refused by name."""

from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lgfed_core.engine import run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FADE, MTL, FedAvg, FedAvgM, LGFedAvg, LGFedAvgV1, Step
from lgfed_core.methods.privacy import Privacy
from lgfed_core.methods.shot import SHOT
from lgfed_core.models.layout import joined
from toy import ABOVE, LANES, SGD, Toy, alike, answering, grouped, models, toy_federation


def mine(base=FedAvg, **answers):
    return answering(base, **answers)()


def halved(**answers):
    return answering(LGFedAvg, **answers)(layers=ABOVE)


def treating(treat):
    return FedAvg(upload=[type("Mine", (), {"treat": treat})()])


def sharing(names):
    return mine(shared=lambda self, net: names)


def stepping(make):
    return mine(steps=lambda self, net: make(self))


def serving(step):
    return mine(FedAvgM, server_step=lambda self, before, average, memory: step(average, memory))


def unweighted(self, local, batch, **how):
    return F.cross_entropy(local.net(batch.x), batch.y, **how)


def detached(self, local, batch):
    return FedAvg.loss(self, local, batch).detach()


BEFORE = [  # what is said of a method before anything trains
    ("FedAvg lists <function .* in upload; .*treat", FedAvg(upload=[lambda upload: upload])),
    ("FedAvg lists <class .*Privacy", FedAvg(upload=[Privacy])),
    ("FedAvg lists .*Mine.* in upload", treating(lambda self, upload: upload)),
    ("FedAvg has upload 'clip'; list", FedAvg(upload="clip")),
    (r"FedAvg has upload Privacy\(.*; list", FedAvg(upload=Privacy(1.0, 0.5))),
    ("FedAvg has upload None; list", FedAvg(upload=None)),
    ("MTL shows devices each other's models", MTL(upload=(Privacy(1.0, 1.0),))),
    *[("Mine.shared gives .*; it has to give the names of parameters", sharing(names))
      for names in ("above.weight", None, [1], (n for n in ABOVE))],
    ("nowhere", LGFedAvg(layers=frozenset({"nowhere"}))),
    (r"no parameter called \['typo'\]", LGFedAvgV1(layers=ABOVE, auxiliary=frozenset({"typo"}))),
    # its steps,
    *[(f"Mine.steps gives {said}", stepping(make)) for said, make in (
        ("Step.*; it has to give a list of Steps", lambda m: Step(m.loss)),
        (".*list of Steps", lambda m: [m.loss]),
        (r"\[\]; .*at least one", lambda m: []),
        ("None", lambda m: None),
        ("<generator", lambda m: (Step(m.loss) for _ in "a")),
        ("a Step with loss 3; it is a function", lambda m: [Step(3)]),
        (".*loss <function .*; it is a function of local", lambda m: [Step(lambda batch: 0)]),
        (".*when <function .*of a chance", lambda m: [Step(m.loss, None, lambda: True)]),
        (".*when <function .*of a chance", lambda m: [Step(m.loss, None, lambda chance: None)]),
        (".*when 0.5; it is a function of a chance", lambda m: [Step(m.loss, None, 0.5)]),
        (".*params <generator .*; it is a set", lambda m: [Step(m.loss, (n for n in ABOVE))]),
        (".*params 'above.weight'; it is a set", lambda m: [Step(m.loss, "above.weight")]),
        (".*pull '3'; it is a number from 0", lambda m: [Step(m.loss, pull="3")]),
        (".*pull -3; it is a number from 0", lambda m: [Step(m.loss, pull=-3)]),
        (".*pull nan", lambda m: [Step(m.loss, pull=float("nan"))]),
        (".*part", lambda m: [Step(m.loss, part=(0.5, 0.5))]),
    )],
    (r"a step of Mine moves \['below.wieght'\]; Toy has no parameter of that name",
     stepping(lambda m: [Step(m.loss, frozenset({"below.wieght"}))])),
    # its loss,
    (r"Mine gives a loss of \[2\] for a batch", mine(
        loss=lambda self, *told: unweighted(self, *told, reduction="none"))),
    ("FADE cannot take its loss of Toy's outputs", FADE()),
    ("Mine's loss asks for 'below.wieght', which is no key; local.params has below.weight",
     mine(loss=lambda self, local, batch: local.params["below.wieght"].sum())),
    ("Mine has a loss that depends on no parameter of Toy", mine(loss=detached)),
    # and what it is called with.
    ("server_memory 0.5", mine(FedAvgM, server_memory=0.5)),
    *[(rf"Mine.{name} is .* called as {name}\({given}\); define it as `def {name}",
       halved(**{name: answer})) for name, answer, given in (
        ("shared", lambda self: frozenset(), "net"),
        ("steps", lambda self: [], "net"),
        ("loss", lambda self, batch: 0, "local, batch"),
        ("weights", lambda self, rows, clients: rows, "rows"),
        ("aggregate", lambda self, uploads: uploads.mean(0), "uploads, weights"),
        ("server_update", lambda before, average: average, "before, average"),
        ("finish", lambda self: None, "trained"),
        ("merge", lambda self, uploads, weights: None, "arrived"),
        ("relabel", lambda self: None, "round"),
        ("relabel", 3, "round"),
    )],
]  # fmt: skip
AFTER = [  # after a round, of what would be spread over devices
    (r"Mine.finish gives shape \[1, 54\], torch.float32; .* shape \[10, 54\]",
     halved(finish=lambda self, trained: (trained.shared, trained.own[:1]))),
    (r"Mine.finish gives NoneType; .* the shared parameters, a tensor of shape \[10, ",
     halved(finish=lambda self, trained: (None, trained.own))),
    ("Mine.finish gives a NoneType; it has to give two tensors",
     halved(finish=lambda self, trained: None)),
    (r"Mine.treat gives shape \[\], .* shape \[75\]",
     treating(lambda self, before, upload, rng: upload.norm())),
    ("Mine.treat gives NoneType", treating(lambda self, before, upload, rng: None)),
    (r"Mine.aggregate gives shape \[75\], torch.int64; .*torch.float32",
     mine(aggregate=lambda self, uploads, weights: uploads.mean(0).round().long())),
    ("Mine.aggregate gives median; it has to",  # with indices
     mine(aggregate=lambda self, uploads, weights: uploads.median(0))),
    ("Mine.merge gives a Tensor; it has to give two tensors",
     mine(merge=lambda self, arrived: arrived.uploads.mean(0))),
    (r"Mine.merge gives shape \[10, 75\], .* shape \[75\]",
     mine(merge=lambda self, arrived: (arrived.uploads, arrived.memory))),
    ("Mine.server_update gives NoneType", mine(server_update=lambda self, before, average: None)),
    ("Mine.server_step gives .* two tensors", serving(lambda average, memory: average)),
    ("Mine.server_step .* memory of the shared", serving(lambda *now: (now[0], now[1][0]))),
    ("Mine.weights gives .* have to sum to 1", mine(weights=lambda self, rows: rows.float())),
    ("Mine.weights gives .* a tensor with a weight for each",
     mine(weights=lambda self, rows: [1 / len(rows)] * len(rows))),
]  # fmt: skip


@LANES
@pytest.mark.parametrize(
    ("rounds", "said", "method"), [*((0, *one) for one in BEFORE), *((1, *one) for one in AFTER)]
)
def test_answers_that_mean_nothing_are_refused_by_name(rounds, said, method, lanes):
    with pytest.raises(SettingsError, match=said):
        run(toy_federation(), method, SGD, rounds, lanes=lanes)


@pytest.mark.parametrize("names", [["above.weight"], ("above.weight",), {"above.weight"}])
def test_names_that_are_shared_may_come_as_any_list_or_set(names):
    found = run(toy_federation(), sharing(names), SGD, 1)
    assert found.layout.shared == ("above.weight",)


@LANES
def test_a_pull_or_one_step_of_two_is_enough_to_learn_from(lanes):
    pulls = stepping(lambda m: [Step(lambda local, batch: batch.x.new_zeros(()), pull=0.1)])
    one = stepping(lambda m: [Step(partial(detached, m)), Step(m.loss)])  # the other learns
    for method in (pulls, one):
        run(toy_federation(), method, SGD, 0, lanes=lanes)


def test_steps_that_may_all_be_declined_are():
    declined = stepping(lambda m: [Step(m.loss, None, lambda chance: chance < 0.5)])
    half = models(alike(toy_federation(), declined, SGD, 3))
    assert not torch.equal(half, models(run(toy_federation(), FedAvg(), SGD, 3)))


def test_a_loss_that_does_not_weigh_rows_is_refused_where_batches_are_padded():
    fed, plain = toy_federation(), mine(loss=unweighted)
    torch.testing.assert_close(*(models(run(fed, m, SGD, 1)) for m in (plain, FedAvg())))
    with pytest.raises(SettingsError, match=r"Mine has another gradient .* batch.mean"):
        run(fed, plain, SGD, 1, lanes="batched")


def test_an_answer_may_take_more_than_it_is_given():
    def aggregate(self, uploads, weights, trim=0.1, *more, **others):
        return uploads.median(0).values

    run(toy_federation(), mine(aggregate=aggregate), SGD, 1)


Branching = Toy.passing(lambda net, x: Toy.forward(net, x) * (2 if x.mean() > 0.5 else 1))
Asking = Toy.passing(lambda net, x: Toy.forward(net, x + x.mean().item() if net.training else x))


def by_item(self, local, batch):
    value = FedAvg.loss(self, local, batch)
    return value * (2.0 if value.item() > 1 else 1.0)


BY_ITEM = mine(loss=by_item)
SECOND = stepping(lambda m: [Step(m.loss), Step(BY_ITEM.loss)])


@pytest.mark.parametrize(
    ("method", "net", "said"),
    [
        (FedAvg(), Branching, "loss of FedAvg, with Mine, .*torch.where.*looped.*control"),
        (FedAvg(), Asking, "loss of FedAvg, with Mine, .*torch.where.*looped.*item"),
        (BY_ITEM, Toy, "loss of Mine, with Toy, .*item"),
        (SECOND, Toy, "loss of Mine, with Toy, .*item"),
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
