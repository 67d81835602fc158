"""What FADE's experiments share: tasks one after another, each with parts that begin where another
ended, and runs of one seed side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import torch
from torch import Tensor, nn

from lgfed_core import models
from lgfed_core.data import Dataset
from lgfed_core.engine import CPU, Federation, LocalTraining, Outcome, Participation, run
from lgfed_core.engine.trackers import Tracker
from lgfed_core.methods.schedules import Annealing
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import following, saved_at, who
from lgfed_core.partition import Partition

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
    before: dict[str, Outcome] = field(default_factory=dict)  # what further parts begin from

    followed: ClassVar[type[Tracker]]  # by what, every so many rounds

    def outcome(self, name: str) -> Outcome:
        """Train, or read, the part called ``name``."""
        raise NotImplementedError

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

    def side_by_side(
        self,
        build: Callable[[], nn.Module],
        data: Dataset,
        held: Sequence[Partition],
        taking_part: Participation,
    ) -> tuple[Federation, Tensor]:
        """A run for each of ``held``, as many of each seed, which lie together and start alike; and
        first parameters [R, P]."""
        nets = [models.make(build, seed) for seed in self.seeds]
        times = len(held) // len(self.seeds)
        start = torch.stack([joined(net) for net in nets for _ in range(times)])
        runs = [seed for seed in self.seeds for _ in range(times)]
        return Federation(data, held, nets[0], runs, self.device, taking_part), start

    def one_of_two(self, *probabilities: float) -> Participation:
        """One device a round; of each of a seed's runs how probable the second is."""
        there = torch.tensor([[1 - p, p] for p in probabilities], dtype=torch.double)
        return Participation(0.5, there.repeat(len(self.seeds), 1))  # [R, 2]

    def run(
        self, name: str, fed: Federation, method, training, rounds: int, start, before=None
    ) -> Outcome:
        """Train the part called ``name`` from ``start`` [R, P]; a game after the pre-training
        ``before`` it, in which seeds count as diverged that had diverged there."""
        found = run(
            *(fed, method, training, rounds, start),
            first_round=self.cfg.pretraining if before else 0,
            saved=saved_at(self.folder, f"{self.task}:{name}"),
            tracker=self.followed(max(1, rounds // self.cfg.looks)),
            label=f"{who(self.seeds)}, {self.task}: {name}",
            **self.engine,
        )
        return following(before, found) if before else found

    def game(
        self, name: str, fed: Federation, plays, rounds: int, start, before, steps=1, **more
    ) -> Outcome:
        """`run` after pre-training, at a rate that anneals over all ``steps`` of a device; more: of
        `training`."""
        training = self.training(batches=steps, annealing=Annealing(rounds * steps), **more)
        return self.run(name, fed, plays, training, rounds, start, before)


class Each(Tracker):
    """Measures one run after the other."""

    def look(self, round, engine):
        lines = list(self.each(engine))
        return {name: torch.tensor([line[name] for line in lines]) for name in lines[0]}

    def each(self, engine) -> Iterator[dict[str, float]]:
        """The metrics of each run."""
        raise NotImplementedError


class Tasks(Experiment):
    """The parts of each task: ``TASK:NAME``."""

    Parts: ClassVar[type[Parts]]
    over: ClassVar[str]  # the setting whose values are the tasks, which run one after another

    def names(self, cfg) -> Mapping[str, int | None]:
        """The parts of a task, in order, and how many rounds each trains; here: as settings say."""
        return cfg.names()

    def rounds(self, cfg) -> dict[str, int | None]:
        names = self.names(cfg).items()
        return {f"{task}:{name}": n for task in getattr(cfg, self.over) for name, n in names}

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        for task in getattr(cfg, self.over):
            parts = self.Parts(cfg, task, seeds, device, folder, engine)
            for name in self.names(cfg):
                yield f"{task}:{name}", parts.outcome(name)

    def progress(self, cfg, histories: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """The curves of all parts that have one."""
        some = (self.curve(cfg, part, lines) for part, lines in histories.items() if len(lines))
        found = [lines for lines in some if lines is not None]
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame()

    def curve(self, cfg, part: str, history: pd.DataFrame) -> pd.DataFrame | None:
        """What is drawn of a part, by round; None: nothing."""
        return None


def ends(before: Outcome, times: int) -> Tensor:
    """Each seed's model, ``times`` over -> [R, P]."""
    t = before.tensors
    return before.layout.join(t["shared"], t["personal"][:, 0]).repeat_interleave(times, 0)


def labelled(lines: pd.DataFrame, ids: Sequence[dict]) -> pd.DataFrame:
    """``lines`` of runs side by side with ``ids``, in the order of a seed's runs, as columns."""
    place = lines.groupby([name for name in ("round", "seed") if name in lines]).cumcount()
    both = lines.reset_index(drop=True), pd.DataFrame(ids).iloc[place].reset_index(drop=True)
    return pd.concat(both, axis=1)


def looks(outcome: Outcome, *metrics: str) -> pd.DataFrame:
    """The history; zeros as ``metrics`` where all runs ended before the first look."""
    if len(outcome.history):
        return outcome.history
    none = pd.DataFrame({"round": 1, "seed": outcome.final.index})
    return none.assign(**dict.fromkeys(metrics, 0.0))


def by_metric(wide: pd.DataFrame, ids: Iterable[str] = ()) -> pd.DataFrame:
    """A row per metric, beside seed, round and other ``ids``; accuracies in percent."""
    long = wide.melt([name for name in ("seed", "round", *ids) if name in wide], var_name="metric")
    percent = long["metric"].str.endswith("_acc")
    return long.assign(value=long["value"].where(~percent, 100 * long["value"]))
