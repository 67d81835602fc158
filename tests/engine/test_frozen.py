"""Frozen parameters stay as they are, to the bit, whatever moves the others."""

from dataclasses import dataclass

import pytest
import torch

from lgfed_core.engine import LocalTraining, run
from lgfed_core.methods import FADE, FedAvg, FedProx, LGFedAvg, LocalOnly, Step
from lgfed_core.methods.privacy import Privacy
from lgfed_core.models.layout import joined
from toy import ABOVE, BELOW, LANES, Toy, alike, grouped, toy_federation

HARD = LocalTraining(0.1, 4, epochs=2, weight_decay=0.1, keep_momentum=True)


def frozen(names) -> torch.nn.Module:
    torch.manual_seed(0)
    net = Toy()
    for name, p in net.named_parameters():
        p.requires_grad_(name not in names)
    return net


@dataclass(frozen=True, kw_only=True)
class InTurn(FedAvg):
    """One of the steps has nothing left to move where ``below`` is frozen."""

    def steps(self, net):
        return Step(self.loss, ABOVE), Step(self.loss, BELOW)


@dataclass(frozen=True, kw_only=True)
class Shrink(FedAvg):
    """An objective of the lower layer alone."""

    def loss(self, local, batch):
        return local.params["below.weight"].square().sum()


@LANES
@pytest.mark.parametrize(
    "method",
    [
        *(FedAvg(), LocalOnly(), FedProx(mu=0.5), LGFedAvg(layers=ABOVE)),
        *(LGFedAvg(layers=BELOW), InTurn(), FedAvg(upload=(Privacy(1.0, 0.5),))),
    ],
)
def test_frozen_parameters_stay(method, lanes):
    fed = toy_federation((0, 1), net=frozen({"below.weight", "above.bias"}))
    outcome = run(fed, method, HARD, 3, lanes=lanes, workers=1)
    found = outcome.layout
    split = found.views(outcome.tensors["shared"][:, None], outcome.tensors["personal"])
    for name, p in fed.net.named_parameters():
        same = (split[name] == p).flatten(2).all(-1)  # [R, K or 1]
        assert same.all() if not p.requires_grad else not same.all(), name


@pytest.mark.parametrize("method", [FedAvg(), InTurn(), LocalOnly()])
def test_batched_lanes_equal_looped_lanes(method):
    fed = toy_federation((0, 1), net=frozen(BELOW))
    alike(fed, method, HARD, 3)


@LANES
@pytest.mark.parametrize(
    ("method", "names"), [(FedAvg(), ABOVE | BELOW), (Shrink(), BELOW | {"above.bias"})]
)
def test_nothing_left_to_learn_is_no_error(method, names, lanes):
    """All is frozen, or all that the objective depends on."""
    fed = toy_federation(net=frozen(names))
    outcome = run(fed, method, LocalTraining(0.1, 4), 2, lanes=lanes, workers=1)
    assert torch.equal(outcome.tensors["shared"][0, :48], joined(fed.net)[:48])


@LANES
def test_a_frozen_discriminator_stays_in_the_game(lanes):
    fed = grouped()
    fed.net.discriminator.requires_grad_(False)
    outcome = run(fed, FADE(rounds=4), HARD, 3, lanes=lanes, workers=1)
    found = outcome.layout.views(outcome.tensors["shared"][0], torch.empty(0))
    assert torch.equal(found["discriminator.weight"], fed.net.discriminator.weight)
    assert not torch.equal(found["classifier.weight"], fed.net.classifier.weight)
