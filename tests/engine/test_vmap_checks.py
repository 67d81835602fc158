"""What cannot be lifted over lanes is named before anything trains, with what can be done."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from lgfed_core.engine import run
from lgfed_core.errors import SettingsError
from lgfed_core.methods import FADE, MTL, FedAvg, Step
from lgfed_core.methods.shot import SHOT
from lgfed_core.models.layout import joined
from toy import SGD, Toy, answering, grouped, models, toy_federation


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
    before = {name: value.clone() for name, value in fed.net.state_dict().items()}
    torch.manual_seed(1)
    wanted = torch.rand(1)
    torch.manual_seed(1)
    found = run(fed, method, replace(SGD, batch_size=2, batches=1), 0, lanes="batched")
    assert torch.equal(torch.rand(1), wanted)
    assert torch.equal(found.layout.join(*found.layout.split(joined(fed.net))), models(found)[0, 0])
    assert all(torch.equal(before[name], value) for name, value in fed.net.state_dict().items())
