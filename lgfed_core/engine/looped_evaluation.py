"""Testing models one after another: each goes through its rows alone, in whichever process."""

import copy

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from .batched_evaluation import ROWS_OF_ONE
from .outputs import both, decided
from .phase import Job, Phase
from .processes import Spread
from .sheltered import sheltered

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


class LoopedTests(Spread):
    """What looped lanes say about their models, a job for each of them."""

    def __init__(self, phase: Phase, workers: int):
        super().__init__(workers)
        self.phase = phase
        self._tested = Slots(copy.deepcopy(phase.net))

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

    @torch.no_grad()
    def _correct_one(self, shared: str, personal: str, rows: str, run: int, device: int) -> int:
        split, per_run = self.phase.rows[rows]
        mine = per_run[run].of(device)
        hits = 0
        for some in mine.split(ROWS_OF_ONE) if len(mine) else ():
            outputs = self._outputs(shared, personal, run, device, split.x[some])
            hits += int((decided(outputs) == split.y[some]).sum())
        return hits

    @torch.no_grad()
    def _own_outputs(
        self, shared: str, personal: str, rows: str, run: int, device: int, more: dict
    ) -> Tensor:
        split, per_run = self.phase.rows[rows]
        mine = per_run[run].of(device)
        if not len(mine):  # some networks take no batch without rows
            one = self._outputs(shared, personal, run, device, split.x[:1], **more)
            return one[:0]
        parts = split.x[mine].split(ROWS_AT_ONCE)
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
        models = self.phase.models(shared, personal, run, device)
        self._tested.fill(self.phase.layout.views(*models))
        return sheltered(self._tested.net)(x, **more)
