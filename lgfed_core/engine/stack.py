"""Lanes that take their steps together, in tensors that stay where they are.

A graph plays a step on the very tensors that it was recorded with. So a stack is made once, each
round copies into it what it is told, its number and a falling rate with the rest, and one recording
serves for as long as the shapes stay. A loss that asks for the round's number is recorded in each
anew, unless its method takes a tensor of it (`Method.round_as_tensor`).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lgfed_core.methods import Step

from .losses import Losses
from .optimiser import Adam
from .phase import Lent, Phase, for_each, gradients, pulled
from .round_plan import Given

Moves = tuple[list[str], Step]  # names of the parameters that move, and the step of a method


class Stack:
    """L lanes of ``phase``, which take ``steps`` with each batch."""

    def __init__(
        self,
        phase: Phase,
        losses: Losses,
        steps: Sequence[Moves],
        given: Given,
        round: int,
        lr: float,
    ):
        self.phase, self.losses, self.steps = phase, losses, steps
        self.lr = lr
        self.all_on = _all_on(given)
        layout, at = phase.layout, phase.layout.size_shared
        self.lanes = {n: t.clone() for n, t in given.lanes.items()}  # [L] each
        self.told = {n: t.new_empty(given.most, *t.shape[1:]) for n, t in given.told.items()}
        run, device = self.lanes["run"], self.lanes["device"]
        self.lent = [phase.received(run, device)]
        self.received = layout.views(*self.lent[0].parts)
        self.flat = torch.cat(self.lent[0].parts, 1)  # [L, P]
        self.velocity = torch.zeros_like(self.flat)
        self.values, self.momenta = (
            layout.views(v[:, :at], v[:, at:]) for v in (self.flat, self.velocity)
        )  # name -> [L, ...]; views, so that flat and velocity change with them
        self.peers: tuple[dict[str, Tensor], int | Tensor] = ({}, 1)
        if "participants" in self.lanes:
            many, slots = self.lanes["participants"], self.lanes["slots"]
            self.lent += [phase.others(slots), Lent(lambda: (many.clone(),))]
            self.peers = layout.views(*self.lent[1].parts), self.lent[2].parts[0]
        falls = phase.training.decay is not None
        self.rate = self.flat.new_full((), lr) if falls else None  # of this round
        as_tensor = phase.method.round_as_tensor
        self.round: int | Tensor = run.new_full((), round) if as_tensor else round
        self.adam = Adam(self.values, len(run)) if phase.training.adam else None
        self.taken = torch.zeros(1, dtype=torch.long, device=run.device)  # steps of this round
        self.fresh = True

    def fits(self, given: Given, round: int, lr: float) -> bool:
        """Whether a recording for what it has been told serves for what is ``given`` now."""
        return (
            _shapes(self.lanes) == _shapes(given.lanes)
            and _shapes(self.told, 1) == _shapes(given.told, 1)
            and (lr == self.lr or self.rate is not None)
            and (isinstance(self.round, Tensor) or round == self.round or not self.losses.asked)
            and all(now or not then for then, now in zip(self.all_on, _all_on(given), strict=True))
        )

    def begin(self, given: Given, round: int, lr: float) -> None:
        """Take what a round is ``given``, and start from what its devices receive."""
        if isinstance(self.round, Tensor):
            self.round.fill_(round)
        else:
            self.round = round
        if self.rate is not None:
            self.rate.fill_(lr)
        for name, value in given.lanes.items():
            self.lanes[name].copy_(value)
        for name, value in given.told.items():
            self.told[name][: len(value)].copy_(value)
        self.each = given.all_on
        if not self.fresh:
            for one in self.lent:
                one.renew()
            torch.cat(self.lent[0].parts, 1, out=self.flat)
            self.velocity.zero_()
            if self.adam:
                self.adam.forget()
        if self.phase.training.keep_momentum:
            kept = self.phase.tensors["velocity"].flatten(0, 1)
            torch.index_select(kept, 0, self._places(), out=self.velocity)
        self.taken.zero_()
        self.fresh = False

    def step(self, number: int | None) -> None:
        """One batch of every lane: the one of ``number``, or of the counter, as of a graph."""
        phase, cfg, split = self.phase, self.phase.training, self.phase.rows["train"][0]
        run, values, told = self.lanes["run"], self.values, self._told
        statistics = self.losses.statistics
        chosen = told("rows")  # [L, B]
        x, y = split.x[chosen], split.y[chosen]  # [L, B, ...], [L, B]
        if "labels" in phase.tensors:
            y = phase.tensors["labels"][run[:, None], chosen].long()
        if cfg.augment and "changes" in self.told:
            x = cfg.augment.apply(x, told("changes"))
        rows = (x, y, told("weight"))
        if split.groups is not None:
            rows += (split.groups[chosen],)  # [L, B, g]
        for i, own in enumerate(for_each(self.steps, rows)):
            moves, step = self.steps[i]
            on = told(f"turn {i}")  # [L]
            all_on = self.all_on[i] if number is None else self.each[i][number]
            leaves = {n: v.detach().requires_grad_(n in moves) for n, v in values.items()}
            leaves |= {n: values[n].clone() for n in statistics}  # vmap needs them dense
            for one in self.lent:
                one.mend()
            given = leaves, self.received, own, self.peers
            losses = self.losses.of(step.loss, self.round, *given)  # [L]
            grads = gradients(losses.sum(), [leaves[n] for n in moves])
            if step.pull:
                now, then = ([of[n] for n in moves] for of in (values, self.received))
                grads = pulled(grads, now, then, step.pull)
            for name, grad in zip(moves, grads, strict=True):
                self._move(name, grad, on, all_on)
            for name in statistics:
                value = values[name]
                value.copy_(torch.where(_wide(on, value), leaves[name], value))
        self.taken.add_(1)

    def end(self) -> None:
        """Hand in what has been learnt."""
        t, cfg, at = self.phase.tensors, self.phase.training, self.phase.layout.size_shared
        run, device = self.lanes["run"], self.lanes["device"]
        t["uploads"].index_copy_(0, self.lanes["slots"], self.flat[:, :at])
        t["personal"][run, device] = self.flat[:, at:]
        if cfg.keep_momentum:
            t["velocity"].flatten(0, 1).index_copy_(0, self._places(), self.velocity)

    def _places(self) -> Tensor:
        """Of the lanes [L] among all devices of all runs [R * K]."""
        return self.lanes["run"] * self.phase.devices("train") + self.lanes["device"]

    def _told(self, name: str) -> Tensor:
        """Of this step: [T, ...] -> [...]."""
        return self.told[name].index_select(0, self.taken)[0]

    def _move(self, name: str, grad: Tensor, on: Tensor, all_on: bool) -> None:
        """A parameter [L, ...] against its gradient, of the lanes that are ``on`` [L]."""
        cfg, value, momentum = self.phase.training, self.values[name], self.momenta[name]
        if cfg.weight_decay:
            grad = grad + cfg.weight_decay * value
        if self.adam:
            self._down(value, self.adam.change(name, grad, on))
            return
        before = momentum if all_on else momentum.clone()
        momentum.mul_(cfg.momentum).add_(grad)
        change = grad + cfg.momentum * momentum if cfg.nesterov else momentum
        if not all_on:
            change = torch.where(_wide(on, change), change, 0)  # it may be NaN
            momentum.copy_(torch.where(_wide(on, grad), momentum, before))
        self._down(value, change)

    def _down(self, value: Tensor, change: Tensor) -> None:
        """A parameter [L, ...] by its ``change``, times the rate."""
        if "rates" in self.told:
            value.sub_(change * _wide(self._told("rates"), change))
        elif self.rate is not None:
            value.addcmul_(change, self.rate, value=-1)  # to the bits of the next line
        else:
            value.sub_(change, alpha=self.lr)


def _all_on(given: Given) -> list[bool]:
    """Of each of a method's steps, whether every lane takes it with every batch."""
    return [all(everyone) for everyone in given.all_on]


def _shapes(tensors: dict[str, Tensor], since: int = 0) -> dict[str, torch.Size]:
    return {name: t.shape[since:] for name, t in tensors.items()}


def _wide(lanes: Tensor, like: Tensor) -> Tensor:
    """``lanes`` [L] as [L, 1, ...], to go with ``like`` [L, ...]."""
    return lanes.view(-1, *[1] * (like.dim() - 1))
