"""Lanes: how many (seed, device) pairs are worked on at once, in one of two ways.

A lane is one device in one run (seed or setting). Methods are written for a single lane; this
module trains and tests many. `Looped` takes them one after another, spread over forked worker
processes: best on a CPU, where a device's parameters stay in a core's cache. `batched.Batched`
stacks them in one tensor: best on a GPU. Both give the same numbers to float tolerance, and
`Looped` the same bits for any number of workers, because random numbers belong to the lane. Dropout
is the exception: a stack draws its noise at once, so there it depends on what trains together.
"""

import copy
import ctypes
import multiprocessing
import os
import signal
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.optim.sgd import sgd

from lgfed_core.errors import LgfedError
from lgfed_core.methods import Batch, Local
from lgfed_core.seeds import coin, draw, pictures, visits

from .adam import Adam
from .dual import Dual, NotTheRows, ahead, first_layer
from .processes import one_thread
from .training import Phase, both, for_each, gradients, moving, sheltered, trainee

Job = tuple[int, int]  # (run, device)
# A worker's own network in a flat buffer, its parameters, each run's steps on a batch. A step is
# (loss, parameters that move, their momenta, when it is taken).
Trainee = tuple[nn.Module, dict[str, Tensor], list[list[tuple]]]
ROWS_AT_ONCE = 500  # in tests on a whole data set, so that activations stay in a core's cache


class Slots:
    """Where ``net`` keeps its parameters and running statistics: filled with views, not copied."""

    def __init__(self, net: nn.Module):
        self.net = net
        self.params = list(net.named_parameters())
        self.buffers = [
            (module._buffers, kind, f"{name}.{kind}")
            for name, module in net.named_modules()
            for kind in module._buffers
        ]

    def fill(self, values: dict[str, Tensor]) -> None:
        """Let ``net`` read, and write, ``values`` by name."""
        for name, p in self.params:
            p.data = values[name]
        for held, kind, name in self.buffers:
            if name in values:  # a counter of batches is not
                held[kind] = values[name]


class Looped:
    """One lane after another, on one thread per worker."""

    def __init__(self, phase: Phase, workers: int = 1):
        self.phase = phase
        self.workers = workers
        self.trained: list[Job] = []  # in the last round,
        self.before = phase.own([])  # and their personal parameters before it [L, P_p]
        self._pool: ProcessPoolExecutor | None = None
        self._flat = torch.empty(phase.layout.size_shared + phase.layout.size_personal)
        self._velocity = torch.zeros_like(self._flat)
        self._own: Trainee | None = None
        self._dual: Dual | None = None  # of the trainee's first layer, where that holds
        self._tested = Slots(copy.deepcopy(phase.net))

    def train(self, jobs: list[Job], round: int, lr: float) -> None:
        """Train each device of ``jobs``; slot i of ``uploads`` receives what device i sends.

        Reads ``shared`` and ``personal``; overwrites ``personal`` (and ``velocity`` if kept).
        """
        self.trained, self.before = jobs, self.phase.own(jobs)
        many = Counter(run for run, _ in jobs)  # participants of each run
        calls = [(slot, *job, many[job[0]], round, lr) for slot, job in enumerate(jobs)]
        self._map(self._train_one, calls, 1)

    def correct(
        self, shared: str, personal: str, rows: str, only: list[Job] | None = None
    ) -> Tensor:
        """Number of rows that each device's model gets right -> int64 [R, K].

        ``shared`` and ``personal`` name tensors of parameters, ``rows`` the rows to predict;
        ``only`` the lanes to test, all others get -1.
        """
        phase, devices = self.phase, self.phase.devices(rows)
        lanes = [(r, k) for r in range(len(phase.seeds)) for k in range(devices)]
        lanes = lanes if only is None else only
        jobs = [(shared, personal, rows, *lane) for lane in lanes]
        found = self._map(self._correct_one, jobs, -(-len(jobs) // (4 * self.workers)))
        hits = torch.full((len(phase.seeds), devices), -1)
        for lane, right in zip(lanes, found, strict=True):
            hits[lane] = right
        return hits

    def own_outputs(self, shared: str, personal: str, rows: str, **more: object) -> Tensor:
        """What each device's model says about its own ``rows`` -> [R, K, n_max, classes].

        In the order of the device's rows; zero behind them. ``more`` goes to the network.
        """
        runs, devices = len(self.phase.seeds), self.phase.devices(rows)
        jobs = [(shared, personal, rows, r, k, more) for r in range(runs) for k in range(devices)]
        found = self._map(self._own_outputs, jobs, -(-len(jobs) // (4 * self.workers)))
        return pad_sequence(found, batch_first=True).unflatten(0, (runs, devices))

    def mean_outputs(self, shared: str, personal: str, split: str) -> Tensor:
        """Outputs and probabilities, averaged over devices' models, -> [R, 2, n, classes]."""
        devices = self.phase.tensors[personal].shape[1]
        groups = [range(k, min(k + 10, devices)) for k in range(0, devices, 10)]
        jobs = [
            (shared, personal, split, r, g) for r in range(len(self.phase.seeds)) for g in groups
        ]
        sums = self._map(self._sum_outputs, jobs, 1)
        per_run = [sums[i : i + len(groups)] for i in range(0, len(sums), len(groups))]
        return torch.stack([sum(s) / devices for s in per_run])

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

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
        if any(when for *_, when in steps):
            chance = coin(phase.seeds[run], round, device)
            steps = [step for step in steps if step[3] is None or step[3](chance)]

        split, rows = phase.rows["train"]
        mine = rows[run].of(device)
        cfg = phase.training
        place = phase.seeds[run], round, device, len(mine), cfg.epochs
        seen = cfg.seen(len(mine))
        order = torch.from_numpy(visits(*place))[:, :seen]  # [epochs, n_k], or fewer
        changes = torch.from_numpy(pictures(cfg.augment, *place)) if cfg.augment else None
        taken = int(t["taken"][run, device]) if cfg.annealing else 0
        adam = Adam({id(p): p for p in params.values()}) if cfg.adam else None
        fetched = ahead(cfg.batch_size)
        if dual:
            steps = [dual.without_its_weights(step) for step in steps]
        for epoch, mine_now in enumerate(mine[order]):  # [n_k] rows of the data set
            for at in range(0, seen, cfg.batch_size):
                first = at % fetched  # row of those fetched together
                if not first:
                    soon = mine_now[at : at + fetched]
                    x_soon, y_soon = split.x[soon], split.y[soon]
                    groups_soon = None if split.groups is None else split.groups[soon]
                    if dual:
                        moving, last = (
                            epoch + at > 0,
                            epoch + 1 == cfg.epochs and at + fetched >= seen,
                        )
                        dual.start(x_soon, moving or keeps, keeps or not last)
                batch = slice(first, first + cfg.batch_size)
                x = x_soon[batch]
                if cfg.augment and changes is not None:
                    x = cfg.augment.apply(x, changes[epoch, at : at + cfg.batch_size])
                groups = None if groups_soon is None else groups_soon[batch]
                now = for_each(steps, (x, y_soon[batch], None, groups))
                lr_now = lr * cfg.annealing.factor(taken) if cfg.annealing else lr
                taken += 1
                for (loss, moves, momenta, _), given in zip(steps, now, strict=True):
                    for one in lent:
                        one.mend()
                    value = loss(local, Batch(*given))
                    if dual:
                        *grads, back = gradients(value, [*moves, dual.outputs()])
                        dual.step(back, lr_now)
                    else:
                        grads = gradients(value, moves)
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
                for loss, names, when in method.steps(net):
                    moves = moving(net, names)
                    params = [net.get_parameter(n) for n in moves]
                    held = [momenta[n] if phase.training.momentum else None for n in moves]
                    steps.append((loss, params, held, when))
                each.append(steps)
            if name := first_layer(phase):
                layer = cast(nn.Linear, net.get_submodule(name))
                self._dual = Dual(layer, momenta[f"{name}.weight"], phase.training)
            self._own = net, dict(net.named_parameters()), each
        return self._own

    @torch.no_grad()
    def _correct_one(self, shared: str, personal: str, rows: str, run: int, device: int) -> int:
        split, per_run = self.phase.rows[rows]
        mine = per_run[run].of(device)
        outputs = self._outputs(shared, personal, run, device, split.x[mine])
        return int((outputs.argmax(-1) == split.y[mine]).sum())

    @torch.no_grad()
    def _own_outputs(
        self, shared: str, personal: str, rows: str, run: int, device: int, more: dict
    ) -> Tensor:
        split, per_run = self.phase.rows[rows]
        parts = split.x[per_run[run].of(device)].split(ROWS_AT_ONCE)
        return torch.cat([self._outputs(shared, personal, run, device, x, **more) for x in parts])

    @torch.no_grad()
    def _sum_outputs(self, shared: str, personal: str, split: str, run: int, devices: range):
        x = self.phase.rows[split][0].x
        total = 0
        for k in devices:
            parts = [self._outputs(shared, personal, run, k, few) for few in x.split(ROWS_AT_ONCE)]
            total = total + both(self.phase.net, torch.cat(parts))
        return total

    def _outputs(
        self, shared: str, personal: str, run: int, device: int, x: Tensor, **more: object
    ) -> Tensor:
        self._tested.fill(
            self.phase.layout.views(*self.phase.models(shared, personal, run, device))
        )
        return sheltered(self._tested.net)(x, **more)

    def _map(self, function: Callable, jobs: list, chunk: int) -> list:
        if self.workers == 1:
            with one_thread(), torch.random.fork_rng(devices=[]):
                return [function(*job) for job in jobs]
        if self._pool is None:
            context = multiprocessing.get_context("fork")
            self._pool = ProcessPoolExecutor(self.workers, context, _start, (self, os.getpid()))
        calls = [(function.__name__, job) for job in jobs]
        try:
            with warnings.catch_warnings():  # Python 3.12 warns of fork beside threads; see _start
                warnings.simplefilter("ignore", DeprecationWarning)
                found = list(self._pool.map(_call, calls, chunksize=chunk))
            return [torch.from_numpy(f) if isinstance(f, np.ndarray) else f for f in found]
        except BrokenProcessPool as error:
            raise LgfedError(
                "a worker process died (out of memory?); run the same command again to continue, "
                "with LGFED_WORKERS=1 to need less memory"
            ) from error


# In a worker: the lanes it inherited. The parent forks as PyTorch's DataLoader does, and for the
# same reason: the data and every tensor below are simply there. One thread per worker keeps
# OpenMP from looking for threads that fork did not copy.
_lanes: Looped


def _start(lanes: Looped, parent: int) -> None:
    global _lanes
    _lanes = lanes
    _lanes.workers = 1
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: never outlive the parent
    if os.getppid() != parent:
        os._exit(1)


def _call(call: tuple) -> object:
    """A job's result; tensors as arrays, as each tensor would hold a file of the parent's open."""
    name, job = call
    found = getattr(_lanes, name)(*job)
    return found.numpy() if isinstance(found, Tensor) else found
