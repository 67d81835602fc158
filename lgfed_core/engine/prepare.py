"""All tensors of a phase, allocated once a federation, a method and a tracker fit together."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method
from lgfed_core.models.layout import Layout, values

from .checks import losses, methods as answers, rows
from .checks.layers import normalises
from .checks.vmap import refuse_unlifted
from .federation import Federation
from .memory import zeros
from .optimiser import LocalTraining
from .phase import Phase, trainee
from .processes import Apart
from .trackers import Tracker

ENGINES = (
    *("shared", "personal", "uploads", "others"),
    *("velocity", "taken", "labels", "memory"),
)  # names of tensors


def prepare(
    federation: Federation,
    method: Method | Sequence[Method],
    training: LocalTraining,
    start: Tensor,
    tracker: Tracker,
    forked: bool,
    padded: bool = False,
) -> Phase:
    """Allocate every tensor of a phase; in memory that workers share if ``forked``.

    padded: whether batches will be, so that losses have to go by the weights of their rows.
    """
    methods = answers.one_each(method, len(federation.seeds), federation.net)
    layout = Layout(federation.net, averaged(methods[0], federation.net))
    rows.data(federation, methods, training, padded)
    trial = partial(losses.losses, federation, methods[0], padded)
    Apart(trial).call() if forked else trial()
    rows.start(start, layout, len(federation.seeds), federation.clients)
    shared, personal = _started(layout, start.to(federation.device))
    tensors: dict[str, Tensor] = {}

    def allocate(name: str, *shape: int, here: bool = False) -> Tensor:
        place = federation.device
        on_cpu = here or place.type == "cpu"
        tensors[name] = (
            zeros(*shape, forked=forked) if on_cpu else torch.zeros(*shape, device=place)
        )
        return tensors[name]

    net = copy.deepcopy(federation.net).eval()  # for testing; training has its own copies
    phase = Phase(
        net, layout, methods, training, list(federation.seeds), federation.rows(), tensors
    )
    _allocate(allocate, federation, phase)
    tensors["shared"].copy_(shared)
    tensors["personal"].copy_(personal)
    if "labels" in tensors:
        tensors["labels"].copy_(federation.data.train.y)  # in the place of the data's own
    _check_rows(federation, phase, padded)

    def of_tracker(name: str, *shape: int, here: bool = False) -> Tensor:
        if name in ENGINES or name in tensors:
            raise SettingsError(f"{type(tracker).__name__} cannot have a tensor {name!r}: taken")
        return allocate(name, *shape, here=here)

    tracker.allocate(of_tracker, phase)
    return phase


def _allocate(allocate: Callable[..., Tensor], federation: Federation, phase: Phase) -> None:
    """What the engine itself needs, all zeros."""
    method, training, layout = phase.method, phase.training, phase.layout
    runs, devices = len(federation.seeds), federation.clients
    slots = runs * federation.participation.cohort(devices)
    size = layout.size_shared + layout.size_personal
    allocate("shared", runs, layout.size_shared)
    allocate("personal", runs, devices, layout.size_personal)
    allocate("uploads", slots, layout.size_shared)
    if method.server_memory:
        allocate("memory", runs, method.server_memory, layout.size_shared)
    if method.needs_peers:
        allocate("others", slots, size)
    if training.keep_momentum:
        allocate("velocity", runs, devices, size)
    if training.annealing:
        allocate("taken", runs, devices, here=True)  # steps of each device so far
    if method.relabel:
        allocate("labels", runs, len(federation.data.train.y))


def _started(layout: Layout, start: Tensor) -> tuple[Tensor, Tensor]:
    """Shared [R, P_s] and personal [R, K or 1, P_p] of a ``start`` [R, P] or [R, K, P]."""
    shared, personal = layout.split(start)
    if start.dim() == 2:
        return shared, personal[:, None]
    if not torch.equal(shared, shared[:, :1].expand_as(shared)):
        raise SettingsError("devices start from different values of parameters that are shared")
    return shared[:, 0], personal


def _check_rows(federation: Federation, phase: Phase, padded: bool) -> None:
    """Refuse networks and losses that cannot work on the rows as they come, ``padded`` or alone."""
    if normalises(trainee(phase)):
        rows.lonely_rows(phase)
        if padded:
            rows.padded_rows(phase)
    if padded:
        rows.padding(phase)
        two = losses.two(federation, phase.method)
        if two is not None:
            refuse_unlifted(phase, two)


def averaged(method: Method, net: nn.Module) -> frozenset[str]:
    """What ``method`` shares, and running statistics if it averages them."""
    known = dict(net.named_parameters())
    statistics = method.batch_norm == "averaged"
    return answers.shared(method, net) | {
        n for n, _ in values(net) if statistics and n not in known
    }
