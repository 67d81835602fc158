"""The phases of LG-FedAvg's experiments, for every data set: FedAvg, LG-FedAvg from it, baselines.

Two protocols, for which the settings of a data set say what differs:

* ``as_described``: the paper's text, its gaps closed in the sound way: models are chosen on a tenth
  of each device's training rows, and new devices are served by averaged outputs.
* ``as_released``: what the authors' code does: every choice is made on test rows, and new devices
  are served by averaged weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from lgfed_core import data, models, partition
from lgfed_core.data.augment import CropFlip
from lgfed_core.engine import CPU, Federation, Outcome, Participation, Training, run
from lgfed_core.engine.checkpoint import folder_name
from lgfed_core.engine.trackers import AveragedBest, Global, Personal, Tracker
from lgfed_core.errors import SettingsError, at_least, one_of
from lgfed_core.evidence.records import PROTOCOLS
from lgfed_core.methods import MTL, FedAvg, LGFedAvg, LocalOnly, Method, ReleasedMTL
from lgfed_core.models.layout import joined
from lgfed_core.paths import RUNS

CHOOSES = {"classes", "fedavg", "starts", "alone"}  # which cells of a table; they change none


@dataclass(frozen=True)
class Settings:
    """What both data sets have in common; a data set's own settings give the numbers.

    Round counts name the rows of the paper's table; ``shrink`` multiplies what is actually run,
    so that a quick look keeps the proportions.
    """

    protocol: str = "as_described"
    scale: str = "paper"
    classes: int = 2  # classes per device; 10 means i.i.d.
    devices: int = 100  # K
    fraction: float = 0.1  # C
    batch_size: int = 10  # B
    fedavg_lr: float = 0.05
    lr: float = 0.05  # of all other methods
    decay: float | None = None  # of the learning rate: lr / (1 + decay t) after t rounds
    softmax: bool = False  # True: the network ends in one (or its logarithm), as released
    weighted: bool = True  # average by n_k/n; False: 1/m
    shared_layers: int = 3  # how many layers LG-FedAvg shares,
    shared_side: str = "last"  # "last": next to the output, "first": next to the input
    validation: float = 0.1  # share of each device's training rows; as released 0
    every: int = 5  # rounds between two evaluations of FedAvg and LG-FedAvg
    fedavg: bool = True  # False: neither FedAvg nor what starts from it, the baselines only
    budgets: tuple[int, ...] = ()  # FedAvg rounds before LG-FedAvg
    extra_rounds: int = 0  # FedAvg's own row is the best of so many more
    starts: tuple[int, ...] = ()  # which budgets LG continues, in order
    lg_rounds: int = 100
    alone: tuple[str, ...] = ("local",)  # baselines that share nothing: "local", "mtl"
    local_epochs: int = 200
    patience: int | None = 20  # a device alone stops after so many epochs without gain
    local_stop: tuple[float, int] | None = None  # or at this accuracy after so many epochs
    mtl_scale: float = 0.0  # strength of MTL's regulariser
    mtl_rounds: int = 0
    rows_per_class: tuple[int, int] | None = None  # (train, test); None is the whole data set
    shrink: float = 1.0

    NAME: ClassVar[str] = ""  # of the experiment
    DATA: ClassVar[str] = ""
    AUGMENT: ClassVar[CropFlip | None] = None
    RELEASED: ClassVar[dict] = {}  # what `as_released` changes
    SCALES: ClassVar[dict[str, dict]] = {}

    def __post_init__(self):
        one_of("protocol", self.protocol, PROTOCOLS)
        one_of("scale", self.scale, self.SCALES)
        at_least(
            1,
            devices=self.devices,
            batch_size=self.batch_size,
            every=self.every,
            lg_rounds=self.lg_rounds,
            local_epochs=self.local_epochs,
            patience=self.patience,
        )
        at_least(
            0,
            shared_layers=self.shared_layers,
            extra_rounds=self.extra_rounds,
            mtl_rounds=self.mtl_rounds,
            validation=self.validation,
        )
        if not self.shrink > 0:
            raise SettingsError(f"shrink is {self.shrink}; it must be above 0")
        if not set(self.starts) <= set(self.budgets):
            raise SettingsError(f"starts {self.starts} must be among the budgets {self.budgets}")
        if self.shared_side not in ("first", "last"):
            raise SettingsError(f"shared_side {self.shared_side!r} is neither first nor last")
        if unknown := set(self.alone) - {"local", "mtl"}:
            raise SettingsError(f"alone has {sorted(unknown)}; there are local and mtl")

    @classmethod
    def at(cls, scale: str = "paper", protocol: str = "as_described", **changes) -> "Settings":
        """Settings of a scale, with single values changed: ``at("quick", classes=5)``."""
        base = cls(protocol, scale)
        released = cls.RELEASED if base.released else {}
        by_classes = cls.by_classes(changes.get("classes", base.classes), protocol)
        cfg = replace(base, **(released | by_classes | cls.SCALES[scale] | changes))
        if cfg.released == (cfg.validation > 0):
            why = "chooses on test rows: 0" if cfg.released else "chooses on these rows: above 0"
            raise SettingsError(f"validation is {cfg.validation}; {protocol} {why}")
        return cfg

    @classmethod
    def by_classes(cls, classes: int, protocol: str) -> dict:
        """Settings that follow from the number of classes per device."""
        return {}

    @property
    def released(self) -> bool:
        return self.protocol == "as_released"

    def rounds(self, nominal: int) -> int:
        """Rounds to run for a number printed in the paper; at least one."""
        return max(1, round(nominal * self.shrink))

    def split(self, images: data.Dataset, seed: int) -> partition.Partition:
        """Who holds what, before validation rows are set aside."""
        labels = images.train.y, images.test.y
        if self.classes == images.classes:
            return partition.iid(*labels, self.devices, seed)
        return partition.classes_per_device(*labels, self.devices, self.classes, seed)

    def net(self) -> nn.Module:
        """The network of this data set, of random weights."""
        raise NotImplementedError

    def shared(self, net: nn.Module) -> frozenset[str]:
        """The parameters that LG-FedAvg shares."""
        side = models.last_layers if self.shared_side == "last" else models.first_layers
        return side(net, self.shared_layers)

    def mtl(self) -> Method:
        """MTL as the protocol has it."""
        kind = ReleasedMTL if self.released else MTL
        return kind(scale=self.mtl_scale)


def federation(
    cfg: Settings, seeds: Sequence[int], device: torch.device = CPU
) -> tuple[Federation, Tensor]:
    """The data of ``cfg``, their split over the devices and the network, a run per seed.

    Returns the federation and each run's first parameters [R, P].
    """
    images = data.load(cfg.DATA)
    if cfg.rows_per_class:
        images = data.subset(images, *cfg.rows_per_class)
    splits, starts = [], []
    for seed in seeds:
        split = cfg.split(images, seed)
        if cfg.validation:
            split = partition.with_validation(split, cfg.validation, seed)
        splits.append(split)
        net = models.make(cfg.net, seed)
        starts.append(joined(net))
    who = Participation(cfg.fraction)
    return Federation(images, splits, net, list(seeds), device, who), torch.stack(starts)


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
    engine: dict  # more arguments of `federation.run`

    @classmethod
    def of(
        cls,
        cfg: Settings,
        seeds: Sequence[int],
        device: torch.device = CPU,
        resume: bool = True,
        **engine,
    ) -> "Phases":
        """The phases of ``cfg``; without ``resume`` nothing is read or saved."""
        fed, first = federation(cfg, seeds, device)
        who = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
        folder = RUNS / cfg.NAME / _folder(cfg, seeds) if resume else None
        return cls(cfg, fed, first, folder, f"{cfg.protocol} {who}", engine)

    def fedavg(self) -> Outcome:
        """FedAvg for the largest budget and the extra rounds, with a snapshot at each budget."""
        cfg = self.cfg
        snapshots = tuple(cfg.rounds(b) for b in cfg.budgets)
        tracker = Global(snapshots, self._on_test, cfg.every)
        rounds = cfg.rounds(max(cfg.budgets)) + round(cfg.extra_rounds * cfg.shrink)
        return self._part("fedavg", FedAvg(weighted=cfg.weighted), cfg.fedavg_lr, rounds, tracker)

    def lg(self, fedavg: Outcome, budget: int) -> Outcome:
        """LG-FedAvg from the model that ``fedavg`` had after ``budget`` rounds."""
        cfg, done = self.cfg, self.cfg.rounds(budget)
        method = LGFedAvg(layers=cfg.shared(self.fed.net), weighted=cfg.weighted)
        on_test = self._on_test
        tracker = AveragedBest(light=True) if on_test else Personal(every=cfg.every, light=True)
        return self._part(
            f"lg_{budget}",
            method,
            cfg.lr,
            cfg.rounds(cfg.lg_rounds),
            tracker,
            start=fedavg.tensors[f"at_{done}"],
            first_round=done,
            before=done,
        )

    def local(self) -> Outcome:
        """Every device by itself, all of them in every epoch."""
        cfg = self.cfg
        stops = dict(patience=cfg.patience, stop_at=cfg.local_stop)
        tracker = Personal(**self._judge, **stops, light=True)
        everybody = replace(self, fed=replace(self.fed, participation=Participation()))
        return everybody._part("local", LocalOnly(), cfg.lr, cfg.local_epochs, tracker)

    def mtl(self) -> Outcome:
        """Mean-regularised multi-task learning."""
        cfg = self.cfg
        every = 1 if self._on_test else 4 * cfg.every
        tracker = Personal(**self._judge, every=every, light=True)
        return self._part("mtl", cfg.mtl(), cfg.lr, cfg.rounds(cfg.mtl_rounds), tracker)

    @property
    def _on_test(self) -> bool:
        return not self.cfg.validation

    @property
    def _judge(self) -> dict:
        return dict(judge="test", ties="first") if self._on_test else {}

    def _part(
        self,
        name: str,
        method: Method,
        lr: float,
        rounds: int,
        tracker: Tracker,
        start: Tensor | None = None,
        first_round: int = 0,
        before: int | None = None,
    ) -> Outcome:
        """Run one phase; a learning rate that decays goes on from ``before`` rounds."""
        cfg = self.cfg
        training = Training(
            lr,
            cfg.batch_size,
            keep_momentum=name == "local",
            decay=cfg.decay,
            before=before if cfg.decay else None,
            augment=cfg.AUGMENT,
        )
        saved = self.folder / f"{name}.safetensors" if self.folder else None
        return run(
            self.fed,
            method,
            training,
            rounds,
            self.first if start is None else start,
            tracker=tracker,
            first_round=first_round,
            saved=saved,
            label=f"{self.label}: {name}",
            **self.engine,
        )


def stages(
    cfg: Settings, seeds: Sequence[int], device: torch.device = CPU, resume: bool = True, **engine
) -> Iterator[tuple[str, Outcome]]:
    """Run the experiment part by part, yielding (name, outcome): fedavg, lg_400, ..., local, mtl.

    All ``seeds`` train together. Every part has its own checkpoint; a part that is complete is
    read instead of run.
    """
    phases = Phases.of(cfg, seeds, device, resume, **engine)
    if cfg.fedavg:
        fedavg = phases.fedavg()
        yield "fedavg", fedavg
        for budget in cfg.starts:
            yield f"lg_{budget}", phases.lg(fedavg, budget)
    for name in ("local", "mtl"):
        if name in cfg.alone:
            yield name, getattr(phases, name)()


def _folder(cfg: Settings, seeds: Sequence[int]) -> str:
    """Where a run's checkpoints go: changed settings and other seeds never share a folder."""
    choices = {name: getattr(cfg, name) for name in CHOOSES}
    usual = cfg.at(cfg.scale, cfg.protocol, **choices)
    return folder_name(f"{cfg.scale}-{cfg.protocol}-{cfg.classes}", cfg, usual, seeds)
