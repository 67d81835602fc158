"""Every method on a toy federation: (what makes the federation, the method), by a short name."""

from dataclasses import replace

import torch

from lgfed_core import methods as m
from lgfed_core.data import Dataset, Split
from lgfed_core.engine import LocalTraining, Participation
from lgfed_core.methods.privacy import Privacy
from lgfed_core.methods.schedules import Annealing
from lgfed_core.models.adult import AdultNet
from lgfed_core.models.cgau import GatedMLP
from lgfed_core.models.controlled import Controlled
from lgfed_core.models.twins import Mixture, Twins
from toy import ABOVE, BELOW, Toy, grouped, toy_federation


class TwoHeads(Toy):
    """A head of the device's own beside the shared one."""

    def __init__(self):
        super().__init__()
        self.own = torch.nn.Linear(6, 3)

    def forward(self, x, own=False):
        return (self.own if own else self.above)(self.below(x).relu())


def adult(head: int):
    """Two classes, two protected attributes."""
    fed = toy_federation((0, 1), net=AdultNet(head, 0.0, 0.0, inputs=8))

    def split(rows: Split) -> Split:
        return Split(rows.x, rows.y % 2, torch.stack([rows.y % 3 == 0, rows.y < 2], 1).long())

    data = Dataset("toy", split(fed.data.train), split(fed.data.test), 2)
    return replace(fed, data=data)


def plain(net=Toy):
    return toy_federation((0, 1), net=net, fraction=0.5)


def game(normalised=False):
    there = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]])
    return grouped((0, 1), normalised=normalised, who=Participation(0.5, there))


def gated():
    return GatedMLP(8, 5, 3, dropout=0.0)


def twins():
    return Twins(Toy())


def mixture():
    return Mixture(Toy())


OWN = frozenset({"own.weight", "own.bias"})
FALLING = LocalTraining(
    0.1, 5, 0.9, weight_decay=1e-3, keep_momentum=True, nesterov=True, annealing=Annealing(40)
)
CASES = {
    "fedavg": (plain, m.FedAvg()),
    "fedavg_uniform": (plain, m.FedAvg(weighted=False)),
    "fedavg_private": (plain, m.FedAvg(upload=[Privacy(0.5, 0.0), Privacy(0.4, 0.3)])),
    "qffl": (plain, m.QFFL(q=0.5, beta=0.5)),
    "fedprox": (plain, m.FedProx(mu=0.1)),
    "lgfedavg": (plain, m.LGFedAvg(layers=ABOVE)),
    "lgfedavg_v1": (lambda: plain(TwoHeads), m.LGFedAvgV1(layers=ABOVE, auxiliary=OWN)),
    "local": (lambda: toy_federation((0, 1)), m.LocalOnly()),
    "mtl": (plain, m.MTL(scale=0.1)),
    "mtl_released": (plain, m.ReleasedMTL(scale=0.01)),
    "fair": (lambda: adult(2), m.FairLGFedAvg(lambda_local=0.3, lambda_global=0.7)),
    "fair_reversal": (
        lambda: adult(2),
        m.FairLGFedAvg(lambda_local=0.3, lambda_global=0.7, play="reversal", power=2.0),
    ),
    "fair_pretraining": (lambda: adult(2), m.FairLGFedAvg(pretraining=True)),
    "watched": (lambda: adult(0), m.WatchedFedAvg()),
    "fade": (game, m.FADE(rounds=4)),
    "fade_both": (game, [m.FADE(rounds=4), m.FADE(rounds=4, power=2.0)]),
    "fade_opt_out": (game, m.FADE(rounds=4, opt_out=0.5, power=2.0, per_sample=True)),
    "fade_frozen": (lambda: game(True), m.FADE()),
    "fade_local": (lambda: game(True), m.FADE(batch_norm="local")),
    "fade_averaged": (lambda: game(True), m.FADE(batch_norm="averaged")),
    "cgau_baseline": (plain, m.ClientBaseline(cap=6, per=4)),
    "cgau_kept": (lambda: plain(gated), m.ClientRowsKept()),
    "cgau_averaged": (lambda: plain(gated), m.ClientRowsAveraged(cap=6)),
    "fedper": (plain, m.FedPer(layers=BELOW)),
    "fedrep": (plain, m.FedRep(layers=BELOW, head=0.6)),
    "fedbabu": (plain, m.FedBABU(layers=BELOW)),
    "per_fedavg": (plain, m.PerFedAvg(alpha=0.1)),
    "per_fedavg_exact": (plain, m.PerFedAvg(alpha=0.1, exact=True)),
    "ditto": (lambda: plain(twins), m.Ditto(pull=0.3)),
    "apfl": (lambda: plain(mixture), m.APFL()),
    "pfedme": (lambda: plain(twins), m.PFedMe(pull=2.0, inner=2, beta=0.8)),
    "scaffold": (lambda: plain(Controlled(Toy())), m.Scaffold(rate=0.9)),
    "fednova": (plain, m.FedNova()),
    "fedbn": (lambda: grouped((0, 1), normalised=True), m.FedBN()),
    "fedavgm": (plain, m.FedAvgM(rate=0.5)),
    "fedadam": (plain, m.FedAdam()),
    "fedyogi": (plain, m.FedYogi()),
}
