"""LG-FedAvg on UCI Adult: Table 4 of Liang et al. 2020 (v2, section 5.5; v1, section 3.3).

Ten devices predict who earns over 50K. FedAvg trains one model, which an adversary watches;
LG-FedAvg trains local models, watched in the same way; with an adversary, local models are also
trained to hide race and sex from it. Two protocols:

* ``as_described``: the text, with the two players' gradients kept apart, dropout off at test, and
  lambda, of which the text says nothing, picked on validation rows (`FRONTIER` has the rest).
* ``as_released``: what the authors' code does, step by step; see `released`.

Probes, odds and the frontier over lambda are ours.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from lgfed_core import models, partition
from lgfed_core.engine import CPU, Federation, LocalTraining, Outcome, run
from lgfed_core.engine.accuracy import accuracies
from lgfed_core.engine.optimiser import AdamTraining
from lgfed_core.engine.trackers import Tracker
from lgfed_core.errors import SettingsError
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.evidence.tuning import best_setting
from lgfed_core.methods import FairLGFedAvg, Method, WatchedFedAvg
from lgfed_core.models.adult import WIDTH, AdultNet
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Part, following, saved_at

from . import released
from .measures import measure, rows_of_adult
from .settings import FIRST_ROWS, POWERS, RATES, SCALES, SHARDS, Settings

NAME = "lgfedavg.fairness"
TABLE = "lgfedavg_table4_adult_fairness"
FRONTIER = "lgfedavg_adult_frontier"  # a table of ours: lambda against accuracy and leakage
SWEEP = "lgfedavg_adult_sweep"  # the same game with other optimisers and adversaries
STEPS = released.STEPS  # a table of ours: gradients and weights, round by round
COST = 4.0  # points of accuracy that the paper says an adversary costs, at most


def pick(line: pd.DataFrame) -> float:
    """The lambda of Table 4, by validation rows alone.

    line: one row per lambda (the index, 0 among them), means over seeds of ``validation_acc`` and
    ``validation_probe``, in percent. Of all lambdas that cost at most `COST` points of accuracy
    against lambda = 0, the one with the least leakage to a logistic probe; 0 where all runs of 0
    have diverged.
    """
    able = line[line["validation_acc"] >= line.loc[0.0, "validation_acc"] - COST]
    return float(best_setting(-able["validation_probe"], usual=0.0))


class Watch(Tracker):  # checkpoints name it by its module
    """Accuracy on the devices' own test rows, after every round."""

    def look(self, round, engine):
        found = accuracies(engine, "shared", "personal", "test")  # [R, K]
        return {"local_test_acc": found.mean(1)}


def federation(
    cfg: Settings,
    seeds: Sequence[int],
    split: str,
    head: bool = True,
    device: torch.device = CPU,
    width: int = WIDTH,
    dropout: float | None = None,
) -> tuple[Federation, Tensor]:
    """The devices of one split ("iid" or "noniid"), and each run's first parameters [R, P].

    Non-i.i.d.: 100 shards of the label-sorted rows, ten a device, the same numbers for its test
    rows. ``head``: with LG-FedAvg's shared head, or without, for FedAvg. ``width``: of the
    adversary's hidden layers, ``dropout``: behind them.
    """
    adult = rows_of_adult(cfg.first_rows or (FIRST_ROWS if split == "noniid" else None))
    labels, parts = (adult.train.y, adult.test.y), []
    for seed in seeds:
        if split == "iid":
            part = partition.iid(*labels, cfg.devices, seed)
        else:
            part = partition.label_shards(*labels, cfg.devices, SHARDS, seed)
        parts.append(partition.with_validation(part, cfg.validation, seed))
    noise = cfg.dropout, cfg.dropout if dropout is None else dropout
    make = partial(AdultNet, cfg.head_layers if head else 0, *noise, adversary_width=width)
    nets = [models.make(make, seed) for seed in seeds]
    start = torch.stack([joined(net) for net in nets])
    return Federation(adult, parts, nets[-1], list(seeds), device), start


@dataclass(frozen=True)
class Parts:
    """The parts of the experiment on one split, all seeds together, with their checkpoints."""

    cfg: Settings
    seeds: Sequence[int]
    split: str
    device: torch.device
    folder: Path | None
    engine: dict  # more arguments of `engine.run`, the tracker among them
    done: dict[str, Outcome] = field(default_factory=dict)  # pre-training, which parts share

    def fedavg(self) -> Outcome:
        """One model for all, and one adversary that looks on."""
        cfg = self.cfg
        fed, start = federation(cfg, self.seeds, self.split, False, self.device)
        training = LocalTraining(cfg.lr, cfg.batch_size, cfg.momentum, cfg.fedavg_epochs)
        out = self._run("fedavg", fed, WatchedFedAvg(), training, cfg.fedavg_rounds, start)
        return measure(fed, out, cfg.probed, cfg.probe_rows, one_model=True)

    def joint(self, name: str, strength: float, sweep: bool = False, **game) -> Outcome:
        """Pre-training without an adversary's say, then the joint phase with ``strength``.

        game: of `FairLGFedAvg`. sweep: with the optimiser and the adversary of the sweep.
        """
        cfg, who, training, lr = self.cfg, (WIDTH, None), LocalTraining, self.cfg.lr
        if sweep:
            who, lr = (cfg.adversary_width, cfg.adversary_dropout), RATES[cfg.sweep_optimiser]
            training = AdamTraining if cfg.sweep_optimiser == "adam" else LocalTraining
        fed, start = federation(cfg, self.seeds, self.split, True, self.device, *who)
        kind = "pretraining" if who == (WIDTH, None) else f"pretraining_{who[0]}_{who[1]}"
        if kind not in self.done:
            first = LocalTraining(cfg.lr, cfg.batch_size, cfg.momentum, keep_momentum=True)
            method = FairLGFedAvg(pretraining=True, play="reversal")
            self.done[kind] = self._run(kind, fed, method, first, cfg.pretraining, start)
        before = self.done[kind]
        own = before.layout.join(before.tensors["shared"][:, None], before.tensors["personal"])
        method = FairLGFedAvg(lambda_local=strength, lambda_global=strength, **game)
        how = training(lr, cfg.batch_size, cfg.momentum), cfg.rounds, own
        out = self._run(name, fed, method, *how, first_round=cfg.pretraining)
        found = measure(fed, following(before, out), cfg.probed, cfg.probe_rows)
        both = before.seconds + out.seconds
        return replace(found, final=found.final.assign(strength=strength), seconds=both)

    def _run(self, name: str, fed: Federation, method: Method, *how, **more) -> Outcome:
        """how, more: of `engine.run`, from ``training`` on."""
        saved, label = saved_at(self.folder, f"{self.split}:{name}"), f"{self.split}: {name}"
        return run(fed, method, *how, saved=saved, label=label, **more, **self.engine)


class Fairness(Experiment):
    """``split:method``, on the frontier ``split:loss:lambda``, in the sweep
    ``split:sweep:optimiser:steps:width:lambda``; all seeds in one stack of lanes.

    Table 4's lambda is picked on the frontier of the first of ``frontier_splits``.
    """

    name, table, together, usual_lanes = NAME, TABLE, True, "batched"
    Settings, scales, protocols = Settings, SCALES, PROTOCOLS
    chooses = frozenset(
        {"splits", "methods", "frontier", "frontier_splits", "losses", "sweep"}
        | {"sweep_optimiser", "adversary_steps", "adversary_width", "adversary_dropout"}
    )
    shared = chooses - {"adversary_dropout"} | {"strength"}  # these are in a part's own name
    federation = staticmethod(federation)

    def check(self, cfg, seeds, device="auto", lanes="auto", workers=None) -> torch.device:
        place = super().check(cfg, seeds, device, lanes, workers)
        if cfg.released and lanes == "looped":
            raise SettingsError(
                "lanes is looped; the released loop of Adult trains all users in one stack: use "
                "batched"
            )
        return place

    def names(self, cfg: Settings, split: str) -> dict[str, tuple[str, float | None, float]]:
        """The parts of a split, in order: how the game is played, lambda (None: picked), power."""
        if cfg.released:
            return dict.fromkeys(cfg.methods, ("", None, 1.0))
        found = {}
        for loss in cfg.losses if split in cfg.frontier_splits else ():
            for strength in (0.0, *cfg.frontier) if loss == "vanilla" else cfg.frontier:
                found[f"{loss}:{strength:g}"] = ("reversal", strength, POWERS[loss])
        if cfg.sweep and split in cfg.frontier_splits:
            how = f"{cfg.sweep_optimiser}:{cfg.adversary_steps}:{cfg.adversary_width}"
            found |= {f"sweep:{how}:{x:g}": ("alternating", x, 1.0) for x in (0.0, *cfg.sweep)}
        own = {"lg_fedavg": 0.0, "lg_fedavg_adv": cfg.strength, "fedavg": 0.0}
        return found | {m: (cfg.play, lamb, 1.0) for m, lamb in own.items() if m in cfg.methods}

    def parts(self, cfg, seeds, device) -> Iterable[Part]:
        folder = self.folder(cfg, seeds)
        for split in cfg.splits:
            for name, (_, strength, _) in self.names(cfg, split).items():
                rounds = cfg.fedavg_rounds if name == "fedavg" else cfg.rounds
                rounds = cfg.released_rounds if cfg.released else rounds
                known = strength is not None
                saved = saved_at(folder, f"{split}:{_saved(name, strength)}") if known else None
                yield Part(f"{split}:{name}", rounds, saved)

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        line: dict[float, pd.Series] = {}  # lambda -> means over seeds
        for split in cfg.splits:
            parts = Parts(cfg, seeds, split, device, folder, {"tracker": Watch(), **engine})
            for name, (play, strength, power) in self.names(cfg, split).items():
                if cfg.released:
                    found = released.run(cfg, seeds, split, name, device)
                elif name == "fedavg":
                    found = parts.fedavg()
                elif name.startswith("sweep:"):
                    found = parts.joint(name, strength, True, adversary_steps=cfg.adversary_steps)
                else:
                    strength = pick(pd.DataFrame(line).T) if strength is None else strength
                    found = parts.joint(_saved(name, strength), strength, play=play, power=power)
                if name.startswith("vanilla:") and split == cfg.frontier_splits[0]:
                    line[strength] = found.final.drop(index=list(found.diverged)).mean()
                yield f"{split}:{name}", found

    def measured(self, cfg: Settings, part: str, found: Outcome) -> pd.DataFrame:
        """The tidy result rows of one part: last round, a line per seed and metric."""
        split, *rest = part.split(":")
        if len(rest) == 1:
            ids = {"table": TABLE, "method": rest[0], "split": split}
        elif rest[0] == "sweep":
            names = ("optimiser", "adversary_steps", "adversary_width", "lambda")
            ids = {"table": SWEEP, "split": split} | dict(zip(names, rest[1:], strict=True))
            ids["adversary_dropout"] = cfg.adversary_dropout  # blank: that of the others
        else:
            ids = {"table": FRONTIER, "split": split, "loss": rest[0], "lambda": float(rest[1])}
        out = [found.final.reset_index().melt("seed", var_name="metric").assign(**ids)]
        if cfg.released and len(found.history):  # what happens inside the released loop, by round
            steps = found.history.melt(["seed", "round"], var_name="metric")
            out.append(steps.assign(table=STEPS, method=rest[0], split=split))
        return pd.concat(out, ignore_index=True).dropna(subset="value").assign(selection="last")


FAIRNESS = Fairness()


def _saved(part: str, strength: float) -> str:
    """The name of a part's checkpoint."""
    return f"{part}_{strength:g}" if part == "lg_fedavg_adv" else part
