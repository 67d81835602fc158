"""LG-FedAvg on MNIST: Table 6 of Liang et al. 2020 (v2, appendix C.2.1).

100 devices hold two (3, 4, 5, 10) classes each. FedAvg trains one model; local-only trains one a
device; LG-FedAvg starts from a FedAvg model and continues for 100 rounds with the last three
layers shared. Two protocols:

* ``as_described``: logits, learning rate 0.05, weights n_k/n, a tenth of each device's rows held
  out for validation; the models are chosen there; new devices are served by averaged outputs.
* ``as_released``: what the authors' code does: softmax twice, learning rate 0.1 in FedAvg,
  uniform weights, every choice made on test rows, new devices served by averaged weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import pandas as pd
import torch
from torch import Tensor

from .. import data, nets, partition
from ..checkpoint import fingerprint
from ..errors import SettingsError
from ..federation import Federation, Outcome, run
from ..lanes import Training
from ..layout import joined
from ..methods import FedAvg, LGFedAvg, LocalOnly, Method
from ..paths import RUNS
from ..results import PROTOCOLS
from ..rounds import CPU
from ..tracking import AveragedBest, Global, Personal, Tracker
from . import lgfedavg_rows
from .lgfedavg_rows import progress as progress

NAME = "lgfedavg.mnist"
TABLE = "lgfedavg_v2_table6_mnist"
CHOOSES = {"classes", "starts"}  # settings that choose cells of the table, and change none


@dataclass(frozen=True)
class Settings:
    """The paper's values, as described, are the defaults; `RELEASED` has what its code changes.

    Round counts name the table's rows; ``shrink`` multiplies what is actually run, so that a
    quick look keeps the proportions.
    """

    protocol: str = "as_described"
    scale: str = "paper"
    classes: int = 2  # classes per device; 10 means i.i.d.
    devices: int = 100  # K
    fraction: float = 0.1  # C
    batch_size: int = 10  # B
    fedavg_lr: float = 0.05
    lr: float = 0.05  # of LG-FedAvg and local-only
    softmax: bool = False  # True: the network ends in one, the loss applies another
    weighted: bool = True  # average by n_k/n; False: 1/m
    shared_layers: int = 3  # "the last two" in the text; 99,978 parameters are three
    validation: float = 0.1  # share of each device's training rows; 0 chooses on test rows
    every: int = 5  # rounds between two evaluations of FedAvg and LG-FedAvg
    budgets: tuple[int, ...] = (400, 500, 600, 700, 800)  # FedAvg rounds before LG-FedAvg
    extra_rounds: int = 0  # FedAvg's own row is the best of so many more
    starts: tuple[int, ...] = (400, 800, 500, 600, 700)  # which budgets LG continues, in order
    lg_rounds: int = 100
    local_epochs: int = 200
    patience: int | None = 20  # a device alone stops after so many epochs without gain
    local_stop: tuple[float, int] | None = None  # or at this accuracy after so many epochs
    rows_per_class: tuple[int, int] | None = None  # (train, test); None is all of MNIST
    shrink: float = 1.0

    def __post_init__(self):
        if self.protocol not in PROTOCOLS:
            raise SettingsError(f"protocol {self.protocol!r} is none of {PROTOCOLS}")
        if self.scale not in SCALES:
            raise SettingsError(f"scale {self.scale!r} is none of {tuple(SCALES)}")
        if not set(self.starts) <= set(self.budgets):
            raise SettingsError(f"starts {self.starts} must be among the budgets {self.budgets}")

    @property
    def released(self) -> bool:
        return self.protocol == "as_released"

    def rounds(self, nominal: int) -> int:
        """Rounds to run for a number printed in the paper; at least one."""
        return max(1, round(nominal * self.shrink))


RELEASED = dict(
    fedavg_lr=0.1, softmax=True, weighted=False, validation=0.0, every=1, local_epochs=100,
    patience=None,
    extra_rounds=15,  # the released notebook adds 15 % of the 100 LG rounds to FedAvg's
    local_stop=(0.99, 51),  # "epoch > 50", counted from 0: after 52 epochs at the earliest
)  # fmt: skip
SCALES = {
    "smoke": dict(
        devices=10, fraction=0.2, rows_per_class=(40, 20), shrink=0.005, starts=(400, 800),
        local_epochs=2, every=1,
    ),
    "quick": dict(
        devices=20, fraction=0.25, rows_per_class=(1200, 200), shrink=0.075, starts=(400, 800),
        local_epochs=10, every=1,
    ),
    "paper": {},
}  # fmt: skip


def settings(scale: str = "paper", protocol: str = "as_described", **changes) -> Settings:
    """Settings of a scale, with single values changed: ``settings("quick", classes=5)``."""
    base = Settings(protocol, scale)
    return replace(base, **((RELEASED if base.released else {}) | SCALES[scale] | changes))


def federation(
    cfg: Settings, seeds: Sequence[int], device: torch.device = CPU
) -> tuple[Federation, Tensor]:
    """MNIST, its split over the devices and the network of ``cfg``, a run per seed.

    Returns the federation and each run's first parameters [R, P].
    """
    mnist = data.load("mnist")
    if cfg.rows_per_class:
        mnist = data.subset(mnist, *cfg.rows_per_class)
    splits, starts = [], []
    for seed in seeds:
        labels = mnist.train.y, mnist.test.y
        if cfg.classes == mnist.classes:
            split = partition.iid(*labels, cfg.devices, seed)
        else:
            split = partition.classes_per_device(*labels, cfg.devices, cfg.classes, seed)
        if cfg.validation:
            split = partition.with_validation(split, cfg.validation, seed)
        splits.append(split)
        net = nets.make(lambda: nets.mlp_mnist(softmax=cfg.softmax), seed)
        starts.append(joined(net))
    return Federation(mnist, splits, net, list(seeds), device), torch.stack(starts)


def stages(
    cfg: Settings,
    seeds: Sequence[int],
    device: torch.device = CPU,
    resume: bool = True,
    **engine,
) -> Iterator[tuple[str, Outcome]]:
    """Run the experiment part by part, yielding (name, outcome): fedavg, local, lg_400, ...

    All ``seeds`` train together. Every part has its own checkpoint; a part that is complete is
    read instead of run.
    """
    fed, first = federation(cfg, seeds, device)
    who = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    folder = RUNS / NAME / _folder(cfg, seeds)

    def part(name: str, method: Method, lr: float, rounds: int, tracker: Tracker,
             start: Tensor = first, **more) -> Outcome:  # fmt: skip
        training = Training(lr, cfg.batch_size, keep_momentum=name == "local")
        saved = folder / f"{name}.safetensors" if resume else None
        return run(fed, method, training, rounds, start, tracker=tracker, saved=saved,
                   label=f"{cfg.protocol} {who}: {name}", **more, **engine)  # fmt: skip

    on_test = not cfg.validation
    share = dict(fraction=cfg.fraction, weighted=cfg.weighted)
    snapshots = {b: cfg.rounds(b) for b in cfg.budgets}
    tracker = Global(tuple(snapshots.values()), on_test, cfg.every)
    rounds = snapshots[max(cfg.budgets)] + round(cfg.extra_rounds * cfg.shrink)
    fedavg = part("fedavg", FedAvg(**share), cfg.fedavg_lr, rounds, tracker)
    yield "fedavg", fedavg

    tracker = Personal("test" if on_test else "validation", ties="first" if on_test else "last",
                       patience=cfg.patience, stop_at=cfg.local_stop, light=True)  # fmt: skip
    yield "local", part("local", LocalOnly(), cfg.lr, cfg.local_epochs, tracker)

    method = LGFedAvg(layers=nets.last_layers(fed.net, cfg.shared_layers), **share)
    for budget in cfg.starts:
        start = fedavg.tensors[f"at_{snapshots[budget]}"]
        tracker = AveragedBest(light=True) if on_test else Personal(every=cfg.every, light=True)
        lg = part(f"lg_{budget}", method, cfg.lr, cfg.rounds(cfg.lg_rounds), tracker, start,
                  first_round=snapshots[budget])  # fmt: skip
        yield f"lg_{budget}", lg


def _folder(cfg: Settings, seeds: Sequence[int]) -> str:
    """Where a run's checkpoints go: changed settings and other seeds never share a folder."""
    usual = settings(cfg.scale, cfg.protocol, classes=cfg.classes, starts=cfg.starts)
    changed = {k: v for k, v in asdict(cfg).items() if v != getattr(usual, k)}
    name = f"{cfg.scale}-{cfg.protocol}-{cfg.classes}"
    name += f"-seed{seeds[0]}" if len(seeds) == 1 else f"-seeds-{fingerprint(seeds=list(seeds))}"
    return name + (f"-{fingerprint(**changed)}" if changed else "")


def rows(cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
    """The tidy result rows of one part; see `lgfedavg_rows.rows`."""
    return lgfedavg_rows.rows(cfg, part, outcome, TABLE, nets.mlp_mnist())
