"""Version 1 of LG-FedAvg on MNIST and CIFAR-10: Table 1 of Liang et al. 2019 (section 3.1).

FedAvg trains to a goal accuracy on validation rows; from there LG-FedAvg goes on for 50 or 60
rounds. The text's split is by shards of label-sorted rows, the same shard numbers in both sets. On
MNIST the devices follow Algorithm 1: a head of their own beside the global one, a local and a
global step for each batch (`methods.LGFedAvgV1`); version 2's devices go on from the same model. On
CIFAR-10, where the bottom is global, an own head has no place: devices train as in version 2. No
released code has Algorithm 1.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import pandas as pd
import torch
from torch import Tensor

from lgfed_core import models, partition
from lgfed_core.data import Dataset
from lgfed_core.engine import Federation, Outcome
from lgfed_core.engine.trackers import Personal
from lgfed_core.errors import SettingsError
from lgfed_core.evidence.records import select
from lgfed_core.methods import FedAvg, LGFedAvg, LGFedAvgV1
from lgfed_core.papers.parts import following
from lgfed_core.papers.settings import Range

from .. import cifar10, phases, records, settings
from .goals import Goal

TABLE = "lgfedavg_v1_table1"
BESIDE = "lgfedavg_v1_beside_v2"  # of our own: version 2's method from the same start
FEW = dict(devices=20, fraction=0.25, rows_per_class=(300, 60), every=1)
SCALES = {
    "smoke": settings.SMOKE | dict(shrink=0.002, patience=2),
    "quick": FEW | dict(shrink=0.03, lg_shrink=0.2, local_epochs=4),
    "paper": {},
}
LIVE = {  # (scale, data): goals that a few rounds reach; CIFAR-10 learns if all devices take part
    ("quick", "mnist"): dict(goal=0.85),
    ("quick", "cifar10"): dict(devices=10, fraction=1.0, rows_per_class=(200, 100), batch_size=20)
    | dict(goal=0.25, shrink=0.035, every=2, local_epochs=30),
}
OF_DATA = {  # the paper's Tables 5 and 6
    "mnist": dict(goal=0.975, budgets=(1500,), lg_rounds=50, shared_layers=2, local_epochs=500),
    "cifar10": dict(goal=0.57, budgets=(2000,), lg_rounds=60, shared_layers=2, local_epochs=1200)
    | dict(shared_side="first", batch_size=50, fedavg_lr=0.1, lr=0.1, decay=0.005)
    | dict(patience=100),  # 50 validation rows: progress is coarse
}
PRINTED_ROUNDS = {"mnist": 400, "cifar10": 1200}  # to the goal; a decaying rate goes on from there


@dataclass(frozen=True)
class Settings(settings.Settings):
    """The text's values for ``data``, "mnist" or "cifar10"."""

    data: str = "mnist"
    goal: float = 0.975  # accuracy of FedAvg at which LG-FedAvg takes over
    lg_rounds: int = 50
    lg_shrink: float | None = None  # of these rounds, where it is not ``shrink``
    shared_layers: int = 2
    budgets: tuple[int, ...] = (1500,)

    RANGES: ClassVar = dict(lg_shrink=Range(0, 100, above=True))
    CHOICES: ClassVar = dict(data=OF_DATA)
    UNRELEASED = "version 1 has no released protocol: no code has its Algorithm 1"

    DATA = property(lambda self: self.data)
    AUGMENT = property(lambda self: {"cifar10": cifar10.Settings.AUGMENT}.get(self.data))
    SHARDS = 2

    def fits(self) -> None:
        super().fits()
        if "mtl" in self.alone:
            raise SettingsError("alone has mtl, of which version 1 says nothing; leave it out")
        if self.classes != self.SHARDS:
            raise SettingsError(
                f"classes is {self.classes}; in version 1 each device has {self.SHARDS} shards of "
                "sorted rows, whatever their classes: leave it out"
            )

    @property
    def further(self) -> int:
        """How many rounds LG-FedAvg goes on for."""
        return max(1, round(self.lg_rounds * (self.lg_shrink or self.shrink)))

    def split(self, images: Dataset, seed: int) -> partition.Partition:
        labels = images.train.y, images.test.y
        return partition.label_shards(*labels, self.devices, self.SHARDS, seed)

    def net(self) -> torch.nn.Module:
        return models.mlp_mnist() if self.data == "mnist" else models.cnn_cifar()


@dataclass(frozen=True)
class Phases(phases.Phases):
    """FedAvg to the goal and beyond, and LG-FedAvg from the goal."""

    def fedavg(self) -> Outcome:
        """FedAvg for all its rounds; ``at_goal`` is the first model that reached the goal."""
        cfg = self.cfg
        goal, method = Goal(cfg.goal, every=cfg.every), FedAvg(weighted=cfg.weighted)
        return self._part("fedavg", method, cfg.fedavg_lr, cfg.fedavg_rounds, goal)

    def lg(self, fedavg: Outcome, version: str) -> Outcome:
        """LG-FedAvg from there, as version 1 (MNIST alone) or 2 has it: "v1" or "v2"."""
        cfg, start, fed = self.cfg, fedavg.tensors["at_goal"], self.fed
        if version == "v1":
            fed, start = with_own_heads(fed, start)
            kind = partial(LGFedAvgV1, auxiliary=models.auxiliary_layers(fed.net))
        else:
            kind = LGFedAvg
        method = kind(layers=cfg.shared(fed.net), weighted=cfg.weighted)
        tracker, done = Personal(every=cfg.every, light=True), cfg.rounds(PRINTED_ROUNDS[cfg.data])
        further = dict(start=start, first_round=cfg.fedavg_rounds, before=done)
        phases = replace(self, fed=fed)
        out = phases._part(f"lg_{version}", method, cfg.lr, cfg.further, tracker, **further)
        reached = fedavg.final[["goal_round", "reached"]]
        return following(fedavg, replace(out, final=out.final.join(reached)))


def with_own_heads(fed: Federation, start: Tensor) -> tuple[Federation, Tensor]:
    """MNIST's federation with `models.MnistTwoHeads`, and its start [R, P] from MLPs' [R, P'].

    Each device's own head begins as a copy of the global one.
    """
    net = models.make(models.mlp_mnist_v1, 0)
    own = start[:, -models.count(net, models.auxiliary_layers(net)) :]  # the global head is last
    return replace(fed, net=net), torch.cat([start, own], 1)


def _rounds(cfg: Settings, part: str, selection: str, final: pd.DataFrame) -> dict:
    """FedAvg rounds, and parameters sent by the paper's convention, of each run."""
    done, further, reached = cfg.fedavg_rounds, 0, {}
    if part == "local":
        done = 0
    elif part == "fedavg":
        done = done if selection == "last" else final["best_round"].astype(int)
    else:
        done, further = final["goal_round"].astype(int).replace(0, done), cfg.further
        reached = {"goal_reached": final["reached"]}
    sent = records.system(cfg).papers(done, further)
    return {"fedavg_rounds": done, "params_communicated": sent} | reached


class Version1(phases.PhasedExperiment):
    """FedAvg to a goal, LG-FedAvg from there as both versions have it, and devices alone."""

    name, table = "lgfedavg.version1", TABLE
    Settings, scales, phases = Settings, SCALES, Phases
    protocols, chooses = ("as_described",), frozenset({"data", "fedavg", "alone"})
    splits = (dict(data="mnist"), dict(data="cifar10"))

    def usual(self, scale: str, protocol: str, changes: dict) -> dict:
        data = changes.get("data", "mnist")
        return OF_DATA.get(data, {}) | self.scales[scale] | LIVE.get((scale, data), {})

    def continued(self, cfg: Settings) -> dict[str, int]:
        names = ("lg_v1", "lg_v2") if cfg.data == "mnist" else ("lg_v2",)
        return dict.fromkeys(names, cfg.further)

    def cell(self, cfg: Settings, part: str) -> dict[str, Any]:
        lg = part.startswith("lg_")
        method = "lg_fedavg" if lg else records.named(cfg, part)[0]
        ids = dict(dataset=cfg.data, method=method, lg_rounds=cfg.lg_rounds if lg else 0)
        return dict(table=self.table_of(cfg, part)) | ids

    def table_of(self, cfg: Settings, part: str) -> str:
        """Version 2's method goes beside the paper's table where version 1's is in it."""
        return TABLE if part != "lg_v2" or cfg.data == "cifar10" else BESIDE

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """The tidy rows of one part; rounds and parameters sent are found, not set.

        FedAvg's rounds are those until its best round on validation rows, LG-FedAvg's those until
        the goal; ``goal_reached`` is 1 where the goal was reached at all.
        """
        tidy = records.tidy(cfg, part, outcome, partial(_rounds, cfg, part))
        return tidy.assign(**self.cell(cfg, part))

    def progress(self, cfg: Settings, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw: part, round, seed and local test in percent; LG-FedAvg from the goal on.

        ``before`` is the round that LG-FedAvg goes on from, 0 for the others.
        """
        out = []
        for part, history in histories.items():
            lines = history.reindex(columns=["round", "seed", "local_test_acc"]).assign(before=0)
            if part.startswith("lg"):
                fedavg = histories["fedavg"]
                there = fedavg[fedavg["validation_acc"] >= cfg.goal].groupby("seed")["round"].min()
                lines["before"] = lines["seed"].map(there).fillna(cfg.fedavg_rounds).astype(int)
            lines["round"] += lines["before"]
            out.append(lines.assign(part=part, local_test_acc=100 * lines["local_test_acc"]))
        return pd.concat(out, ignore_index=True)


def values_of(stored, table, data, metric, method, selection="best_val") -> pd.Series:
    """One number of every seed at paper scale, index seed; empty while nothing has run."""
    where = dict(scale="paper", protocol="as_described", selection=selection)
    stored = select(stored, table=table, dataset=data, metric=metric, method=method, **where)
    return stored.set_index("seed")["value"].astype(float).sort_index()


VERSION1 = Version1()
