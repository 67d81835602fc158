"""FedAvg under an adversary's eyes, and local models that are trained to deceive one, on Adult.

`Parts` are those of one split as the text describes them: FedAvg; LG-FedAvg, which pre-trains its
local models and adversaries, and then lets them play; the same game with another optimiser and
another adversary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from lgfed_core import models, partition
from lgfed_core.engine import CPU, Federation, LocalTraining, Outcome, run
from lgfed_core.engine.training import AdamTraining
from lgfed_core.methods import FairLGFedAvg, Method, WatchedFedAvg
from lgfed_core.models.adult import WIDTH, AdultNet
from lgfed_core.models.layout import joined
from lgfed_core.papers.part_outcome import Measured
from lgfed_core.papers.parts import following

from .measures import measure, rows_of_adult
from .settings import FIRST_ROWS, RATES, SHARDS, Settings


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
    rows = cfg.first_rows or (FIRST_ROWS if split == "noniid" else None)
    adult = rows_of_adult(rows)
    labels, parts, starts = (adult.train.y, adult.test.y), [], []
    behind = cfg.dropout if dropout is None else dropout
    for seed in seeds:
        if split == "iid":
            part = partition.iid(*labels, cfg.devices, seed)
        else:
            part = partition.label_shards(*labels, cfg.devices, SHARDS, seed)
        parts.append(partition.with_validation(part, cfg.validation, seed))
        net = models.make(
            lambda: AdultNet(
                cfg.head_layers if head else 0, cfg.dropout, behind, adversary_width=width
            ),
            seed,
        )
        starts.append(joined(net))
    return Federation(adult, parts, net, list(seeds), device), torch.stack(starts)


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

    def fedavg(self) -> Measured:
        """One model for all, and one adversary that looks on."""
        cfg = self.cfg
        fed, start = federation(cfg, self.seeds, self.split, False, self.device)
        training = LocalTraining(cfg.lr, cfg.batch_size, cfg.momentum, cfg.fedavg_epochs)
        out = self._run("fedavg", fed, WatchedFedAvg(), training, cfg.fedavg_rounds, start)
        return measure(fed, out, cfg.probed, cfg.probe_rows, one_model=True)

    def joint(self, name: str, play: str, strength: float, power: float = 1.0) -> Measured:
        """Pre-training without an adversary's say, then the joint phase with ``strength``."""
        training = LocalTraining(self.cfg.lr, self.cfg.batch_size, self.cfg.momentum)
        return self._joint(name, strength, training, play=play, power=power)

    def swept(self, name: str, strength: float) -> Measured:
        """The same with the optimiser and the adversary of the sweep."""
        cfg = self.cfg
        kind = AdamTraining if cfg.sweep_optimiser == "adam" else LocalTraining
        training = kind(RATES[cfg.sweep_optimiser], cfg.batch_size, cfg.momentum)
        who = cfg.adversary_width, cfg.adversary_dropout
        return self._joint(name, strength, training, who, adversary_steps=cfg.adversary_steps)

    def _joint(self, name, strength, training, who=(WIDTH, None), **game) -> Measured:
        """``who``: width and dropout of the adversary."""
        cfg = self.cfg
        fed, start = federation(cfg, self.seeds, self.split, True, self.device, *who)
        first = LocalTraining(cfg.lr, cfg.batch_size, cfg.momentum, keep_momentum=True)
        method = FairLGFedAvg(pretraining=True, play="reversal")
        kind = "pretraining" if who == (WIDTH, None) else f"pretraining_{who[0]}_{who[1]}"
        if kind not in self.done:
            self.done[kind] = self._run(kind, fed, method, first, cfg.pretraining, start)
        before = self.done[kind]
        own = before.layout.join(before.tensors["shared"][:, None], before.tensors["personal"])
        method = FairLGFedAvg(lambda_local=strength, lambda_global=strength, **game)
        out = self._run(name, fed, method, training, cfg.rounds, own, cfg.pretraining)
        found = measure(fed, following(before, out), cfg.probed, cfg.probe_rows)
        both = before.seconds + out.seconds
        return replace(found, final=found.final.assign(strength=strength), seconds=both)

    def _run(
        self,
        name: str,
        fed: Federation,
        method: Method,
        training: LocalTraining,
        rounds: int,
        start: Tensor,
        first_round: int = 0,
    ) -> Outcome:
        saved = self.folder / f"{self.split}_{name}.safetensors" if self.folder else None
        return run(
            fed,
            method,
            training,
            rounds,
            start,
            first_round=first_round,
            saved=saved,
            label=f"{self.split}: {name}",
            **self.engine,
        )
