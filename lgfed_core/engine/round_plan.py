"""What a stack of lanes is told before its first step: all that the host knows of a round.

From there on the device is not asked, as every question waits for all that is still to be done.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lgfed_core.seeds import coin, pictures, visits

from .training import Job, Phase


class Given(NamedTuple):
    """What a stack of L lanes is told before its first step, of T batches of B rows at most.

    lanes: on the device, [L] each: the ``run``, the ``device``, its one of the ``slots`` among all
        jobs of the round, how many ``steps`` it takes, how many ``participants`` its run has.
    told: on the device, [T, ...] each: the numbers of the ``rows`` and their ``weight`` [T, L, B];
        who takes a method's step i, "turn i" [T, L]; where there are such, the ``rates`` [T, L] and
        the ``changes`` of augmentation [T, L, B, ...].
    all_on: for each of a method's steps, whether all lanes take it, [T].
    most: batches of a lane in any round, at least T.
    """

    lanes: dict[str, Tensor]
    told: dict[str, Tensor]
    all_on: list[list[bool]]
    most: int

    @property
    def batches(self) -> int:
        """T, of the lane that has most."""
        return len(self.told["rows"])


class Host:
    """Draws and lays out what the lanes of a round are `Given`."""

    def __init__(self, phase: Phase):
        self.phase = phase
        self.drawn: dict[tuple[int, ...], np.ndarray] = {}  # the order of rows, in this round
        cfg, (_, rows) = phase.training, phase.rows["train"]
        longest = max(cfg.seen(int(r.size.max())) for r in rows)
        self.most = cfg.epochs * -(-longest // cfg.batch_size)

    def begin(self) -> None:
        """A new round."""
        self.drawn.clear()

    def given(
        self, jobs: list[Job], slots: list[int], steps: list[tuple], round: int, lr: float
    ) -> Given:
        """Of the stack of ``jobs`` that train by ``steps`` (`Batched._steps`), on the device."""
        phase, cfg = self.phase, self.phase.training
        place = phase.tensors["shared"].device
        run, device = torch.tensor(jobs, device=place).T  # [L], [L]
        index, weight, active = self._plan(jobs, round)
        turns = self._turns(jobs, steps, round, active)
        steps_of = active.sum(0).to(place)
        lanes = dict(
            run=run, device=device, slots=torch.tensor(slots, device=place), steps=steps_of
        )
        told = dict(rows=index, weight=weight)
        told |= {f"turn {i}": turn.to(place) for i, turn in enumerate(turns)}
        if phase.method.needs_peers:
            many = phase.learning(jobs)
            lanes["participants"] = torch.tensor([many[r] for r, _ in jobs], device=place)
        if cfg.annealing:
            taken = phase.tensors["taken"][run, device].cpu() + active.cumsum(0) - active.int()
            told["rates"] = (lr * cfg.annealing.factor(taken)).to(place)  # [T, L], of the next step
        if cfg.augment:
            told["changes"] = self._changes(jobs, round, index.shape)
        return Given(lanes, told, [turn.all(1).tolist() for turn in turns], self.most)

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

    def _changes(self, jobs: list[Job], round: int, shape: torch.Size) -> Tensor:
        """What augmentation does to each row of `_plan` -> [T, L, B, ...]."""
        phase, (_, per_run) = self.phase, self.phase.rows["train"]
        cfg, lanes = phase.training, []
        for r, k in jobs:
            size = int(per_run[r].size[k])
            drawn = pictures(cfg.augment, phase.seeds[r], round, k, size, cfg.epochs)
            drawn = torch.from_numpy(drawn)[:, : cfg.seen(size)]  # [epochs, n_k, ...]
            width = shape[0] // cfg.epochs * cfg.batch_size
            whole = drawn.new_zeros(cfg.epochs, width, *drawn.shape[2:])
            whole[:, : drawn.shape[1]] = drawn
            lanes.append(whole.view(shape[0], cfg.batch_size, *drawn.shape[2:]))
        return torch.stack(lanes, 1).to(phase.tensors["shared"].device)

    def _visits(self, seed: int, round: int, device: int, rows: int) -> np.ndarray:
        """`seeds.visits`, once a round for all runs of a seed that share a device."""
        place = seed, round, device, rows
        if place not in self.drawn:
            self.drawn[place] = visits(*place, self.phase.training.epochs)
        return self.drawn[place]

    def _plan(self, jobs: list[Job], round: int) -> tuple[Tensor, Tensor, Tensor]:
        """Batches of all lanes, padded: row index [T, L, B], weight [T, L, B], active [T, L].

        ``active`` stays on the host.
        """
        cfg, (split, per_run) = self.phase.training, self.phase.rows["train"]
        held = [int(per_run[r].size[k]) for r, k in jobs]
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
        weight = real / count.clamp(min=1)
        place = split.x.device
        return index.to(place), weight.to(place), count[..., 0] > 0
