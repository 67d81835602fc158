"""What parts of FADE on pictures share: each begins where the source has trained alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import torch

from lgfed_core.engine import CPU, Federation, LocalTraining, Outcome, run
from lgfed_core.engine.trackers import Tracker

PRETRAINING = "pretraining"  # with what the names of parts before the game begin


@dataclass(frozen=True)
class Parts:
    """The parts of one task, with the seeds that train together and their checkpoints."""

    cfg: Any
    task: str
    seeds: Sequence[int]
    device: torch.device = CPU
    folder: Path | None = None
    engine: dict = field(default_factory=dict)

    followed: ClassVar[type[Tracker]]  # by what, every so many rounds

    def training(self, **more) -> LocalTraining:
        cfg = self.cfg
        usual = dict(
            lr=cfg.lr,
            batch_size=cfg.batch_size,
            momentum=cfg.momentum,
            weight_decay=cfg.weight_decay,
            keep_momentum=True,
            nesterov=cfg.momentum > 0,
        )
        return LocalTraining(**(usual | more))

    def run(self, name: str, fed: Federation, method, training, rounds: int, start) -> Outcome:
        return run(
            *(fed, method, training, rounds, start),
            first_round=0 if name.startswith(PRETRAINING) else self.cfg.pretraining,
            saved=self.folder / saved_as(self.task, name) if self.folder else None,
            tracker=self.followed(max(1, rounds // self.cfg.looks)),
            label=f"seed {self.seeds[0]}, {self.task}: {name}",
            **self.engine,
        )


def saved_as(task: str, name: str) -> str:
    """The checkpoint of a part."""
    return f"{task.replace('->', '-')}_{name.replace(':', '_')}.safetensors"


def by_metric(wide: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """A row per metric; accuracies in percent."""
    long = wide.melt(keys, var_name="metric")
    percent = long["metric"].str.endswith("_acc")
    return long.assign(value=long["value"].where(~percent, 100 * long["value"]))
