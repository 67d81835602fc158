"""Lanes as one stack of tensors: every device of every run takes its step together.

The loss of one lane is lifted by `torch.func.vmap`; the sum over lanes has, for each lane, that
lane's own gradient. Lanes with fewer rows than others are padded, and rest once they are done.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from lgfed_core.errors import SettingsError
from lgfed_core.methods import Batch, Local, Method
from lgfed_core.seeds import coin, draw, pictures, visits

from .adam import Adam
from .graphs import Graphs
from .identity import told_apart
from .looped import Looped
from .stacked_tests import StackedTests, filled
from .training import Job, Lent, Phase, for_each, gradients, moving, normalises, pulled, trainee


class Given(NamedTuple):
    """What a stack of lanes is told before its first step; on the device, and ``turns`` off it."""

    run: Tensor  # [L]
    device: Tensor  # [L]
    slots: Tensor  # [L], among all jobs of the round
    rows: Tensor  # [T, L, B], their numbers
    weight: Tensor  # [T, L, B]
    steps: Tensor  # [L], how many batches each has
    turns: list[tuple]  # of `Batched._turns`
    rates: Tensor | None  # [T, L]
    changes: Tensor | None  # [T, L, B, ...], of augmentation
    participants: Tensor | None  # [L]


class Batched(StackedTests):
    """All lanes at once, ``at_once`` of them where only testing is concerned."""

    def __init__(self, phase: Phase, at_once: int = 128):
        self.phase = phase
        self.at_once = at_once
        self.most: int = 2**31  # lanes that train together; fewer once they did not fit
        self.trained: list[Job] = []  # in the last round,
        self.before = phase.own([])  # and their personal parameters before it [L, P_p]
        self.drawn: dict[tuple[int, ...], np.ndarray] = {}  # the order of rows, in this round
        self.trainee = trainee(phase)
        self.graphs = Graphs(phase.tensors["shared"].device)
        self.statistics = [
            n for n in phase.layout.shapes if n not in dict(phase.net.named_parameters())
        ]
        names = [told_apart(method) for method in phase.methods]
        kinds = [i for i, name in enumerate(names) if names.index(name) == i]  # a run of each
        self.stacks = [  # runs of one method, and its steps
            ({r for r, name in enumerate(names) if name == names[i]}, self._steps(phase.methods[i]))
            for i in kinds
        ]

    def train(self, jobs: list[Job], round: int, lr: float) -> None:
        """Train each device of ``jobs``; see `looped.Looped.train`."""
        self.trained, self.before = jobs, self.phase.own(jobs)
        self.drawn.clear()
        place = self.phase.tensors["shared"].device
        with torch.random.fork_rng(devices=[place] if place.type == "cuda" else []):
            for runs, steps in self.stacks:
                slots = [slot for slot, (r, _) in enumerate(jobs) if r in runs]
                if slots:
                    self._fitting([jobs[slot] for slot in slots], slots, steps, round, lr)

    def _fitting(
        self, jobs: list[Job], slots: list[int], steps: list[tuple], round: int, lr: float
    ) -> None:
        """Train a stack, in parts where the memory of the device does not take all of it.

        What does not fit leaves nothing behind, so that a part begins where it would have begun.
        Dropout is drawn for a part together: its numbers depend on how many lanes fit.
        """
        done = 0
        while done < len(jobs):
            now = slice(done, done + min(self.most, len(jobs)))
            again = (done,) if done else ()
            torch.manual_seed(draw(self.phase.seeds[jobs[done][0]], round, *again))
            try:
                self._train(jobs[now], slots[now], steps, round, lr)
                done = now.stop
            except torch.OutOfMemoryError as error:
                lanes = len(jobs[now])
                if lanes == 1:
                    raise SettingsError(f"not even one device's training fits: {error}") from error
                self.most = -(-lanes // 2)
            if done < now.stop:  # by now the error holds no tensors any more
                torch.cuda.empty_cache()

    def _train(
        self, jobs: list[Job], slots: list[int], steps: list[tuple], round: int, lr: float
    ) -> None:
        """One stack: what the host knows goes to the device first, which then is not asked."""
        phase, cfg = self.phase, self.phase.training
        place = phase.tensors["shared"].device
        run, device = torch.tensor(jobs, device=place).T  # [L], [L]
        index, weight, active = self._plan(jobs, round)
        rates = None
        if cfg.annealing:
            taken = phase.tensors["taken"][run, device].cpu() + active.cumsum(0) - active.int()
            rates = (lr * cfg.annealing.factor(taken)).to(place)  # [T, L], of the next step
        given = Given(
            run,
            device,
            torch.tensor(slots, device=place),
            index,
            weight,
            active.sum(0).to(place),
            self._turns(jobs, steps, round, active),
            rates,
            self._changes(jobs, round, index.shape) if cfg.augment else None,
            self._participants(jobs) if phase.method.needs_peers else None,
        )
        self._play(given, steps, round, lr)

    def _play(self, given: Given, steps: list[tuple], round: int, lr: float) -> None:
        """The steps of one stack, on the device alone."""
        phase, cfg, at = self.phase, self.phase.training, self.phase.layout.size_shared
        t, split = phase.tensors, phase.rows["train"][0]
        run, device, index = given.run, given.device, given.rows
        lent = [phase.received(run, device)]
        received = phase.layout.views(*lent[0].parts)
        flat = torch.cat(lent[0].parts, 1)  # [L, P]
        slot = run * phase.devices("train") + device  # [L], in velocity [R * K, P]
        velocity = torch.zeros_like(flat)
        if cfg.keep_momentum:
            velocity = t["velocity"].flatten(0, 1).index_select(0, slot)
        values, momenta = (
            phase.layout.views(v[:, :at], v[:, at:]) for v in (flat, velocity)
        )  # name -> [L, ...]; views, so that flat and velocity change with them
        peers: tuple[dict[str, Tensor], int | Tensor] = ({}, 1)
        if given.participants is not None:
            many = given.participants
            lent += [phase.others(given.slots), Lent(lambda: (many.clone(),))]
            peers = phase.layout.views(*lent[1].parts), lent[2].parts[0]
        adam = Adam(values, len(run)) if cfg.adam else None

        taken = torch.zeros(1, dtype=torch.long, device=index.device)
        all_on = all(all(everyone) for _, everyone in given.turns)

        def at_step(told: Tensor) -> Tensor:
            return told.index_select(0, taken)[0]  # [T, ...] -> [...]

        def step() -> None:
            chosen = at_step(index)  # [L, B]
            x, y = split.x[chosen], split.y[chosen]  # [L, B, ...], [L, B]
            if "labels" in t:
                y = t["labels"][run[:, None], chosen].long()
            if cfg.augment and given.changes is not None:
                x = cfg.augment.apply(x, at_step(given.changes))
            rows = (x, y, at_step(given.weight))
            if split.groups is not None:
                rows += (split.groups[chosen],)  # [L, B, g]
            todo = zip(steps, given.turns, for_each(steps, rows), strict=True)
            for (loss, moves, _, pull), (turn, _), own in todo:
                on = at_step(turn)  # [L]
                leaves = {n: v.detach().requires_grad_(n in moves) for n, v in values.items()}
                leaves |= {n: values[n].clone() for n in self.statistics}  # vmap needs them dense
                lane = partial(self._loss, loss, round)
                axes = (0, 0, 0, 0 if phase.method.needs_peers else None)
                for one in lent:
                    one.mend()
                inputs = leaves, received, own, peers
                losses = vmap(lane, axes, randomness="different")(*inputs)  # [L]
                grads = gradients(losses.sum(), [leaves[n] for n in moves])
                if pull:
                    now, then = ([of[n] for n in moves] for of in (values, received))
                    grads = pulled(grads, now, then, pull)
                for name, grad in zip(moves, grads, strict=True):
                    value, momentum = values[name], momenta[name]
                    if cfg.weight_decay:
                        grad = grad + cfg.weight_decay * value
                    if adam:
                        value.sub_(adam.change(name, grad, on), alpha=lr)
                        continue
                    before = momentum if all_on else momentum.clone()
                    momentum.mul_(cfg.momentum).add_(grad)
                    change = grad + cfg.momentum * momentum if cfg.nesterov else momentum
                    if not all_on:
                        change = torch.where(_wide(on, change), change, 0)  # it may be NaN
                        momentum.copy_(torch.where(_wide(on, grad), momentum, before))
                    if given.rates is not None:
                        value.sub_(change * _wide(at_step(given.rates), grad))
                    else:
                        value.sub_(change, alpha=lr)
                for name in self.statistics:
                    value = values[name]
                    value.copy_(torch.where(_wide(on, value), leaves[name], value))
            taken.add_(1)

        self.graphs.play(step, len(index))
        t["uploads"].index_copy_(0, given.slots, flat[:, :at])
        t["personal"][run, device] = flat[:, at:]
        if cfg.keep_momentum:
            t["velocity"].flatten(0, 1).index_copy_(0, slot, velocity)
        if cfg.annealing:
            t["taken"][run, device] += given.steps.to(flat)

    def close(self) -> None:
        """Nothing to end."""

    def _steps(self, method: Method) -> list[tuple]:
        """A method's steps: (loss, names of the parameters that move, when, pull)."""
        net, steps = self.phase.net, method.steps(self.phase.net)
        return [(loss, moving(net, names), when, pull) for loss, names, when, pull in steps]

    def _turns(
        self, jobs: list[Job], steps: list[tuple], round: int, active: Tensor
    ) -> list[tuple]:
        """For each of a method's ``steps`` who takes it, bool [T, L], and whether all do, [T].

        Known on the host before the round begins, so that a GPU is never asked.
        """
        asked = any(when for _, _, when, _ in steps)
        lots = [coin(self.phase.seeds[r], round, k) if asked else 1.0 for r, k in jobs]
        place, plans = self.phase.tensors["shared"].device, []
        for _, _, when, _ in steps:
            plays = torch.tensor([when is None or when(chance) for chance in lots])
            turn = active & plays  # [T, L]
            plans.append((turn.to(place), turn.all(1).tolist()))
        return plans

    def _loss(
        self, loss, round: int, params: dict, received: dict, rows: tuple, peers: tuple
    ) -> Tensor:
        """``loss`` of one lane; ``rows`` make its `Batch`, ``peers`` the rest of its `Local`."""

        net = filled(self.trainee, params)
        values = {n: v for n, v in params.items() if n not in self.statistics}
        others, participants = peers
        return loss(Local(net, values, received, others, participants, round), Batch(*rows))

    def _participants(self, jobs: list[Job]) -> Tensor:
        """For each lane the participants of its run [L]."""
        many = self.phase.learning(jobs)
        place = self.phase.tensors["shared"].device
        return torch.tensor([many[run] for run, _ in jobs], device=place)

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
        if normalises(self.trainee) and ((count > 0) & (count < cfg.batch_size)).any():
            raise SettingsError(
                "batched lanes pad a last batch, and batch normalisation would count the padding: "
                "limit batches, choose a batch_size that divides every device's rows, or lanes="
                '"looped"'
            )
        weight = real / count.clamp(min=1)
        place = split.x.device
        return index.to(place), weight.to(place), count[..., 0] > 0


Engine = Looped | Batched  # what trains and tests lanes


def _wide(lanes: Tensor, like: Tensor) -> Tensor:
    """``lanes`` [L] as [L, 1, ...], to go with ``like`` [L, ...]."""
    return lanes.view(-1, *[1] * (like.dim() - 1))
