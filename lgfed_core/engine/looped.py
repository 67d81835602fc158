"""Lanes: how many (seed, device) pairs are worked on at once, in one of two ways.

A lane is one device in one run (seed or setting). Methods are written for a single lane; an engine
trains and tests many. `Looped` takes them one after another, spread over forked worker processes:
best on a CPU, where a device's parameters stay in a core's cache. `batched.Batched` stacks them in
one tensor: best on a GPU. Both give the same numbers to float tolerance, and `Looped` the same bits
for any number of workers, because random numbers belong to the lane. Dropout is the exception: a
stack draws its noise at once, so there it depends on what trains together.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.optim.sgd import sgd

from lgfed_core.methods import Batch, Local
from lgfed_core.seeds import coin, draw

from .dual import Dual, NotTheRows, ahead, first_layer
from .looped_evaluation import LoopedTests, Slots
from .optimiser import Adam
from .phase import Job, Lent, Phase, Ready, for_each, gradients, pulled, trainee
from .sheltered import Elsewhere, sheltered
from .visited import Visited

# A worker's own network in a flat buffer, its parameters, each run's steps on a batch, and the dual
# form of its first layer, where that holds.
Trainee = tuple[nn.Module, dict[str, Tensor], list[list[Ready]], Dual | None]


class Looped(LoopedTests):
    """One lane after another, on one thread per worker."""

    def __init__(self, phase: Phase, workers: int = 1):
        super().__init__(phase, workers)
        self.trained: list[Job] = []  # in the last round,
        self.before = phase.own([])  # and their personal parameters before it [L, P_p]
        self._flat = torch.empty(phase.layout.size_shared + phase.layout.size_personal)
        self._velocity = torch.zeros_like(self._flat)

    def train(self, jobs: list[Job], round: int, lr: float) -> None:
        """Train each device of ``jobs``; slot i of ``uploads`` receives what device i sends.

        Reads ``shared`` and ``personal``; overwrites ``personal`` (and ``velocity`` if kept).
        """
        self.trained, self.before = jobs, self.phase.own(jobs)
        many = self.phase.learning(jobs)
        calls = [(slot, *job, many[job[0]], round, lr) for slot, job in enumerate(jobs)]
        self._map(self._train_one, calls, 1)

    def ahead(self, jobs: Callable[[], list[Job]], round: int) -> None:
        """Nothing: each lane lays out its own rows, with whichever worker it is."""

    def _train_one(self, *job) -> None:
        *_, dual = self._trainee
        try:
            self._local_pass(dual, *job)
        except NotTheRows:  # once more, from the same start
            if dual:
                dual.running = False  # it forgets this pass
            self._local_pass(None, *job)

    def _local_pass(
        self, dual: Dual | None, slot: int, run: int, device: int, many: int, round: int, lr: float
    ) -> None:
        """ClientUpdate (McMahan et al., 2017, Algorithm 1), which LG-FedAvg's is but for what it
        sends (Liang et al., 2020, Algorithm 1)."""
        cfg = self.phase.training
        self._receive(run, device, round)
        local, lent = self._seen_by_losses(slot, run, device, many, round)
        steps = self._steps_of(run, device, round)
        visited = Visited(self.phase, run, device, round)
        dual = dual if dual and _in_one_block(steps, visited) else None
        steps = [dual.without_its_weights(one) for one in steps] if dual else steps
        begin = partial(self._begin, dual, steps[0].step.pull) if dual else None
        adam = Adam({id(p): p for p in local.params.values()}) if cfg.adam else None
        taken = int(self.phase.tensors["taken"][run, device]) if cfg.annealing else 0
        for number, rows in enumerate(visited.each(ahead(cfg.batch_size), begin)):
            rate = lr * cfg.annealing.factor(taken + number) if cfg.annealing else lr
            for one, given in zip(steps, for_each(steps, rows), strict=True):
                if one.step.now(number, visited.batches):
                    for what in lent:
                        what.mend()
                    loss = one.step.loss(local, Batch(*given))
                    self._move(one, self._gradients(one, loss, local, dual, rate), rate, adam)
        self._send(slot, run, device)
        if cfg.annealing:
            self.phase.tensors["taken"][run, device] = taken + visited.batches

    def _receive(self, run: int, device: int, round: int) -> None:
        """The shared parameters, and the device's own with what it keeps of its momentum."""
        t, at = self.phase.tensors, self.phase.layout.size_shared
        self._flat[:at] = t["shared"][run]
        self._flat[at:] = t["personal"][run, device]
        kept = t.get("velocity")
        self._velocity.copy_(kept[run, device]) if kept is not None else self._velocity.zero_()
        # torch.manual_seed would keep a stack trace for every accelerator that never wakes up
        seed = draw(self.phase.seeds[run], round, device)  # for dropout
        torch.default_generator.manual_seed(seed)

    def _send(self, slot: int, run: int, device: int) -> None:
        """The shared parameters; the others stay with the device."""
        t, at = self.phase.tensors, self.phase.layout.size_shared
        t["uploads"][slot] = self._flat[:at]
        t["personal"][run, device] = self._flat[at:]
        if "velocity" in t:
            t["velocity"][run, device] = self._velocity

    def _seen_by_losses(
        self, slot: int, run: int, device: int, many: int, round: int
    ) -> tuple[Local, list[Lent]]:
        """The device as its losses see it, and what of it they may write on."""
        phase, (net, params, *_) = self.phase, self._trainee
        lent = [phase.received(run, device)]
        if phase.method.needs_peers:
            lent.append(phase.others(slot))
        received, others = (*(phase.layout.views(*one.parts) for one in lent), {})[:2]
        local = Local(sheltered(net), params, received, others, many, round, Elsewhere(net, {}))
        return local, lent

    def _steps_of(self, run: int, device: int, round: int) -> list[Ready]:
        """The steps that a device takes in this round: those without a condition, or that its
        number for the round meets."""
        _, _, each, _ = self._trainee
        steps = each[run]
        if not any(one.step.when for one in steps):
            return steps
        chance = coin(self.phase.seeds[run], round, device)
        return [one for one in steps if (when := one.step.when) is None or when(chance)]

    def _begin(self, dual: Dual, pull: float, x: Tensor, first: bool, last: bool) -> None:
        """The dual form begins with the rows ``x``, the first or the last of the round."""
        keeps = "velocity" in self.phase.tensors
        dual.start(x, keeps or not first, keeps or not last, pull)

    def _gradients(
        self, one: Ready, loss: Tensor, local: Local, dual: Dual | None, rate: float
    ) -> Sequence[Tensor]:
        """Of ``loss`` and of the step's pull; the dual form moves the first layer itself."""
        if dual:
            *grads, back = gradients(loss, [*one.params, dual.outputs()])
            dual.step(back, rate)
        else:
            grads = [*gradients(loss, one.params)]
        if not one.step.pull:
            return grads
        return pulled(grads, one.params, [local.received[n] for n in one.names], one.step.pull)

    def _move(self, one: Ready, grads: Sequence[Tensor], rate: float, adam: Adam | None) -> None:
        """The step's parameters, against their gradients."""
        cfg = self.phase.training
        if adam:
            for param, grad in zip(one.params, grads, strict=True):
                grad = grad + cfg.weight_decay * param
                param.detach().sub_(adam.change(id(param), grad), alpha=rate)
            return
        sgd(
            one.params,
            [g.contiguous() for g in grads],  # the fused kernel ignores strides
            one.momenta,
            fused=True,
            weight_decay=cfg.weight_decay,
            momentum=cfg.momentum,
            lr=rate,
            dampening=0.0,
            nesterov=bool(cfg.nesterov),
            maximize=False,
        )

    @cached_property
    def _trainee(self) -> Trainee:
        """Made when it is first asked for."""
        at, phase, dual = self.phase.layout.size_shared, self.phase, None
        net = trainee(phase)
        values = phase.layout.views(self._flat[:at], self._flat[at:])
        momenta = phase.layout.views(self._velocity[:at], self._velocity[at:])
        Slots(net).fill(values)
        held, each = momenta if phase.training.momentum else {}, []
        for method in phase.methods:
            each.append([Ready.of(step, net, held) for step in method.steps(net)])
        if name := first_layer(phase):
            layer = cast(nn.Linear, net.get_submodule(name))
            dual = Dual(layer, momenta[f"{name}.weight"], phase.training)
        return net, dict(net.named_parameters()), each, dual


def _in_one_block(steps: list[Ready], visited: Visited) -> bool:
    """Whether a step that pulls towards the weights as they came never meets them changed."""
    cfg = visited.cfg
    return not steps[0].step.pull or (cfg.epochs == 1 and visited.rows <= ahead(cfg.batch_size))
