"""What CGAU's federated experiments share: stored features in, tidy rows out, for any data set.

Clients are simulated from features, a proportion of rows is shuffled among them, and each method
trains at every proportion. All proportions and seeds of a method are lanes of one run.

* ``baseline``: ReLU layers, the same for all clients;
* ``cgau_kept``: CGAUs whose client rows stay on the device, as the text says they may;
* ``cgau_averaged``: CGAUs whose client rows are averaged with everything else, as released.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor, nn

from lgfed_core import models
from lgfed_core.data.features.stored import Features
from lgfed_core.engine import CPU, Federation, LocalTraining, Outcome, Participation, run
from lgfed_core.engine.provenance import provenance
from lgfed_core.engine.trackers import Tracker
from lgfed_core.errors import SettingsError
from lgfed_core.evidence.rows import PROTOCOLS, SCALES
from lgfed_core.methods import ClientBaseline, ClientRowsAveraged, ClientRowsKept, Method
from lgfed_core.metrics import frechet
from lgfed_core.models.cgau import Baseline, GatedMLP
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import saved_at, who
from lgfed_core.papers.settings import POSITIVE, SHARE, Checked
from lgfed_core.partition import feature_clusters
from lgfed_core.partition.feature_clusters import Clients

from .pooled import Pooled

GAMMA = "average_client_frechet_distance"
METHODS = {
    "baseline": ClientBaseline,
    "cgau_kept": ClientRowsKept,
    "cgau_averaged": ClientRowsAveraged,
}


@dataclass(frozen=True)
class Settings(Checked):
    """What the experiments have in common; an experiment's own settings give the numbers.

    ``as_described`` is the text, ``as_released`` its authors' code: dropout before every layer, a
    client term with its own bias at each layer and one at the output, positive rows of a binary
    task counted fifty times, clients weighted by what they visit.
    """

    features: str = ""  # which stored features
    methods: tuple[str, ...] = ("baseline", "cgau_kept", "cgau_averaged")
    shuffles: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    clients: int = 10  # K
    within_classes: bool = True  # False: one k-means over the rows of all classes, our control
    own_class: bool = True  # False: a row goes to the nearest centroid of any class
    units: int = 64
    dropout: float = 0.5
    lr: float = 0.001
    momentum: float = 0.9
    batch_size: int = 32
    steps: int = 10  # of a client in a round, or until it has seen its rows once
    rounds: int = 1000
    every: int = 1  # rounds between two looks at the validation loss
    validation: float = 0.05  # share of the training rows
    positive: float = 1.0  # how often a positive row counts
    per_class: int | None = None  # rows kept of each class, for a quick look

    COUNTS_BATCHES: ClassVar[bool] = False  # as released, the baseline's clients weigh by batches

    RANGES: ClassVar = dict(shuffles=SHARE, positive=POSITIVE)
    CHOICES: ClassVar = dict(scale=SCALES, methods=METHODS)

    def fits(self) -> None:
        super().fits()
        if not (self.within_classes or self.own_class):
            raise SettingsError(
                "own_class is false, and so is within_classes: one k-means over all classes has "
                "no centroids of a class; change one of them"
            )

    @property
    def training(self) -> LocalTraining:
        """How a client optimises in a round."""
        return LocalTraining(self.lr, self.batch_size, self.momentum, batches=self.steps)

    @property
    def participation(self) -> Participation:
        """Which clients take part in a round: all of them."""
        return Participation()

    def load(self) -> Features:
        """The stored features this experiment learns from."""
        raise NotImplementedError

    def net(self, method: str, inputs: int, outputs: int) -> nn.Module:
        """The network of one device, of random weights."""
        drop = dict(dropout=self.dropout, dropout_inputs=self.released)
        if method == "baseline":
            return Baseline(inputs, self.units, outputs, **drop)
        return GatedMLP(inputs, self.units, outputs, released=self.released, **drop)

    def method(self, name: str) -> Method:
        """How a method federates; as released, clients weigh by what they visit."""
        slip = dict(cap=self.steps * self.batch_size) if self.released else {}
        if self.released and self.COUNTS_BATCHES and name == "baseline":
            slip["per"] = self.batch_size
        return METHODS[name](positive=self.positive, **slip)


def simulated(cfg: Settings, stored: Features, seed: int) -> Clients:
    """The clients of one repetition, before any shuffling."""
    part = feature_clusters.parts(stored.y, stored.test_rows(seed), cfg.validation, seed)
    return feature_clusters.simulate(
        stored.x, stored.y, part, cfg.clients, seed, cfg.within_classes, cfg.own_class
    )


def _distances(cfg: Settings, stored: Features, seeds: Sequence[int]) -> Outcome:
    """Gamma of every repetition and proportion."""
    began, x, gamma = time.perf_counter(), stored.x.numpy(), []
    for seed in seeds:
        who = simulated(cfg, stored, seed)
        gamma += [frechet.heterogeneity(x, who.shuffled(p, seed).client) for p in cfg.shuffles]
    index = pd.Index([s for s in seeds for _ in cfg.shuffles], name="seed")
    nothing = pd.DataFrame(columns=["round", "seed"])  # was trained
    seconds = time.perf_counter() - began
    final = pd.DataFrame({GAMMA: gamma}, index)
    return Outcome(None, {}, nothing, final, seconds, provenance(CPU))


class FederatedExperiment(Experiment):
    """The clients' distances ("clients"), then each method, by its name.

    One client alone has no distances.
    """

    protocols = PROTOCOLS
    stem, shared = "{scale}-{protocol}-{features}", frozenset({"features", "methods"})

    def tables(self, cfg: Settings) -> tuple[str, str]:
        """Names of the tables for distances and for methods."""
        raise NotImplementedError

    def rounds(self, cfg) -> dict[str, int | None]:
        apart = {"clients": None} if cfg.clients > 1 else {}
        return apart | dict.fromkeys(cfg.methods, cfg.rounds)

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        stored = cfg.load()
        for name, rounds in self.rounds(cfg).items():
            if rounds is None:
                yield name, _distances(cfg, stored, seeds)
            else:
                fed, start = self.federation(cfg, stored, seeds, name, device)
                label = f"{cfg.protocol} {who(seeds)}: {name}"
                how = dict(saved=saved_at(folder, name), label=label, tracker=self.tracker(cfg))
                how |= engine
                yield name, run(fed, cfg.method(name), cfg.training, rounds, start, **how)

    def federation(self, cfg, stored, seeds, method: str, device) -> tuple[Federation, Tensor]:
        """Who trains, a run per seed and proportion (a seed's lie together), and each run's first
        parameters [R, P]; a seed's runs start from the same."""
        outputs = stored.dataset().classes
        outputs = 1 if outputs == 2 else outputs
        splits, starts, names = [], [], []
        for seed in seeds:
            clients = simulated(cfg, stored, seed)
            net = models.make(lambda: cfg.net(method, stored.x.shape[1], outputs), seed)
            for p in cfg.shuffles:
                splits.append(clients.shuffled(p, seed).partition())
                starts.append(joined(net))
                names.append(seed)
        fed = Federation(stored.dataset(), splits, net, names, device, cfg.participation)
        return fed, torch.stack(starts)

    def tracker(self, cfg: Settings) -> Tracker | None:
        """What is measured on the way."""
        return Pooled(cfg.every)

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """Tidy rows of one part; `tables` names those for distances and for methods.

        Measures are in percent but for the loss and the round, at the round with the lowest
        validation loss (best_val) and at the last.
        """
        distances, methods = self.tables(cfg)
        final = outcome.final.reset_index()
        final["shuffle_proportion"] = list(cfg.shuffles) * (len(final) // len(cfg.shuffles))
        long = final.melt(["seed", "shuffle_proportion"], var_name="metric")
        best = long["metric"].str.startswith("best_")
        metric = long["metric"].str.replace("^(best|last)_test", "test", regex=True)
        percent = metric.isin(["test_auc", "test_acc"])
        return long.assign(
            metric=metric,
            value=long["value"].where(~percent, 100 * long["value"]),
            selection=best.map({True: "best_val", False: "last"}),
            method="" if part == "clients" else part,
            table=distances if part == "clients" else methods,
            stand_in=cfg.load().stand_in,
        )

    def progress(self, cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw: method, shuffle_proportion, seed, round, validation_loss."""
        trained = {name: history for name, history in histories.items() if name != "clients"}
        found = pd.concat(trained, names=["method"]).reset_index("method").reset_index(drop=True)
        place = found.groupby(["method", "round", "seed"]).cumcount()  # a seed's runs, in order
        return found.assign(shuffle_proportion=place.map(dict(enumerate(cfg.shuffles))))
