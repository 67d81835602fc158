"""Lanes: how many (seed, device) pairs are worked on at once, in one of two ways.

A lane is one device in one run (seed or setting). Methods are written for a single lane; an engine
trains and tests many. `Looped` takes them one after another, spread over forked worker processes:
best on a CPU, where a device's parameters stay in a core's cache. `batched.Batched` stacks them in
one tensor: best on a GPU. Both give the same numbers to float tolerance, and `Looped` the same bits
for any number of workers, because random numbers belong to the lane. Dropout is the exception: a
stack draws its noise at once, so there it depends on what trains together.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.optim.sgd import sgd

from lgfed_core.methods import Batch, Local
from lgfed_core.seeds import coin, draw, pictures, visits

from .adam import Adam
from .dual import Dual, NotTheRows, ahead, first_layer
from .looped_evaluation import LoopedTests, Slots
from .training import Job, Phase, Ready, for_each, gradients, moving, pulled, sheltered, trainee

# A worker's own network in a flat buffer, its parameters, each run's steps on a batch.
Trainee = tuple[nn.Module, dict[str, Tensor], list[list[Ready]]]


class Looped(LoopedTests):
    """One lane after another, on one thread per worker."""

    def __init__(self, phase: Phase, workers: int = 1):
        super().__init__(phase, workers)
        self.trained: list[Job] = []  # in the last round,
        self.before = phase.own([])  # and their personal parameters before it [L, P_p]
        self._flat = torch.empty(phase.layout.size_shared + phase.layout.size_personal)
        self._velocity = torch.zeros_like(self._flat)
        self._own: Trainee | None = None
        self._dual: Dual | None = None  # of the trainee's first layer, where that holds

    def train(self, jobs: list[Job], round: int, lr: float) -> None:
        """Train each device of ``jobs``; slot i of ``uploads`` receives what device i sends.

        Reads ``shared`` and ``personal``; overwrites ``personal`` (and ``velocity`` if kept).
        """
        self.trained, self.before = jobs, self.phase.own(jobs)
        many = self.phase.learning(jobs)
        calls = [(slot, *job, many[job[0]], round, lr) for slot, job in enumerate(jobs)]
        self._map(self._train_one, calls, 1)

    def _train_one(self, *job) -> None:
        self._trainee()
        dual = self._dual
        try:
            self._local_pass(dual, *job)
        except NotTheRows:  # once more, from the same start
            if dual:
                dual.stop()
            self._local_pass(None, *job)

    def _local_pass(
        self, dual: Dual | None, slot: int, run: int, device: int, many: int, round: int, lr: float
    ) -> None:
        phase, split_at = self.phase, self.phase.layout.size_shared
        t = phase.tensors
        self._flat[:split_at] = t["shared"][run]
        self._flat[split_at:] = t["personal"][run, device]
        kept, keeps = t.get("velocity"), "velocity" in t
        self._velocity.copy_(kept[run, device]) if kept is not None else self._velocity.zero_()
        net, params, each = self._trainee()
        steps = each[run]
        # torch.manual_seed would keep a stack trace for every accelerator that never wakes up
        torch.default_generator.manual_seed(draw(phase.seeds[run], round, device))  # for dropout
        lent = [phase.received(run, device)]
        if phase.method.needs_peers:
            lent.append(phase.others(slot))
        received, others = (*(phase.layout.views(*one.parts) for one in lent), {})[:2]
        local = Local(sheltered(net), params, received, others, many, round)
        if any(one.step.when for one in steps):
            chance = coin(phase.seeds[run], round, device)
            steps = [one for one in steps if (when := one.step.when) is None or when(chance)]

        split, rows = phase.rows["train"]
        labels = t["labels"][run].long() if "labels" in t else split.y
        mine = rows[run].of(device)
        cfg = phase.training
        place = phase.seeds[run], round, device, len(mine), cfg.epochs
        seen = cfg.seen(len(mine))
        order = torch.from_numpy(visits(*place))[:, :seen]  # [epochs, n_k], or fewer
        changes = torch.from_numpy(pictures(cfg.augment, *place)) if cfg.augment else None
        taken = int(t["taken"][run, device]) if cfg.annealing else 0
        adam = Adam({id(p): p for p in params.values()}) if cfg.adam else None
        fetched = ahead(cfg.batch_size)
        if dual and steps[0].step.pull and (cfg.epochs > 1 or seen > fetched):
            dual = None  # after a block its weights are not those any more that pull
        if dual:
            steps = [dual.without_its_weights(one) for one in steps]
        each_epoch = -(-seen // cfg.batch_size)  # batches
        for epoch, mine_now in enumerate(mine[order]):  # [n_k] rows of the data set
            for at in range(0, seen, cfg.batch_size):
                first = at % fetched  # row of those fetched together
                if not first:
                    soon = mine_now[at : at + fetched]
                    x_soon, y_soon = split.x[soon], labels[soon]
                    groups_soon = None if split.groups is None else split.groups[soon]
                    if dual:
                        moving, last = (
                            epoch + at > 0,
                            epoch + 1 == cfg.epochs and at + fetched >= seen,
                        )
                        pull = steps[0].step.pull
                        dual.start(x_soon, moving or keeps, keeps or not last, pull)
                batch = slice(first, first + cfg.batch_size)
                x = x_soon[batch]
                if cfg.augment and changes is not None:
                    x = cfg.augment.apply(x, changes[epoch, at : at + cfg.batch_size])
                groups = None if groups_soon is None else groups_soon[batch]
                now = for_each(steps, (x, y_soon[batch], None, groups))
                lr_now = lr * cfg.annealing.factor(taken) if cfg.annealing else lr
                taken += 1
                number = epoch * each_epoch + at // cfg.batch_size
                for (step, names, moves, momenta), given in zip(steps, now, strict=True):
                    if not step.now(number, cfg.epochs * each_epoch):
                        continue
                    for one in lent:
                        one.mend()
                    value = step.loss(local, Batch(*given))
                    if dual:
                        *grads, back = gradients(value, [*moves, dual.outputs()])
                        dual.step(back, lr_now)
                    else:
                        grads = gradients(value, moves)
                    if step.pull:
                        grads = pulled(grads, moves, [received[n] for n in names], step.pull)
                    if adam:
                        for param, grad in zip(moves, grads, strict=True):
                            grad = grad + cfg.weight_decay * param
                            param.detach().sub_(adam.change(id(param), grad), alpha=lr_now)
                        continue
                    grads = [g.contiguous() for g in grads]  # the fused kernel ignores strides
                    sgd(
                        moves,
                        grads,
                        momenta,
                        fused=True,
                        weight_decay=cfg.weight_decay,
                        momentum=cfg.momentum,
                        lr=lr_now,
                        dampening=0.0,
                        nesterov=bool(cfg.nesterov),
                        maximize=False,
                    )
        t["uploads"][slot] = self._flat[:split_at]
        t["personal"][run, device] = self._flat[split_at:]
        if kept is not None:
            kept[run, device] = self._velocity
        if cfg.annealing:
            t["taken"][run, device] = taken

    def _trainee(self) -> Trainee:
        """Made when it is first asked for."""
        if self._own is None:
            at, phase = self.phase.layout.size_shared, self.phase
            net = trainee(phase)
            values = phase.layout.views(self._flat[:at], self._flat[at:])
            momenta = phase.layout.views(self._velocity[:at], self._velocity[at:])
            Slots(net).fill(values)
            each = []
            for method in phase.methods:
                steps = []
                for step in method.steps(net):
                    names = moving(net, step.params)
                    params: list[Tensor] = [net.get_parameter(n) for n in names]
                    held = [momenta[n] if phase.training.momentum else None for n in names]
                    steps.append(Ready(step, names, params, held))
                each.append(steps)
            if name := first_layer(phase):
                layer = cast(nn.Linear, net.get_submodule(name))
                self._dual = Dual(layer, momenta[f"{name}.weight"], phase.training)
            self._own = net, dict(net.named_parameters()), each
        return self._own
