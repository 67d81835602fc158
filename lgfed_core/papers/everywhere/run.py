"""Every method on every task: the same rows, rounds and local epochs; a sweep of learning rates.

It is no paper's experiment. Each of five learning rates is run and recorded, and the page takes
for each task and method the one that is best on validation rows, in the mean over seeds.
"""

from collections.abc import Iterator
from dataclasses import replace
from inspect import signature

import pandas as pd
import torch
from torch import Tensor

from lgfed_core.engine import Federation, Outcome, run
from lgfed_core.methods import Method
from lgfed_core.models.layout import joined
from lgfed_core.papers.experiment import Experiment
from lgfed_core.papers.parts import Piece, following, percent, saved_at, who

from . import tasks
from .measures import Served
from .methods import METHODS, missing
from .settings import SCALES, Settings

NAME = TABLE = "everywhere"
CURVES = "everywhere_curves"
BYTES, MEGA = 4, 1e6  # of a number, of a megabyte


class Everywhere(Experiment):
    """A part for each task, method and learning rate: ``mnist:lg_fedavg:0.05``."""

    name, table = NAME, TABLE
    Settings, scales = Settings, SCALES
    chooses = frozenset({"tasks", "methods", "lrs"})

    def rounds(self, cfg) -> dict[str, int]:
        return {name: cfg.lengths(method)[-1] for name, (_, method, _) in cfg.cells.items()}

    def pieces(self, protocol: str) -> list[Piece]:
        """A piece for each task and method, with all learning rates."""
        return [
            Piece(
                *(self.name, protocol, ""),
                changes=(("tasks", (task,)), ("methods", (method,))),
                cell=(("table", TABLE), ("task", task), ("method", method)),
                like=(("table", TABLE), ("task", task)),
            )
            for task in tasks.TASKS
            for method in METHODS
            if not missing(task, method)
        ]

    def task(self, name: str, cfg: Settings) -> tasks.Task:
        """Rows, and how they are dealt."""
        return tasks.load(name, cfg.rows)

    def train(self, cfg, seeds, device, folder, **engine) -> Iterator[tuple[str, Outcome]]:
        for name, (about, method, lr) in cfg.cells.items():
            task = self.task(about, cfg)
            nets = [cfg.net(method, task, seed) for seed in seeds]
            held = [task.partition(seed) for seed in seeds]
            fed = Federation(task.data, held, nets[0], list(seeds), device, cfg.participation)
            begin = torch.stack([joined(net) for net in nets]).to(device)
            plays, (sooner, before, rounds) = cfg.method(method, nets[0]), cfg.lengths(method)
            how = dict(training=cfg.training(lr), label=f"{who(seeds)}: {name}") | engine
            saved = saved_at(folder, name)
            if not sooner:
                yield name, _phase(cfg, fed, plays, rounds, begin, saved=saved, **how)
                continue
            place = saved and saved.with_stem(f"{saved.stem}_first")
            opens = cfg.method(sooner, nets[0])
            first = _phase(cfg, fed, opens, before, begin, saved=place, keep=True, **how)
            t = first.tensors
            begin = first.layout.join(t["shared"][:, None], t["personal"])  # [R, K, P]
            then = _phase(cfg, fed, plays, rounds, begin, before, saved=saved, **how)
            yield name, _joined(first, then)

    def measured(self, cfg: Settings, part: str, outcome: Outcome) -> pd.DataFrame:
        """The tidy rows of one part: shares in percent; megabytes; the local test by round."""
        task, method, lr = cfg.cells[part]
        common = dict(task=task, method=method, lr=lr, selection="last")
        end = percent(outcome.final.reset_index(), ["seed"]).assign(table=TABLE, **common)
        if "round" not in outcome.history:
            return end
        way = percent(outcome.history, ["seed", "round"]).assign(table=CURVES, **common)
        return pd.concat([end, way], ignore_index=True)


def _phase(
    cfg: Settings,
    fed: Federation,
    plays: Method,
    rounds: int,
    start: Tensor,
    done: int = 0,
    keep: bool = False,
    **how,
) -> Outcome:
    """One method from ``start``, after ``done`` rounds of another; ``keep``: another follows it.

    Its closing metrics have the megabytes that all devices send and receive. A participant of a
    round sends what is averaged, and receives it; nobody else does. MTL averages nothing, but each
    participant needs the mean of the others' models.
    """
    grouped = fed.data.train.groups is not None and not keep
    predicts = fed.net.get_submodule(getattr(fed.net, "PREDICTS", ""))  # without one: all of it
    probed = grouped and "features" in signature(predicts.forward).parameters
    odds, looks = grouped and fed.data.classes == 2, max(1, cfg.rounds // cfg.looks)
    tracker = Served(looks, cfg.probed, probed, odds, keep)
    outcome = run(fed, plays, rounds=rounds, start=start, first_round=done, tracker=tracker, **how)
    layout, m = outcome.layout, fed.participation.cohort(fed.clients)
    numbers = layout.size_shared + layout.size_personal * plays.needs_peers
    history = outcome.history
    return replace(
        outcome,
        final=outcome.final.assign(megabytes=2 * m * numbers * BYTES / MEGA * rounds),
        history=history.assign(round=history["round"] + done) if len(history) else history,
    )


def _joined(first: Outcome, then: Outcome) -> Outcome:
    """Two phases as one: what is measured at the end, what was sent and spent in both."""
    outcome = following(first, then)
    return replace(
        outcome,
        final=then.final.assign(megabytes=first.final["megabytes"] + then.final["megabytes"]),
        history=pd.concat([first.history, then.history], ignore_index=True),
        seconds=first.seconds + then.seconds,
    )


EVERYWHERE = Everywhere()
