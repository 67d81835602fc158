"""Testing models as one stack of tensors: some hundred of them go through their rows together."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap

from .training import Job, Phase, both, decided, sheltered

ROWS_OF_ONE = 5_000  # of a device, tested at once, so that they fit into the memory


class StackedTests:
    """What batched lanes say about their models, ``at_once`` of them together."""

    phase: Phase
    at_once: int

    @torch.no_grad()
    def correct(
        self, shared: str, personal: str, rows: str, only: list[Job] | None = None
    ) -> Tensor:
        """Number of rows each device's model gets right -> int64 [R, K]; see `looped_tests`."""
        split, per_run = self.phase.rows[rows]
        devices = self.phase.devices(rows)
        width = max(r.index.shape[1] for r in per_run)
        index = [F.pad(r.index, (0, width - r.index.shape[1])) for r in per_run]
        jobs = (
            [(r, k) for r in range(len(per_run)) for k in range(devices)] if only is None else only
        )
        lanes = torch.tensor([r * devices + k for r, k in jobs])
        index = torch.cat(index)[lanes].to(split.x.device)  # [L, n]
        size = torch.cat([r.size for r in per_run])[lanes]  # [L]
        hits = []
        for i in range(0, len(jobs), self.at_once):
            now = slice(i, i + self.at_once)
            right = torch.zeros(len(jobs[now]), dtype=torch.int64)
            for j in range(0, width, ROWS_OF_ONE):
                at = index[now, j : j + ROWS_OF_ONE]  # [l, n]
                real = torch.arange(j, j + at.shape[1]) < size[now, None]  # [l, n]
                outputs = self._outputs(shared, personal, jobs[now], split.x[at])
                found = (decided(outputs) == split.y[at]) & real.to(at.device)
                right = right.to(at.device) + found.sum(1)
            hits.append(right)
        out = torch.full((len(per_run) * devices,), -1)
        out[lanes] = torch.cat(hits).cpu()
        return out.view(-1, devices)

    @torch.no_grad()
    def own_outputs(self, shared: str, personal: str, rows: str, **more: object) -> Tensor:
        """Each device's model on its own rows -> [R, K, n_max, classes]; see `looped_tests`."""
        split, per_run = self.phase.rows[rows]
        devices = self.phase.devices(rows)
        width = max(int(r.size.max()) for r in per_run)
        index = torch.stack([F.pad(r.index, (0, width))[:, :width] for r in per_run])  # [R, K, n]
        size = torch.stack([r.size for r in per_run])  # [R, K]
        jobs = [(r, k) for r in range(len(per_run)) for k in range(devices)]
        at, found = index.flatten(0, 1).to(split.x.device), []
        for i in range(0, len(jobs), self.at_once):
            now = slice(i, i + self.at_once)
            found.append(self._outputs(shared, personal, jobs[now], split.x[at[now]], **more))
        out = torch.cat(found).unflatten(0, (len(per_run), devices))
        real = torch.arange(width) < size.cpu()[..., None]  # [R, K, n]
        return out * real[..., None].to(out)

    @torch.no_grad()
    def mean_outputs(self, shared: str, personal: str, split: str) -> Tensor:
        """Averaged outputs and probabilities -> [R, 2, n, classes]; see `looped_tests`."""
        x = self.phase.rows[split][0].x
        runs, devices = self.phase.tensors[personal].shape[:2]
        means = []
        for r in range(runs):
            total = x.new_zeros(())
            for k in range(0, devices, 10):
                jobs = [(r, j) for j in range(k, min(k + 10, devices))]
                stacked = x.expand(len(jobs), *x.shape)  # [l, n, ...]
                outputs = self._outputs(shared, personal, jobs, stacked)  # [l, n, classes]
                total = total + both(self.phase.net, outputs).sum(0)
            means.append(total / devices)
        return torch.stack(means)

    def _outputs(
        self, shared: str, personal: str, jobs: list[Job], x: Tensor, **more: object
    ) -> Tensor:
        """x [l, n, ...] -> [l, n, classes], row i through the model of jobs[i]."""
        params = self.phase.layout.views(*self.phase.models(shared, personal, *_numbers(jobs, x)))
        return vmap(lambda p, x: filled(self.phase.net, p)(x, **more))(params, x)


def _numbers(jobs: list[Job], x: Tensor) -> tuple[Tensor, Tensor]:
    """The runs and the devices of ``jobs``, each int64 [l], beside ``x``."""
    run, device = torch.tensor(jobs, device=x.device).T
    return run, device


def filled(net: nn.Module, params: dict[str, Tensor]) -> Callable[..., Tensor]:
    """``net`` with other values, on copies of what it is given."""

    def call(*inputs, **more):
        return functional_call(net, params, inputs, more)

    return sheltered(call)
