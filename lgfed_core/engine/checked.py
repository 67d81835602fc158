"""What is refused before anything trains: rows, methods and losses that do not go together."""

import copy
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lgfed_core.data.augment import CropFlip
from lgfed_core.errors import LgfedError, SettingsError
from lgfed_core.methods import Batch, Local, Method, Step
from lgfed_core.methods.privacy import Privacy
from lgfed_core.models.layout import values

from .answers import refuse_treatments
from .embeddings import Beside, Lookups, refuse_embeddings
from .stacked_tests import filled
from .training import LocalTraining, Phase, gradients, moving, trainee

if TYPE_CHECKING:  # it imports this module
    from .federation import Federation

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


def one_each(federation: "Federation", method: Method | Sequence[Method]) -> list[Method]:
    """The method of each run, which differ in nothing that the tensors or the lanes depend on."""
    runs, net = len(federation.seeds), federation.net
    methods = [method] * runs if isinstance(method, Method) else list(method)
    if len(methods) != runs:
        raise SettingsError(f"{len(methods)} methods for {runs} runs; give one, or one for each")
    for one in methods:
        refuse_treatments(one)
    first, names = methods[0], frozenset(dict(net.named_parameters()))

    def moved(m: Method) -> list[tuple]:
        return [(names if s.params is None else s.params, s.when is None) for s in m.steps(net)]

    if unknown := frozenset().union(*(params for params, _ in moved(first))) - names:
        raise SettingsError(
            f"a step of {type(first).__name__} moves {sorted(unknown)}; {type(net).__name__} has "
            f"no parameter of that name, but {sorted(names)}"
        )
    for r, other in enumerate(methods):
        alike = {
            "class": type(other) is type(first),
            "shared": other.shared(net) == first.shared(net),
            "batch_norm": other.batch_norm == first.batch_norm,
            "steps": moved(other) == moved(first),
        }
        if not all(alike.values()):
            what = ", ".join(name for name, same in alike.items() if not same)
            raise SettingsError(
                f"the methods of runs 0 and {r} differ in {what}: {first} and {other}; runs that "
                "train together differ in numbers alone"
            )
    return methods


def data(
    federation: "Federation", methods: Sequence[Method], training: LocalTraining, padded: bool
) -> None:
    """Rows that the network does not take, labels that are missing where they are read, and
    safeguards that would do nothing."""
    rows, method = federation.data.train, methods[0]
    net = copy.deepcopy(federation.net).to("cpu").eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), Lookups() as seen:
            outputs = net(rows.x[:1].to("cpu", copy=True))  # it may work in place
    except FAULTS as error:
        what = "row 0" if isinstance(error, Beside) else f"rows of shape {list(rows.x.shape[1:])}"
        raise SettingsError(f"{type(net).__name__} does not take {what}: {error}") from error
    refuse_embeddings(net, federation.data, federation.partitions, seen, padded)
    if isinstance(outputs, Tensor) and outputs.shape[-1:] == (1,) and (rows.y > 1).any():
        raise SettingsError(
            f"{type(net).__name__} has one output, which tells labels 0 and 1 apart; those of the "
            f"rows go up to {int(rows.y.max())}"
        )
    if isinstance(training.augment, CropFlip) and rows.x.dim() != 4:
        raise SettingsError(
            f"rows have shape {list(rows.x.shape[1:])}; CropFlip is for pictures [channels, "
            "height, width]"
        )
    private = any(isinstance(one, Privacy) for m in methods for one in m.upload)
    if method.needs_peers and (private or federation.participation.farthest < math.inf):
        raise SettingsError(
            f"{type(method).__name__} shows devices each other's models as they are: Privacy of "
            "uploads, and a farthest distance, would protect nothing; leave them out"
        )
    if private and method.batch_norm == "averaged" and _normalising(net):
        raise SettingsError(
            f"{type(method).__name__} averages batch normalisation's statistics, and Privacy blurs "
            'what is sent: a variance may fall below 0; choose batch_norm="local" or "frozen"'
        )
    if method.unlabelled or not (rows.y < 0).any():
        return
    for r, part in enumerate(federation.partitions):
        for k in range(len(part)):
            if (rows.y[part.train.of(k).to(rows.y.device)] < 0).any():
                raise SettingsError(
                    f"device {k} of run {r} has rows with a label below 0, that is without one, "
                    f"which {type(method).__name__} reads"
                )


def losses(federation: "Federation", method: Method, padded: bool) -> None:
    """Losses that cannot be taken of two rows, or of the groups that there are, or no number.

    padded: whether a row of weight 0 must make no difference, as in batched lanes.
    """
    split, rows = federation.data.train, _held(federation, method)
    if not len(rows):
        return
    at = torch.stack([rows[split.y[rows].argmax()], rows[0]])  # one has the highest label
    every = None if split.groups is None else split.groups[rows].cpu()
    net = copy.deepcopy(federation.net).to("cpu").eval()  # no noise
    name, top = type(method).__name__, int(split.y[at].max())

    def taken(step: Step, pad: bool) -> Sequence[Tensor]:
        """The gradients of a step's loss."""
        rows = torch.cat([at, at[:1]]) if pad else at
        x, y = split.x[rows].cpu(), split.y[rows].cpu()
        groups = None if split.groups is None else split.groups[rows].cpu()
        weight = torch.tensor([0.5, 0.5, 0.0]).to(x) if pad else None
        local = _local(net, method, moves := moving(net, step.params))
        try:
            with torch.enable_grad(), torch.random.fork_rng(devices=[]):
                loss = step.loss(local, Asked(x, y, weight, groups, every))
        except LgfedError:
            raise
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
        return gradients(loss, [local.params[n] for n in moves])

    for step in method.steps(net):
        found = taken(step, False)
        again = taken(step, True) if padded else found
        if not all(_alike(a, b) for a, b in zip(found, again, strict=True)):
            raise SettingsError(
                f"{name} has another gradient where a row of weight 0 is added to a batch, as "
                'batched lanes do: use batch.mean(...), which weighs rows, or lanes="looped"'
            )


def _normalising(net: nn.Module) -> bool:
    return any(isinstance(module, _BatchNorm) for module in net.modules())


def _alike(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, ALIKE, ALIKE, equal_nan=True)


def _held(federation: "Federation", method: Method) -> Tensor:
    """The numbers of rows [n] that devices hold and the method takes a loss of."""
    y = federation.data.train.y
    parts = [part.train for part in federation.partitions]
    rows = torch.cat([part.index[part.mask].unique().cpu() for part in parts]).unique().to(y.device)
    return rows[y[rows] >= 0] if not method.unlabelled or method.relabel else rows


def _local(net: nn.Module, method: Method, moves: Sequence[str]) -> Local:
    """A device of which all is as ``net`` is."""
    params = {n: p.detach().clone().requires_grad_(n in moves) for n, p in net.named_parameters()}
    received = {n: v.detach().clone() for n, v in values(net)}
    others = {n: v.clone() for n, v in received.items()} if method.needs_peers else {}
    return Local(filled(net, params), params, received, others, 2 if others else 1)


def lonely_rows(phase: Phase) -> None:
    """Batch normalisation of one row has no variance, unless it has several places."""
    split, per_run = phase.rows["train"]
    with suppress(*FAULTS), torch.no_grad(), torch.random.fork_rng(devices=[]):
        trainee(phase).to("cpu")(split.x[:1].to("cpu", copy=True))
        return
    for r, rows in enumerate(per_run):
        for k, n in enumerate(rows.size.tolist()):
            seen, batch = phase.training.seen(n), phase.training.batch_size
            if seen and seen % batch == 1 % batch:
                raise SettingsError(
                    f"device {k} of run {r} has {n} rows, so that with batch_size {batch} a batch "
                    "has one, which batch normalisation cannot take; choose another batch_size, "
                    "or limit batches"
                )
