"""The phases of LG-FedAvg's experiments: FedAvg, LG-FedAvg from it, and the baselines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import torch
from torch import Tensor

from lgfed_core import data, models, partition
from lgfed_core.engine import CPU, Federation, LocalTraining, Outcome, Participation, run
from lgfed_core.engine.averaged_best import AveragedBest
from lgfed_core.engine.trackers import Global, Personal, Tracker
from lgfed_core.evidence.rows import PROTOCOLS
from lgfed_core.methods import MTL, FedAvg, LGFedAvg, LocalOnly, Method, ReleasedMTL
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Piece, following, saved_at, who

from . import records
from .settings import Settings


def federation(
    cfg: Settings, seeds: Sequence[int], device: torch.device = CPU
) -> tuple[Federation, Tensor]:
    """The data of ``cfg``, their split over the devices and the network, a run per seed.

    Returns the federation and each run's first parameters [R, P].
    """
    images = data.load(cfg.DATA)
    if cfg.rows_per_class:
        images = data.subset(images, *cfg.rows_per_class)
    splits = [cfg.split(images, seed) for seed in seeds]
    if cfg.validation:
        held = cfg.validation
        splits = [partition.with_validation(s, held, n) for s, n in zip(splits, seeds, strict=True)]
    nets = [models.make(cfg.net, seed) for seed in seeds]
    fed = Federation(images, splits, nets[-1], list(seeds), device, Participation(cfg.fraction))
    return fed, torch.stack([joined(net) for net in nets])


@dataclass(frozen=True)
class Phases:
    """The phases of one experiment, all seeds together.

    Each is a method that runs it, or reads its checkpoint in ``folder`` when it is complete.
    """

    cfg: Settings
    fed: Federation
    first: Tensor  # [R, P], each run's first parameters
    folder: Path | None  # of the checkpoints; None keeps none
    label: str  # before the name of a phase, on its progress bar
    engine: dict  # more arguments of `engine.run`

    def fedavg(self) -> Outcome:
        """FedAvg for the largest budget and the extra rounds, with a snapshot at each budget."""
        cfg = self.cfg
        snapshots = tuple(cfg.rounds(b) for b in cfg.budgets)
        tracker = Global(snapshots, cfg.released, cfg.every)
        method = FedAvg(weighted=cfg.weighted)
        return self._part("fedavg", method, cfg.fedavg_lr, cfg.fedavg_rounds, tracker)

    def lg(self, fedavg: Outcome | None, budget: int | str) -> Outcome:
        """LG-FedAvg from the model that ``fedavg`` had after ``budget`` rounds; None: from the
        first parameters."""
        cfg, done = self.cfg, self.cfg.rounds(int(budget)) if fedavg else 0
        method = LGFedAvg(layers=cfg.shared(self.fed.net), weighted=cfg.weighted)
        rounds, personal = cfg.rounds(cfg.lg_rounds), Personal(every=cfg.every, light=True)
        tracker = AveragedBest(light=True) if cfg.released else personal
        start = fedavg.tensors[f"at_{done}"] if fedavg else self.first
        further = dict(start=start, first_round=done, before=done)
        out = self._part(f"lg_{budget}", method, cfg.lr, rounds, tracker, **further)
        return following(fedavg, out, done) if fedavg else out

    def local(self) -> Outcome:
        """Every device by itself, all of them in every epoch."""
        cfg, stops = self.cfg, dict(patience=self.cfg.patience, stop_at=self.cfg.local_stop)
        tracker = Personal(**self._judge, **stops, light=True)
        everybody = replace(self, fed=replace(self.fed, participation=Participation()))
        return everybody._part("local", LocalOnly(), cfg.lr, cfg.local_epochs, tracker)

    def mtl(self) -> Outcome:
        """Mean-regularised multi-task learning."""
        cfg = self.cfg
        kind, every = (ReleasedMTL, 1) if cfg.released else (MTL, 4 * cfg.every)
        tracker = Personal(**self._judge, every=every, light=True)
        rounds = cfg.rounds(cfg.mtl_rounds)
        return self._part("mtl", kind(scale=cfg.mtl_scale), cfg.lr, rounds, tracker)

    @property
    def _judge(self) -> dict:
        return dict(judge="test", ties="first") if self.cfg.released else {}

    def _part(
        self, name: str, method: Method, lr, rounds, tracker: Tracker, before=None, **further
    ) -> Outcome:
        """Run one phase; a learning rate that decays goes on from ``before`` rounds.

        further: of `engine.run`, where it does not begin with each run's first parameters.
        """
        cfg = self.cfg
        how = dict(decay=cfg.decay, before=before if cfg.decay else None, augment=cfg.AUGMENT)
        training = LocalTraining(lr, cfg.batch_size, keep_momentum=name == "local", **how)
        saved = saved_at(self.folder, name)
        more = dict(start=self.first, saved=saved, label=f"{self.label}: {name}") | further
        return run(self.fed, method, training, rounds, tracker=tracker, **more, **self.engine)


class PhasedExperiment(Experiment):
    """FedAvg, LG-FedAvg from it and the baselines, on one data set."""

    protocols, stem = PROTOCOLS, "{scale}-{protocol}-{classes}"
    chooses = shared = frozenset({"classes", "fedavg", "starts", "alone"})
    splits: ClassVar[tuple[dict[str, Any], ...]] = tuple(dict(classes=n) for n in (2, 3, 4, 5, 10))
    phases = Phases
    federation = staticmethod(federation)

    def usual(self, scale: str, protocol: str, changes: dict) -> dict:
        released = self.released if protocol == "as_released" else {}
        classes = changes.get("classes", self.Settings.classes)
        return released | self.by_classes(classes, protocol) | self.scales[scale]

    def by_classes(self, classes: int, protocol: str) -> dict:
        """Settings that follow from the number of classes per device: released i.i.d. devices train
        longer alone."""
        return dict(local_epochs=400) if (classes, protocol) == (10, "as_released") else {}

    def start(
        self, cfg: Settings, seeds: Sequence[int], device: torch.device, folder: Path | None, engine
    ) -> Phases:
        """The phases, with the data of ``cfg`` and each run's first parameters."""
        fed, first = self.federation(cfg, seeds, device)
        return self.phases(cfg, fed, first, folder, f"{cfg.protocol} {who(seeds)}", engine)

    def rounds(self, cfg: Settings) -> dict[str, int]:
        """fedavg, lg_400, ..., local, mtl."""
        lengths = {"local": cfg.local_epochs, "mtl": cfg.rounds(cfg.mtl_rounds)}
        alone = {name: rounds for name, rounds in lengths.items() if name in cfg.alone}
        if not cfg.fedavg:
            return alone
        return {"fedavg": cfg.fedavg_rounds} | self.continued(cfg) | alone

    def continued(self, cfg: Settings) -> dict[str, int]:
        """The parts that go on from FedAvg's models, and their rounds."""
        return {f"lg_{budget}": cfg.rounds(cfg.lg_rounds) for budget in cfg.starts}

    def pieces(self, protocol: str) -> list[Piece]:
        """A piece for each line of the data set's tables: FedAvg, LG-FedAvg from it, baselines."""
        found = []
        for split in self.splits:
            cfg = self.settings("paper", protocol, **split)
            for name in (parts := self.rounds(cfg)):
                lg, alone = name.startswith("lg_"), name in cfg.alone
                own = dict(alone=(name,) if alone else (), fedavg=not alone, starts=())
                if lg and "starts" in self.chooses:
                    own["starts"] = (int(name.removeprefix("lg_")),)
                own = {key: value for key, value in own.items() if key in self.chooses}
                cell = tuple(self.cell(cfg, name).items())
                piece = Piece(
                    *(self.name, protocol, name),
                    changes=tuple((split | own).items()),
                    cell=cell,
                    after=("fedavg",) if lg and "fedavg" in parts else (),
                    like=tuple(one for one in cell if one[0] not in ("classes_per_device", "data")),
                )
                found.append(piece)
        return found

    def cell(self, cfg: Settings, part: str) -> dict[str, Any]:
        """The table and the ids of the rows that a part leaves."""
        ids = zip(records.IDS, (cfg.classes, *records.named(cfg, part)), strict=True)
        return dict(table=self.table_of(cfg, part), **dict(ids))

    def table_of(self, cfg: Settings, part: str) -> str:
        """The table whose line a part fills; MTL's is of our own where none prints it."""
        return f"lgfedavg_mtl_{cfg.DATA}" if part == "mtl" else self.table

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        """Every part has its own checkpoint; LG-FedAvg starts where FedAvg was."""
        phases, fedavg = self.start(cfg, seeds, device, folder, engine), None
        for name in self.rounds(cfg):
            if name.startswith("lg_"):
                yield name, phases.lg(fedavg, name.removeprefix("lg_"))
            else:
                outcome = getattr(phases, name)()
                fedavg = outcome if name == "fedavg" else fedavg
                yield name, outcome

    def measured(self, cfg, part: str, outcome: Outcome) -> pd.DataFrame:
        return records.rows(cfg, part, outcome, self.table_of(cfg, part))

    def progress(self, cfg, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Curves to draw: method, part, round, seed, tests in percent; LG-FedAvg after its FedAvg.

        New test is there for FedAvg alone: for personal models it is too dear for every round. A
        round of local-only training is one epoch on every device; the others train C K of them.
        """
        out = []
        for part, history in histories.items():
            method, budget, _ = records.named(cfg, part)
            lines = history.reindex(columns=["round", "seed", "local_test_acc", "new_test_acc"])
            if part == "fedavg":  # as released: one accuracy for both
                lines["local_test_acc"] = lines["local_test_acc"].fillna(lines["new_test_acc"])
            lines["round"] += cfg.ran(budget) if method == "lg_fedavg" else 0
            lines[["local_test_acc", "new_test_acc"]] *= 100
            out.append(lines.assign(method=method, part=part))
        return pd.concat(out, ignore_index=True)
