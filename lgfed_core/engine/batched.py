"""Lanes as one stack of tensors: every device of every run takes its step together.

The loss of one lane is lifted by `torch.func.vmap`; the sum over lanes has, for each lane, that
lane's own gradient. Lanes with fewer rows than others are padded, and rest once they are done.
"""

from functools import partial

import torch
from torch import Tensor
from torch.func import vmap

from lgfed_core.errors import SettingsError
from lgfed_core.methods import Batch, Local, Method
from lgfed_core.seeds import draw

from .adam import Adam
from .given import Given, Host
from .graphs import Graphs
from .identity import told_apart
from .looped import Looped
from .stacked_tests import StackedTests, filled
from .training import Job, Lent, Phase, for_each, gradients, moving, pulled, trainee


class Batched(StackedTests):
    """All lanes at once, ``at_once`` of them where only testing is concerned."""

    def __init__(self, phase: Phase, at_once: int = 128):
        self.phase = phase
        self.at_once = at_once
        self.most: int = 2**31  # lanes that train together; fewer once they did not fit
        self.trained: list[Job] = []  # in the last round,
        self.before = phase.own([])  # and their personal parameters before it [L, P_p]
        self.trainee = trainee(phase)
        self.host = Host(phase)
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
        self.host.begin()
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
                self.graphs.forget()
            if done < now.stop:  # by now the error holds no tensors any more
                torch.cuda.empty_cache()

    def _train(
        self, jobs: list[Job], slots: list[int], steps: list[tuple], round: int, lr: float
    ) -> None:
        """One stack: what the host knows goes to the device first, which then is not asked."""
        self._play(self.host.given(jobs, slots, steps, round, lr), steps, round, lr)

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

        def at_step(told: Tensor) -> Tensor:
            return told.index_select(0, taken)[0]  # [T, ...] -> [...]

        def step(number: int | None) -> None:  # None: whichever it is, as of a graph
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
            for (loss, moves, _, pull), (turn, everyone), own in todo:
                on, all_on = at_step(turn), all(everyone) if number is None else everyone[number]
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

    def _loss(
        self, loss, round: int, params: dict, received: dict, rows: tuple, peers: tuple
    ) -> Tensor:
        """``loss`` of one lane; ``rows`` make its `Batch`, ``peers`` the rest of its `Local`."""

        net = filled(self.trainee, params)
        values = {n: v for n, v in params.items() if n not in self.statistics}
        others, participants = peers
        return loss(Local(net, values, received, others, participants, round), Batch(*rows))


Engine = Looped | Batched  # what trains and tests lanes


def _wide(lanes: Tensor, like: Tensor) -> Tensor:
    """``lanes`` [L] as [L, 1, ...], to go with ``like`` [L, ...]."""
    return lanes.view(-1, *[1] * (like.dim() - 1))
