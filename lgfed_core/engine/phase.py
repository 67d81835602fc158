"""A phase: all that is fixed while devices train, which training and testing read."""

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVarTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lgfed_core.data import Split
from lgfed_core.methods import Method, Step
from lgfed_core.models.layout import Layout
from lgfed_core.partition import ClientIndices

from .memory import to_device
from .optimiser import LocalTraining
from .sheltered import moving, own

Job = tuple[int, int]  # (run, device)
Rows = TypeVarTuple("Rows")  # what a batch is made of


class Lent:
    """Tensors that losses read, again and again: ``parts``, fresh from ``source``.

    `mend` goes back to ``source`` where a loss has written on them, or on views of them.
    """

    def __init__(self, source: Callable[[], tuple[Tensor, ...]]):
        self.source, self.parts = source, source()
        self._versions = [part._version for part in self.parts]

    def mend(self) -> None:
        """Undo what a loss has written; costs nothing where none has."""
        if [part._version for part in self.parts] != self._versions:
            self.renew()

    def renew(self) -> None:
        """Read ``source`` again, into the same tensors."""
        for part, value in zip(self.parts, self.source(), strict=True):
            part.copy_(value)
        self._versions = [part._version for part in self.parts]


class Ready(NamedTuple):
    """A method's step, and what it moves in a worker's own network."""

    step: Step
    names: list[str]  # of the parameters that move
    params: list[Tensor]
    momenta: list[Tensor | None]

    @classmethod
    def of(cls, step: Step, net: nn.Module, momenta: dict[str, Tensor]) -> "Ready":
        """What ``step`` moves in ``net``; momenta: by name, where there are any."""
        names = moving(net, step.params)
        params: list[Tensor] = [net.get_parameter(n) for n in names]
        return cls(step, names, params, [momenta.get(n) for n in names])


@dataclass(frozen=True)
class Phase:
    """All that training and testing read: fixed for a phase, so that workers inherit it."""

    net: nn.Module
    layout: Layout
    methods: list[Method]  # one per run
    training: LocalTraining
    seeds: list[int]  # one per run
    #: "train", "validation", "test", "pool"; indices per run
    rows: dict[str, tuple[Split, list[ClientIndices]]]
    tensors: dict[str, Tensor]  # shared [R, P_s], personal [R, K, P_p], uploads [S, P_s], ...

    @property
    def method(self) -> Method:
        """Any of the methods, for what they agree on."""
        return self.methods[0]

    def models(self, shared: str, personal: str, run, device) -> tuple[Tensor, Tensor]:
        """Vectors (shared [P_s], personal [P_p]) of one lane; [R, P] tensors serve all devices.

        Of several lanes, [L, P_s] and [L, P_p], where ``run`` and ``device`` are [L].
        """
        both = self.tensors[shared], self.tensors[personal]
        s, p = (v[run] if v.dim() == 2 else v[run, device] for v in both)
        return s, p

    def of(self, jobs: list[Job], name: str) -> Tensor:
        """A copy of what each job's device has in the tensor ``name`` [R, K, ...] -> [L, ...]."""
        run, device = places(jobs)
        kept = self.tensors[name]
        return kept[to_device(run, kept.device), to_device(device, kept.device)]

    def own(self, jobs: list[Job]) -> Tensor:
        """A copy of each job's personal parameters [L, P_p]; of nothing where nothing is sent."""
        sends = self.layout.size_shared or self.method.needs_peers or self.method.finish
        return self.of(jobs if sends else [], "personal")

    def steps(self, jobs: list[Job]) -> dict[str, Tensor]:
        """A copy of what each job's steps go on from: its ``velocity`` [L, P], how many it has
        ``taken`` [L]; where they are kept from round to round."""
        kept = [name for name in ("velocity", "taken") if name in self.tensors]
        return {name: self.of(jobs, name) for name in kept}

    def rest(self, before: Tensor) -> None:
        """Put what is frozen back to ``before`` [R, P_s]: an average moves it by a rounding."""
        self._put_back(self.layout.shared, self.tensors["shared"], before)

    def rest_own(self, run: int, devices: Tensor, before: Tensor) -> None:
        """Put what is frozen of ``devices`` [m] back to what it was ``before`` [m, P_p]."""
        own = self.tensors["personal"][run, devices]
        if self._put_back(self.layout.personal, own, before):
            self.tensors["personal"][run, devices] = own

    def _put_back(self, names: Sequence[str], now: Tensor, before: Tensor) -> bool:
        """Let vectors ``now`` [..., P] of ``names`` be as ``before`` where they are frozen; whether
        any is."""
        at, still = 0, {name for name, p in self.net.named_parameters() if not p.requires_grad}
        for name in names:
            size = self.layout.shapes[name].numel()
            if name in still:
                now[..., at : at + size] = before[..., at : at + size]
            at += size
        return not still.isdisjoint(names)

    def received(self, run, device) -> Lent:
        """What a lane starts from; of several lanes [L] where ``run`` and ``device`` are [L]."""
        shared, personal = self.tensors["shared"], self.tensors["personal"]
        several = isinstance(run, Tensor)  # whole rows at once: much faster than by numbers
        return Lent(
            lambda: (
                shared.index_select(0, run) if several else shared[run].clone(),
                personal[run, device].clone(),
            )
        )

    def learning(self, jobs: list[Job]) -> Counter[int]:
        """How many participants with rows each run has among ``jobs``; at least 1, and 1 where no
        objective asks (`Method.needs_peers`)."""
        _, rows = self.rows["train"]
        asked = jobs if self.method.needs_peers else ()
        found = Counter(run for run, device in asked if rows[run].size[device] > 0)
        return found | Counter(dict.fromkeys(range(len(self.seeds)), 1))

    def others(self, slot: int | Tensor) -> Lent:
        """The mean of the other participants' models, for the job (or jobs) in ``slot``."""
        at, others = self.layout.size_shared, self.tensors["others"]
        return Lent(lambda: (others[slot][..., :at].clone(), others[slot][..., at:].clone()))

    def devices(self, rows: str) -> int:
        """K, the number of devices that ``rows`` is split over."""
        return len(self.rows[rows][1][0].size)


def places(jobs: list[Job]) -> tuple[Tensor, Tensor]:
    """The run [L] and the device [L] of each job."""
    run, device = torch.tensor(jobs, dtype=torch.long).view(-1, 2).T
    return run, device


def trainee(phase: Phase) -> nn.Module:
    """A copy of the network in training; batch normalisation rests if the method says so."""
    net = copy.deepcopy(phase.net).train()
    for module in net.modules():
        if isinstance(module, _BatchNorm) and phase.method.batch_norm == "frozen":
            module.eval()
    return net


def for_each(steps: Sequence, rows: tuple[*Rows]) -> list[tuple[*Rows]]:
    """``rows`` for each of ``steps``, in tensors of its own: a loss may change what it is given."""
    return [rows if i == 0 else tuple(map(own, rows)) for i in range(len(steps))]


def gradients(loss: Tensor, params: Sequence[Tensor]) -> Sequence[Tensor]:
    """Gradients of ``loss`` by ``params``: zeros for those that it does not depend on."""
    if not params or not loss.requires_grad:
        return [torch.zeros_like(p) for p in params]
    return torch.autograd.grad(loss, params, allow_unused=True, materialize_grads=True)


@torch.no_grad()
def pulled(
    grads: Sequence[Tensor], params: Sequence[Tensor], received: Sequence[Tensor], by: float
) -> Sequence[Tensor]:
    """``grads`` with that of by/2 ||params - received||^2 added; new tensors."""
    moved = torch._foreach_sub(list(params), list(received))
    return torch._foreach_add(list(grads), list(moved), alpha=by)
