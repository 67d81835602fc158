"""What a stack of lanes is told before its first step: all that the host knows of a round.

From there on the device is not asked, as every question waits for all that is still to be done.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lgfed_core.seeds import coin, pictures, visits

from .memory import to_device
from .phase import Job, Phase, places


class Given(NamedTuple):
    """What a stack of L lanes is told before its first step, of T batches of B rows at most.

    lanes: on the device, [L] each: the ``run``, the ``device``, its one of the ``slots`` among all
        jobs of the round, how many ``participants`` its run has.
    told: on the device, [T, ...] each: the numbers of the ``rows`` and their ``weight`` [T, L, B];
        who takes a method's step i, "turn i" [T, L]; where there are such, the ``rates`` [T, L] and
        the ``changes`` of augmentation [T, L, B, ...].
    all_on: for each of a method's steps, whether all lanes take it, [T].
    most: batches of a lane in any round, at least T.
    jobs, steps: whose lanes they are, and how many steps each takes, [L] on the host.
    """

    lanes: dict[str, Tensor]
    told: dict[str, Tensor]
    all_on: list[list[bool]]
    most: int
    jobs: list[Job]
    steps: Tensor

    @property
    def batches(self) -> int:
        """T, of the lane that has most."""
        return len(self.told["rows"])


class Plan(NamedTuple):
    """What L lanes visit in a round, padded; on the host."""

    rows: Tensor  # their numbers [T, L, B]
    weight: Tensor  # [T, L, B]
    active: Tensor  # whether a lane still has rows [T, L]
    changes: dict[str, Tensor]  # of augmentation, if there is any, [T, L, B, ...]


class Host:
    """Draws and lays out what the lanes of a round are `Given`."""

    def __init__(self, phase: Phase):
        self.phase = phase
        self.drawn: dict[tuple[int, ...], np.ndarray] = {}  # the order of rows, in this round
        self.soon: dict[tuple, Plan] = {}  # of the next round, by its number and its jobs
        cfg, (_, rows) = phase.training, phase.rows["train"]
        self.held = [r.size.tolist() for r in rows]  # how many rows, of each run's devices
        self.most = max(cfg.batches_of(max(held)) for held in self.held)

    def begin(self) -> None:
        """A new round."""
        self.drawn.clear()

    def ahead(self, stacks: list[list[Job]], round: int) -> None:
        """Lay out ``round`` before it begins, for those who will train if nobody stops."""
        self.begin()
        self.soon = {(round, *jobs): self._plan(jobs, round) for jobs in stacks}

    def over(self, given: Given) -> None:
        """Count the steps that lanes have taken, where their rate falls with them."""
        if "taken" in self.phase.tensors:
            self.phase.tensors["taken"][places(given.jobs)] += given.steps

    def given(
        self, jobs: list[Job], slots: list[int], steps: list[tuple], round: int, lr: float
    ) -> Given:
        """Of the stack of ``jobs`` that train by ``steps`` (`Batched._steps`), on the device."""
        phase, cfg = self.phase, self.phase.training
        place = phase.tensors["shared"].device
        plan = self.soon.pop((round, *jobs), None) or self._plan(jobs, round)
        active = plan.active
        turns = self._turns(jobs, steps, round, active)
        run, device = places(jobs)
        lanes = dict(run=run, device=device, slots=torch.tensor(slots))
        told = dict(rows=plan.rows, weight=plan.weight) | plan.changes
        told |= {f"turn {i}": turn for i, turn in enumerate(turns)}
        if phase.method.needs_peers:
            many = phase.learning(jobs)
            lanes["participants"] = torch.tensor([many[r] for r, _ in jobs])
        if cfg.annealing:
            taken = phase.tensors["taken"][run, device] + active.cumsum(0) - active.int()
            told["rates"] = lr * cfg.annealing.factor(taken)  # [T, L], of the next step
        lanes, told = ({n: to_device(t, place) for n, t in some.items()} for some in (lanes, told))
        all_on = [turn.all(1).tolist() for turn in turns]
        return Given(lanes, told, all_on, self.most, jobs, active.sum(0))

    def _turns(
        self, jobs: list[Job], steps: list[tuple], round: int, active: Tensor
    ) -> list[Tensor]:
        """For each of a method's ``steps`` who takes it, bool [T, L].

        Known on the host before the round begins, so that a GPU is never asked.
        """
        asked = any(step.when for *_, step in steps)
        lots = [coin(self.phase.seeds[r], round, k) if asked else 1.0 for r, k in jobs]
        at, batches = active.cumsum(0) - 1, active.sum(0).double()  # [T, L], [L]
        plans = []
        for *_, step in steps:
            plays = torch.tensor([step.when is None or step.when(chance) for chance in lots])
            plans.append(active & plays & step.now(at, batches))
        return plans

    def _changes(self, jobs: list[Job], round: int, batches: int) -> Tensor:
        """What augmentation does to each row of `_plan` -> [T, L, B, ...]."""
        cfg, lanes = self.phase.training, []
        for r, k in jobs:
            size = self.held[r][k]
            drawn = pictures(cfg.augment, self.phase.seeds[r], round, k, size, cfg.epochs)
            drawn = torch.from_numpy(drawn)[:, : cfg.seen(size)]  # [epochs, n_k, ...]
            width = batches // cfg.epochs * cfg.batch_size
            whole = drawn.new_zeros(cfg.epochs, width, *drawn.shape[2:])
            whole[:, : drawn.shape[1]] = drawn
            lanes.append(whole.view(batches, cfg.batch_size, *drawn.shape[2:]))
        return torch.stack(lanes, 1)

    def _visits(self, seed: int, round: int, device: int, rows: int) -> np.ndarray:
        """`seeds.visits`, once a round for all runs of a seed that share a device."""
        place = seed, round, device, rows
        if place not in self.drawn:
            self.drawn[place] = visits(*place, self.phase.training.epochs)
        return self.drawn[place]

    def _plan(self, jobs: list[Job], round: int) -> Plan:
        cfg, (_, per_run) = self.phase.training, self.phase.rows["train"]
        held = [self.held[r][k] for r, k in jobs]
        sizes = np.array([cfg.seen(n) for n in held])
        width = cfg.batch_size * -(-sizes.max() // cfg.batch_size)  # an epoch, in whole batches
        index = np.zeros((len(jobs), cfg.epochs, width), dtype=np.int64)
        for lane, (r, k) in enumerate(jobs):
            order = self._visits(self.phase.seeds[r], round, k, held[lane])[:, : sizes[lane]]
            mine = per_run[r].of(k).cpu().numpy()
            padding = mine if held[lane] else per_run[r].of(int(per_run[r].size.argmax())).cpu()
            index[lane] = int(padding[0])  # a row that somebody trains on
            index[lane, :, : sizes[lane]] = mine[order]
        real = np.broadcast_to(np.arange(width) < sizes[:, None, None], index.shape)
        shape = (len(jobs), -1, cfg.batch_size)  # [L, T, B]
        real = torch.from_numpy(real.reshape(shape).copy()).swapaxes(0, 1)
        index = torch.from_numpy(index.reshape(shape)).swapaxes(0, 1)
        count = real.sum(2, keepdim=True)  # [T, L, 1]
        changes = dict(changes=self._changes(jobs, round, len(index))) if cfg.augment else {}
        return Plan(index, real / count.clamp(min=1), count[..., 0] > 0, changes)
