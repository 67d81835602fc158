"""Who serves the worst-off devices? A question of our own, on scikit-learn's small digits.

An example to copy: settings, an experiment, and a claim that is judged on its stored rows.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from sklearn.datasets import load_digits
from torch import nn

import lgfed_core as lg
from lgfed_core import data, models, partition
from lgfed_core.engine import accuracy
from lgfed_core.evidence import claims, records, verdict
from lgfed_core.models import layout
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.live_claims import Judged
from lgfed_core.papers.parts import saved_at
from lgfed_core.papers.settings import Checked

_PAGE = ".".join(__name__.split(".")[-3:-1])  # "own.worst_off", by its folders
METHODS = {"fedavg": lg.FedAvg(), "lg_fedavg": lg.LGFedAvg(layers={"2.weight", "2.bias"})}
SCALES = {"smoke": dict(rounds=2), "quick": dict(rounds=5), "paper": {}}


@dataclass(frozen=True)
class Settings(Checked):
    methods: tuple[str, ...] = ("fedavg", "lg_fedavg")
    rounds: int = 30
    alpha: float = 0.3  # of the Dirichlet distribution: small, where devices differ

    CHOICES: ClassVar = dict(methods=METHODS)
    UNRELEASED = "the question is ours, and has no released code"


@lru_cache
def digits() -> data.Dataset:
    """1,797 digits, every fifth to test on; x [n, 64] from -1 to 1."""
    x, y = map(torch.from_numpy, load_digits(return_X_y=True))
    test = torch.arange(len(y)) % 5 == 0
    both = [data.Split(x[rows].float() / 8 - 1, y[rows].long()) for rows in (~test, test)]
    return data.Dataset("small digits", *both, classes=10)


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


class WorstFifth(lg.Tracker):
    """At the end: accuracy on own test rows in percent, of all devices and of the worst fifth."""

    def final(self, engine):
        found = 100 * accuracy.accuracies(engine, "shared", "personal", "test")  # [R, K]
        worst = found.sort(1).values[:, : max(1, found.shape[1] // 5)]  # [R, K / 5]
        return {"local_test_acc": found.nanmean(1), "worst_fifth_acc": worst.nanmean(1)}


class Own(Experiment):
    """A part for each method."""

    name, table = _PAGE, _PAGE.replace(".", "_")
    Settings, scales, chooses = Settings, SCALES, frozenset({"methods"})

    def rounds(self, cfg):
        return dict.fromkeys(cfg.methods, cfg.rounds)

    def train(self, cfg, seeds, device, folder, **engine):
        nets, rows = [models.make(network, seed) for seed in seeds], digits()
        split = [partition.dirichlet(rows.train.y, rows.test.y, 20, cfg.alpha, s) for s in seeds]
        fed = lg.Federation(rows, split, nets[0], list(seeds), device)
        start = torch.stack([layout.joined(net) for net in nets])  # [R, P]
        training = lg.LocalTraining(lr=0.1, batch_size=10)
        for name in cfg.methods:
            common = dict(tracker=WorstFifth(), saved=saved_at(folder, name), label=name)
            yield name, lg.run(fed, METHODS[name], training, cfg.rounds, start, **common, **engine)

    def measured(self, cfg, part, outcome):
        """Rows (seed, metric, value) of a method; ``final`` has a line for each seed, always."""
        end = outcome.final.reset_index().melt("seed", var_name="metric")
        return end.assign(table=self.table, selection="last", method=part)


OWN = Own()


def private_heads_serve_them(found) -> list[claims.Comparison]:
    """Of the worst fifth of devices: LG-FedAvg more accurate than FedAvg, in pairs of seeds."""
    mine = records.select(found, metric="worst_fifth_acc")
    wide = mine.pivot_table("value", "seed", "method")
    if not {"lg_fedavg", "fedavg"} <= {*wide}:
        return []
    return [claims.paired("small digits", wide["lg_fedavg"], wide["fedavg"], verdict.greater)]


CLAIMS = (
    claims.Claim(
        _PAGE.replace(".", "-"),
        _PAGE.replace(".", "/"),
        "private heads serve the worst-off devices better",
        private_heads_serve_them,
        total=1,
        question="Do private heads serve the worst-off devices better than one model for all?",
        answer="**Open.** Nothing has run at full length.",
        guard=lambda told: told.tally(0, 0, 1, ran=0),
        unit="points of accuracy, above 0: LG-FedAvg is ahead",
    ),
)


def stored():
    """Our rows at full length; empty before the first run."""
    return records.select(OWN.name, columns=("method",), scale="paper")


PAGE = Judged(CLAIMS, stored)
from_stored, told = PAGE.from_stored, PAGE.told
