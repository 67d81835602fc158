"""Losses are taken of two rows before anything trains, and refused where that cannot be."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lgfed_core.errors import LgfedError, SettingsError
from lgfed_core.methods import Batch, Local, Method, Step
from lgfed_core.models.layout import values

from ..federation import Federation
from ..phase import gradients
from ..sheltered import Elsewhere, moving
from . import methods as answers

FAULTS = (RuntimeError, ValueError, IndexError, TypeError, AttributeError, KeyError)
ALIKE = 1e-4  # how near two gradients are that differ in roundings


@dataclass(frozen=True)
class Asked(Batch):
    """A batch which holds ``every`` row's groups [n, g] to what a loss asks of its own."""

    every: Tensor | None = None

    def attributes(self, kinds: int, columns: slice = slice(None)) -> Tensor:
        own = super().attributes(kinds, columns)
        every = own if self.every is None else self.every[:, columns]  # [n, g]
        for j, group in enumerate(every.T):
            if outside := sorted({*group.unique().tolist()} - {*range(kinds)}):
                raise SettingsError(
                    f"column {j} of the groups has {outside[:5]}; an adversary of {kinds} kinds "
                    f"takes whole numbers from 0 to {kinds - 1}: number the groups so, or give "
                    "the network an output for each"
                )
        return own


def losses(federation: Federation, method: Method, padded: bool) -> None:
    """Losses that cannot be taken of two rows, or of the groups that there are, are no number, or
    learn nothing.

    padded: whether a row of weight 0 must make no difference, as in batched lanes.
    """
    split, at = federation.data.train, two(federation, method)
    if at is None:
        return
    rows = held(federation, method)
    every = None if split.groups is None else split.groups[rows].cpu()
    net = copy.deepcopy(federation.net).to("cpu").eval()  # no noise
    name, top = type(method).__name__, int(split.y[at].max())

    def taken(step: Step, moves: Sequence[str], pad: bool = False) -> tuple[Tensor, list[Tensor]]:
        """A step's loss, and the parameters that move."""
        some = split.take(torch.cat([at, at[:1]]) if pad else at)
        groups = None if some.groups is None else some.groups.cpu()
        weight = torch.tensor([0.5, 0.5, 0.0], dtype=some.x.dtype) if pad else None
        local = device(net, method, moves)
        try:
            with torch.enable_grad(), torch.random.fork_rng(devices=[]):
                loss = step.loss(local, Asked(some.x.cpu(), some.y.cpu(), weight, groups, every))
        except LgfedError:
            raise
        except KeyError as error:
            raise SettingsError(
                f"{name}'s loss asks for {error}, which is no key; local.params has "
                f"{', '.join(local.params)}"
            ) from error
        except FAULTS as error:
            raise SettingsError(
                f"{name} cannot take its loss of {type(net).__name__}'s outputs of two rows, with "
                f"labels up to {top}: {error}"
            ) from error
        if not isinstance(loss, Tensor) or loss.dim():
            said = list(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise SettingsError(
                f"{name} gives a loss of {said} for a batch; it has to be one number, as "
                "batch.mean(...) of what there is for each row"
            )
        return loss, [local.params[n] for n in moves]

    steps, learnt = answers.steps(method, net), False
    for step in steps:
        moves = moving(net, step.params)
        loss, params = taken(step, moves)
        learnt = learnt or not moves or loss.requires_grad or step.pull > 0
        found = gradients(loss, params)
        again = gradients(*taken(step, moves, pad=True)) if padded else found
        if not all(_alike(a, b) for a, b in zip(found, again, strict=True)):
            raise SettingsError(
                f"{name} has another gradient where a row of weight 0 is added to a batch, as "
                'batched lanes do: use batch.mean(...), which weighs rows, or lanes="looped"'
            )
    names = [n for n, _ in net.named_parameters()]  # a network may be frozen whole
    if not learnt and not any(taken(step, names)[0].requires_grad for step in steps):
        raise SettingsError(
            f"{name} has a loss that depends on no parameter of {type(net).__name__}, and would "
            "train nothing: leave out .detach(), .item() and what else ends a gradient"
        )


def two(federation: Federation, method: Method) -> Tensor | None:
    """The numbers of two rows [2] that devices hold, one of the highest label; None without any."""
    y, rows = federation.data.train.y, held(federation, method)
    return torch.stack([rows[y[rows].argmax()], rows[0]]) if len(rows) else None


def held(federation: Federation, method: Method) -> Tensor:
    """The numbers of rows [n] that devices hold and the method takes a loss of."""
    y = federation.data.train.y
    parts = [part.train for part in federation.partitions]
    rows = torch.cat([part.all.unique().cpu() for part in parts]).unique().to(y.device)
    return rows[y[rows] >= 0] if not method.unlabelled or method.relabel else rows


def _alike(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, ALIKE, ALIKE, equal_nan=True)


def device(net: nn.Module, method: Method, moves: Sequence[str]) -> Local:
    """A device of which all is as ``net`` is; ``moves`` names the parameters that move."""
    params = {n: p.detach().clone().requires_grad_(n in moves) for n, p in net.named_parameters()}
    received = {n: v.detach().clone() for n, v in values(net)}
    others = {n: v.clone() for n, v in received.items()} if method.needs_peers else {}
    there = Elsewhere(net, {n: b.clone() for n, b in net.named_buffers()})
    return Local(there.net(params), params, received, others, 2 if others else 1, 0, there)
