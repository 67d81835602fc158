"""All tensors of a phase, allocated once a federation, a method and a tracker fit together."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from lgfed_core.errors import SettingsError
from lgfed_core.methods import Method
from lgfed_core.models.layout import Layout, values

from . import input_checks, loss_checks, method_checks
from .federation import Federation
from .memory import zeros
from .processes import Apart
from .trackers import Tracker
from .training import LocalTraining, Phase, normalises, trainee
from .vmap_checks import refuse_unlifted

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
    methods = input_checks.one_each(federation, method)
    layout = Layout(federation.net, averaged(methods[0], federation.net))
    runs, devices, place = len(federation.seeds), federation.clients, federation.device
    size = layout.size_shared + layout.size_personal
    input_checks.data(federation, methods, training, padded)
    trial = partial(loss_checks.losses, federation, methods[0], padded)
    Apart(trial).call() if forked else trial()
    input_checks.start(start, layout, runs, devices)
    shared, personal = layout.split(start.to(place))
    if start.dim() == 2:
        personal = personal[:, None]  # [R, 1, P_p], the same for all
    elif not torch.equal(shared, shared[:, :1].expand_as(shared)):
        raise SettingsError("devices start from different values of parameters that are shared")
    else:
        shared = shared[:, 0]  # [R, P_s]
    tensors = {}

    def allocate(name: str, *shape: int) -> Tensor:
        on_cpu = place.type == "cpu"
        tensors[name] = (
            zeros(*shape, forked=forked) if on_cpu else torch.zeros(*shape, device=place)
        )
        return tensors[name]

    allocate("shared", *shared.shape).copy_(shared)
    allocate("personal", runs, devices, layout.size_personal).copy_(personal)
    slots = runs * federation.participation.cohort(devices)
    allocate("uploads", slots, layout.size_shared)
    if memory := methods[0].server_memory:
        allocate("memory", runs, memory, layout.size_shared)  # of each run's server
    if methods[0].needs_peers:
        allocate("others", slots, size)
    if training.keep_momentum:
        allocate("velocity", runs, devices, size)
    if training.annealing:
        allocate("taken", runs, devices)  # steps of each device so far
    if methods[0].relabel:
        y = federation.data.train.y
        allocate("labels", runs, len(y)).copy_(y)  # in the place of the data's own
    net = copy.deepcopy(federation.net).eval()  # for testing; training has its own copies
    phase = Phase(
        net, layout, methods, training, list(federation.seeds), federation.rows(), tensors
    )
    if normalises(trainee(phase)):
        input_checks.lonely_rows(phase)
        if padded:
            input_checks.padded_rows(phase)
    if padded:
        input_checks.padding(phase)
    if padded and (two := loss_checks.two(federation, methods[0])) is not None:
        refuse_unlifted(phase, two)

    def of_tracker(name: str, *shape: int) -> Tensor:
        if name in ENGINES or name in tensors:
            raise SettingsError(f"{type(tracker).__name__} cannot have a tensor {name!r}: taken")
        return allocate(name, *shape)

    tracker.allocate(of_tracker, phase)
    return phase


def averaged(method: Method, net: nn.Module) -> frozenset[str]:
    """What ``method`` shares, and running statistics if it averages them."""
    known = dict(net.named_parameters())
    statistics = method.batch_norm == "averaged"
    return method_checks.shared(method, net) | {
        n for n, _ in values(net) if statistics and n not in known
    }
